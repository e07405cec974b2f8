"""Data sources that take what is there as their end, where Spark does not ask them to.

Spark asks with ``Trigger.AvailableNow`` from 4.2 on. Without that the last records of a file wait
for more, and a live source gets no time to send what it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from connectors.read_limits import ALL, PLANS_WITHIN_LIMITS, ReadLimit


def ending(source: type[DataSource]) -> type[DataSource]:
    """Return a data source for ``Trigger.AvailableNow``, in any version of Spark."""
    return source if PLANS_WITHIN_LIMITS else prepared(source)


def prepared(source: type[DataSource]) -> type[DataSource]:
    """Return a data source with readers that find their end before they plan the first batch."""

    class Prepared(source):  # type: ignore[misc, valid-type]
        """The source, under its name."""

        def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
            """Return a reader that finds its end."""
            return _Prepared(super().streamReader(schema))

    return Prepared


class _Prepared(DataSourceStreamReader):
    """A reader that finds its end with the first request for an offset to read up to.

    Processes that only read partitions do not ask for one.
    """

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self._has_end = False

    def initialOffset(self) -> Any:  # noqa: N802 (the name is PySpark's)
        """Return the offset before the first record."""
        return self._reader.initialOffset()

    def latestOffset(self, start: Any = None, limit: ReadLimit = ALL) -> Any:  # noqa: N802
        """Return the offset after the next batch."""
        if not self._has_end:
            self._reader.prepareForTriggerAvailableNow()
            self._has_end = True
        return self._reader.latestOffset(start, limit)

    def partitions(self, start: Any, end: Any) -> Sequence[InputPartition]:
        """Return the parts of a batch."""
        parts: Sequence[InputPartition] = self._reader.partitions(start, end)
        return parts

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Return a part's records."""
        records: Iterator[Any] = self._reader.read(partition)
        return records

    def commit(self, end: Any) -> None:
        """Release a batch's records."""
        self._reader.commit(end)

    def stop(self) -> None:
        """End the reader."""
        self._reader.stop()
