"""Process lock of a state directory; it ends with its process, however that ends."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from acquatop.engine.state.folder import Folder, read_file
from acquatop.engine.state.names import LOCK
from acquatop.errors import EnvironmentProblem
from connectors.process_lock import ProcessLock


class DirectoryLock:
    """Lock on a directory, held from :meth:`take` to :meth:`release` or to the end of the process.

    It locks a file that is never removed, and that describes the holder. Programs started by this
    process do not inherit it (the file is closed on exec). A fork of this process releases its copy
    at once.
    """

    def __init__(self, folder: Folder, file: int) -> None:
        self._folder = folder
        self._lock = ProcessLock(file)
        found = os.fstat(file)
        self._identity = found.st_dev, found.st_ino

    @classmethod
    def take(cls, folder: Folder, now: datetime | None = None) -> DirectoryLock:
        """Take the lock; raises :class:`EnvironmentProblem` with the name of the holder."""
        file = folder.open(LOCK)
        try:
            try:
                lock = cls(folder, file)
            except BlockingIOError:
                raise EnvironmentProblem(_in_use(folder)) from None
            lock.check()
            folder.cut(file, 0)
            folder.write(file, 0, [_describe(now or datetime.now(UTC))])
        except BaseException:
            folder.close_file(file)
            raise
        return lock

    def check(self) -> None:
        """Raise :class:`EnvironmentProblem` if the lock's file was replaced or removed."""
        try:
            kept = self._lock.file is not None and self._folder.identity(LOCK) == self._identity
        except FileNotFoundError:
            kept = False
        if not kept:
            raise EnvironmentProblem(
                f"{self._folder.path}: the directory or its lock ({LOCK}) was removed while it "
                "was in use\n"
                "  hint: stop all engines that use it, put back what was removed, and start again"
            )

    def release(self) -> None:
        """Release the directory for the next engine."""
        self._lock.release()


def _describe(now: datetime) -> bytes:
    holder = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": now.isoformat(" ", "seconds"),
    }
    return json.dumps(holder).encode() + b"\n"


def _in_use(folder: Folder) -> str:
    holder = _holder(folder)
    if not holder:
        who = "another process"
    elif (holder["pid"], holder["host"]) == (os.getpid(), socket.gethostname()):
        who = "this process itself"
    else:
        who = f"process {holder['pid']} on {holder['host']} (since {holder['since']})"
    return f"{folder.path} is in use by {who}\n  hint: stop it, or use another directory"


def _holder(folder: Folder) -> Mapping[str, Any]:
    """Return the holder's description, or nothing if it has not been written completely."""
    try:
        holder = json.loads(read_file(folder, LOCK))
    except (OSError, ValueError):
        return {}
    return holder if isinstance(holder, dict) and {"pid", "host", "since"} <= holder.keys() else {}
