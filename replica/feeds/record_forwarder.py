"""Shared part of all feeds: turns messages into records and passes them to a sink."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence

from replica.clocks import Clock
from replica.feeds.contract import ChangeSink
from replica.remotes.json_lines import load_line
from replica.remotes.records import RecordReader, values_at
from replica.store import Solution


class RecordForwarder:
    """Converter that passes messages, each one JSON record, to a sink until it is stopped.

    A record states all that is now valid for its key. One with only the key, one that does not
    match, and one whose field ``deleted`` is true mean that there is nothing. One that cannot be
    read says nothing about its key, and is counted (``RecordReader.rejected``).
    """

    def __init__(self, reader: RecordReader, deleted: str, clock: Clock) -> None:
        self._reader = reader
        self._deleted = deleted
        self._clock = clock
        self._sink: ChangeSink | None = None
        # A sink may itself stop the feed that calls it.
        self._lock = threading.RLock()

    def start(self, sink: ChangeSink) -> None:
        """Pass messages to ``sink`` from now on."""
        with self._lock:
            self._sink = sink

    def stop(self) -> None:
        """Stop passing messages."""
        with self._lock:
            self._sink = None

    def forward(self, messages: Iterable[bytes]) -> None:
        """Pass on some messages, of each key the last one, as valid now."""
        changes: dict[str, Sequence[Solution]] = {}
        faults: Counter[str] = Counter()
        for message in messages:
            if message.strip():
                self._read(message, changes, faults)
        self._reader.reject(faults)
        with self._lock:
            if changes and self._sink is not None:
                self._sink(changes, self._clock())

    def _read(
        self, message: bytes, changes: dict[str, Sequence[Solution]], faults: Counter[str]
    ) -> None:
        try:
            record = load_line(message)
        except ValueError:
            faults["not JSON"] += 1
            return
        reading = self._reader.read(record)
        is_deleted = True in [
            value for value in values_at(record, self._deleted) if isinstance(value, bool)
        ]
        if reading.key is None or (reading.is_bad and not is_deleted):
            faults[str(reading.fault)] += 1
            return
        changes[reading.key] = () if is_deleted else reading.solutions
