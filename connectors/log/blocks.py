"""Format of a segment: a head, and blocks that are either complete or absent.

A block is an Arrow batch in Arrow's IPC format, after a head with the number of its first record,
the number of records, its length, and a checksum of the batch. It is read without an object per
record.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

MAGIC = b"acquatop-log 1\r\n"
_HEAD = struct.Struct(">II")
"""Head of a segment, after the magic: the lengths of its schema and of its memory.

Both follow, then a checksum.
"""
_CHECK = struct.Struct(">I")
_BLOCK = struct.Struct(">4sQIII")
"""Head of a block: mark, number of the first record, number of records, length, checksum.

A checksum of these fields follows.
"""
_MARK = b"\xf0blk"
BLOCK_HEAD = _BLOCK.size + _CHECK.size


class DamageError(Exception):
    """Error: bytes differ from those that were written."""


class SegmentHead(NamedTuple):
    """Head of a segment: the records' columns, and the source's memory when the segment began."""

    schema: pa.Schema
    memory: bytes
    length: int


class BlockHead(NamedTuple):
    """Head of a block, with its place in the segment."""

    byte: int
    first: int
    records: int
    length: int
    checksum: int

    @property
    def end(self) -> int:
        """The byte at which the next block begins."""
        return self.byte + BLOCK_HEAD + self.length


def encode_head(schema: pa.Schema, memory: bytes) -> bytes:
    """Return the head of a segment as bytes."""
    columns: bytes = schema.serialize().to_pybytes()
    body = _HEAD.pack(len(columns), len(memory)) + columns + memory
    return MAGIC + body + _CHECK.pack(zlib.crc32(body))


def decode_head(content: bytes) -> SegmentHead:
    """Return the head in a segment's first bytes; raise :class:`DamageError` if it is broken."""
    start = len(MAGIC)
    lengths = content[start : start + _HEAD.size]
    if not content.startswith(MAGIC) or len(lengths) < _HEAD.size:
        raise DamageError("it does not begin as a segment does")
    columns, memory = _HEAD.unpack(lengths)
    end = start + _HEAD.size + columns + memory
    body, check = content[start:end], content[end : end + _CHECK.size]
    if len(check) < _CHECK.size or _CHECK.unpack(check) != (zlib.crc32(body),):
        raise DamageError("its head is not what was written")
    schema = pa.ipc.read_schema(pa.py_buffer(body[_HEAD.size : _HEAD.size + columns]))
    return SegmentHead(schema, body[_HEAD.size + columns :], end + _CHECK.size)


def head_length(beginning: bytes) -> int:
    """Return the length of a segment's head, given its magic and the two lengths after it."""
    start = len(MAGIC)
    if len(beginning) < start + _HEAD.size:
        raise DamageError("it does not begin as a segment does")
    columns, memory = _HEAD.unpack_from(beginning, start)
    return int(start + _HEAD.size + columns + memory + _CHECK.size)


SHORTEST_HEAD = len(MAGIC) + _HEAD.size


def encode_block(first: int, records: pa.RecordBatch) -> list[bytes | pa.Buffer]:
    """Return a block's bytes, in pieces: its head, and its batch.

    >>> some = pa.record_batch({"value": pa.array([b"a", b"bc"], pa.binary())})
    >>> content = b"".join(map(bytes, encode_block(7, some)))
    >>> (head,) = blocks_in(content, 0)
    >>> (
    ...     head.first,
    ...     head.records,
    ...     head.end == len(content),
    ...     read_block(content, head, some.schema).equals(some),
    ... )
    (7, 2, True, True)
    """
    payload = records.serialize()
    head = _BLOCK.pack(_MARK, first, records.num_rows, payload.size, zlib.crc32(payload))
    return [head + _CHECK.pack(zlib.crc32(head)), payload]


def decode_block_head(content: bytes, byte: int) -> BlockHead | None:
    """Return the head of a block from its bytes; None if they are not one."""
    head, check = content[: _BLOCK.size], content[_BLOCK.size : BLOCK_HEAD]
    if len(check) < _CHECK.size or _CHECK.unpack(check) != (zlib.crc32(head),):
        return None
    mark, first, records, length, checksum = _BLOCK.unpack(head)
    return BlockHead(byte, first, records, length, checksum) if mark == _MARK else None


def blocks_in(content: bytes, byte: int) -> Iterator[BlockHead]:
    """Yield the complete blocks that follow each other in ``content``.

    ``byte`` is the place of ``content`` in its segment.
    """
    start = 0
    while (
        head := decode_block_head(content[start : start + BLOCK_HEAD], byte + start)
    ) is not None:
        payload = memoryview(content)[start + BLOCK_HEAD : start + BLOCK_HEAD + head.length]
        if len(payload) < head.length or zlib.crc32(payload) != head.checksum:
            return
        yield head
        start += BLOCK_HEAD + head.length


def is_unfinished(rest: bytes) -> bool:
    """Return True if bytes are the beginning of a block, as a killed writer leaves it.

    Zeros are what a loss of power may leave.
    """
    if not rest.strip(b"\0") or len(rest) < BLOCK_HEAD:
        return True
    head = decode_block_head(rest[:BLOCK_HEAD], 0)
    return head is not None and len(rest) < head.end


def has_block_behind(content: bytes, start: int) -> bool:
    """Return True if a complete block begins anywhere from ``start`` on."""
    while (start := content.find(_MARK, start)) >= 0:
        if next(blocks_in(content[start:], start), None) is not None:
            return True
        start += 1
    return False


def read_block(content: bytes, head: BlockHead, schema: pa.Schema, byte: int = 0) -> pa.RecordBatch:
    """Return the records of a complete block, without copying them."""
    start = head.byte - byte + BLOCK_HEAD
    return pa.ipc.read_record_batch(pa.py_buffer(content).slice(start, head.length), schema)
