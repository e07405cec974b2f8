"""Readers of a data source that do what others do, but for the methods that they replace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from connectors.read_limits import ALL, ReadLimit
from connectors.spark_classes import DataSource, DataSourceStreamReader, InputPartition


class WrappedReader(DataSourceStreamReader):
    """A reader that passes everything on to another."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def initialOffset(self) -> Any:  # noqa: N802 (the name is PySpark's)
        """Return the offset before the first record."""
        return self._reader.initialOffset()

    def latestOffset(self, start: Any = None, limit: ReadLimit = ALL) -> Any:  # noqa: N802
        """Return the offset after the next batch."""
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


def with_readers(
    source: type[DataSource], wrap: Callable[[DataSourceStreamReader], DataSourceStreamReader]
) -> type[DataSource]:
    """Return a data source of the same name whose readers are wrapped."""

    class Wrapped(source):  # type: ignore[misc, valid-type]
        """The source, under its name."""

        def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
            """Return the wrapped reader."""
            return wrap(super().streamReader(schema))

    return Wrapped
