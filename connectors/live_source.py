"""Interface of sources that send everything only once."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pyarrow as pa

from connectors.log.writer import Remembered
from connectors.source_status import Link


class LiveSource(ABC):
    """Source of records that come once. One thread calls it: open, (receive, acknowledge)…, close.

    The source itself reconnects when it is lost, in :meth:`receive`. An exception ends the stream.
    """

    schema: pa.Schema
    """The records' columns. The log adds ``position``, the record's number."""
    link: Link
    """State of the connection, as people see it. The source notes each change."""

    @abstractmethod
    def open(self, remembered: Remembered) -> None:
        """Prepare the source.

        ``remembered`` is the log of the source before this one, to recognise records that come
        again.
        """

    @abstractmethod
    def receive(self, wait_seconds: float) -> pa.RecordBatch | None:
        """Return the records received since the last call, a few megabytes at most.

        Returns None if none came for ``wait_seconds``.
        """

    @abstractmethod
    def acknowledge(self) -> None:
        """Tell the source that it may forget all records returned so far: they are durable."""

    @abstractmethod
    def close(self) -> None:
        """Disconnect. May be called after any failure."""

    def is_caught_up(self) -> bool:
        """Return True if the source seems to have no more data now.

        ``Trigger.AvailableNow`` ends there.
        """
        return True

    def memory(self) -> bytes:
        """Return the state needed, besides future records, to recognise records that come again."""
        return b""

    def has_forgotten(self) -> bool:
        """Return True, once per occasion, if :meth:`memory` must be durable before new records.

        Called when :meth:`receive` has returned None.
        """
        return False
