"""Contract of the structures for windows that slide at each event: their input and output.

The window after an event holds it and the n-1 before it. So there are as many answers as events,
and few differ from the one before: in random order about 2k/n of them. A batch of events is
therefore answered by columns of *changes*, one row for each event that changed the best k. Applied
to the best before the batch they give the best after any of its events (:meth:`Changes.applied`).
Callers that want only the news read them as they are.

With each event one other leaves the window. So at most one event enters the best, and at most one
leaves them.

Events are identified by their positions in the stream, from 0. The total order is that of the core:
greater merit first, then newer. An event without a merit (NaN) has its place in the window and is
in no answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from acquatop.topk.contract import Certainty, FloatArray, IntArray

Event = tuple[float, int]
"""Merit and position: the greater is the better."""
NONE = -1
"""Placeholder if no event entered, or none left."""


@dataclass(frozen=True)
class Best:
    """The best of a window, best first. If approximate, better events may be missing."""

    positions: IntArray
    merits: FloatArray
    certainty: Certainty = Certainty.EXACT

    def __len__(self) -> int:
        return len(self.positions)


@dataclass(frozen=True)
class Changes:
    """Changes of the best, in the order of the events.

    With the event at ``after``, the one at ``entered`` with its merit entered the best, and the one
    at ``left`` left them. Either may be :data:`NONE`; the merit of no event is NaN.
    """

    after: IntArray
    entered: IntArray
    merits: FloatArray
    left: IntArray

    def __len__(self) -> int:
        return len(self.after)

    def applied(self, best: Best, position: int) -> Best:
        """Return the best after the event at a position, from the best before the first change.

        O((k+c)·log(k+c)) for c changes until then.

        >>> before = Best(np.array([0, 1]), np.array([9.0, 7.0]))
        >>> changes = Changes(
        ...     np.array([2, 4]), np.array([2, 4]), np.array([8.0, 1.0]), np.array([1, 0])
        ... )
        >>> (
        ...     changes.applied(before, 3).positions.tolist(),
        ...     changes.applied(before, 4).positions.tolist(),
        ... )
        ([0, 2], [2, 4])
        """
        until = int(np.searchsorted(self.after, position, side="right"))
        entered, left = self.entered[:until], self.left[:until]
        came, went = entered != NONE, left != NONE
        all_of = np.concatenate((best.positions, entered[came], left[went]))
        steps = np.ones(len(all_of), dtype=np.int64)
        steps[len(best) + np.count_nonzero(came) :] = -1
        # An event that left may enter again: it is there if it entered once more than it left.
        positions, first, of = np.unique(all_of, return_index=True, return_inverse=True)
        there = np.bincount(of, steps, len(positions)) > 0
        merits = np.concatenate(
            (best.merits, self.merits[:until][came], np.full(np.count_nonzero(went), np.nan))
        )
        return ranked(positions[there], merits[first[there]], best.certainty)


class SlidingTopK(Protocol):
    """Contract of a top-k structure for windows that slide at each event.

    Given the same events, all exact structures report the same changes, however batches are cut.
    """

    position: int
    """Number of events so far: the position of the next."""
    rejected: int
    """Number of events without a merit."""

    @property
    def k(self) -> int:
        """Largest number of events in an answer."""

    @property
    def n(self) -> int:
        """Number of events in a window."""

    def add(self, merits: FloatArray) -> Changes:
        """Add the next events of the stream, and return how the best changed with them."""

    def top(self) -> Best:
        """Return the best of the last n events."""

    def held(self) -> IntArray:
        """Return the positions of events that may be in this or a later answer, ascending."""

    def _check(self) -> None:
        """Assert every invariant."""

    def __len__(self) -> int:
        """Return the number of events held."""


@dataclass
class ChangeLog:
    """Changes collected one by one."""

    after: list[int] = field(default_factory=list)
    entered: list[int] = field(default_factory=list)
    merits: list[float] = field(default_factory=list)
    left: list[int] = field(default_factory=list)

    def note(self, after: int, entered: Event | None, left: Event | None) -> None:
        """Note that with an event one entered the best, one left them, or both."""
        merit, position = entered or (math.nan, NONE)
        self.after.append(after)
        self.entered.append(position)
        self.merits.append(merit)
        self.left.append(left[1] if left else NONE)

    def extend(self, changes: Changes, base: int) -> None:
        """Note the changes of a structure whose first event is the stream's at ``base``."""
        self.after += (changes.after + base).tolist()
        self.entered += np.where(changes.entered == NONE, NONE, changes.entered + base).tolist()
        self.merits += changes.merits.tolist()
        self.left += np.where(changes.left == NONE, NONE, changes.left + base).tolist()

    def changes(self) -> Changes:
        """Return the changes as columns."""
        return Changes(
            np.array(self.after, dtype=np.int64),
            np.array(self.entered, dtype=np.int64),
            np.array(self.merits, dtype=np.float64),
            np.array(self.left, dtype=np.int64),
        )


def ranked(positions: IntArray, merits: FloatArray, certainty: Certainty = Certainty.EXACT) -> Best:
    """Return events, given in any order, best first."""
    order = np.lexsort((-positions, -merits))
    return Best(positions[order], merits[order], certainty)


def best_of(events: list[Event], k: int, certainty: Certainty = Certainty.EXACT) -> Best:
    """Return the best k of events in ascending order.

    >>> best_of([(1.0, 7), (2.0, 3), (2.0, 5)], k=2).positions.tolist()
    [5, 3]
    """
    chosen = events[-k:][::-1]
    return Best(
        np.array([position for _, position in chosen], dtype=np.int64),
        np.array([merit for merit, _ in chosen], dtype=np.float64),
        certainty,
    )


def check_sizes(k: int, n: int) -> None:
    """Raise ``ValueError`` for a window or an answer without events."""
    if k < 1 or n < 1:
        raise ValueError("k and n must be at least 1")
