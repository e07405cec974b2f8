"""Append-only file of a side output, consistent with the engine's state."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from acquatop.errors import EnvironmentProblem


class SideOutputFile:
    """Append-only file of lines.

    The file's length is part of the engine's state. Lines that a killed process wrote after that
    state are cut off before their batch is processed again (:meth:`begin`), so that each line
    stands there once. Only one stream may write to the file. Lines that would exceed ``most_bytes``
    are left out. ``what`` names the content and ``key`` the setting in the catalog, for messages.
    """

    def __init__(self, path: str, *, what: str, key: str, most_bytes: int | None = None) -> None:
        self._path = Path(path)
        self._what = what
        self._key = key
        self._most_bytes = most_bytes
        self._length: int | None = None
        self._has_begun = False

    def begin(self) -> bool:
        """Truncate the file to its known length, once; return True if that was not known.

        A new stream's file is not truncated.
        """
        if self._has_begun:
            return False
        self._has_begun, is_new = True, self._length is None
        with self._explained():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                if self._length is not None and self._length < file.tell():
                    file.truncate(self._length)
                self._length = self._path.stat().st_size
        return is_new

    def append(self, lines: Iterable[bytes], *, durable: bool) -> None:
        """Append lines; ``durable`` syncs them to the disk."""
        fitting = list(self._fitting(lines))
        if not fitting:
            return
        with self._explained(), self._path.open("ab") as file:
            file.write(b"".join(fitting))
            file.flush()
            if durable:
                os.fsync(file.fileno())
            self._length = file.tell()

    def _fitting(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        length = self._length or 0
        for line in lines:
            if self._most_bytes is None or length + len(line) <= self._most_bytes:
                length += len(line)
                yield line

    def state(self) -> dict[str, Any]:
        """Return the file's path and length.

        Before :meth:`begin` that is what others have left there: nothing has been appended yet.
        """
        length = self._length
        if length is None:
            length = self._path.stat().st_size if self._path.exists() else 0
        return {"path": str(self._path), "length": length}

    def resume(self, state: Mapping[str, Any] | None) -> None:
        """Resume from a state, unless it is that of another file."""
        if state is not None and state["path"] == str(self._path):
            self._length = state["length"]

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Translate errors of the system into messages with a remedy."""
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            hint = (
                f'name another file as the stream\'s "{self._key}" in the catalog, or make room '
                "for it"
            )
            message = f"{self._what} cannot be written to {self._path}: {reason}\n  hint: {hint}"
            raise EnvironmentProblem(message) from error
