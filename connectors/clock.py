"""Stream of the clock's ticks: one row at the start, and one after each multiple of some time.

In plain PySpark::

    from connectors.clock import ClockDataSource

    spark.dataSource.register(ClockDataSource)
    ticks = spark.readStream.format("clock_ticks").option("everyMs", "60000").load()

A row is a JSON object with the field ``time_ms``: one millisecond after a whole multiple of
``everyMs`` since the epoch, so that a window which closes there is over. The first is that of the
start, whenever that is. Ticks that a stopped stream has missed are not made up for: there is one,
the latest. Offsets are the time of the last tick, so every batch can be read again.

Options:

- ``everyMs``: time between two ticks, in milliseconds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from connectors import ConnectorError
from connectors.read_limits import ALL, ReadAllAvailable, ReadLimit, TriggerAvailableNow
from connectors.source_status import SourceState, SourceStatus
from connectors.spark_classes import DataSource, DataSourceStreamReader, InputPartition

Offset = dict[str, int]

SCHEMA = pa.schema([("value", pa.binary())])
TIME = "time_ms"


class ClockDataSource(DataSource):
    """The data source ``clock_ticks``."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "clock_ticks"

    def schema(self) -> str:
        """Return the columns of a row."""
        return "value binary"

    def streamReader(self, schema: Any) -> ClockReader:  # noqa: N802 (the name is PySpark's)
        """Return a reader for the options given."""
        every = self.options.get("everyMs", "")
        if not every.isdecimal() or int(every) < 1:
            raise ConnectorError(
                'the connector "clock" needs the option everyMs: milliseconds between two ticks'
            )
        return ClockReader(int(every))


@dataclass
class _Tick(InputPartition):
    """Tick at a time."""

    time_ms: int


class ClockReader(DataSourceStreamReader, TriggerAvailableNow):
    """Reader of the clock.

    >>> reader = ClockReader(1_000, clock=lambda: 7.25)
    >>> start = reader.latestOffset(reader.initialOffset())
    >>> start, reader.latestOffset(start)
    ({'time_ms': 7250}, {'time_ms': 7250})
    >>> ClockReader(1_000, clock=lambda: 9.5).latestOffset(start)
    {'time_ms': 9001}
    """

    def __init__(self, every_ms: int, clock: Callable[[], float] = time.time) -> None:
        self._every_ms = every_ms
        self._clock = clock
        self._ends = False

    def initialOffset(self) -> Offset:  # noqa: N802
        """Return the offset before the first tick."""
        return {TIME: 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return no limit: there is one tick at a time."""
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Let the stream end with its first tick."""
        self._ends = True

    def latestOffset(  # noqa: N802
        self, start: Offset | None = None, limit: ReadLimit = ALL
    ) -> Offset:
        """Return the time of the latest tick, if there is one after ``start``."""
        last_ms = 0 if start is None else start[TIME]
        now_ms = int(1000 * self._clock())
        if not last_ms:
            return {TIME: now_ms}
        if self._ends:
            return {TIME: last_ms}
        return {TIME: max(last_ms, now_ms // self._every_ms * self._every_ms + 1)}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return the tick of a batch."""
        return [_Tick(end[TIME])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the tick."""
        assert isinstance(partition, _Tick)
        yield pa.record_batch([[json.dumps({TIME: partition.time_ms}).encode()]], schema=SCHEMA)

    def progress(self, offset: Offset) -> tuple[int, int]:
        """Return that all has been read."""
        return 1, 1

    def status(self) -> SourceStatus:
        """Return that the clock is there."""
        return SourceStatus(SourceState.PRESENT, "the clock", "tick")
