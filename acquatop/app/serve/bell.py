"""From the engine's threads to the readers in the event loop: something is new."""

from __future__ import annotations

import asyncio
import threading
from typing import Protocol


class Rung(Protocol):
    """Something that readers wait at."""

    def wake(self) -> None:
        """Let those go on that wait; called in the event loop."""


class Bell:
    """Wakes in the event loop what is rung in any thread.

    However often it is rung, one call waits in the loop at most, and every place is woken once by it: an engine that
    is faster than the loop fills nothing. Before :meth:`attach` and after :meth:`detach` ringing does nothing.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self._rung: set[Rung] = set()

    def attach(self) -> None:
        """Ring in the event loop that runs now."""
        self._loop = asyncio.get_running_loop()

    def detach(self) -> None:
        """Ring no more."""
        with self._lock:
            self._loop = None

    def ring(self, place: Rung) -> None:
        """Let those at a place go on soon. O(1)."""
        with self._lock:
            if self._loop is None:
                return
            first = not self._rung
            self._rung.add(place)
            if first:
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        with self._lock:
            rung, self._rung = self._rung, set()
        for each in rung:
            each.wake()
