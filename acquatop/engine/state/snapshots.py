"""Snapshots on disk: one file each, and separate files for large parts that do not change."""

from __future__ import annotations

import errno
import json
import struct
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from acquatop.engine.state.folder import Folder, read_file, write_file
from acquatop.engine.state.names import UNFINISHED, part_name, snapshot_name
from acquatop.engine.state.placement import PartLocation, Placement
from acquatop.engine.state.problems import Damaged

MAGIC = b"acquatop-snapshot 1\n"

_PREFIX = struct.Struct(">QI")
"""The length of the header, and its checksum."""


class Snapshots:
    """Writer and reader of the snapshots of a folder.

    A part is written into the snapshot's own file, unless it is large and the same as in the
    snapshot before. Then it gets a file of its own, which later snapshots name as well.
    """

    def __init__(self, folder: Folder, large: int) -> None:
        self._folder = folder
        self._placement = Placement(large)

    @property
    def files(self) -> frozenset[str]:
        """The files of parts that are named by the snapshots read or written here."""
        return self._placement.files

    def write(self, number: int, parts: Mapping[str, bytes]) -> None:
        """Write a snapshot atomically; its number must be higher than those before.

        O(bytes); large parts that have not changed are only compared.
        """
        placed = self._placement.place(parts, lambda at: part_name(number, at))
        new = self._placement.new_files(placed)
        for file, part in new.items():
            write_file(self._folder, file, [parts[part]])
        if new:
            # The files must be on the disk before the snapshot that names them.
            self._folder.sync_names()
        bodies = (parts[name] for name, piece in placed.pieces.items() if piece.file is None)
        unfinished = UNFINISHED + snapshot_name(number)
        write_file(self._folder, unfinished, [_header(number, placed.pieces), *bodies])
        self._folder.rename(unfinished, snapshot_name(number))
        self._folder.sync_names()
        self._placement.written(number, placed)

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
        self._placement.read(number, pieces, parts)
        return parts

    def forget_but(self, numbers: Iterable[int]) -> None:
        """Forget the files that only other snapshots name: they may be removed."""
        self._placement.forget_but(numbers)

    def _read(self, name: str, number: int) -> tuple[dict[str, PartLocation], dict[str, bytes]]:
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
            if not piece.holds(parts[part]):
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


def _header(number: int, pieces: Mapping[str, PartLocation]) -> bytes:
    parts = {name: [piece.length, piece.checksum, piece.file] for name, piece in pieces.items()}
    header = json.dumps({"number": number, "parts": parts}).encode()
    return MAGIC + _PREFIX.pack(len(header), zlib.crc32(header)) + header


def _parse_header(header: bytes, name: str, number: int) -> dict[str, PartLocation]:
    found: dict[str, Any] = json.loads(header)
    if found["number"] != number:
        raise Damaged(f"{name} is damaged (it was written as {snapshot_name(found['number'])})")
    return {part: PartLocation(*values) for part, values in found["parts"].items()}
