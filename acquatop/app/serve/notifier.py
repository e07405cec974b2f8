"""Wake-up calls from the engine's threads to the readers in the event loop."""

from __future__ import annotations

import asyncio
import threading
from typing import Protocol


class Rung(Protocol):
    """A place at which readers wait."""

    def wake(self) -> None:
        """Wake the waiting readers; called in the event loop."""


class Notifier:
    """Wake-up calls into the event loop, from any thread.

    At most one call waits in the loop, however often the bell is rung, and it wakes every place
    once. So an engine that is faster than the loop fills no queue. Before :meth:`attach` and after
    :meth:`detach`, ringing does nothing.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self._rung: set[Rung] = set()

    def attach(self) -> None:
        """Connect to the event loop that runs now."""
        self._loop = asyncio.get_running_loop()

    def detach(self) -> None:
        """Disconnect from the event loop."""
        with self._lock:
            self._loop = None

    def ring(self, place: Rung) -> None:
        """Wake the readers at a place soon. O(1)."""
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
