"""File operations of a state directory, one method each, so that tests can stop between any two."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from connectors.durable import sync_file, sync_folder, write_at


class Folder:
    """Files of one directory, by name; the package's only access to the disk.

    It holds the directory itself open. A directory that is moved stays the same, and one that
    replaces it is never written to. Not for several threads.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._at = os.open(path, os.O_RDONLY | os.O_DIRECTORY)

    def names(self) -> list[str]:
        """Return the names of all entries, sorted."""
        return sorted(os.listdir(self._at))  # noqa: PTH208 (a descriptor, not a path)

    def identity(self, name: str) -> tuple[int, int]:
        """Return the identity of a file, which a file of the same name does not share."""
        found = os.stat(name, dir_fd=self._at)
        return found.st_dev, found.st_ino

    def open(self, name: str, *, new: bool = False) -> int:
        """Open a file for reading and writing; make it if missing, and empty it if ``new``."""
        flags = os.O_RDWR | os.O_CREAT | (os.O_TRUNC if new else 0)
        return os.open(name, flags, 0o666, dir_fd=self._at)

    def open_to_read(self, name: str) -> int:
        """Open an existing file."""
        return os.open(name, os.O_RDONLY, dir_fd=self._at)

    def read(self, file: int, length: int) -> bytes:
        """Return the next bytes of a file: less than ``length`` only at its end."""
        with open(file, "rb", buffering=0, closefd=False) as stream:
            pieces = []
            while length > 0 and (piece := stream.read(min(length, 1 << 30))):
                pieces.append(piece)
                length -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def size(self, file: int) -> int:
        """Return the length of a file."""
        return os.fstat(file).st_size

    def write(self, file: int, offset: int, pieces: Iterable[bytes]) -> int:
        """Write pieces in sequence from an offset on, and return their end."""
        return write_at(file, offset, pieces)

    def cut(self, file: int, length: int) -> None:
        """Truncate a file."""
        os.ftruncate(file, length)

    def sync(self, file: int) -> None:
        """Return once the content of a file would survive a power failure."""
        sync_file(file)

    def close_file(self, file: int) -> None:
        """Close a file."""
        os.close(file)

    def rename(self, name: str, new_name: str) -> None:
        """Rename a file atomically; a file of the new name is replaced."""
        os.rename(name, new_name, src_dir_fd=self._at, dst_dir_fd=self._at)

    def remove(self, name: str) -> None:
        """Remove a file."""
        os.unlink(name, dir_fd=self._at)

    def make_folder(self, name: str) -> None:
        """Make a subfolder, unless it exists."""
        try:
            os.mkdir(name, dir_fd=self._at)
        except FileExistsError:
            return

    def sync_names(self) -> None:
        """Return once new and removed names would survive a power failure."""
        os.fsync(self._at)

    def close(self) -> None:
        """Close the directory."""
        os.close(self._at)


def make_folder(path: Path) -> None:
    """Make a folder and its missing parents; on return they would survive a power failure."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for each in missing:
        sync_folder(each.parent)


def write_file(folder: Folder, name: str, pieces: Iterable[bytes]) -> None:
    """Write a new file; its content is on the disk on return, but its name may not be yet."""
    file = folder.open(name, new=True)
    try:
        folder.write(file, 0, pieces)
        folder.sync(file)
    finally:
        folder.close_file(file)


def read_file(folder: Folder, name: str) -> bytes:
    """Return the content of a file."""
    file = folder.open_to_read(name)
    try:
        return folder.read(file, folder.size(file))
    finally:
        folder.close_file(file)
