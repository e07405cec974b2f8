"""The one who writes a log."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import pyarrow as pa

from connectors import ConnectorError
from connectors.log.blocks import (
    BlockHead,
    DamageError,
    blocks_in,
    decode_head,
    encode_block,
    encode_head,
    has_block_behind,
)
from connectors.log.folder import LogFolder, replace_file, sync_file, write_at
from connectors.log.lock import WriterLock
from connectors.log.position import Position
from connectors.log.reader import numbered

SEGMENTS = 8
"""Into how many segments a full log is cut at least."""
LARGEST_SEGMENT = 16 << 20


class Remembered(NamedTuple):
    """What a writer before this one has left: its source's memory as the last segment began, and what came since."""

    memory: bytes
    since: Iterator[pa.RecordBatch]


class LogWriter:
    """Appends records to a log, and removes segments that nobody needs.

    Holds the log's lock until it is closed. What a killed writer was in the middle of is cut off first. A log of
    ``max_bytes`` on the disk is full: nothing must be appended until something is released. One block may go beyond.
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

    # Where it stands --------------------------------------------------------------------------

    @property
    def end(self) -> Position:
        """Where the next record will stand: all before it is durable."""
        byte = self._byte if self._record > self._segment else 0
        return Position(self._folder.log, self._record, self._segment, byte)

    @property
    def size(self) -> int:
        """How many bytes the log has on the disk."""
        return sum(self._sizes.values())

    @property
    def is_long(self) -> bool:
        """Whether the segment is so long that another should begin, with :meth:`remember`."""
        return self._byte >= min(LARGEST_SEGMENT, self._max_bytes // SEGMENTS)

    def has_room(self) -> bool:
        """Say whether more may be appended, once what nobody needs is removed."""
        if self.size >= self._max_bytes:
            self.remove_released()
        return self.size < self._max_bytes

    # What is written --------------------------------------------------------------------------

    def append(self, records: pa.RecordBatch) -> None:
        """Append records; on return they would survive a loss of power. When it raises, none of them is there."""
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
        """Begin a new segment with what the source has to remember of all before it, durably."""
        assert self._file is not None
        if not self._is_clean:
            os.ftruncate(self._file, self._byte)
        self._begin_segment(self._record, memory)
        self.remove_released()

    def _begin_segment(self, first: int, memory: bytes) -> None:
        path, head = self._folder.segment(first), encode_head(self._schema, memory)
        # It is whole when it has its name. One without records is replaced: its successor has the same number.
        replace_file(path, [head])
        if self._file is not None:
            os.close(self._file)
        self._file = os.open(path, os.O_RDWR)
        self._segment = self._record = first
        self._byte = self._sizes[first] = len(head)
        self._is_clean = True

    # What was there ---------------------------------------------------------------------------

    def _recover(self) -> Remembered:
        """Go on behind the last whole block; what is torn behind it was never acknowledged."""
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
            raise ConnectorError(f"{path} is damaged: {damage}\n  hint: put it back from a copy") from None
        if head.schema != self._schema:
            hint = "let the version that wrote it read it to its end, or begin a log in another folder"
            raise ConnectorError(f"the log in {self._folder.path} holds records of another kind\n  hint: {hint}")
        self._byte = blocks[-1].end if blocks else head.length
        self._record = blocks[-1].first + blocks[-1].records if blocks else self._segment
        self._file = os.open(path, os.O_RDWR)
        os.ftruncate(self._file, self._byte)
        # What is whole may not be on the disk yet: its writer may have been killed before it had waited for it.
        sync_file(self._file)
        self._sizes[self._segment] = self._byte
        return Remembered(head.memory, (numbered(content, block, head.schema, 0) for block in blocks))

    def _whole_blocks(self, content: bytes, start: int) -> list[BlockHead]:
        """Return the whole blocks from a byte on; :class:`DamageError` where others stand behind one that is not."""
        blocks = list(blocks_in(content[start:], start))
        end = blocks[-1].end if blocks else start
        if has_block_behind(content, end):
            raise DamageError(f"what stands at byte {end} is not what was written")
        return blocks

    # What is removed --------------------------------------------------------------------------

    def remove_released(self) -> None:
        """Remove the segments of which nothing is needed any more, but never the last one."""
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
        """Let another one write. May be called again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self._lock.release()
