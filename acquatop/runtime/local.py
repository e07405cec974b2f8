"""The in-process runtime: a thread per stream drives the connector's reader; no Spark, no Java."""

from __future__ import annotations

import threading
from typing import Any

from acquatop.catalog import Stream
from acquatop.runtime import OnBatch, OnEnd
from acquatop.runtime.sources import SOURCES

POLL_SECONDS = 0.05
"""How long to wait before asking a source again that had nothing new."""


class LocalRuntime:
    """Carries streams in threads of this process."""

    def carry(self, stream: Stream, on_batch: OnBatch, on_end: OnEnd, *, until_end: bool) -> LocalCarrier:
        """Start to carry a stream."""
        return LocalCarrier(stream, on_batch, on_end, until_end)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


class LocalCarrier:
    """One stream and the thread that reads it."""

    def __init__(self, stream: Stream, on_batch: OnBatch, on_end: OnEnd, until_end: bool) -> None:
        self._stream = stream
        self._on_batch = on_batch
        self._on_end = on_end
        self._until_end = until_end
        self._stopping = threading.Event()
        # The same class that Spark drives; only who calls its methods differs.
        self._reader: Any = SOURCES[stream.connector](dict(stream.options)).streamReader(None)  # type: ignore[arg-type]
        self._thread = threading.Thread(target=self._run, name=f"acquatop-{stream.iri}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the stream after the batch at hand."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._read()
        except BaseException as error:
            self._on_end(error)
        else:
            self._on_end(None)

    def _read(self) -> None:
        if self._until_end:
            self._reader.prepareForTriggerAvailableNow()
        offset = self._reader.initialOffset()
        while not self._stopping.is_set():
            latest = self._reader.latestOffset(offset, self._reader.getDefaultReadLimit())
            if latest == offset:
                if self._until_end:
                    return
                self._stopping.wait(POLL_SECONDS)
                continue
            lines = [batch for part in self._reader.partitions(offset, latest) for batch in self._reader.read(part)]
            self._on_batch([self._stream.mapping.decode(batch.column("value")) for batch in lines])
            offset = latest
