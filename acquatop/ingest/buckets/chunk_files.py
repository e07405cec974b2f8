"""Files of a folder that executors share, on a file system or in an object store."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from connectors.object_store.address import StoreAddress, is_address
from connectors.object_store.contract import ObjectStore, StoreError
from connectors.object_store.opening import open_objects
from connectors.object_store.patient import PatientObjects

_UNFINISHED = "unfinished-"
_PATIENCE = 60.0
"""Seconds for which an executor asks an object store again and again."""
_MOST_COPIES = 4 << 30
"""Bytes of an object store's files that a process keeps on its disk."""


class ChunkFiles(Protocol):
    """Files by name, each written once, as a whole. The methods raise OSError."""

    def put(self, name: str, content: pa.Buffer, *, durable: bool) -> None:
        """Write a file; a ``durable`` one survives a loss of power."""
        ...

    def open(self, name: str) -> pa.MemoryMappedFile:
        """Map a file; it stays readable if it is removed."""
        ...

    def names(self) -> list[str]:
        """Return the names of all files, including unfinished ones."""
        ...

    def remove(self, names: Iterable[str]) -> None:
        """Remove files; missing ones are ignored."""
        ...

    def forget(self) -> None:
        """Remove what is only on this machine, and can be had again."""
        ...


class LocalChunks:
    """Files in a folder that all executors see."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, name: str, content: pa.Buffer, *, durable: bool) -> None:
        """Write a file beside, and rename it."""
        handle, unfinished = tempfile.mkstemp(prefix=_UNFINISHED, dir=self._folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            Path(unfinished).replace(self._folder / name)
        except BaseException:
            with suppress(OSError):
                Path(unfinished).unlink()
            raise
        if durable:
            self._sync_names()

    def _sync_names(self) -> None:
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def open(self, name: str) -> pa.MemoryMappedFile:
        """Map a file."""
        return pa.memory_map(str(self._folder / name))

    def names(self) -> list[str]:
        """Return the names of all files, including unfinished ones."""
        return sorted(entry.name for entry in self._folder.iterdir() if entry.is_file())

    def remove(self, names: Iterable[str]) -> None:
        """Remove files; missing ones are ignored."""
        for name in names:
            with suppress(OSError):
                (self._folder / name).unlink()

    def forget(self) -> None:
        """Do nothing: there are no copies."""


class ChunkObjects:
    """Objects, of which those written or read here are kept on this machine's disk as well.

    The copies are those of one process, as many as have room in some bytes.
    """

    def __init__(self, objects: ObjectStore, most_copies: int = _MOST_COPIES) -> None:
        self._objects = objects
        self._most_copies = most_copies
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._turn = threading.RLock()

    def put(self, name: str, content: pa.Buffer, *, durable: bool) -> None:
        """Write an object: it is durable on return."""
        with _explained():
            self._objects.put(name, content.to_pybytes())
        self._keep(name, content)

    def open(self, name: str) -> pa.MemoryMappedFile:
        """Map its copy, which is made if it is not there."""
        with self._turn:
            path = self._copies() / name
            if path.exists():
                os.utime(path)
            else:
                self._keep(name, self._fetched(name))
            return pa.memory_map(str(path))

    def _fetched(self, name: str) -> pa.Buffer:
        with _explained():
            found = self._objects.get(name)
        if found is None:
            raise FileNotFoundError(f"{name} is missing")
        return pa.py_buffer(found.content)

    def names(self) -> list[str]:
        """Return the names of all objects."""
        with _explained():
            return self._objects.names()

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects, and their copies here."""
        removed = list(names)
        with self._turn:
            LocalChunks(self._copies()).remove(removed)
        # As with files: what stays is removed at the next start.
        with suppress(StoreError):
            self._objects.remove(removed)

    def forget(self) -> None:
        """Remove all copies."""
        with self._turn:
            if self._folder is not None:
                self._folder.cleanup()
                self._folder = None

    def _copies(self) -> Path:
        """Return the folder of the copies, which ends with the process."""
        self._folder = self._folder or tempfile.TemporaryDirectory(
            prefix="acquatop-chunks-", dir=_disk(), ignore_cleanup_errors=True
        )
        return Path(self._folder.name)

    def _keep(self, name: str, content: pa.Buffer) -> None:
        """Keep a copy, and as many of those used last as have room beside it."""
        with self._turn:
            copies, room = self._copies(), self._most_copies - content.size
            found = [(path, path.stat()) for path in copies.iterdir()]
            for path, stat in sorted(found, key=lambda each: -each[1].st_mtime_ns):
                room -= stat.st_size
                if room < 0:
                    path.unlink()
            LocalChunks(copies).put(name, content, durable=False)


@cache
def files_at(place: str) -> ChunkFiles:
    """Return the files at a path or an address; raises OSError."""
    if not is_address(place):
        return LocalChunks(Path(place))
    with _explained():
        address = StoreAddress.parse(place)
        return ChunkObjects(PatientObjects(open_objects(address), place, patience=_PATIENCE))


def _disk() -> str | None:
    """Return the folder that Spark gives its executors, and removes after them; None for any."""
    return os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or None


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        raise OSError(str(error)) from error
