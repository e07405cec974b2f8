"""Log of a remote's values over time: a file that grows by a line of JSON for each solution."""

from __future__ import annotations

import json
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from acquatop.engine.state.problems import explained
from acquatop.errors import UserError
from acquatop.lab.record.table_column import TableColumn, UnwritableError
from replica.store import Solution
from replica.terms import can_be_asked

TIME, SUBJECT = "time_ms", "subject"

Written = tuple[str, ...]
"""Solutions of a key as they are written."""


@dataclass
class _Held:
    """Last content of a key: its time, and for each part the solutions."""

    time_ms: int
    parts: tuple[Written, ...]


class RemoteTape:
    """Append-only log of a remote's values, with each key's last lines. Safe for several threads.

    The remote is asked for one or more ``parts``: sets of columns that have no predicate in common.
    All lines of a key at one time hold together: a line for each solution, with one of each part.
    If a key gets other values at the time of its last lines or earlier, the new lines are dated one
    millisecond after that. A solution that a table cannot hold is not written; ``left_out`` counts
    these by reason. ``changed`` is called when a column's datatype has changed, before the line is
    written. An unterminated last line, left by a killed process, is cut off. Memory is O(keys and
    their solutions); a line costs O(1).
    """

    def __init__(
        self,
        path: Path,
        parts: Sequence[Sequence[TableColumn]],
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.path = path
        self.left_out: Counter[str] = Counter()
        self.count = 0
        self.size = 0
        self._parts = parts
        self._changed = changed
        self._lock = threading.Lock()
        self._keys: dict[str, _Held] = {}
        # Keys that were not requested for longest come first, with the time of the last request.
        self._asked: list[OrderedDict[str, int | None]] = [OrderedDict() for _ in parts]
        self._file: BinaryIO | None = None
        with explained(path, "open the recording"):
            self._open()

    def __len__(self) -> int:
        return len(self._keys)

    def meet(self, part: int, keys: Iterable[str], time_ms: int) -> None:
        """Note keys to ask for: a key has no value until the remote gives one."""
        with self._lock:
            asked = self._asked[part]
            new = [key for key in keys if key not in asked and _is_usable(key)]
            self._write(
                line
                for key in new
                if key not in self._keys
                for line in self._lines(key, {}, time_ms)
            )
            for key in new:
                asked[key] = None
                asked.move_to_end(key, last=False)

    def add(self, part: int, said: Mapping[str, Sequence[Solution]], time_ms: int) -> None:
        """Add a remote's reply at a time: the solutions of each key that was asked for."""
        with self._lock:
            usable = {key: several for key, several in said.items() if self._can_hold(key)}
            self._write(
                line
                for key, several in usable.items()
                if (written := self._written(part, several)) is not None
                for line in self._lines(key, {part: written}, time_ms)
            )
            asked = self._asked[part]
            for key in usable:
                if key in self._keys:
                    asked[key] = time_ms
                    asked.move_to_end(key)

    def due(self, part: int, most: int, time_ms: int) -> list[str]:
        """Return keys not requested for a time, those not requested for longest first."""
        with self._lock:
            found: list[str] = []
            for key, asked_ms in self._asked[part].items():
                if asked_ms == time_ms or len(found) == most:
                    break
                found.append(key)
            return found

    def close(self) -> None:
        """Close the file; later writes are ignored."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    # Lines ----------------------------------------------------------------------------------------

    def _can_hold(self, key: str) -> bool:
        usable = _is_usable(key)
        if not usable:
            self.left_out["a key that is no IRI"] += 1
        return usable

    def _lines(self, key: str, said: Mapping[int, Written], time_ms: int) -> list[str]:
        """Return the lines of a key with new solutions of some parts; none if the log has them."""
        held = self._keys.get(key)
        before = ((),) * len(self._parts) if held is None else held.parts
        parts = tuple(said.get(at, several) for at, several in enumerate(before))
        if held is not None and time_ms <= held.time_ms:
            if held.parts == parts:
                return []
            time_ms = held.time_ms + 1
        self._keys[key] = _Held(time_ms, parts)
        head = f'{{"{TIME}": {time_ms}, "{SUBJECT}": {json.dumps(key[1:-1])}'
        # Of parts with fewer solutions the last is repeated: equal ones are one.
        return [
            f"{head}{''.join(each[min(at, len(each) - 1)] for each in parts if each)}}}\n"
            for at in range(max(1, *map(len, parts)))
        ]

    def _written(self, part: int, solutions: Sequence[Solution]) -> Written | None:
        """Return solutions as they are written; None if there are some, and none can be."""
        found: dict[str, None] = {}
        for solution in solutions:
            try:
                found[self._said(part, solution)] = None
            except UnwritableError as error:
                self.left_out[str(error)] += 1
        return None if solutions and not found else tuple(sorted(found))

    def _said(self, part: int, solution: Solution) -> str:
        columns = self._parts[part]
        before = [column.datatype for column in columns]
        try:
            said = "".join(
                f', "{column.field}": {column.write(term)}'
                for column in columns
                if (term := _term(column, solution)) is not None
            )
            if not said:
                raise UnwritableError("a solution without a value for any variable")
            return said
        finally:
            if [column.datatype for column in columns] != before:
                self._changed()

    def _write(self, lines: Iterable[str]) -> None:
        written = list(lines)
        if not written or self._file is None:
            return
        data = "".join(written).encode()
        with explained(self.path, "write the recording"):
            self._file.write(data)
            self._file.flush()
        self.count += len(written)
        self.size += len(data)

    def _open(self) -> None:
        self._file = self.path.open("a+b")
        self._file.seek(0)
        for line in self._file:
            if not line.endswith(b"\n"):
                break
            self.size += len(line)
            self._remember(line)
        self._file.truncate(self.size)

    def _remember(self, line: bytes) -> None:
        text = line.decode(errors="replace")
        try:
            record = json.loads(text)
            key, time_ms = f"<{record[SUBJECT]}>", int(record[TIME])
            head = f'{{"{TIME}": {time_ms}, "{SUBJECT}": {json.dumps(record[SUBJECT])}'
        except (ValueError, KeyError, TypeError):
            head = ""
        if not head or not text.startswith(head):
            hint = "name a new folder with --out"
            raise UserError(
                f"{self.path} holds lines that are not as they are recorded\n  hint: {hint}"
            )
        said = self._split(text[len(head) : -2])
        held = self._keys.get(key)
        if held is not None and held.time_ms == time_ms:
            both = zip(held.parts, said, strict=True)
            said = tuple(tuple(dict.fromkeys((*one, *other))) for one, other in both)
        self._keys[key] = _Held(time_ms, said)
        for asked, several in zip(self._asked, said, strict=True):
            if several or not any(said):
                asked[key] = None
                asked.move_to_end(key)

    def _split(self, text: str) -> tuple[Written, ...]:
        """Return what a line says of each part. No value contains the beginning of another."""
        starts = [
            min(
                (at for each in columns if (at := text.find(f', "{each.field}": ')) >= 0),
                default=-1,
            )
            for columns in self._parts
        ]
        ends = sorted([*(start for start in starts if start >= 0), len(text)])
        return tuple(
            () if start < 0 else (text[start : next(end for end in ends if end > start)],)
            for start in starts
        )


@dataclass
class PatternTape:
    """Log of one pattern's solutions: a part of a remote's log, and the variables of its columns.

    ``names`` maps variables of the pattern to those of the part's columns. Of several solutions of
    a key only the first in the terms' order is recorded, unless the pattern joins ``many``. Answers
    give other patterns keys: ``gives`` has the variable of each.
    """

    tape: RemoteTape
    key: str
    part: int = 0
    names: Mapping[str, str] | None = None
    many: bool = False
    gives: Sequence[tuple[str, PatternTape]] = ()

    def meet(self, keys: Iterable[str], time_ms: int) -> None:
        """Note keys to ask for."""
        self.tape.meet(self.part, keys, time_ms)

    def add(self, keys: Iterable[str], solutions: Iterable[Solution], time_ms: int) -> None:
        """Add a remote's reply at a time. The ``keys`` without a solution have no value then."""
        said: dict[str, list[Solution]] = {key: [] for key in keys}
        for solution in solutions:
            said.setdefault(solution[self.key], []).append(solution)
        for variable, other in self.gives:
            given = (each.get(variable) for several in said.values() for each in several)
            other.meet([term for term in given if term is not None], time_ms)
        self.tape.add(self.part, {key: self._kept(each) for key, each in said.items()}, time_ms)

    def due(self, most: int, time_ms: int) -> list[str]:
        """Return keys not requested for a time, those not requested for longest first."""
        return self.tape.due(self.part, most, time_ms)

    def _kept(self, solutions: Sequence[Solution]) -> list[Solution]:
        if len(solutions) > 1 and not self.many:
            self.tape.left_out["a further solution of one key"] += len(solutions) - 1
            solutions = [min(solutions, key=lambda each: sorted(each.items()))]
        names = self.names
        if names is None:
            return list(solutions)
        return [{names.get(name, name): term for name, term in each.items()} for each in solutions]


def _term(column: TableColumn, solution: Solution) -> str | None:
    term = column.constant if column.variable is None else solution.get(column.variable)
    if term is None and not column.is_optional:
        raise UnwritableError("a solution without a value for each variable")
    return term


def _is_usable(key: str) -> bool:
    return key.startswith("<") and can_be_asked(key)
