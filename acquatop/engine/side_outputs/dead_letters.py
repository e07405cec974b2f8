"""Side output for bad items: one JSON line each, up to a limit of bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pyarrow as pa

from acquatop.engine.side_outputs.growing_file import SideOutputFile
from acquatop.ingest.reduce.bad_items import ITEM


class DeadLetters(SideOutputFile):
    """File of bad items with their reasons and places. Memory is O(items kept of one batch)."""

    def __init__(self, path: str, stream: str, most_bytes: int) -> None:
        super().__init__(path, what="bad items", key="dead_letters", most_bytes=most_bytes)
        self._stream = json.dumps(stream)

    def add(self, tables: Iterable[pa.Table], *, durable: bool) -> None:
        """Append the bad items of a batch's partitions."""
        items = (item for table in tables for item in table.column(ITEM).to_pylist())
        self.append(
            (f'{{"stream": {self._stream}, {item[1:]}\n'.encode() for item in items),
            durable=durable,
        )
