"""Base of readers of files: an offset says how far each file was read, and which file that was."""

from __future__ import annotations

import copy
from typing import Any, Self

Place = int | list[Any]
"""Place in a file, as JSON: ``[reached, fingerprint]``, or ``[reached, fingerprint, size]``.

The size is there if the file had more to read. Offsets of earlier versions are numbers.
"""
Offset = dict[str, Any]
"""Places by the names of the files."""


def reached(place: Place) -> int:
    """Return how far a file was read."""
    return place if isinstance(place, int) else int(place[0])


def print_at(place: Place) -> str | None:
    """Return the fingerprint of a file, None if none was taken."""
    return None if isinstance(place, int) else str(place[1])


def is_unfinished(place: Place) -> bool:
    """Return True if the file had more to read."""
    return isinstance(place, list) and len(place) > 2


class OffsetsByFile:
    """Arithmetic of offsets, with a target behind which nothing is read."""

    _target: Offset | None = None

    def up_to(self, end: Offset) -> Self:
        """Return a reader of the same files that ends at an offset."""
        reader = copy.copy(self)
        reader._target = end
        return reader

    def _place(self, name: str, place: list[Any]) -> Place:
        """Return a place in a file; the target's own if that is reached."""
        target = None if self._target is None else self._target.get(name)
        return target if isinstance(target, list) and target[0] == place[0] else place

    def size(self, start: Offset, end: Offset) -> int:
        """Return how much is between two offsets, in the unit of the offsets."""
        return sum(map(reached, end.values())) - sum(map(reached, start.values()))

    def is_mixed(self, start: Offset, end: Offset) -> bool:
        """Return False: files are read one after the other."""
        return False
