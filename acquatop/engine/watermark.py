"""Watermark of one stream: from its events, and from the clock while it is idle.

The watermark is computed only here. All events up to it have come, itself included: a window that
closes at the watermark or before it can be answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Watermark:
    """Watermark of a stream: one millisecond before its newest event, minus the lateness.

    An event guarantees that no event comes any more that is older than itself by more than the
    lateness. Others of the same millisecond may still come, so the watermark stays one before it.

    A stream is idle once nothing has come for ``idle_ms`` while the engine listened. From then on
    its watermark advances with the clock, from its last value. It never goes back: an event with an
    older time is late. The caller passes the clock's time in seconds; only differences count. O(1).

    >>> time = Watermark(lateness_ms=100, idle_ms=2_000, now=0.0)
    >>> time.note(5_000)
    >>> time.listen(now=0.0)
    >>> time.watermark_ms, time.is_idle(1.9), time.is_idle(2.0)
    (4899, False, True)
    >>> time.tick(now=2.5)
    >>> time.note(5_200)
    >>> time.watermark_ms
    5399
    """

    def __init__(self, lateness_ms: int, idle_ms: int | None, now: float) -> None:
        self.newest_ms: int | None = None
        self.watermark_ms: int | None = None
        self._lateness_ms = lateness_ms
        self._idle_ms = idle_ms
        self._since = now
        self._base_ms: int | None = None

    def note(self, newest_ms: int | None) -> None:
        """Note the newest time of some events."""
        if newest_ms is None:
            return
        self.watermark_ms = self.after(newest_ms)
        self.newest_ms = newest_ms if self.newest_ms is None else max(newest_ms, self.newest_ms)

    def after(self, newest_ms: int | None) -> int | None:
        """Return the watermark as it will be once the newest time of some events is noted."""
        if newest_ms is None:
            return self.watermark_ms
        reached = newest_ms - self._lateness_ms - 1
        return reached if self.watermark_ms is None else max(reached, self.watermark_ms)

    def reach(self, watermark_ms: int) -> None:
        """Note that all events up to a time have come, as the source itself says."""
        known = self.watermark_ms
        self.watermark_ms = watermark_ms if known is None else max(watermark_ms, known)

    def listen(self, now: float) -> None:
        """Note that something has come just now, or could not have come before."""
        self._since, self._base_ms = now, self.watermark_ms

    # Clock ----------------------------------------------------------------------------------------

    def is_idle(self, now: float) -> bool:
        """Return True if nothing has come for ``idle_ms``, so that time advances with the clock."""
        return self._idle_ms is not None and self._gone_ms(now) >= self._idle_ms

    def tick(self, now: float) -> None:
        """Advance the watermark as far as the clock allows."""
        if self._idle_ms is None or self._base_ms is None or self.watermark_ms is None:
            return
        beyond = self._gone_ms(now) - self._idle_ms
        self.watermark_ms = max(self.watermark_ms, self._base_ms + beyond)

    def idle_at(self) -> float | None:
        """Return the time at which the stream becomes idle if nothing comes, or None if never."""
        return None if self._idle_ms is None else self._since + self._idle_ms / 1000

    def reaches_at(self, time_ms: int) -> float | None:
        """Return the time at which the clock takes the watermark to a value, or None if never.

        Events that come before then move it.
        """
        if self._idle_ms is None or self._base_ms is None:
            return None
        return self._since + (self._idle_ms + time_ms - self._base_ms) / 1000

    def _gone_ms(self, now: float) -> int:
        return round(1000 * (now - self._since))

    # State ----------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the state without the clock, as JSON."""
        return {"newest_ms": self.newest_ms, "watermark_ms": self.watermark_ms}

    def resume(self, state: Mapping[str, Any], now: float) -> None:
        """Resume from a state; the clock's time at which it was written means nothing now."""
        self.newest_ms = state["newest_ms"]
        self.watermark_ms = state.get("watermark_ms")
        self.note(self.newest_ms)
        self.listen(now)
