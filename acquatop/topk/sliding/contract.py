"""What every structure for windows that slide at each event takes in and gives out.

The window after an event holds it and the n-1 before it. So there are as many answers as events, and
hardly ever does one differ from the one before: in random order with about 2k/n of the events. That is
why a batch of events is answered by columns of *changes*, one row for each event with which the best k
became others. From the best before the batch they give the best after any of its events
(:meth:`Changes.applied`), and whoever wants only to know what is new reads them as they are.

With one event one other leaves the window. So at most one comes among the best, and at most one goes.

Events are known by their positions in the stream, from 0. The one total order is that of the core:
the greater merit, then the newer. An event without a merit (NaN) has its place in the window and is
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
"""Stands where no event came, or none went."""


@dataclass(frozen=True)
class Best:
    """The best of a window, best first. Approximate is what may lack events that are better than those it has."""

    positions: IntArray
    merits: FloatArray
    certainty: Certainty = Certainty.EXACT

    def __len__(self) -> int:
        return len(self.positions)


@dataclass(frozen=True)
class Changes:
    """How the best became others, in the order of the events.

    With the event at ``after`` the one at ``entered``, of that merit, came among the best and the one at
    ``left`` went; either may be :data:`NONE`, with NaN for its merit.
    """

    after: IntArray
    entered: IntArray
    merits: FloatArray
    left: IntArray

    def __len__(self) -> int:
        return len(self.after)

    def applied(self, best: Best, position: int) -> Best:
        """Return the best after the event at a position, from those before the first change.

        With c changes until then O((k+c)·log(k+c)).

        >>> before = Best(np.array([0, 1]), np.array([9.0, 7.0]))
        >>> changes = Changes(np.array([2, 4]), np.array([2, 4]), np.array([8.0, 1.0]), np.array([1, 0]))
        >>> changes.applied(before, 3).positions.tolist(), changes.applied(before, 4).positions.tolist()
        ([0, 2], [2, 4])
        """
        until = int(np.searchsorted(self.after, position, side="right"))
        entered, left = self.entered[:until], self.left[:until]
        came, went = entered != NONE, left != NONE
        all_of = np.concatenate((best.positions, entered[came], left[went]))
        steps = np.ones(len(all_of), dtype=np.int64)
        steps[len(best) + np.count_nonzero(came) :] = -1
        # What goes may come again: it is there if it has come once more than it has gone.
        positions, first, of = np.unique(all_of, return_index=True, return_inverse=True)
        there = np.bincount(of, steps, len(positions)) > 0
        merits = np.concatenate((best.merits, self.merits[:until][came], np.full(np.count_nonzero(went), np.nan)))
        return ranked(positions[there], merits[first[there]], best.certainty)


class SlidingTopK(Protocol):
    """The contract. Given the same events, every exact structure reports the same changes, however batches are cut."""

    position: int
    """How many events have come: the position of the next."""
    rejected: int
    """How many of them had no merit."""

    @property
    def k(self) -> int:
        """How many an answer has at most."""

    @property
    def n(self) -> int:
        """How many events a window holds."""

    def add(self, merits: FloatArray) -> Changes:
        """Take in the next events of the stream, and return how the best changed with them."""

    def top(self) -> Best:
        """Return the best of the last n events, now."""

    def held(self) -> IntArray:
        """Return the positions of all that may be in this answer or one to come, of what has come; ascending."""

    def _check(self) -> None:
        """Assert every invariant."""

    def __len__(self) -> int:
        """Return how many events are held."""


@dataclass
class ChangeLog:
    """Changes as they come up, one by one."""

    after: list[int] = field(default_factory=list)
    entered: list[int] = field(default_factory=list)
    merits: list[float] = field(default_factory=list)
    left: list[int] = field(default_factory=list)

    def note(self, after: int, entered: Event | None, left: Event | None) -> None:
        """Note that with an event one came among the best, one went, or both."""
        merit, position = entered or (math.nan, NONE)
        self.after.append(after)
        self.entered.append(position)
        self.merits.append(merit)
        self.left.append(left[1] if left else NONE)

    def extend(self, changes: Changes, base: int) -> None:
        """Note changes of a structure whose first event is the stream's at ``base``."""
        self.after += (changes.after + base).tolist()
        self.entered += np.where(changes.entered == NONE, NONE, changes.entered + base).tolist()
        self.merits += changes.merits.tolist()
        self.left += np.where(changes.left == NONE, NONE, changes.left + base).tolist()

    def changes(self) -> Changes:
        """Return them as columns."""
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
    """Return the best k of events that stand in ascending order.

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
