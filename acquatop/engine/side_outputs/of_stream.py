"""Side outputs of one stream: late records, bad items, and the recording of all records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from acquatop.catalog.catalog import Stream
from acquatop.engine.side_outputs.dead_letters import DeadLetters
from acquatop.engine.side_outputs.growing_file import SideOutputFile
from acquatop.engine.side_outputs.late_records import LateRecords
from acquatop.ingest.reduce.contract import PartKind
from acquatop.ingest.reduce.late_finder import RECORD, BoolArray
from acquatop.runtime import Batch
from acquatop.topk.contract import IntArray
from connectors.mapping import TIME

if TYPE_CHECKING:
    from acquatop.engine.recorder import Recorder


class SideOutputs:
    """Side outputs of a stream, as far as the catalog or a recording asks for them."""

    def __init__(self, stream: Stream, recording: Recorder | None, *, durable: bool) -> None:
        self._late = None if stream.late_path is None else LateRecords(stream.late_path, stream.iri)
        self._bad = None
        if stream.dead_letters_path is not None:
            self._bad = DeadLetters(stream.dead_letters_path, stream.iri, stream.dead_letters_bytes)
        self._recording = recording
        self._stream = stream.iri
        self._durable = durable

    @property
    def has_late(self) -> bool:
        """True if late records are written."""
        return self._late is not None

    @property
    def has_bad(self) -> bool:
        """True if bad items are written."""
        return self._bad is not None

    @property
    def has_records(self) -> bool:
        """True if all records are written."""
        return self._recording is not None

    def begin(self) -> bool:
        """Cut the files to their known lengths, once; return True if a length was not known.

        The engine's state must hold that length before anything is written after it.
        """
        are_new = [file.begin() for _, file in self._files() if file is not None]
        return any(are_new)

    def add(self, batch: Batch) -> None:
        """Write a batch's bad items, and its records to the recording."""
        if self._recording is not None:
            tables = _tables(batch, PartKind.RECORDS)
            self._recording.add(self._stream, tables, durable=self._durable)
        if self._bad is not None:
            self._bad.add(_tables(batch, PartKind.BAD), durable=self._durable)

    def add_late(self, old: OldRecords, is_late: BoolArray, watermark_ms: int | None) -> None:
        """Write those of a batch's old records that are late."""
        if self._late is not None and is_late.any():
            table = pa.concat_tables(old.tables).filter(pa.array(is_late))
            pairs = zip(
                table.column(TIME).to_pylist(), table.column(RECORD).to_pylist(), strict=True
            )
            self._late.add(pairs, watermark_ms, durable=self._durable)

    def state(self) -> dict[str, Any]:
        """Return the lengths of the files."""
        return {name: None if file is None else file.state() for name, file in self._files()}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Resume from the lengths of the files."""
        for name, file in self._files():
            if file is not None:
                file.resume(state.get(name))

    def _files(self) -> Iterator[tuple[str, SideOutputFile | None]]:
        yield "late", self._late
        yield "bad", self._bad
        recording = self._recording
        yield "recorded", None if recording is None else recording.file_of(self._stream)


class OldRecords:
    """Records of a batch in windows that may have closed."""

    def __init__(self, batch: Batch) -> None:
        self.tables: Sequence[pa.Table] = _tables(batch, PartKind.LATE)

    def times(self) -> IntArray:
        """Return their times."""
        times = [np.asarray(table.column(TIME).to_numpy()) for table in self.tables]
        return np.concatenate([np.empty(0, dtype=np.int64), *times])


def _tables(batch: Batch, kind: PartKind) -> list[pa.Table]:
    return [part.table for partition in batch.partitions for part in partition if part.kind is kind]
