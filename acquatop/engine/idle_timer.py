"""A thread that lets time go on where nothing happens."""

from __future__ import annotations

import threading
from collections.abc import Callable

LEAST_SECONDS = 0.01
"""How long the thread sleeps at least."""
MOST_SECONDS = 3_600.0 * 24
"""How long it sleeps at most until it asks again: the system knows no sleep of some hundreds of years."""


class IdleTimer:
    """Calls ``act`` whenever it is due, and sleeps between.

    ``due`` says in how many seconds that is, None where nobody knows until :meth:`wake` is called.
    """

    def __init__(self, due: Callable[[], float | None], act: Callable[[], None]) -> None:
        self._due = due
        self._act = act
        self._changed = threading.Condition()
        self._woken = self._stopped = False
        self._thread: threading.Thread | None = None

    def start(self, name: str) -> None:
        """Begin, unless it has been stopped already."""
        with self._changed:
            if self._stopped or self._thread is not None:
                return
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()

    def wake(self) -> None:
        """Ask again when it is due."""
        with self._changed:
            self._woken = True
            self._changed.notify()

    def stop(self) -> None:
        """End the thread, after what it does just now. Safe to call again, and by the thread itself."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while self._wait():
            self._act()

    def _wait(self) -> bool:
        """Return once it is due; False when there is no further time."""
        while True:
            with self._changed:
                self._woken = False
            seconds = self._due()
            with self._changed:
                if not self._woken and not self._stopped:
                    self._changed.wait(None if seconds is None else min(max(seconds, LEAST_SECONDS), MOST_SECONDS))
                if self._stopped:
                    return False
            if (seconds := self._due()) is not None and seconds <= 0:
                return True
