"""Appender of whole lines of JSON to a file or the standard error."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO

from acquatop.errors import EnvironmentProblem


class JsonLines:
    """Thread-safe appender of one JSON object per line, each with a single write.

    ``-`` stands for the standard error; a file that is open already, in binary, is taken as it is.
    A file is only appended to, so that it may be truncated while it is open. Raises
    :class:`EnvironmentProblem` if it cannot be opened, and :class:`OSError` if a line cannot be
    written.
    """

    def __init__(self, target: str | BinaryIO) -> None:
        self._lock = threading.Lock()
        self._torn = False
        self._file = None if target == "-" else _opened(target)

    def write(self, line: dict[str, Any]) -> None:
        """Append a line in ASCII: nothing in it can break the line or control a terminal."""
        data = json.dumps(line, default=str).encode("ascii") + b"\n"
        with self._lock:
            if self._file is None:
                # Use the current standard error: a live table replaces it, to stay below the lines.
                sys.stderr.write(data.decode("ascii"))
                sys.stderr.flush()
            elif not self._file.closed:
                self._append(self._file, data)

    def _append(self, file: BinaryIO, data: bytes) -> None:
        # After a line that was written in part (disk full), begin on a new line.
        data = b"\n" + data if self._torn else data
        self._torn = True
        self._torn = file.write(data) < len(data)

    def close(self) -> None:
        """Close the file; later lines are dropped."""
        with self._lock:
            if self._file is not None:
                self._file.close()


def _opened(target: str | BinaryIO) -> BinaryIO:
    if not isinstance(target, str):
        return target
    try:
        return Path(target).open("ab", buffering=0)
    except OSError as error:
        raise EnvironmentProblem(
            f"{target}: the log cannot be written: {error.strerror}\n  hint: name a file in a "
            f"folder that exists, or -"
        ) from None
