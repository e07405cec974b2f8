"""Journal of the changes after a snapshot: entries in one file, each complete or absent."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from typing import NamedTuple

from acquatop.engine.state.folder import Folder, read_file
from acquatop.engine.state.names import journal_name
from acquatop.engine.state.problems import Damaged

MAGIC = b"acquatop-journal 1\n"

_MARK = b"\xf0entry\r\n"
_HEAD = struct.Struct(">8sQQQI")
"""A mark, the snapshot's number, the entry's place, length and checksum; their checksum follows."""
_CHECK = struct.Struct(">I")
_FIRST = _HEAD.size + _CHECK.size


class _Entry(NamedTuple):
    place: int
    payload: bytes
    end: int


class Journal:
    """Journal of one snapshot.

    Appending costs O(bytes of the entry), and one sync of the disk. The rest of a failed or
    interrupted :meth:`append` is cut off before the next entry is written. Acknowledged entries are
    never touched.
    """

    def __init__(self, folder: Folder, number: int) -> None:
        self._folder = folder
        self._number = number
        self._name = journal_name(number)
        self._file: int | None = None
        self._end = 0
        self._count = 0
        self.problem: str | None = None
        """Description of an end that was read and is not merely unfinished."""
        self._clean = False
        """True if the last append succeeded: then the file's name is on the disk, too."""

    @property
    def length(self) -> int:
        """The bytes of its entries."""
        return self._end

    def read(self) -> list[dict[str, bytes]]:
        """Return the entries in order, and continue after the last.

        A torn entry at the end is ignored: it was never acknowledged. Raises :class:`Damaged` if a
        complete entry follows an incomplete one. On return, the entries would survive a power
        failure.
        """
        try:
            content = read_file(self._folder, self._name)
        except FileNotFoundError:
            return []
        entries = self._entries(content)
        # A complete entry may not be on the disk yet, if its writer was killed before the sync.
        file = self._folder.open_to_read(self._name)
        try:
            self._folder.sync(file)
        finally:
            self._folder.close_file(file)
        return entries

    def append(self, parts: Mapping[str, bytes]) -> None:
        """Append an entry; on return it would survive a power failure."""
        if self._file is None:
            self._file = self._folder.open(self._name)
        is_named, self._clean = self._clean, False
        if self._folder.size(self._file) > self._end:
            self._folder.cut(self._file, self._end)
        entry = _encode(self._number, self._count, parts)
        end = self._folder.write(self._file, self._end, [b"" if self._end else MAGIC, entry])
        self._folder.sync(self._file)
        if not is_named:
            self._folder.sync_names()
        self._clean = True
        self._end = end
        self._count += 1

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._folder.close_file(self._file)
            self._file = None

    def _entries(self, content: bytes) -> list[dict[str, bytes]]:
        entries: list[dict[str, bytes]] = []
        end = len(MAGIC) if content.startswith(MAGIC) else 0
        while end and (entry := self._entry_at(content, end)) and entry.place == len(entries):
            entries.append(_decode(entry.payload))
            end = entry.end
        if self._has_entry_behind(content, end, len(entries)):
            raise Damaged(
                f"{self._name} is damaged at byte {end}: {len(entries)} entries before it are whole"
            )
        self._end = end if entries else 0
        self._count = len(entries)
        if not _is_unfinished(content[end:]):
            self.problem = (
                f"{self._name} ends at byte {end} with what was never written so (damage, or a "
                f"loss of power); the {len(entries)} entries before it are used"
            )
        return entries

    def _entry_at(self, content: bytes, start: int) -> _Entry | None:
        """Return the complete entry of this journal that begins at a byte, or None."""
        head = content[start : start + _HEAD.size]
        behind = content[start + _HEAD.size : start + _FIRST]
        if len(behind) < _CHECK.size or _CHECK.unpack(behind) != (zlib.crc32(head),):
            return None
        mark, number, place, length, checksum = _HEAD.unpack(head)
        payload = content[start + _FIRST : start + _FIRST + length]
        whole = (mark, number, len(payload), zlib.crc32(payload)) == (
            _MARK,
            self._number,
            length,
            checksum,
        )
        return _Entry(place, payload, start + _FIRST + length) if whole else None

    def _has_entry_behind(self, content: bytes, end: int, count: int) -> bool:
        """Return True if a complete entry follows the last one in sequence."""
        start = end
        while (start := content.find(_MARK, start)) >= 0:
            entry = self._entry_at(content, start)
            if entry is not None and entry.place >= count:
                return True
            start += 1
        return False


def _is_unfinished(rest: bytes) -> bool:
    """Return True if bytes are the beginning of an entry, as a killed writer leaves it.

    Zeros are what a loss of power may leave.
    """
    if not rest.strip(b"\0") or len(rest) < _FIRST:
        return True
    head, behind = rest[: _HEAD.size], rest[_HEAD.size : _FIRST]
    if _CHECK.unpack(behind) != (zlib.crc32(head),):
        return False
    length: int = _HEAD.unpack(head)[3]
    return len(rest) < _FIRST + length


def _encode(number: int, place: int, parts: Mapping[str, bytes]) -> bytes:
    sizes = json.dumps([[name, len(content)] for name, content in parts.items()]).encode()
    payload = b"".join([sizes, b"\n", *parts.values()])
    head = _HEAD.pack(_MARK, number, place, len(payload), zlib.crc32(payload))
    return head + _CHECK.pack(zlib.crc32(head)) + payload


def _decode(payload: bytes) -> dict[str, bytes]:
    start = payload.index(b"\n") + 1
    parts = {}
    for name, size in json.loads(payload[: start - 1]):
        parts[name] = payload[start : start + size]
        start += size
    return parts
