"""History of a recorded remote, read independently of the engine's own reader."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from acquatop.catalog.remotes import TableSource
from acquatop.errors import UserError
from acquatop.topk.contract import FloatArray, IntArray
from replica.remotes import RemoteError
from replica.remotes.records import RecordReader, Star
from replica.remotes.table_files import TableFile, read_table_file
from replica.store import Solution
from replica.terms import number_of

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class RemoteState:
    """The remote at one time: presence of each key, and its numbers by variable (NaN for none)."""

    present: BoolArray
    numbers: dict[str, FloatArray]


@dataclass(frozen=True)
class RemoteHistory:
    """Statements in time order: the solutions of a key, by its position in ``keys``, from then on.

    ``same`` counts statements that repeat the present one, ``unsorted`` the rows behind later ones
    in the file.
    """

    keys: Sequence[str]
    times: IntArray
    codes: IntArray
    solutions: Sequence[tuple[Solution, ...]]
    unsorted: int = 0
    same: int = 0

    @property
    def begins_ms(self) -> int:
        """Beginning of the recording; earlier values are unknown."""
        return int(self.times[0])

    @property
    def ends_ms(self) -> int:
        """Time of the last row."""
        return int(self.times[-1])

    def first_times(self) -> IntArray:
        """Return the time from which each key is known."""
        firsts = np.full(len(self.keys), np.iinfo(np.int64).max)
        np.minimum.at(firsts, self.codes, self.times)
        return firsts

    def changes(self, times_ms: Sequence[int]) -> Iterator[dict[str, tuple[Solution, ...]]]:
        """Yield what is stated until each of some ascending times, and after the one before it."""
        for rows in self._until(times_ms):
            at = range(rows.start, rows.stop)
            yield {self.keys[self.codes[row]]: self.solutions[row] for row in at}

    def states(self, times_ms: Sequence[int], variables: Sequence[str]) -> Iterator[RemoteState]:
        """Yield the state at each of some ascending times, if a key has one solution at most.

        O(keys) each, O(rows) in all. Raise :class:`UserError` for a time before the recording: its
        state would be a guess.
        """
        if len(times_ms) and times_ms[0] < self.begins_ms:
            hint = (
                f"its first row is of {self.begins_ms}: begin the stream's recording then, "
                "or the remote's before"
            )
            raise UserError(
                f"what the remote had at {times_ms[0]} ms is not in its recording\n  hint: {hint}"
            )
        ones = [each[0] if each else {} for each in self.solutions]
        present = np.array([bool(each) for each in self.solutions], np.bool_)
        numbers = {name: numbers_of(ones, name) for name in variables}
        state = RemoteState(
            np.zeros(len(self.keys), np.bool_),
            {name: np.full(len(self.keys), np.nan) for name in numbers},
        )
        for rows in self._until(times_ms):
            # Of several rows of one key the last is assigned last.
            state.present[self.codes[rows]] = present[rows]
            for name, column in numbers.items():
                state.numbers[name][self.codes[rows]] = column[rows]
            yield state

    def _until(self, times_ms: Sequence[int]) -> Iterator[slice]:
        row = 0
        for time_ms in times_ms:
            until = int(np.searchsorted(self.times, time_ms, side="right"))
            yield slice(row, until)
            row = until


def numbers_of(solutions: Iterable[Solution], name: str) -> FloatArray:
    """Return a variable's numbers in some solutions, NaN where there is none."""
    return np.array([number_of(each[name]) if name in each else np.nan for each in solutions])


def read_history(source: TableSource, star: Star, *, is_many: bool) -> RemoteHistory:
    """Read the history of a star pattern's solutions from a table.

    A row without a value states that there is none from then on. Rows of one key and time hold
    together. Raise :class:`UserError` for a file that cannot be read, for rows that are invalid,
    and, unless ``is_many``, for those that give one key two values at one time.
    """
    path = Path(source.path)
    try:
        file = read_table_file(path, source.mapping.key.path, source.time, _fields(source))
    except RemoteError as error:
        raise UserError(str(error)) from None
    _check(file, path, source)
    if not len(file.ids):
        raise UserError(f"{path} has no rows: nothing is known of the remote")
    times = np.asarray(file.times.to_numpy(), dtype=np.int64)
    keys, solutions = _read(file, path, source, star, is_many=is_many)
    terms, codes = np.unique(np.array(keys, dtype=object), return_inverse=True)
    return _in_order(terms.tolist(), times, codes.astype(np.int64), solutions, path, is_many)


