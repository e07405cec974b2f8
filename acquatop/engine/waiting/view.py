"""View of one stream at one moment: the facts from which a wait is explained."""

from __future__ import annotations

from dataclasses import dataclass

from acquatop.catalog.catalog import Stream
from acquatop.engine.standstill import Standstill
from acquatop.engine.stream_time import Phase
from acquatop.engine.waiting.stream_facts import IntakeFacts
from connectors.source_status import SourceStatus


@dataclass(frozen=True)
class StreamView:
    """One stream as it is at ``now``, a time of day in seconds.

    ``status`` is that of its source, None if that is unknown. ``is_carried`` says that a runtime
    reads it. ``is_live`` is False if only its present content is read. ``standstill`` is set if
    records come, but the watermark has not moved for long.
    """

    stream: Stream
    now: float
    facts: IntakeFacts
    status: SourceStatus | None
    phase: Phase
    newest_ms: int | None
    watermark_ms: int | None
    is_idle: bool
    is_carried: bool
    is_live: bool
    has_status: bool
    standstill: Standstill | None = None

    @property
    def now_ms(self) -> int:
        """The time of day in milliseconds."""
        return round(1000 * self.now)
