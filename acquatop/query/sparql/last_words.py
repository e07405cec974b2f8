"""End of what a process prints, read from a pipe."""

from __future__ import annotations

import os
import threading
from contextlib import suppress

_KEPT = 4 << 10
_PIECE = 64 << 10


class LastWords:
    """The last kilobytes that a process prints; ``writing`` is the end of the pipe for it.

    The process waits while the pipe is full, so read it whenever the process may print. Another
    thread may close it.
    """

    def __init__(self) -> None:
        self._reading, self.writing = os.pipe()
        os.set_blocking(self._reading, False)
        self._kept = b""
        self._lock = threading.Lock()
        self._is_closed = False

    def fileno(self) -> int:
        """Return the number of the end that is read."""
        return self._reading

    def read(self) -> bool:
        """Read what has been printed; return False if nobody can print any more."""
        with self._lock, suppress(BlockingIOError):
            while not self._is_closed and (piece := os.read(self._reading, _PIECE)):
                self._kept = (self._kept + piece)[-_KEPT:]
            return False
        return True

    def close(self) -> str:
        """Close the pipe; return the end of what was printed, in one line of 300 characters."""
        self.read()
        with self._lock:
            self._is_closed = True
            os.close(self._reading)
        return " ".join(self._kept[-1000:].decode(errors="replace").split())[-300:]
