"""Log of a remote's values over time: a file that grows by a line of JSON for each value."""

from __future__ import annotations

import json
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from acquatop.engine.state.problems import explained
from acquatop.errors import UserError
from acquatop.lab.record.table_column import TableColumn, UnwritableError
from replica.store import Solution
from replica.terms import can_be_asked

TIME, SUBJECT = "time_ms", "subject"


@dataclass
class _Held:
    """Last line of a key: its time and content, and the time of the key's last request."""

    time_ms: int
    line: str
    asked_ms: int | None = None


class RemoteTape:
    """Append-only log of a remote's values, with each key's last line. Safe for several threads.

    The file has one value of a key at one time. If a key gets another value at the time of its last
    line or earlier, the new line is dated one millisecond after that. A solution that a table
    cannot hold is not written; ``left_out`` counts these by reason. ``changed`` is called when a
    column's datatype has changed, before the line is written. An unterminated last line, left by a
    killed process, is cut off. Memory is O(keys); a line costs O(1).
    """

    def __init__(
        self,
        path: Path,
        key: str,
        columns: Sequence[TableColumn],
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.path = path
        self.left_out: Counter[str] = Counter()
        self.count = 0
        self.size = 0
        self._key = key
        self._columns = columns
        self._changed = changed
        self._lock = threading.Lock()
        # Keys that were not requested for longest come first.
        self._keys: OrderedDict[str, _Held] = OrderedDict()
        self._file: BinaryIO | None = None
        with explained(path, "open the recording"):
            self._open()

    def __len__(self) -> int:
        return len(self._keys)

    def meet(self, keys: Iterable[str], time_ms: int) -> None:
        """Note keys of the stream: a key has no value until the remote gives one."""
        with self._lock:
            new = [key for key in keys if key not in self._keys and _is_usable(key)]
            self._write(
                [line for key in new if (line := self._line(key, None, time_ms)) is not None]
            )
            for key in new:
                self._keys.move_to_end(key, last=False)

    def add(self, keys: Iterable[str], solutions: Iterable[Solution], time_ms: int) -> None:
        """Add a remote's reply at a time. The ``keys`` without a solution have no value then."""
        with self._lock:
            said: dict[str, Solution | None] = dict.fromkeys(keys)
            for solution in solutions:
                key = solution[self._key]
                other = said.get(key)
                # Of several solutions the first in the terms' order is recorded.
                if other is not None:
                    self.left_out["a further solution of one key"] += 1
                said[key] = (
                    solution
                    if other is None
                    else min(other, solution, key=lambda each: sorted(each.items()))
                )
            lines = [
                self._line(key, each, time_ms) for key, each in said.items() if self._can_hold(key)
            ]
            self._write([line for line in lines if line is not None])
            for key in said:
                if key in self._keys:
                    self._keys[key].asked_ms = time_ms
                    self._keys.move_to_end(key)

    def due(self, most: int, time_ms: int) -> list[str]:
        """Return keys not requested for a time, those not requested for longest first."""
        with self._lock:
            found: list[str] = []
            for key, held in self._keys.items():
                if held.asked_ms == time_ms or len(found) == most:
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

    def _line(self, key: str, solution: Solution | None, time_ms: int) -> str | None:
        """Return the line of a value; None if the log already has it, or it cannot be written."""
        try:
            said = self._said(solution)
        except UnwritableError as error:
            self.left_out[str(error)] += 1
            return None
        held = self._keys.get(key)
        if held is not None and time_ms <= held.time_ms:
            if held.line == said:
                return None
            time_ms = held.time_ms + 1
        if held is None:
            self._keys[key] = _Held(time_ms, said)
        else:
            held.time_ms, held.line = time_ms, said
        return f'{{"{TIME}": {time_ms}, "{SUBJECT}": {json.dumps(key[1:-1])}{said}}}\n'

    def _said(self, solution: Solution | None) -> str:
        if solution is None:
            return ""
        before = [column.datatype for column in self._columns]
        try:
            return "".join(
                f', "{column.field}": {column.write(_term(column, solution))}'
                for column in self._columns
            )
        finally:
            if [column.datatype for column in self._columns] != before:
                self._changed()

    def _write(self, lines: Sequence[str]) -> None:
        if not lines or self._file is None:
            return
        data = "".join(lines).encode()
        with explained(self.path, "write the recording"):
            self._file.write(data)
            self._file.flush()
        self.count += len(lines)
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
        self._keys[key] = _Held(time_ms, text[len(head) : -2])
        self._keys.move_to_end(key)


def _term(column: TableColumn, solution: Solution) -> str:
    term = column.constant if column.variable is None else solution.get(column.variable)
    if term is None:
        raise UnwritableError("a solution without a value for each variable")
    return term


def _is_usable(key: str) -> bool:
    return key.startswith("<") and can_be_asked(key)
