"""Positions in a log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Position:
    """Position before a record: its number in the log, and the start of its block.

    Record numbers are never reused. The ``segment`` is named by the number of its first record. The
    end of one segment and the beginning of the next are the same position, so positions are
    compared by their records alone.

    >>> Position.from_json(Position("5e1f", 42, 40, 128).to_json())
    Position(log='5e1f', record=42, segment=40, byte=128)
    """

    log: str
    record: int
    segment: int
    byte: int

    def to_json(self) -> dict[str, Any]:
        """Return the position as an offset of a stream."""
        return asdict(self)

    @classmethod
    def from_json(cls, offset: Mapping[str, Any]) -> Self:
        """Return the position in an offset."""
        return cls(offset["log"], offset["record"], offset["segment"], offset["byte"])
