"""A file that grows by what is kept aside of a stream, as far as the state that is kept knows it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from acquatop.errors import EnvironmentProblem


class AsideFile:
    """Appends lines.

    How long the file is belongs to the state that is kept: what was written after it by a process that was killed is
    cut off before its batch is taken in again (:meth:`begin`), so that each line stands there once. Only one
    stream may write to the file. Lines that would make it longer than ``most_bytes`` are left out. ``what`` is
    kept there, and ``key`` names it in the catalog, for messages.
    """

    def __init__(self, path: str, *, what: str, key: str, most_bytes: int | None = None) -> None:
        self._path = Path(path)
        self._what = what
        self._key = key
        self._most_bytes = most_bytes
        self._length: int | None = None
        self._has_begun = False

    def begin(self) -> None:
        """Make the file as long as it is known to be, once; of a new stream's nothing is cut off."""
        if self._has_begun:
            return
        self._has_begun = True
        with self._explained():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                if self._length is not None and self._length < file.tell():
                    file.truncate(self._length)
                self._length = self._path.stat().st_size

    def append(self, lines: Iterable[bytes], *, durable: bool) -> None:
        """Add lines; ``durable`` waits until the disk has them."""
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
        """Return which file it is, and how long."""
        return {"path": str(self._path), "length": self._length}

    def resume(self, state: Mapping[str, Any] | None) -> None:
        """Go on from a state, unless it is another file's."""
        if state is not None and state["path"] == str(self._path):
            self._length = state["length"]

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say what to do where the system refuses something."""
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            hint = f'name another file as the stream\'s "{self._key}" in the catalog, or make room for it'
            message = f"{self._what} cannot be written to {self._path}: {reason}\n  hint: {hint}"
            raise EnvironmentProblem(message) from error
