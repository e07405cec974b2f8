"""Maker of a stream's jobs: what to do with the records of a batch, where they are."""

from __future__ import annotations

from collections.abc import Sequence

from acquatop.catalog.catalog import Stream
from acquatop.engine.side_outputs.of_stream import SideOutputs
from acquatop.engine.stream_settings import StreamSettings
from acquatop.engine.stream_slots import StreamSlots
from acquatop.ingest.reduce.arrival_order import ArrivalOrder
from acquatop.ingest.reduce.contract import Reducer
from acquatop.ingest.reduce.job import Job
from acquatop.ingest.reduce.late_finder import LateFinder
from acquatop.windows import Windows


class JobMaker:
    """Maker of jobs for the queries that read a stream now, and for its side outputs."""

    def __init__(
        self,
        stream: Stream,
        settings: StreamSettings,
        side_outputs: SideOutputs,
        slots: StreamSlots,
    ) -> None:
        self._stream = stream
        self._live = settings.live
        self._wall_clock = settings.wall_clock
        self._side_outputs = side_outputs
        self._slots = slots

    def job(
        self, reducers: Sequence[Reducer], watermark_ms: int | None, announced_ms: int | None
    ) -> Job:
        """Return the job behind a watermark, and one that queries have been given by then."""
        return Job(
            self._stream.mapping,
            reducers,
            late=self._late_finder(announced_ms),
            keeps_bad=self._side_outputs.has_bad,
            keeps_records=self._side_outputs.has_records,
            order=self._arrival_order(watermark_ms),
            queries=tuple(name for slot in self._slots for name in slot.evaluation.names),
        )

    def latest_ms(self) -> int | None:
        """Return the latest valid time of a record, or None.

        A recording has no such limit, as its times are unrelated to the clock.
        """
        if not self._live or self._stream.ahead_ms is None:
            return None
        return round(1000 * self._wall_clock()) + self._stream.ahead_ms

    def _late_finder(self, announced_ms: int | None) -> LateFinder | None:
        """Return a finder of records in windows that may have closed by a watermark.

        The windows that have closed are known when the batch is dispatched. Until then no further
        window can close, because the stream is not idle; only those are closed that queries know to
        be over.
        """
        if announced_ms is None:
            return None
        closed = [(windows, windows.first(announced_ms + 1) - 1) for windows in self._windows()]
        return LateFinder(closed, keeps=self._side_outputs.has_late)

    def _arrival_order(self, watermark_ms: int | None) -> ArrivalOrder:
        return ArrivalOrder(
            self._windows(),
            self._stream.lateness_ms,
            watermark_ms,
            keeps_late=self._side_outputs.has_late,
        )

    def _windows(self) -> Sequence[Windows]:
        """Return the windows of all queries, equal ones once."""
        of_slots = (slot.evaluation.windows(self._stream.iri) for slot in self._slots)
        return list({each.windows: None for own in of_slots for each in own})
