"""Data sources that plan no larger batches than their engine has room for.

Spark asks a source in a process of its own, so the engine writes the size of the next batch to a
file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from connectors.divisible import Divisible, cut
from connectors.read_limits import ALL, PLANS_WITHIN_LIMITS, ReadLimit, TriggerAvailableNow


class PaceFile:
    """File with the size of the next batch, in the unit of the source's limit."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, size: int) -> None:
        """Replace the size."""
        beside = self._path.with_name(f".{self._path.name}")
        beside.write_text(str(size))
        beside.replace(self._path)

    def read(self) -> int | None:
        """Return the size, None if there is none yet."""
        try:
            return int(self._path.read_text())
        except FileNotFoundError:
            return None


def paced(source: type[DataSource], path: Path) -> type[DataSource]:
    """Return a data source whose batches keep to the size in a file, where Spark knows limits."""
    if not PLANS_WITHIN_LIMITS:
        return source

    class Paced(source):  # type: ignore[misc, valid-type]
        """The source, under its name."""

        def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
            """Return a reader that keeps to the size, if the source's batches can be cut."""
            reader: DataSourceStreamReader = super().streamReader(schema)
            return _Paced(reader, PaceFile(path)) if isinstance(reader, Divisible) else reader

    return Paced


class _Paced(DataSourceStreamReader, TriggerAvailableNow):
    """A reader that plans as another does, and stops where its engine will.

    What is mixed is not cut: the cut would decide what of it comes too late.
    """

    def __init__(self, reader: Any, pace: PaceFile) -> None:
        self._reader = reader
        self._pace = pace

    def initialOffset(self) -> Any:  # noqa: N802 (the name is PySpark's)
        """Return the offset before the first record."""
        return self._reader.initialOffset()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit of a batch whatever its engine has room for."""
        limit: ReadLimit = self._reader.getDefaultReadLimit()
        return limit

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Find the end."""
        self._reader.prepareForTriggerAvailableNow()

    def latestOffset(self, start: Any = None, limit: ReadLimit = ALL) -> Any:  # noqa: N802
        """Return the offset after the next batch."""
        end, size = self._reader.latestOffset(start, limit), self._pace.read()
        if start is None or size is None or end == start or self._reader.is_mixed(start, end):
            return end
        return cut(self._reader, start, end, size)

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
