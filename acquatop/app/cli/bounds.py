"""Limits that end a recording: time, events, bytes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from acquatop.engine.observer import BatchSeen, Silent

if TYPE_CHECKING:
    from acquatop.lab.record.recording import Recording


class RecordingBounds(Silent):
    """Observer that ends a recording after some milliseconds, events or bytes (None: no limit).

    Events and bytes are checked when a batch is done, so that the recording contains whole batches.
    Events are those of this run, bytes those of the folder.
    """

    def __init__(
        self,
        recording: Recording,
        lasts_ms: int | None,
        most_events: int | None,
        most_bytes: int | None,
    ) -> None:
        self._recording = recording
        self._lasts_ms = lasts_ms
        self._most_events = most_events
        self._most_bytes = most_bytes
        self._reached = threading.Event()

    @contextmanager
    def watched(self, end: Callable[[], None]) -> Iterator[None]:
        """Call ``end`` once in a thread of its own if a limit is reached, or has been already."""
        left = threading.Event()

        def wait() -> None:
            self._reached.wait(None if self._lasts_ms is None else self._lasts_ms / 1000)
            if not left.is_set():
                end()

        thread = threading.Thread(target=wait, name="acquatop-bounds", daemon=True)
        thread.start()
        try:
            yield
        finally:
            left.set()
            self._reached.set()
            thread.join()

    def batch(self, seen: BatchSeen) -> None:
        """Check the limits."""
        events, size = self._recording.events, self._recording.size
        is_full = self._most_bytes is not None and size >= self._most_bytes
        if is_full or (self._most_events is not None and events >= self._most_events):
            self._reached.set()
