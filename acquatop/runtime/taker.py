"""Thread that takes in what has been read, while more is being read."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Taker:
    """Thread that does one piece of work at a time, in the order in which they are handed over.

    Only one may be under way. If it fails, ``failed`` is told in that thread, and nobody can hand
    over more.
    """

    def __init__(self, name: str, failed: Callable[[BaseException], None]) -> None:
        self._failed = failed
        self._work: Callable[[], None] | None = None
        self._error: BaseException | None = None
        self._is_closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def hand_over(self, work: Callable[[], None]) -> None:
        """Let the thread do some work. What was handed over before must be finished."""
        with self._changed:
            assert self._work is None, "the work before is not finished"
            assert self._error is None, "the work before has failed"
            self._work = work
            self._changed.notify_all()
            if self._thread.ident is None:
                self._thread.start()

    def finish(self) -> None:
        """Return once the work is done; raise the error in which it has ended."""
        self.wait()
        if self._error is not None:
            raise self._error

    def wait(self) -> None:
        """Return once the work is done, however it has ended."""
        with self._changed:
            while self._work is not None:
                self._changed.wait()

    def close(self) -> None:
        """End the thread once the work is done."""
        self.wait()
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while self._has_work():
            self._do()

    def _has_work(self) -> bool:
        """Wait for work; return False if the thread is to end."""
        with self._changed:
            while self._work is None and not self._is_closed:
                self._changed.wait()
            return self._work is not None

    def _do(self) -> None:
        assert self._work is not None
        try:
            self._work()
        except BaseException as error:
            self._end(error)
            self._failed(error)
        else:
            self._end(None)

    def _end(self, error: BaseException | None) -> None:
        with self._changed:
            self._work, self._error = None, error
            self._changed.notify_all()
