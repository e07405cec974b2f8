"""Reader of a log, alongside its writer."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from connectors import ConnectorError
from connectors.log.blocks import (
    BLOCK_HEAD,
    SHORTEST_HEAD,
    BlockHead,
    DamageError,
    SegmentHead,
    blocks_in,
    decode_block_head,
    decode_head,
    head_length,
    read_block,
)
from connectors.log.folder import LogFolder
from connectors.log.position import Position

POSITION = "position"
"""Column of the records' numbers, which the log adds to the source's columns."""


class RecordSpan(NamedTuple):
    """Some complete blocks of one segment: their bytes from ``start`` to ``end``."""

    segment: int
    start: int
    end: int


class LogReader:
    """Reader of the records between two positions, both of which must be durable."""

    def __init__(self, folder: LogFolder) -> None:
        self._folder = folder

    def begin(self) -> Position:
        """Return the start for a new reader: the released position, or else the log's beginning."""
        released = self._folder.released()
        if released is not None:
            return released
        first = next(iter(self._folder.segments()), 0)
        return Position(self._folder.log, first, first, 0)

    def limited(
        self, start: Position, end: Position, rows: int | None, size: int | None
    ) -> Position:
        """Return the last position up to ``end`` within a number of rows or bytes.

        The range has at least one block. O(blocks passed over).
        """
        taken, read = start, 0
        for span in self._whole(start, end):
            for block in self._heads(span):
                following = Position(start.log, block.following, span.segment, block.end)
                read += block.end - block.byte
                too_many = rows is not None and following.record - start.record > rows
                if (too_many or (size is not None and read > size)) and taken.record > start.record:
                    return taken
                taken = following
        return taken

    def kept(self, end: Position) -> int:
        """Return the bytes of the segments with unreleased records before a position."""
        released = self._folder.released()
        low = 0 if released is None else released.record
        segments = self._folder.segments()
        following = [*segments[1:], end.record + 1]
        held = [
            first
            for first, after in zip(segments, following, strict=False)
            if after > low and first < end.record
        ]
        return sum(self._folder.size(first) for first in held)

    def spans(self, start: Position, end: Position, least: int) -> list[RecordSpan]:
        """Return the records between two positions in order, in pieces of about ``least`` bytes."""
        return [piece for span in self._whole(start, end) for piece in self._pieces(span, least)]

    def read(self, spans: Iterable[RecordSpan]) -> pa.RecordBatch | None:
        """Return the records of some spans as one batch, with their numbers in ``position``."""
        batches = [batch for span in spans for batch in self._batches(span)]
        return pa.concat_batches(batches) if batches else None

    # Segments ---------------------------------------------------------------------------------

    def _whole(self, start: Position, end: Position) -> Iterator[RecordSpan]:
        """Yield the part of each segment between two positions."""
        if start.record >= end.record:
            return
        segments = self._folder.segments()
        begin, byte = self._found(start, segments)
        for first in segments:
            if begin <= first <= end.segment:
                low = byte if first == begin and byte else self._head_length(first)
                high = (
                    self._folder.segment(first).stat().st_size if first < end.segment else end.byte
                )
                if high > low:
                    yield RecordSpan(first, low, high)

    def _found(self, start: Position, segments: Sequence[int]) -> tuple[int, int]:
        """Return the segment and the byte of a position.

        A segment that ends there is not touched: the writer may remove it at any moment.
        """
        self._folder.check(start)
        if start.record in segments:
            return start.record, 0
        if start.segment in segments:
            return start.segment, start.byte
        begins = f"it begins with {segments[0]}" if segments else "it is empty"
        raise ConnectorError(
            f"the log in {self._folder.path} has no record {start.record} any more: {begins}\n"
            "  hint: put back what was removed, or begin anew with another checkpoint or "
            "state directory"
        )

    def _head_length(self, first: int) -> int:
        with self._opened(first) as file:
            return self._head(file).length

    def _head(self, file: int) -> SegmentHead:
        # A damaged length must not ask for more memory than the file is long.
        length = min(head_length(os.pread(file, SHORTEST_HEAD, 0)), os.fstat(file).st_size)
        return decode_head(os.pread(file, length, 0))

    @contextmanager
    def _opened(self, first: int) -> Iterator[int]:
        """Open a segment for reading; errors name its file."""
        path: Path = self._folder.segment(first)
        try:
            file = os.open(path, os.O_RDONLY)
            try:
                yield file
            finally:
                os.close(file)
        except DamageError as damage:
            raise ConnectorError(
                f"{path} is damaged: {damage}\n  hint: put it back from a copy"
            ) from None
        except OSError as error:
            raise ConnectorError(
                f"{path} cannot be read: {error.strerror}\n"
                "  hint: read a log where it is written, or where its folder is mounted "
                "under the same path"
            ) from error

    # Blocks -----------------------------------------------------------------------------------

    def _heads(self, span: RecordSpan) -> Iterator[BlockHead]:
        """Yield the heads of the blocks in a span."""
        with self._opened(span.segment) as file:
            byte = span.start
            while byte < span.end:
                block = decode_block_head(os.pread(file, BLOCK_HEAD, byte), byte)
                if block is None:
                    raise DamageError(f"there is no block at byte {byte}")
                yield block
                byte = block.end

    def _pieces(self, span: RecordSpan, least: int) -> Iterator[RecordSpan]:
        """Cut a span into pieces of at least ``least`` bytes.

        Each but the last is shorter than ``least`` plus a block. A span shorter than twice
        ``least`` stays whole.
        """
        start = span.start
        if span.end - span.start >= 2 * least:
            for block in self._heads(span):
                if block.end - start >= least and span.end - block.end >= least:
                    yield RecordSpan(span.segment, start, block.end)
                    start = block.end
        yield RecordSpan(span.segment, start, span.end)

    def _batches(self, span: RecordSpan) -> Iterator[pa.RecordBatch]:
        with self._opened(span.segment) as file:
            head = self._head(file)
            content = os.pread(file, span.end - span.start, span.start)
            blocks = list(blocks_in(content, span.start))
            end = blocks[-1].end if blocks else span.start
            if end != span.end:
                raise DamageError(f"what stands at byte {end} is not what was written")
        for block in blocks:
            if block.records:
                yield numbered(content, block, head.schema, span.start)


def numbered(content: bytes, block: BlockHead, schema: pa.Schema, byte: int) -> pa.RecordBatch:
    """Return a block's records with their numbers; the content is at ``byte`` in its segment."""
    numbers = np.arange(block.first, block.first + block.records)
    return read_block(content, block, schema, byte).append_column(
        POSITION, pa.array(numbers, pa.int64())
    )
