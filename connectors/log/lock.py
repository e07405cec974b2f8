"""Lock for one writer at a time. It ends with the process that holds it, however that ends."""

from __future__ import annotations

import fcntl
import os
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path

from connectors import ConnectorError

NAME = "log.lock"
_RETRY_SECONDS = 0.05
_held: weakref.WeakSet[WriterLock] = weakref.WeakSet()


class WriterLock:
    """System lock on a file of the log's folder.

    The file stays. A forked copy of the process releases its lock at once.
    """

    def __init__(
        self,
        folder: Path,
        patience_seconds: float,
        stopping: threading.Event,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Wait for the lock. A killed holder, and programs it started, may take seconds to exit."""
        self._file: int | None = os.open(folder / NAME, os.O_RDWR | os.O_CREAT, 0o666)
        until = clock() + patience_seconds
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if stopping.wait(_RETRY_SECONDS) or clock() >= until:
                    holder = os.pread(self._file, 20, 0).decode("ascii", "replace") or "?"
                    self.release()
                    raise ConnectorError(
                        f"the log in {folder} is in use by process {holder}\n"
                        "  hint: one stream writes a log; stop the other, or give each a folder of its own"
                    ) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, str(os.getpid()).encode(), 0)
        _held.add(self)

    def release(self) -> None:
        """Release the lock for the next writer."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _forget_all() -> None:
    for lock in list(_held):
        lock.release()


os.register_at_fork(after_in_child=_forget_all)
