"""Disk of a simulation: folders and sinks that fail, and lives that end at any of their steps."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from acquatop.answer.answer import Answer
from acquatop.answer.sinks.contract import Sink
from acquatop.engine.state.names import LOCK
from acquatop.errors import EnvironmentProblem
from tests.support.disks import Inode, PowerLossFolder


class SimulatedFolder(PowerLossFolder):
    """Folder of one life: it knows what is on the disk for certain, and closes all at a kill."""

    def __init__(self, path: Path, step: Callable[[str], None]) -> None:
        super().__init__(path, step)
        for file in sorted(path.iterdir()):
            if file.is_file():
                self.inodes[file.name] = Inode(file.read_bytes())
        self.synced_names = dict(self.inodes)
        self._opened: set[int] = set()
        self._lock: tuple[int, int] | None = None
        self._is_closed = False

    def open(self, name: str, *, new: bool = False) -> int:
        file = super().open(name, new=new)
        if name == LOCK:  # the lock closes its file by itself, unless its process dies
            self._lock = file, os.fstat(file).st_ino
        else:
            self._opened.add(file)
        return file

    def open_to_read(self, name: str) -> int:
        file = super().open_to_read(name)
        self._opened.add(file)
        return file

    def close_file(self, file: int) -> None:
        self._opened.discard(file)
        super().close_file(file)

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            super().close()

    def abandon(self) -> None:
        """Close everything, as the system does when a process is gone."""
        if self._lock is not None:
            file, identity = self._lock
            with contextlib.suppress(OSError):
                if os.fstat(file).st_ino == identity:
                    os.close(file)
        for file in self._opened:
            with contextlib.suppress(OSError):
                os.close(file)
        self._opened.clear()
        self.close()

    def after_power_loss(self, random: Random) -> None:
        """Replace the folder's files by what may be found after a loss of power."""
        place = self.path.with_name("power")
        self.lose_power(place, random)
        for file in self.path.iterdir():
            if file.is_file():
                file.unlink()
        for file in place.iterdir():
            file.rename(self.path / file.name)
        shutil.rmtree(place)


class FaultySink:
    """Sink whose writes may fail or be interrupted, as ``step`` decides."""

    def __init__(
        self, sink: Sink, step: Callable[[str], None], torn: Callable[[set[str]], None]
    ) -> None:
        self._sink = sink
        self._step = step
        self._torn = torn

    def write(self, answers: Sequence[Answer]) -> None:
        """Write, unless something happens before, within or after that."""
        self._step("before sink")
        self._sink.write(answers)
        try:
            self._step("within sink")
        except BaseException as error:
            self._torn({answer.query for answer in answers})
            if isinstance(error, OSError):
                raise EnvironmentProblem(f"cannot write answers: {error.strerror}") from error
            raise
        self._step("after sink")

    def close(self) -> None:
        """Close it."""
        self._sink.close()


class FailingSink:
    """Sink that fails at its nth write."""

    def __init__(self, nth: int) -> None:
        self._left = nth

    def write(self, answers: Sequence[Answer]) -> None:
        """Fail in the end."""
        self._left -= 1
        if self._left <= 0:
            raise ValueError("the sink is broken")

    def close(self) -> None:
        """Do nothing."""
