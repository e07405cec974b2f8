"""Data sources that take what is there as their end, where Spark does not ask them to.

Spark asks with ``Trigger.AvailableNow`` from 4.2 on. Without that the last records of a file wait
for more, and a live source gets no time to send what it has.
"""

from __future__ import annotations

from typing import Any

from connectors.read_limits import ALL, PLANS_WITHIN_LIMITS, ReadLimit
from connectors.spark_classes import DataSource
from connectors.wrapped_reader import WrappedReader, with_readers


def ending(source: type[DataSource]) -> type[DataSource]:
    """Return a data source for ``Trigger.AvailableNow``, in any version of Spark."""
    return source if PLANS_WITHIN_LIMITS else prepared(source)


def prepared(source: type[DataSource]) -> type[DataSource]:
    """Return a data source with readers that find their end before they plan the first batch."""
    return with_readers(source, _Prepared)


class _Prepared(WrappedReader):
    """A reader that finds its end with the first request for an offset to read up to.

    Processes that only read partitions do not ask for one.
    """

    def __init__(self, reader: Any) -> None:
        super().__init__(reader)
        self._has_end = False

    def latestOffset(self, start: Any = None, limit: ReadLimit = ALL) -> Any:  # noqa: N802
        """Return the offset after the next batch."""
        if not self._has_end:
            self._reader.prepareForTriggerAvailableNow()
            self._has_end = True
        return super().latestOffset(start, limit)
