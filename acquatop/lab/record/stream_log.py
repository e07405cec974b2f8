"""Log of a stream's decoded records: a file that grows by a line of JSON for each record."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from acquatop.engine.side_outputs.growing_file import SideOutputFile
from connectors.contract import RecordDecoder
from connectors.mapping import BAD, IRI, SUBJECT, TIME


class StreamTape(SideOutputFile):
    """Append-only log of a stream's good records, in reading order.

    Each record is written exactly once, even if the process is killed at any time.

    A line has the record's time, its subject as a whole IRI, and the properties that it has, named
    like the decoder's columns. ``count`` is the number of records added. Memory is O(records of one
    batch).
    """

    def __init__(self, path: Path, mapping: RecordDecoder) -> None:
        super().__init__(str(path), what="records", key="path")
        self.count = 0
        self._iris = {
            SUBJECT,
            *(mapping.column(name) for name, each in mapping.properties.items() if _is_iri(each)),
        }
        self._columns = [TIME, SUBJECT, *(mapping.column(name) for name in mapping.properties)]
        # The file's present content is unknown until a state is restored.
        self._length = 0

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._length or 0

    def add(self, tables: Iterable[pa.Table], *, durable: bool) -> None:
        """Add the records of a batch's partitions."""
        for table in tables:
            good = table.filter(pc.is_null(table.column(BAD)))
            self.count += len(good)
            self.append(
                [_lines(good, self._columns, self._iris)] if len(good) else [], durable=durable
            )

    def resume(self, state: Mapping[str, Any] | None) -> None:
        """Restore a state. Its file is this one, even if the folder has been moved."""
        if state is not None:
            self._length = state["length"]


def _is_iri(about: Any) -> bool:
    return bool(about.datatype == IRI)


def _lines(records: pa.Table, columns: list[str], iris: set[str]) -> bytes:
    """Return a line for each record, built column by column."""
    parts = [_member(name, records.column(name), is_iri=name in iris) for name in columns]
    inside = pc.binary_join_element_wise(*parts, ", ", null_handling="skip")
    lines: list[str] = pc.binary_join_element_wise("{", inside, "}", "").to_pylist()
    return ("\n".join(lines) + "\n").encode()


def _member(name: str, column: pa.ChunkedArray, *, is_iri: bool) -> pa.Array:
    """Return each value as a member of a JSON object; null for null."""
    values = column.combine_chunks()
    if not (pa.types.is_string(values.type) or pa.types.is_dictionary(values.type)):
        return pc.binary_join_element_wise(f"{json.dumps(name)}: ", values.cast(pa.string()), "")
    coded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    texts = [text[1:-1] if is_iri else text for text in coded.dictionary.to_pylist()]
    written = pa.array([f"{json.dumps(name)}: {json.dumps(text)}" for text in texts], pa.string())
    return written.take(coded.indices)
