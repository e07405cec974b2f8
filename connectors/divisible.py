"""Readers whose batches can be cut into smaller ones, after they have been planned."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

from connectors.read_limits import ReadLimit, ReadMaxBytes, ReadMaxRows


@runtime_checkable
class Divisible(Protocol):
    """A reader that can be asked for less than what was planned."""

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 (the name is PySpark's)
        """Return how much one batch may hold, in rows or in bytes."""

    def latestOffset(self, start: Any, limit: ReadLimit) -> Any:  # noqa: N802
        """Return how far a batch reads from an offset that keeps to a limit."""

    def up_to(self, end: Any) -> Self:
        """Return a reader of the same that has nothing more to say behind an offset."""

    def size(self, start: Any, end: Any) -> int:
        """Return how much there is between two offsets, in the unit of the limit."""

    def is_mixed(self, start: Any, end: Any) -> bool:
        """Say whether what lies between two offsets stands in several places that are read side by
        side.

        Their times need not go on side by side. Then the cut decides what comes too late.
        """


class Step(NamedTuple):
    """The unit of a reader's limit."""

    counts_rows: bool

    def limit(self, size: int) -> ReadLimit:
        """Return a limit in that unit."""
        return ReadMaxRows(size) if self.counts_rows else ReadMaxBytes(size)

    def size(self, limit: Any) -> int:
        """Return the size of a limit in that unit."""
        return int(limit.max_rows if self.counts_rows else limit.max_bytes)


def step(reader: Divisible) -> Step:
    """Return the unit of a reader's limit."""
    return Step(isinstance(reader.getDefaultReadLimit(), ReadMaxRows))


def cut(reader: Divisible, start: Any, end: Any, size: int) -> Any:
    """Return where to stop on the way to an end: behind so much at most, and so that no small rest
    is left.
    """
    left = reader.size(start, end)
    count = max(1, -(-left // size))
    return (
        end
        if count == 1
        else reader.up_to(end).latestOffset(start, step(reader).limit(-(-left // count)))
    )


def within(reader: Divisible, start: Any, end: Any, size: int) -> Any:
    """Return where to stop on the way to an end: behind so much at most.

    That does not depend on the end unless it is the end.
    """
    if reader.size(start, end) <= size:
        return end
    return reader.up_to(end).latestOffset(start, step(reader).limit(size))
