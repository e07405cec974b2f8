"""Timer thread that advances the time of an idle stream."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

LEAST_SECONDS = 0.01
"""Shortest sleep of the thread."""
MOST_SECONDS = 3_600.0 * 24
"""Longest sleep until it checks again: the system does not support sleeps of centuries."""


class Timer(Protocol):
    """Timer of one stream."""

    def start(self, name: str) -> None:
        """Start, under a name for people."""
        ...

    def wake(self) -> None:
        """Check again when it is due."""
        ...

    def stop(self) -> None:
        """End after the present call. Safe to call again, and in the timer's own call."""
        ...


TimerFactory = Callable[[Callable[[], float | None], Callable[[], None]], Timer]
"""Maker of a timer from ``due`` and ``act``, as :class:`IdleTimer` takes them."""


class IdleTimer:
    """Timer that calls ``act`` whenever it is due, and sleeps in between.

    ``due`` returns the seconds until then, or None if that is unknown until :meth:`wake` is called.
    """

    def __init__(self, due: Callable[[], float | None], act: Callable[[], None]) -> None:
        self._due = due
        self._act = act
        self._changed = threading.Condition()
        self._woken = self._stopped = False
        self._thread: threading.Thread | None = None

    def start(self, name: str) -> None:
        """Start the thread, unless it was stopped already."""
        with self._changed:
            if self._stopped or self._thread is not None:
                return
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()

    def wake(self) -> None:
        """Check again when it is due."""
        with self._changed:
            self._woken = True
            self._changed.notify()

    def stop(self) -> None:
        """End the thread after the present call. Safe to call again, and in the thread itself."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while self._wait():
            self._act()

    def _wait(self) -> bool:
        """Return True once it is due; False if it was stopped."""
        while True:
            with self._changed:
                self._woken = False
            seconds = self._due()
            with self._changed:
                if not self._woken and not self._stopped:
                    self._changed.wait(
                        None if seconds is None else min(max(seconds, LEAST_SECONDS), MOST_SECONDS)
                    )
                if self._stopped:
                    return False
            if (seconds := self._due()) is not None and seconds <= 0:
                return True
