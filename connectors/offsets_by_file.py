"""Base of readers of files: an offset says how far each file was read."""

from __future__ import annotations

import copy
from typing import Self

Offset = dict[str, int]


class OffsetsByFile:
    """Arithmetic of offsets, with a target behind which nothing is read."""

    _target: Offset | None = None

    def up_to(self, end: Offset) -> Self:
        """Return a reader of the same files that ends at an offset."""
        reader = copy.copy(self)
        reader._target = end
        return reader

    def size(self, start: Offset, end: Offset) -> int:
        """Return how much is between two offsets, in the unit of the offsets."""
        return sum(end.values()) - sum(start.values())

    def is_mixed(self, start: Offset, end: Offset) -> bool:
        """Return False: files are read one after the other."""
        return False
