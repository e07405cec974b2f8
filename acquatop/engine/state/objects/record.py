"""Records of the chain: objects that are written once, each with the checksums of its content."""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from acquatop.engine.state.placement import PartLocation
from acquatop.engine.state.problems import Damaged

MAGIC = b"acquatop-record 1\n"

_PREFIX = struct.Struct(">QI")
"""The length of the header, and its checksum."""
_FIRST = len(MAGIC) + _PREFIX.size
_NAME = re.compile(r"record-([0-9]{12,})")


class RecordKind(StrEnum):
    """Kinds of records."""

    OPENED = "opened"
    """An engine took over: whoever wrote before finds its next number taken."""
    TEXTS = "texts"
    """The manifest has changed."""
    SNAPSHOT = "snapshot"
    ENTRY = "entry"
    """Entry of the journal."""


@dataclass(frozen=True)
class Record:
    """A record without its content.

    ``base`` is the number of the newest snapshot, to which an entry belongs, ``before`` that of the
    one before it, ``opened`` and ``texts`` those of the newest records that name the engines and
    the manifest; 0 if there is none. ``fences`` are the numbers of all records of kind ``OPENED``,
    which are never removed, and ``skipped`` those of damaged snapshots after the base. A piece
    without a file follows the header.
    """

    kind: RecordKind
    number: int
    owner: str
    base: int = 0
    before: int = 0
    opened: int = 0
    texts: int = 0
    fences: Sequence[int] = ()
    skipped: Sequence[int] = ()
    manifest: Mapping[str, Any] | None = None
    pieces: Mapping[str, PartLocation] = field(default_factory=dict)

    def encoded(self, parts: Mapping[str, bytes]) -> bytes:
        """Return the object of this record."""
        said = {
            "kind": self.kind,
            "number": self.number,
            "owner": self.owner,
            "base": self.base,
            "before": self.before,
            "opened": self.opened,
            "texts": self.texts,
            "fences": list(self.fences),
            "skipped": list(self.skipped),
            "manifest": self.manifest,
            "pieces": {
                name: [piece.length, piece.checksum, piece.file]
                for name, piece in self.pieces.items()
            },
        }
        # Texts may contain lone surrogates, which stay escaped.
        header = json.dumps(said).encode()
        bodies = [parts[name] for name, piece in self.pieces.items() if piece.file is None]
        return b"".join([MAGIC, _PREFIX.pack(len(header), zlib.crc32(header)), header, *bodies])


def record_name(number: int) -> str:
    """Return a record's name.

    >>> record_name(42)
    'record-000000000042'
    """
    return f"record-{number:012d}"


def record_number(name: str) -> int | None:
    """Return the number of the record of this name, None if it is no record's."""
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else None


def part_name(opened: int, count: int) -> str:
    """Return the name of a large part's object: no two engines share ``opened``."""
    return f"part-{opened:012d}-{count}"


def decoded(name: str, content: bytes | None) -> tuple[Record, dict[str, bytes]]:
    """Return a record and those of its parts that follow its header.

    Raises :class:`Damaged` if the object is missing, or any byte of it has changed.
    """
    if content is None:
        raise Damaged(f"{name} is missing")
    if not content.startswith(MAGIC) or len(content) < _FIRST:
        raise Damaged(f"{name} is damaged (it does not begin as a record does)")
    length, checksum = _PREFIX.unpack(content[len(MAGIC) : _FIRST])
    header = content[_FIRST : _FIRST + length]
    if len(header) != length or zlib.crc32(header) != checksum:
        raise Damaged(f"{name} is damaged (the checksum of its head does not match)")
    said = json.loads(header)
    pieces = {part: PartLocation(*values) for part, values in said.pop("pieces").items()}
    record = Record(**{**said, "kind": RecordKind(said["kind"])}, pieces=pieces)
    if record_name(record.number) != name:
        raise Damaged(f"{name} is damaged (it was written as {record_name(record.number)})")
    return record, _bodies(name, pieces, content[_FIRST + length :])


def _bodies(name: str, pieces: Mapping[str, PartLocation], rest: bytes) -> dict[str, bytes]:
    parts, start = {}, 0
    for part, piece in pieces.items():
        if piece.file is None:
            parts[part] = rest[start : start + piece.length]
            start += piece.length
            if not piece.holds(parts[part]):
                raise Damaged(f"{name} is damaged (the checksum of {part!r} does not match)")
    if len(rest) > start:
        raise Damaged(f"{name} is longer than it was")
    return parts
