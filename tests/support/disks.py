"""Folders that report each step, fail at a step, or simulate a power failure."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from acquatop.engine.state.directory import Recovered, StateDirectory
from acquatop.engine.state.folder import Folder

LEFT_BEHIND = "with what was never written so (damage, or a loss of power)"
"""Message on the end of a journal that a loss of power may leave."""
State = tuple[dict[str, bytes], list[dict[str, bytes]]]
"""Recovered state: the parts of the snapshot, and the journal."""


@contextmanager
def quick_folder() -> Iterator[Path]:
    """A folder in memory where there is one:
    nothing that is tested there depends on waiting for a real disk.
    """
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        yield Path(name)


def recovered_state(found: Recovered | None) -> State | None:
    return None if found is None else (dict(found.parts), [dict(each) for each in found.journal])


def state_of(path: Path) -> State | None:
    """Return what a directory holds, of which nothing may be damaged."""
    with StateDirectory.open(path, {}, large=32) as state:
        found = state.recover()
        assert found is None or found.problem is None or LEFT_BEHIND in found.problem, found
        return recovered_state(found)


class SteppedFolder(Folder):
    """Folder that calls ``step`` with the name of each step before it, and amid every write."""

    def __init__(self, path: Path, step: Callable[[str], None]) -> None:
        self.step = step
        super().__init__(path)

    def open(self, name: str, *, new: bool = False) -> int:
        self.step("open")
        return super().open(name, new=new)

    def write(self, file: int, offset: int, pieces: Iterable[bytes]) -> int:
        self.step("write")
        content = b"".join(pieces)
        half = len(content) // 2
        self.put(file, offset, content[:half])
        self.step("write on")
        return self.put(file, offset + half, content[half:])

    def put(self, file: int, offset: int, content: bytes) -> int:
        return super().write(file, offset, [content])

    def cut(self, file: int, length: int) -> None:
        self.step("cut")
        super().cut(file, length)

    def sync(self, file: int) -> None:
        self.step("sync")
        super().sync(file)

    def rename(self, name: str, new_name: str) -> None:
        self.step("rename")
        super().rename(name, new_name)

    def remove(self, name: str) -> None:
        self.step("remove")
        super().remove(name)

    def sync_names(self) -> None:
        self.step("sync names")
        super().sync_names()


@dataclass
class Inode:
    """A file: its content that is certainly on the disk, and its changes since."""

    content: bytes = b""
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def sync(self) -> None:
        for offset, data in self.pending:
            self.content = done(self.content, offset, data)
        self.pending = []


def done(content: bytes, offset: int, data: bytes | None) -> bytes:
    """Return a file's content after a write, or (None) a cut."""
    if data is None:
        return content[:offset].ljust(offset, b"\0")
    return content[:offset].ljust(offset, b"\0") + data + content[offset + len(data) :]


class PowerLossFolder(SteppedFolder):
    """Folder that distinguishes data on the disk for certain from data that was not synced.

    This simulation is stricter than file systems. Any changes to names that were not synced may be
    lost, in any order. Any writes to a file that were not synced may be lost, torn, or be zeros.
    """

    def __init__(self, path: Path, step: Callable[[str], None]) -> None:
        super().__init__(path, step)
        self.inodes: dict[str, Inode] = {}
        self.files: dict[int, Inode] = {}
        self.synced_names: dict[str, Inode] = {}
        self.pending_names: list[tuple[str | None, str, Inode]] = []

    def opened_again(self, step: Callable[[str], None]) -> PowerLossFolder:
        """Return the same disk as another process sees it."""
        again = PowerLossFolder(self.path, step)
        again.inodes, again.synced_names, again.pending_names = (
            self.inodes,
            self.synced_names,
            self.pending_names,
        )
        return again

    def open(self, name: str, *, new: bool = False) -> int:
        file = super().open(name, new=new)
        if name not in self.inodes:
            self.inodes[name] = Inode()
            self.pending_names.append((None, name, self.inodes[name]))
        elif new:
            self.inodes[name].pending.append((0, None))
        self.files[file] = self.inodes[name]
        return file

    def open_to_read(self, name: str) -> int:
        file = super().open_to_read(name)
        self.files[file] = self.inodes[name]
        return file

    def put(self, file: int, offset: int, content: bytes) -> int:
        self.files[file].pending.append((offset, content))
        return super().put(file, offset, content)

    def cut(self, file: int, length: int) -> None:
        super().cut(file, length)
        self.files[file].pending.append((length, None))

    def sync(self, file: int) -> None:
        super().sync(file)
        self.files[file].sync()

    def rename(self, name: str, new_name: str) -> None:
        super().rename(name, new_name)
        self.inodes[new_name] = self.inodes.pop(name)
        self.pending_names.append((name, new_name, self.inodes[new_name]))

    def remove(self, name: str) -> None:
        super().remove(name)
        self.pending_names.append((name, "", self.inodes.pop(name)))

    def sync_names(self) -> None:
        super().sync_names()
        self.synced_names = dict(self.inodes)
        self.pending_names = []

    def lose_power(self, place: Path, random: Random) -> None:
        """Write what might be found afterwards into a new folder."""
        names = dict(self.synced_names)
        keep = random.choice([0.0, 0.5, 1.0])
        for old, new, inode in self.pending_names:
            if random.random() <= keep:
                if old is not None:
                    names.pop(old, None)
                if new:
                    names[new] = inode
        place.mkdir()
        for name, inode in names.items():
            (place / name).write_bytes(self._left(inode, random))

    def _left(self, inode: Inode, random: Random) -> bytes:
        content = inode.content
        for offset, data in inode.pending:
            fate = random.choice(["done", "done", "lost", "torn", "zeros"])
            if fate == "done" or (data is None and fate != "lost"):
                content = done(content, offset, data)
            elif data is not None and fate == "torn":
                content = done(content, offset, data[: random.randrange(len(data) + 1)])
            elif data is not None and fate == "zeros":
                content = done(content, offset, bytes(len(data)))
        return content


class Failing:
    """Step function that fails at some counts of steps, with an error of the system."""

    def __init__(self, at: Iterable[int], error: int = errno.EIO) -> None:
        self.at = set(at)
        self.error = error
        self.count = 0

    def __call__(self, _step: str) -> None:
        self.count += 1
        if self.count in self.at:
            raise OSError(self.error, os.strerror(self.error))
