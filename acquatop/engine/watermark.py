"""The time that has passed on one stream: as far as its events say, and as the clock says while it brings none.

The watermark is computed here and nowhere else. Everything up to it has come, itself included: a
window that closes at the watermark or before it can be answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class StreamTime:
    """A stream's watermark: one millisecond before its newest event less the lateness; the clock adds to it.

    An event says that nothing comes any more that is older than itself by more than the lateness.
    Others of the same millisecond may still come, so the watermark stays one before it.

    A stream is idle once nothing has come for ``idle_ms`` while somebody listened. From then on its
    watermark goes on as the clock does, from where it was. It never goes back: what comes with an
    older time is late. The clock is read by who calls, in seconds; only differences of it count. O(1).

    >>> time = StreamTime(lateness_ms=100, idle_ms=2_000, now=0.0)
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
        """Note the newest of some events."""
        if newest_ms is None:
            return
        self.newest_ms = newest_ms if self.newest_ms is None else max(newest_ms, self.newest_ms)
        reached = self.newest_ms - self._lateness_ms - 1
        self.watermark_ms = reached if self.watermark_ms is None else max(reached, self.watermark_ms)

    def listen(self, now: float) -> None:
        """Note that something has come just now, or could not have come before."""
        self._since, self._base_ms = now, self.watermark_ms

    # The clock ------------------------------------------------------------------------------------

    def is_idle(self, now: float) -> bool:
        """Say whether nothing has come for so long that time goes on by itself."""
        return self._idle_ms is not None and self._gone_ms(now) >= self._idle_ms

    def tick(self, now: float) -> None:
        """Let the watermark come as far as the clock takes it."""
        if self._idle_ms is None or self._base_ms is None or self.watermark_ms is None:
            return
        beyond = self._gone_ms(now) - self._idle_ms
        self.watermark_ms = max(self.watermark_ms, self._base_ms + beyond)

    def idle_at(self) -> float | None:
        """Return when the stream is idle unless something comes; None where it never is."""
        return None if self._idle_ms is None else self._since + self._idle_ms / 1000

    def reaches_at(self, time_ms: int) -> float | None:
        """Return when the clock has taken the watermark to a time unless something comes; None where it never does."""
        if self._idle_ms is None or self._base_ms is None:
            return None
        return self._since + (self._idle_ms + time_ms - self._base_ms) / 1000

    def _gone_ms(self, now: float) -> int:
        return round(1000 * (now - self._since))

    # What is kept ---------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return all but the clock, as JSON."""
        return {"newest_ms": self.newest_ms, "watermark_ms": self.watermark_ms}

    def resume(self, state: Mapping[str, Any], now: float) -> None:
        """Go on from a state; what the clock said then means nothing now."""
        self.newest_ms = state["newest_ms"]
        self.watermark_ms = state.get("watermark_ms")
        self.note(self.newest_ms)
        self.listen(now)
