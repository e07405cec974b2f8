"""Time of one stream: its watermark, and the phases in which the clock may advance it."""

from __future__ import annotations

import enum
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from acquatop.engine.watermark import Watermark
from replica.clocks import Clock


class Phase(enum.Enum):
    """Phase of a stream. Time goes on by itself only while the stream listens."""

    UNATTACHED = enum.auto()
    """Nothing can come yet."""
    LISTENING = enum.auto()
    BATCH_UNDER_WAY = enum.auto()
    HELD = enum.auto()
    """It waits for other streams, and nothing can come meanwhile."""
    ENDED = enum.auto()


class StreamTime:
    """Watermark of a stream, the phase that it is in, and the watermark announced to queries.

    The stream's own thread changes the phase, but for the end, which is final. The announced
    watermark is later than the stream's own if the stream is idle and others lead.
    """

    def __init__(self, lateness_ms: int, idle_ms: int | None, clock: Clock) -> None:
        self._clock = clock
        self._watermark = Watermark(lateness_ms, idle_ms, clock())
        self._phase = Phase.UNATTACHED
        self._phase_lock = threading.Lock()
        self._advancing = threading.Lock()
        self._has_ticked = False
        self._is_next_under_way = False
        self.announced_watermark_ms: int | None = None

    @property
    def watermark_ms(self) -> int | None:
        """The watermark."""
        return self._watermark.watermark_ms

    @property
    def newest_ms(self) -> int | None:
        """The newest time of an event."""
        return self._watermark.newest_ms

    @property
    def reached_ms(self) -> int | None:
        """The newest time of an event, or the watermark if that is later."""
        known = (self._watermark.newest_ms, self._watermark.watermark_ms)
        return max((time_ms for time_ms in known if time_ms is not None), default=None)

    @property
    def phase(self) -> Phase:
        """The present phase."""
        return self._phase

    @property
    def has_ended(self) -> bool:
        """True if the stream has ended."""
        return self._phase is Phase.ENDED

    @property
    def is_idle(self) -> bool:
        """True if the stream has brought nothing for so long that its time advances by itself."""
        is_silent = self._phase is Phase.LISTENING and self._watermark.is_idle(self._clock())
        return is_silent or self.has_ended

    def note(self, newest_ms: int | None) -> None:
        """Note the newest time of some events."""
        self._watermark.note(newest_ms)

    def reach(self, watermark_ms: int) -> None:
        """Note that all events up to a time have come, as the source itself says."""
        self._watermark.reach(watermark_ms)

    def watermark_after(self, newest_ms: int | None) -> int | None:
        """Return the watermark as it will be once the newest time of some events is noted."""
        return self._watermark.after(newest_ms)

    def announce(self, watermark_ms: int) -> None:
        """Note the watermark that queries were given for the stream."""
        known = (watermark_ms, self.announced_watermark_ms)
        self.announced_watermark_ms = max(time_ms for time_ms in known if time_ms is not None)

    # Phases ---------------------------------------------------------------------------------------

    def attach(self) -> None:
        """Listen from now on. A batch may be under way already, and stays so."""
        with self._advancing:
            if self._phase is Phase.UNATTACHED:
                self._enter(Phase.LISTENING)
            self._begin_silence()

    def listen(self) -> None:
        """Start to listen: from now on the stream is idle if it brings nothing."""
        with self._advancing:
            self._enter(Phase.LISTENING)
            self._begin_silence()

    def _begin_silence(self) -> None:
        self._has_ticked = False
        self._watermark.listen(self._clock())

    def begin_batch(self) -> None:
        """Note that a batch is under way, after the clock has advanced the time up to now."""
        with self._advancing:
            self._enter(Phase.BATCH_UNDER_WAY)
            self._watermark.tick(self._clock())

    def begin_next(self) -> bool:
        """Note that the next batch is under way before the present one ends.

        Return False if no batch is under way.
        """
        with self._advancing:
            self._is_next_under_way = self._phase is Phase.BATCH_UNDER_WAY
            return self._is_next_under_way

    def end_batch(self, *, has_times: bool) -> bool:
        """Listen again, unless the next batch is under way; return True if it is.

        A batch without times, as of bad records, does not end idleness.
        """
        with self._advancing:
            is_next, self._is_next_under_way = self._is_next_under_way, False
            self._enter(Phase.BATCH_UNDER_WAY if is_next else Phase.LISTENING)
            if has_times:
                self._begin_silence()
            return is_next

    def hold(self) -> None:
        """Note that nothing can come until :meth:`listen`."""
        self._enter(Phase.HELD)

    def end(self) -> None:
        """Note the end of the stream."""
        self._enter(Phase.ENDED)

    def _enter(self, phase: Phase) -> None:
        with self._phase_lock:
            if self._phase is not Phase.ENDED:
                self._phase = phase

    # Clock ----------------------------------------------------------------------------------------

    @contextmanager
    def advancing(self) -> Iterator[bool]:
        """Let no batch begin meanwhile; yield True if the clock may advance the time now."""
        with self._advancing:
            yield self.is_idle and not self.has_ended

    def tick(self, now: float) -> None:
        """Advance the watermark as far as the clock allows."""
        self._has_ticked = True
        self._watermark.tick(now)

    def due_in(self, closes_ms: Iterable[int], *, at_once: bool) -> float | None:
        """Return the seconds until the clock reaches the first of some times; None if unknown.

        Before the first tick of an idle stream, and if ``at_once``, the next tick is due now.
        """
        idle_at = self._watermark.idle_at()
        if idle_at is None or self._phase is not Phase.LISTENING:
            return None
        now = self._clock()
        if not self.is_idle:
            return idle_at - now
        if at_once or not self._has_ticked:
            return 0.0
        moments = (self._watermark.reaches_at(time_ms) for time_ms in closes_ms)
        first = min((moment for moment in moments if moment is not None), default=None)
        return None if first is None else first - now

    # State ----------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the state without the clock, as JSON."""
        return {**self._watermark.state(), "told_ms": self.announced_watermark_ms}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Resume from a state."""
        self._watermark.resume(state, self._clock())
        self.announced_watermark_ms = state.get("told_ms")

    def resume_watermark(self, watermark_ms: int) -> None:
        """Go on from a watermark that the clock had reached."""
        known = {"newest_ms": self._watermark.newest_ms, "watermark_ms": watermark_ms}
        self._watermark.resume(known, self._clock())
