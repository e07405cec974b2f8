"""Objects on HDFS, whose one condition is that a renaming finds no target."""

from __future__ import annotations

import hashlib
import threading
import time
import uuid
from collections.abc import Callable, Iterable

from connectors.object_store.contract import StoredObject, StoreUnavailableError, Version
from connectors.object_store.webhdfs import WebHdfs

UNFINISHED = ".unfinished"
"""Folder of files that are being written."""
LATER = ".versions"
"""Folder with a folder for each object that was replaced: its contents from the second on."""

_NUMBER, _DIGEST = "number", "sha256"
_LEFT_AFTER = 24 * 3600.0
"""Seconds after which an unfinished file is one that somebody left who was killed."""


class HdfsObjects:
    """Objects below a folder of HDFS. A few requests per call, without repeats.

    A file is written under a name of its own, and renamed when it is whole: HDFS does that at once,
    and not if there is a file of that name. A replacement has the next number in a folder, so that
    of two only one can be written. The highest number counts, and is never removed; who was held
    up until its number was free again finds a higher one, and has not replaced anything.
    """

    def __init__(self, files: WebHdfs, root: str, clock: Callable[[], float] = time.time) -> None:
        self._files = files
        self._root = root
        self._clock = clock
        self._made: set[str] = set()
        self._has_swept = False
        self._turn = threading.Lock()

    def put_new(self, name: str, content: bytes) -> Version | None:
        """Write an object unless there is one of that name; return None if there is."""
        is_new = self._write(f"{self._root}/{name}", content)
        return _version(1, content) if is_new else None

    def put_over(self, name: str, content: bytes, version: Version) -> Version | None:
        """Replace an object that still has this version; return None if it has not.

        None is also returned if another has replaced it since.
        """
        found = self.get(name)
        if found is None or found.version != version:
            return None
        number = 1 + int(version[_NUMBER])
        if not self._write(self._later(name, number), content):
            return None
        numbers = self._numbers(name)
        for older in numbers[:-1]:
            self._files.remove(self._later(name, older))
        return _version(number, content) if numbers[-1:] == [number] else None

    def put(self, name: str, content: bytes) -> None:
        """Write an object, in place of any other of that name."""
        self._write(f"{self._root}/{name}", content, over=True)

    def get(self, name: str) -> StoredObject | None:
        """Return an object, None if there is none."""
        while True:
            number = max(self._numbers(name), default=1)
            path = f"{self._root}/{name}" if number == 1 else self._later(name, number)
            content = self._files.read(path)
            if content is not None:
                return StoredObject(content, _version(number, content))
            if number == 1:
                return None
            # It has been replaced since the look.

    def names(self) -> list[str]:
        """Return the names of all objects whose names have no slash, sorted."""
        return sorted(each.name for each in self._files.list(self._root) if not each.is_folder)

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects; those that are missing are ignored."""
        for name in names:
            self._files.remove(f"{self._root}/{name}")

    def _write(self, path: str, content: bytes, *, over: bool = False) -> bool:
        """Write a file as a whole; return False if there is one, and this does not go ``over``."""
        self._sweep()
        self._make(path.rpartition("/")[0])
        unfinished = f"{self._root}/{UNFINISHED}/{uuid.uuid4().hex}"
        self._files.create(unfinished, content)
        try:
            is_written = self._files.rename(unfinished, path, over=over)
        except StoreUnavailableError:
            # A folder may have been removed by hand.
            self._made.clear()
            raise
        if not is_written:
            self._files.remove(unfinished)
        return is_written

    def _make(self, folder: str) -> None:
        if folder not in self._made:
            self._files.make_folder(folder)
            self._made.add(folder)

    def _sweep(self) -> None:
        """Remove once what was left unfinished long ago.

        If it was not left, but is a day behind, its writer begins that file again.
        """
        with self._turn:
            has_swept, self._has_swept = self._has_swept, True
        if has_swept:
            return
        folder = f"{self._root}/{UNFINISHED}"
        for each in self._files.list(folder):
            if self._clock() - each.changed_at > _LEFT_AFTER:
                self._files.remove(f"{folder}/{each.name}")

    def _numbers(self, name: str) -> list[int]:
        """Return the numbers of an object's later contents, sorted."""
        found = self._files.list(f"{self._root}/{LATER}/{name}")
        return sorted(int(each.name) for each in found if each.name.isdecimal())

    def _later(self, name: str, number: int) -> str:
        return f"{self._root}/{LATER}/{name}/{number:012d}"


def _version(number: int, content: bytes) -> Version:
    return {_NUMBER: str(number), _DIGEST: hashlib.sha256(content).hexdigest()}