def _fields(source: TableSource) -> list[str]:
    return [each.path for each in source.mapping.fields]


def _check(file: TableFile, path: Path, source: TableSource) -> None:
    if file.bad:
        raise UserError(f"{path}: {file.bad:,} lines cannot be read as records")
    for column, fault in (
        (file.ids, f'no "{source.mapping.key.path}"'),
        (file.times, f'"{source.time}" is not in whole milliseconds since the epoch'),
    ):
        if column.null_count:
            row = int(
                np.flatnonzero(np.asarray(pc.is_null(column).to_numpy(zero_copy_only=False)))[0]
            )
            raise UserError(f"{_place(path, row)}: {fault}")


def _place(path: Path, row: int) -> str:
    return f"{path}:{row + (2 if path.suffix == '.csv' else 1)}"


def _read(
    file: TableFile, path: Path, source: TableSource, star: Star, *, is_many: bool
) -> tuple[list[str], list[tuple[Solution, ...]]]:
    """Return each row's key and its solutions."""
    mapping = source.mapping.as_written() if file.written else source.mapping
    reader = RecordReader(mapping, star)
    keys: list[str] = []
    solutions: list[tuple[Solution, ...]] = []
    for row, record in enumerate(file.records(np.arange(len(file.ids)))):
        reading = reader.read(record)
        if reading.is_bad or reading.key is None or (len(reading.solutions) > 1 and not is_many):
            fault = reading.fault or "more than one solution, but each key is joined with one"
            raise UserError(f"{_place(path, row)}: {fault}")
        keys.append(reading.key)
        solutions.append(tuple(reading.solutions))
    return keys, solutions


def _in_order(
    terms: list[str],
    times: IntArray,
    codes: IntArray,
    solutions: list[tuple[Solution, ...]],
    path: Path,
    is_many: bool,
) -> RemoteHistory:
    """Return the statements of rows in time order: rows of one key and time are one."""
    rows = np.lexsort((times, codes))
    is_new = np.diff(codes[rows], prepend=-1).astype(bool) | (
        np.diff(times[rows], prepend=times[rows[0]]) != 0
    )
    starts = np.flatnonzero(is_new).tolist()
    stated: list[tuple[Solution, ...]] = []
    same = 0
    for start, end in itertools.pairwise([*starts, len(rows)]):
        several = rows[start:end].tolist()
        if not is_many:
            same += _check_equal(several, terms, times, codes, solutions, path)
        found = {tuple(sorted(each.items())): each for row in several for each in solutions[row]}
        stated.append(tuple(found[each] for each in sorted(found)))
    firsts = rows[starts]
    owners = codes[firsts].tolist()
    same += sum(one == other for one, other in itertools.pairwise(zip(owners, stated, strict=True)))
    order = np.argsort(times[firsts], kind="stable")
    return RemoteHistory(
        terms,
        times[firsts][order],
        codes[firsts][order],
        [stated[at] for at in order.tolist()],
        unsorted=int((times < np.maximum.accumulate(times)).sum()),
        same=same,
    )


def _check_equal(
    rows: list[int],
    terms: list[str],
    times: IntArray,
    codes: IntArray,
    solutions: list[tuple[Solution, ...]],
    path: Path,
) -> int:
    """Return the number of rows that repeat the first; raise :class:`UserError` for another."""
    first = rows[0]
    for row in rows[1:]:
        if solutions[row] != solutions[first]:
            hint = "keep the one that holds from then on"
            message = (
                f"{terms[codes[first]]} has another value at the same time {times[first]} in row "
                f"{first + 1}"
            )
            raise UserError(f"{_place(path, row)}: {message}\n  hint: {hint}")
    return len(rows) - 1
