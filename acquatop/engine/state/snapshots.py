"""Snapshots on disk: one file each, and separate files for large parts that do not change."""

from __future__ import annotations

import errno
import json
import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from acquatop.engine.state.folder import Folder, read_file, write_file
from acquatop.engine.state.names import UNFINISHED, part_name, snapshot_name
from acquatop.engine.state.problems import Damaged

MAGIC = b"acquatop-snapshot 1\n"
LARGE = 1 << 20
"""Bytes from which on a part that does not change gets a file of its own."""

_PREFIX = struct.Struct(">QI")
"""The length of the header, and its checksum."""


@dataclass(frozen=True)
class _Piece:
    """Location of a part: in a file of its own, or in the snapshot's file (None)."""

    length: int
    checksum: int
    file: str | None = None


@dataclass(frozen=True)
class _Known:
    """Last content of a large part, and the files that contain it."""

    content: bytes
    checksum: int
    files: tuple[str, ...] = ()


class Snapshots:
    """Writer and reader of the snapshots of a folder.

    A part is written into the snapshot's own file, unless it is large and the same as in the
    snapshot before. Then it gets a file of its own, which later snapshots name as well. Two
    consecutive snapshots never name the same file, so that damage to one file spoils at most one of
    the two. So a part that stays the same is written three times in all, and then no more. The
    bytes of large parts are held in memory for comparison, which costs a tenth of writing them.
    """

    def __init__(self, folder: Folder, large: int) -> None:
        self._folder = folder
        self._large = large
        self._known: dict[str, _Known] = {}
        self._files: dict[int, frozenset[str]] = {}

    @property
    def files(self) -> frozenset[str]:
        """The files of parts that are named by the snapshots read or written here."""
        return frozenset().union(*self._files.values())

    def write(self, number: int, parts: Mapping[str, bytes]) -> None:
        """Write a snapshot atomically; its number must be higher than those before.

        O(bytes); large parts that have not changed are only compared.
        """
        pieces, known = self._place(number, parts)
        new = {
            piece.file: parts[name]
            for name, piece in pieces.items()
            if piece.file and piece.file not in self.files
        }
        for file, content in new.items():
            write_file(self._folder, file, [content])
        if new:
            # The files must be on the disk before the snapshot that names them.
            self._folder.sync_names()
        bodies = (parts[name] for name, piece in pieces.items() if piece.file is None)
        unfinished = UNFINISHED + snapshot_name(number)
        write_file(self._folder, unfinished, [_header(number, pieces), *bodies])
        self._folder.rename(unfinished, snapshot_name(number))
        self._folder.sync_names()
        self._known = known
        self._files[number] = _files_of(pieces.values())

    def read(self, number: int) -> dict[str, bytes]:
        """Return the parts of a snapshot; raises :class:`Damaged` if any byte has changed."""
        name = snapshot_name(number)
        try:
            pieces, parts = self._read(name, number)
        except FileNotFoundError:
            raise Damaged(f"{name} is missing") from None
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            raise Damaged(f"{name} cannot be read ({error.strerror})") from error
        self._files[number] = _files_of(pieces.values())
        self._known = {
            part: _Known(content, pieces[part].checksum, tuple(_files_of([pieces[part]])))
            for part, content in parts.items()
            if len(content) >= self._large
        }
        return parts

    def forget_but(self, numbers: Iterable[int]) -> None:
        """Forget the files that only other snapshots name: they may be removed."""
        self._files = {number: self._files[number] for number in numbers if number in self._files}
        kept = self.files
        self._known = {
            name: replace(known, files=tuple(file for file in known.files if file in kept))
            for name, known in self._known.items()
        }

    def _place(
        self, number: int, parts: Mapping[str, bytes]
    ) -> tuple[dict[str, _Piece], dict[str, _Known]]:
        """Return the location of each part, and the new records of large parts."""
        named_before = self._files[max(self._files)] if self._files else frozenset()
        pieces, known = {}, {}
        for at, (name, content) in enumerate(parts.items()):
            before = self._known.get(name)
            if before is None or before.content != content:
                pieces[name] = _Piece(len(content), zlib.crc32(content))
                if len(content) >= self._large:
                    known[name] = _Known(content, pieces[name].checksum)
                continue
            file = next(
                (each for each in before.files if each not in named_before), part_name(number, at)
            )
            pieces[name] = _Piece(len(content), before.checksum, file)
            known[name] = replace(before, files=tuple(dict.fromkeys((*before.files, file))))
        return pieces, known

    def _read(self, name: str, number: int) -> tuple[dict[str, _Piece], dict[str, bytes]]:
        file = self._folder.open_to_read(name)
        try:
            size = self._folder.size(file)
            pieces = _parse_header(self._read_header(file, name, size), name, number)
            parts = {
                part: self._folder.read(file, piece.length)
                if piece.file is None
                else self._read_apart(piece.file)
                for part, piece in pieces.items()
            }
            if self._folder.read(file, 1):
                raise Damaged(f"{name} is longer than it was")
        finally:
            self._folder.close_file(file)
        for part, piece in pieces.items():
            if (len(parts[part]), zlib.crc32(parts[part])) != (piece.length, piece.checksum):
                raise Damaged(
                    f"{piece.file or name} is damaged (the checksum of {part!r} does not match)"
                )
        return pieces, parts

    def _read_header(self, file: int, name: str, size: int) -> bytes:
        start = self._folder.read(file, len(MAGIC) + _PREFIX.size)
        if not start.startswith(MAGIC) or len(start) < len(MAGIC) + _PREFIX.size:
            raise Damaged(f"{name} is damaged (it does not begin as a snapshot does)")
        length, checksum = _PREFIX.unpack(start[len(MAGIC) :])
        header = self._folder.read(file, min(length, size))
        if len(header) != length or zlib.crc32(header) != checksum:
            raise Damaged(f"{name} is damaged (the checksum of its head does not match)")
        return header

    def _read_apart(self, file: str) -> bytes:
        try:
            return read_file(self._folder, file)
        except FileNotFoundError:
            raise Damaged(f"{file} is missing") from None


def _header(number: int, pieces: Mapping[str, _Piece]) -> bytes:
    parts = {name: [piece.length, piece.checksum, piece.file] for name, piece in pieces.items()}
    header = json.dumps({"number": number, "parts": parts}).encode()
    return MAGIC + _PREFIX.pack(len(header), zlib.crc32(header)) + header


def _parse_header(header: bytes, name: str, number: int) -> dict[str, _Piece]:
    found: dict[str, Any] = json.loads(header)
    if found["number"] != number:
        raise Damaged(f"{name} is damaged (it was written as {snapshot_name(found['number'])})")
    return {part: _Piece(*values) for part, values in found["parts"].items()}


def _files_of(pieces: Iterable[_Piece]) -> frozenset[str]:
    return frozenset(piece.file for piece in pieces if piece.file is not None)
