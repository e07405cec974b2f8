"""Where items that cannot be used are kept aside: a file that grows by a JSON line for each, up to a bound."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pyarrow as pa

from acquatop.engine.side_outputs.growing_file import AsideFile
from acquatop.ingest.reduce.bad import ITEM


class DeadLetters(AsideFile):
    """Appends what cannot be used, with the reason and where it stood. Memory is O(what is kept of one batch)."""

    def __init__(self, path: str, stream: str, most_bytes: int) -> None:
        super().__init__(path, what="bad items", key="dead_letters", most_bytes=most_bytes)
        self._stream = json.dumps(stream)

    def add(self, tables: Iterable[pa.Table], *, durable: bool) -> None:
        """Add what a batch's partitions have found."""
        items = (item for table in tables for item in table.column(ITEM).to_pylist())
        self.append((f'{{"stream": {self._stream}, {item[1:]}\n'.encode() for item in items), durable=durable)
