"""Gate before a stream's next batch: there it waits for streams that lag."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Gate:
    """Gate of one stream; any thread may wake who waits there."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_released = False
        self._error: BaseException | None = None

    def is_open(self, must_wait: Callable[[], bool]) -> bool:
        """Return True if the stream need not wait; raises the error that has ended the stream."""
        if self._error is not None:
            raise self._error
        return self._is_released or not must_wait()

    def pass_through(self, must_wait: Callable[[], bool]) -> None:
        """Return once the gate is open; check again at each :meth:`wake`."""
        with self._changed:
            while not self.is_open(must_wait):
                self._changed.wait()

    def wake(self) -> None:
        """Let who waits check again."""
        with self._changed:
            self._changed.notify_all()

    def release(self) -> None:
        """Open the gate for good."""
        self._is_released = True
        self.wake()

    def fail(self, error: BaseException) -> None:
        """Raise an error to who passes from now on."""
        self._error = error
