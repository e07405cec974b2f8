"""A file, or the standard error, to which whole lines of JSON are appended."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO

from acquatop.errors import EnvironmentProblem


class JsonLines:
    """Appends one JSON object per line, each with a single write, for several threads.

    ``-`` stands for the standard error. A file is only ever appended to, so that it may be cut while it is open.
    Raises :class:`EnvironmentProblem` when it cannot be opened, and :class:`OSError` when a line cannot be written.
    """

    def __init__(self, target: str) -> None:
        self._lock = threading.Lock()
        self._torn = False
        self._file = _opened(target) if target != "-" else None

    def write(self, line: dict[str, Any]) -> None:
        """Append a line; what is not ASCII is escaped, so that nothing in it can break the line or steer a terminal."""
        data = json.dumps(line, default=str).encode("ascii") + b"\n"
        with self._lock:
            if self._file is None:
                # Whoever holds the standard error now: a live table puts itself there, to stay below what is said.
                sys.stderr.write(data.decode("ascii"))
                sys.stderr.flush()
            elif not self._file.closed:
                self._append(self._file, data)

    def _append(self, file: BinaryIO, data: bytes) -> None:
        # After a line of which a full disk took a part, the next begins on a line of its own.
        data = b"\n" + data if self._torn else data
        self._torn = True
        self._torn = file.write(data) < len(data)

    def close(self) -> None:
        """Close the file; what comes after is dropped."""
        with self._lock:
            if self._file is not None:
                self._file.close()


def _opened(target: str) -> BinaryIO:
    try:
        return Path(target).open("ab", buffering=0)
    except OSError as error:
        raise EnvironmentProblem(
            f"{target}: the log cannot be written: {error.strerror}\n  hint: name a file in a folder that exists, or -"
        ) from None
