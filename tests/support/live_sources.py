"""Live sources that tests control."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence

import pyarrow as pa

from connectors.live_source import LiveSource
from connectors.log.writer import Remembered
from connectors.source_status import Link

SCHEMA = pa.schema([("value", pa.binary())])


def records(values: Sequence[bytes]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, pa.binary())], schema=SCHEMA)


class Mailbox(LiveSource):
    """Source with items from the test; it records acknowledgements.

    It can be opened again, and then gives out the remaining items.
    """

    schema = SCHEMA

    def __init__(self) -> None:
        self.link = Link("the mailbox")
        self.left: queue.Queue[list[bytes]] = queue.Queue()
        self.acknowledged: list[bytes] = []
        self.remembered: list[tuple[bytes, list[bytes]]] = []
        self.closed = threading.Event()
        self.failure: Exception | None = None
        self.known = b""
        self.asked = 0
        self._handed_out: list[bytes] = []

    def put(self, *values: bytes) -> None:
        self.left.put(list(values))

    def open(self, remembered: Remembered) -> None:
        self.closed.clear()
        self.link.made()
        self.remembered.append((remembered.memory, list(values_of(remembered.since))))

    def receive(self, wait_seconds: float) -> pa.RecordBatch | None:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        try:
            values = self.left.get(timeout=wait_seconds)
        except queue.Empty:
            return None
        self._handed_out += values
        return records(values)

    def acknowledge(self) -> None:
        self.acknowledged += self._handed_out
        self._handed_out = []

    def memory(self) -> bytes:
        return self.known

    def has_forgotten(self) -> bool:
        return False

    def close(self) -> None:
        self.closed.set()


def values_of(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    for batch in batches:
        yield from batch.column("value").to_pylist()
