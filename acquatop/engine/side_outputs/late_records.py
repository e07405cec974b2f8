"""Side output for late records: one JSON line each."""

from __future__ import annotations

import json
from collections.abc import Iterable

from acquatop.engine.side_outputs.growing_file import SideOutputFile


class LateRecords(SideOutputFile):
    """File of late records. Memory is O(records of one batch)."""

    def __init__(self, path: str, stream: str) -> None:
        super().__init__(path, what="late records", key="late")
        self._stream = stream

    def add(
        self, records: Iterable[tuple[int, str]], watermark_ms: int | None, *, durable: bool
    ) -> None:
        """Append records, given by their times and as JSON."""
        self.append(
            (_line(self._stream, at, watermark_ms, record) for at, record in records),
            durable=durable,
        )


def _line(stream: str, time_ms: int, watermark_ms: int | None, record: str) -> bytes:
    head = json.dumps({"stream": stream, "time": time_ms, "watermark": watermark_ms})
    # The record is JSON already.
    return f'{head[:-1]}, "record": {record}}}\n'.encode()
