"""Where a stream's late records are kept aside: a file that grows by a JSON line for each."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from acquatop.errors import EnvironmentProblem


class LateFile:
    """Appends what came too late.

    How long the file is belongs to the state that is kept: what was written after it by a process that was killed is
    cut off before its batch is taken in again (:meth:`begin`), so that each record stands there once. Only this
    stream may write to the file. Memory is O(records of one batch).
    """

    def __init__(self, path: str, stream: str) -> None:
        self._path = Path(path)
        self._stream = stream
        self._length: int | None = None
        self._has_begun = False

    def begin(self) -> None:
        """Make the file as long as it is known to be, once; of a new stream's nothing is cut off."""
        if self._has_begun:
            return
        self._has_begun = True
        with _explained(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                if self._length is not None and self._length < file.tell():
                    file.truncate(self._length)
                self._length = self._path.stat().st_size

    def append(self, records: Iterable[tuple[int, str]], watermark_ms: int | None, *, durable: bool) -> None:
        """Add records, given by their times and as JSON; ``durable`` waits until the disk has them."""
        lines = [_line(self._stream, time_ms, watermark_ms, record) for time_ms, record in records]
        if not lines:
            return
        with _explained(self._path), self._path.open("ab") as file:
            file.write(b"".join(lines))
            file.flush()
            if durable:
                os.fsync(file.fileno())
            self._length = file.tell()

    def state(self) -> dict[str, Any]:
        """Return which file it is, and how long."""
        return {"path": str(self._path), "length": self._length}

    def resume(self, state: Mapping[str, Any] | None) -> None:
        """Go on from a state, unless it is another file's."""
        if state is not None and state["path"] == str(self._path):
            self._length = state["length"]


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Say what to do where the system refuses something."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        hint = 'name another file as the stream\'s "late" in the catalog, or make room for it'
        message = f"late records cannot be written to {path}: {reason}\n  hint: {hint}"
        raise EnvironmentProblem(message) from error


def _line(stream: str, time_ms: int, watermark_ms: int | None, record: str) -> bytes:
    head = json.dumps({"stream": stream, "time": time_ms, "watermark": watermark_ms})
    # The record is JSON already.
    return f'{head[:-1]}, "record": {record}}}\n'.encode()
