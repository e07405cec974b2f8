"""Places of a snapshot's parts: large parts that do not change get a file of their own."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

LARGE = 1 << 20
"""Bytes from which on a part that does not change gets a file of its own."""


@dataclass(frozen=True)
class PartLocation:
    """Location of a part: in a file of its own, or with the snapshot (None)."""

    length: int
    checksum: int
    file: str | None = None

    def holds(self, content: bytes) -> bool:
        """Return True if a content is that of the part."""
        return (len(content), zlib.crc32(content)) == (self.length, self.checksum)


@dataclass(frozen=True)
class _Known:
    """Last content of a large part, and the files that contain it."""

    content: bytes
    checksum: int
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Placed:
    """Locations of a snapshot's parts, as :meth:`Placement.place` has found them."""

    pieces: Mapping[str, PartLocation]
    known: Mapping[str, _Known]


class Placement:
    """Record of the files that the snapshots kept name.

    Two consecutive snapshots never name the same file, so that damage to one file spoils at most
    one of the two. So a part that stays the same is written three times in all, and then no more.
    The bytes of large parts are held in memory for comparison, which costs a tenth of writing them.
    """

    def __init__(self, large: int) -> None:
        self._large = large
        self._known: Mapping[str, _Known] = {}
        self._files: dict[int, frozenset[str]] = {}

    @property
    def files(self) -> frozenset[str]:
        """The files of parts that are named by the snapshots noted."""
        return frozenset().union(*self._files.values())

    def place(self, parts: Mapping[str, bytes], name_of: Callable[[int], str]) -> Placed:
        """Return the locations of the parts of the next snapshot; O(bytes).

        ``name_of`` returns the name of a new file for the part at a position.
        """
        named_before = self._files[max(self._files)] if self._files else frozenset()
        pieces, known = {}, {}
        for at, (name, content) in enumerate(parts.items()):
            before = self._known.get(name)
            if before is None or before.content != content:
                pieces[name] = PartLocation(len(content), zlib.crc32(content))
                if len(content) >= self._large:
                    known[name] = _Known(content, pieces[name].checksum)
                continue
            file = next((each for each in before.files if each not in named_before), name_of(at))
            pieces[name] = PartLocation(len(content), before.checksum, file)
            known[name] = replace(before, files=tuple(dict.fromkeys((*before.files, file))))
        return Placed(pieces, known)

    def new_files(self, placed: Placed) -> dict[str, str]:
        """Return the files that must be written before the snapshot, with their parts' names."""
        return {
            piece.file: name
            for name, piece in placed.pieces.items()
            if piece.file and piece.file not in self.files
        }

    def written(self, number: int, placed: Placed) -> None:
        """Note a snapshot that was written; its number is higher than those before."""
        self._known = placed.known
        self._files[number] = files_of(placed.pieces.values())

    def read(
        self, number: int, pieces: Mapping[str, PartLocation], parts: Mapping[str, bytes]
    ) -> None:
        """Note a snapshot that was read."""
        self._files[number] = files_of(pieces.values())
        self._known = {
            part: _Known(content, pieces[part].checksum, tuple(files_of([pieces[part]])))
            for part, content in parts.items()
            if len(content) >= self._large
        }

    def forget_but(self, numbers: Iterable[int]) -> None:
        """Forget the files that only other snapshots name: they may be removed."""
        self._files = {number: self._files[number] for number in numbers if number in self._files}
        kept = self.files
        self._known = {
            name: replace(known, files=tuple(file for file in known.files if file in kept))
            for name, known in self._known.items()
        }


def files_of(pieces: Iterable[PartLocation]) -> frozenset[str]:
    """Return the files that pieces name."""
    return frozenset(piece.file for piece in pieces if piece.file is not None)


def pieces_of(parts: Mapping[str, bytes]) -> dict[str, PartLocation]:
    """Return the locations of parts that all stay together."""
    return {
        name: PartLocation(len(content), zlib.crc32(content)) for name, content in parts.items()
    }
