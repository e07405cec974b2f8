"""Writer of a log."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import pyarrow as pa

from connectors import ConnectorError
from connectors.durable import sync_file, write_at
from connectors.log.blocks import (
    BlockHead,
    DamageError,
    blocks_in,
    decode_head,
    encode_block,
    encode_head,
    has_block_behind,
    is_unfinished,
)
from connectors.log.folder import LogFolder, replace_file
from connectors.log.lock import WriterLock
from connectors.log.position import Position
from connectors.log.reader import numbered

SEGMENTS = 8
"""Minimum number of segments of a full log."""
LARGEST_SEGMENT = 16 << 20


class Remembered(NamedTuple):
    """State left by the previous writer.

    It is the source's memory when the last segment began, and the records since then.
    """

    memory: bytes
    since: Iterator[pa.RecordBatch]


class LogWriter:
    """Writer that appends records to a log, and removes segments that are no longer needed.

    Holds the log's lock until it is closed. The unfinished block of a killed writer is cut off
    first. A log of ``max_bytes`` on the disk is full: nothing must be appended until something is
    released. One block may exceed the limit.
    """

    def __init__(
        self,
        folder: LogFolder,
        schema: pa.Schema,
        max_bytes: int,
        *,
        patience_seconds: float = 30.0,
        stopping: threading.Event | None = None,
    ) -> None:
        self._folder = folder
        self._schema = schema
        self._max_bytes = max_bytes
        self._lock = WriterLock(folder.path, patience_seconds, stopping or threading.Event())
        self._file: int | None = None
        self._sizes: dict[int, int] = {}
        self._segment = self._record = self._byte = 0
        self._is_clean = True
        try:
            self.remembered = self._recover()
            self.remove_released()
        except BaseException:
            self.close()
            raise

    # Position ---------------------------------------------------------------------------------

    @property
    def end(self) -> Position:
        """The position of the next record; all records before it are durable."""
        byte = self._byte if self._record > self._segment else 0
        return Position(self._folder.log, self._record, self._segment, byte)

    @property
    def size(self) -> int:
        """The size of the log on the disk, in bytes."""
        return sum(self._sizes.values())

    @property
    def is_long(self) -> bool:
        """True if the segment is so long that :meth:`remember` should begin another one."""
        return self._byte >= min(LARGEST_SEGMENT, self._max_bytes // SEGMENTS)

    def has_room(self) -> bool:
        """Remove released segments if the log is full; return True if more may be appended."""
        if self.size >= self._max_bytes:
            self.remove_released()
        return self.size < self._max_bytes

    # Writing ----------------------------------------------------------------------------------

    def append(self, records: pa.RecordBatch) -> None:
        """Append records; on return they would survive a loss of power.

        If it raises, none of them is in the log.
        """
        assert self._file is not None
        is_clean, self._is_clean = self._is_clean, False
        if not is_clean:
            os.ftruncate(self._file, self._byte)
        byte = write_at(self._file, self._byte, encode_block(self._record, records))
        sync_file(self._file)
        self._is_clean = True
        self._record += records.num_rows
        self._byte = self._sizes[self._segment] = byte

    def remember(self, memory: bytes) -> None:
        """Begin a new segment, durably, with the source's memory of all records before it."""
        assert self._file is not None
        if not self._is_clean:
            os.ftruncate(self._file, self._byte)
        self._begin_segment(self._record, memory)
        self.remove_released()

    def _begin_segment(self, first: int, memory: bytes) -> None:
        path, head = self._folder.segment(first), encode_head(self._schema, memory)
        # A segment is complete when it has its name. One without records is replaced, because its
        # successor has the same number.
        replace_file(path, [head])
        if self._file is not None:
            os.close(self._file)
        self._file = os.open(path, os.O_RDWR)
        self._segment = self._record = first
        self._byte = self._sizes[first] = len(head)
        self._is_clean = True

    # Recovery ---------------------------------------------------------------------------------

    def _recover(self) -> Remembered:
        """Continue after the last complete block; an incomplete one was never acknowledged."""
        self._folder.remove_unfinished()
        segments = self._folder.segments()
        self._sizes = {first: self._folder.segment(first).stat().st_size for first in segments}
        if not segments:
            released = self._folder.released()
            self._begin_segment(0 if released is None else released.record, b"")
            return Remembered(b"", iter(()))
        self._segment = segments[-1]
        path = self._folder.segment(self._segment)
        content = path.read_bytes()
        try:
            head = decode_head(content)
            blocks = self._whole_blocks(content, head.length)
        except DamageError as damage:
            hint = (
                "put it back from a copy; or cut it at that byte, which loses what follows: only "
                "if the machine lost its power just then, nothing was acknowledged of that"
            )
            raise ConnectorError(f"{path} is damaged: {damage}\n  hint: {hint}") from None
        if head.schema != self._schema:
            hint = (
                "let the version that wrote it read it to its end, or begin a log in another folder"
            )
            raise ConnectorError(
                f"the log in {self._folder.path} holds records of another kind\n  hint: {hint}"
            )
        self._byte = blocks[-1].end if blocks else head.length
        self._record = blocks[-1].first + blocks[-1].records if blocks else self._segment
        self._file = os.open(path, os.O_RDWR)
        os.ftruncate(self._file, self._byte)
        # Complete blocks may not be on the disk yet: their writer may have been killed while it
        # waited for it.
        sync_file(self._file)
        self._sizes[self._segment] = self._byte
        return Remembered(
            head.memory, (numbered(content, block, head.schema, 0) for block in blocks)
        )

    def _whole_blocks(self, content: bytes, start: int) -> list[BlockHead]:
        """Return the complete blocks from a byte on.

        Raises :class:`DamageError` if something else follows than the beginning of a block: what
        was acknowledged must not be cut off.
        """
        blocks = list(blocks_in(content[start:], start))
        end = blocks[-1].end if blocks else start
        if not is_unfinished(content[end:]) or has_block_behind(content, end):
            raise DamageError(f"what stands at byte {end} is not what was written")
        return blocks

    # Removal ----------------------------------------------------------------------------------

    def remove_released(self) -> None:
        """Remove the segments that are no longer needed, but never the last one."""
        released = self._folder.released()
        segments = sorted(self._sizes)
        needless = [
            first
            for first, following in itertools.pairwise(segments)
            if released is not None and following <= released.record
        ]
        if needless:
            self._folder.settle()
        for first in needless:
            with suppress(FileNotFoundError):
                self._folder.segment(first).unlink()
            del self._sizes[first]

    def close(self) -> None:
        """Close the log for another writer. May be called again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self._lock.release()
