"""History of a recorded remote in columns, read independently of the engine's own reader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    """Rows in time order: presence and numbers of a key, by its position in ``keys``, from then on.

    ``same`` counts rows that repeat the present value, ``unsorted`` those behind later ones in the
    file.
    """

    keys: Sequence[str]
    times: IntArray
    codes: IntArray
    present: BoolArray
    numbers: dict[str, FloatArray]
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

    def states(self, times_ms: Sequence[int]) -> Iterator[RemoteState]:
        """Yield the remote's state at each of some ascending times. O(keys) each, O(rows) in all.

        Raise :class:`UserError` for a time before the recording: its state would be a guess.
        """
        state = RemoteState(
            np.zeros(len(self.keys), np.bool_),
            {name: np.full(len(self.keys), np.nan) for name in self.numbers},
        )
        row = 0
        for time_ms in times_ms:
            if time_ms < self.begins_ms:
                hint = (
                    f"its first row is of {self.begins_ms}: begin the stream's recording then, "
                    "or the remote's before"
                )
                raise UserError(
                    f"what the remote had at {time_ms} ms is not in its recording\n  hint: {hint}"
                )
            until = int(np.searchsorted(self.times, time_ms, side="right"))
            rows = slice(row, until)
            # Of several rows of one key the last is assigned last.
            state.present[self.codes[rows]] = self.present[rows]
            for name, column in self.numbers.items():
                state.numbers[name][self.codes[rows]] = column[rows]
            row = until
            yield state


def read_history(source: TableSource, star: Star, variables: Sequence[str]) -> RemoteHistory:
    """Read the history of a star pattern's variables from a table.

    A row without a value states that there is none from then on. Raise :class:`UserError` for a
    file that cannot be read, and for rows that are invalid, or that give one key two values at one
    time.
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
    keys, solutions = _read(file, path, source, star)
    terms, codes = np.unique(np.array(keys, dtype=object), return_inverse=True)
    columns = {name: np.array([_number(each, name) for each in solutions]) for name in variables}
    return _in_order(terms.tolist(), times, codes.astype(np.int64), solutions, columns, path)


def _fields(source: TableSource) -> list[str]:
    return [each.path for each in source.mapping.properties.values()]


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
    file: TableFile, path: Path, source: TableSource, star: Star
) -> tuple[list[str], list[Solution | None]]:
    """Return each row's key and its solution; None if it states that there is none."""
    mapping = source.mapping.as_written() if file.written else source.mapping
    reader = RecordReader(mapping, star)
    keys: list[str] = []
    solutions: list[Solution | None] = []
    for row, record in enumerate(file.records(np.arange(len(file.ids)))):
        reading = reader.read(record)
        if reading.is_bad or reading.key is None or len(reading.solutions) > 1:
            fault = reading.fault or "more than one solution: a replay joins each key with one"
            raise UserError(f"{_place(path, row)}: {fault}")
        keys.append(reading.key)
        solutions.append(reading.solutions[0] if reading.solutions else None)
    return keys, solutions


def _number(solution: Solution | None, name: str) -> float:
    return float("nan") if solution is None or name not in solution else number_of(solution[name])


def _in_order(
    terms: list[str],
    times: IntArray,
    codes: IntArray,
    solutions: list[Solution | None],
    columns: dict[str, FloatArray],
    path: Path,
) -> RemoteHistory:
    present = np.array([each is not None for each in solutions], np.bool_)
    by_key = np.lexsort((times, codes))
    same = 0
    for row, next_row in zip(by_key[:-1].tolist(), by_key[1:].tolist(), strict=True):
        if codes[row] != codes[next_row]:
            continue
        is_same = solutions[row] == solutions[next_row]
        same += is_same
        if times[row] == times[next_row] and not is_same:
            hint = "keep the one that holds from then on"
            message = (
                f"{terms[codes[row]]} has another value at the same time {times[row]} in row "
                f"{row + 1}"
            )
            raise UserError(f"{_place(path, next_row)}: {message}\n  hint: {hint}")
    order = np.argsort(times, kind="stable")
    return RemoteHistory(
        terms,
        times[order],
        codes[order],
        present[order],
        {name: column[order] for name, column in columns.items()},
        unsorted=int((times < np.maximum.accumulate(times)).sum()),
        same=same,
    )
