"""Lock on an open file that ends with the process that holds it, however that ends."""

from __future__ import annotations

import fcntl
import os
import weakref

_held: weakref.WeakSet[ProcessLock] = weakref.WeakSet()


class ProcessLock:
    """System lock on a file, held until :meth:`release` or the end of the process.

    Programs started by this process do not inherit it, because the file is closed on exec. A fork
    closes its copy of the file at once, so that the lock stays with the original process alone.
    """

    def __init__(self, file: int) -> None:
        """Take the lock; raises ``BlockingIOError`` if another process, or another file of this
        one, has it.
        """
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.file: int | None = file
        _held.add(self)

    def release(self) -> None:
        """Close the file, which releases the lock; safe to call again."""
        if self.file is not None:
            os.close(self.file)
            self.file = None


def _release_in_fork() -> None:
    for lock in list(_held):
        lock.release()


os.register_at_fork(after_in_child=_release_in_fork)
