"""The greatest value per key over panes that come and go: a maximum cannot be taken off again.

Two stacks, for all keys at once. Panes that come in raise the *back*, one running maximum per key.
When the first of them has to go, all are put on the *front*, newest first, each with what its keys
had before: the maxima of the panes that outlive it. From then on, a pane that goes puts those back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acquatop.topk.aggregates.partials import At, BoolArray, Columns, Partial, raise_to
from acquatop.topk.contract import FloatArray, IntArray


@dataclass(frozen=True)
class _Pane:
    last: int
    at: At
    values: FloatArray


class Extremes:
    """The greatest value per key, or the smallest. A pane of m keys comes and goes in O(m), over its life.

    Panes that do not leave in the order in which they came cost O(all that is held) when one goes,
    and so do values that are withdrawn, all together.
    """

    def __init__(self, *, smallest: bool = False) -> None:
        self._sign = -1.0 if smallest else 1.0
        self._back = np.empty(0)
        self._front = np.empty(0)
        self._waiting: list[_Pane] = []
        self._stacked: list[tuple[_Pane, FloatArray]] = []
        self._stale = False

    def fold(self, slots: IntArray, size: int, values: FloatArray) -> Columns:
        """Return the extremes per slot, with the sign that makes them the greatest."""
        greatest = np.full(size, -np.inf)
        # Adding zero leaves one zero of two, else the order of events would choose.
        np.maximum.at(greatest, slots, self._sign * (values + 0.0))
        return {0: greatest}

    def unfold(
        self, slots: IntArray, size: int, values: FloatArray, left: tuple[IntArray, FloatArray] | None
    ) -> Columns:
        """Return the extremes of what is left, or what changes none."""
        return {0: np.full(size, -np.inf)} if left is None else self.fold(left[0], size, left[1])

    def clear(self, columns: Columns, at: BoolArray) -> None:
        """Forget the extremes of some keys in a partial: nothing else can take a value out of them."""
        columns[0][at] = -np.inf
        self._stale = True

    def merge(self, places: Sequence[At], columns: Sequence[Columns], size: int) -> Columns:
        """Return the extremes of several partials, each one's keys at some places among ``size``."""
        greatest = np.full(size, -np.inf)
        for at, each in zip(places, columns, strict=True):
            raise_to(greatest, at, each[0])
        return {0: greatest}

    def grow(self, size: int) -> None:
        """Make place for more keys."""
        self._back, self._front = _grown(self._back, size), _grown(self._front, size)

    def enter(self, last: int, partial: Partial) -> None:
        """Let a partial's values count, until after the window ``last``."""
        pane = _Pane(last, partial.at, partial.columns[0])
        self._waiting.append(pane)
        raise_to(self._back, pane.at, pane.values)

    def exchange(self, last: int, before: Sequence[Partial], change: Partial, after: Partial) -> None:
        """Have one partial in the place of several; all panes are stacked anew if that changes an extreme."""
        if not self._stale:
            return
        panes = [pane for pane, _ in self._stacked] + self._waiting
        kept = [pane for pane in panes if pane.last != last]
        self._clear(panes)
        self._waiting = [*kept, _Pane(last, after.at, after.columns[0])]

    def leave(self, window: int, gone: Sequence[Partial]) -> None:
        """Let what was in until some window before this one count no longer."""
        self._restack_if_stale()
        while self._stacked and self._stacked[-1][0].last < window:
            pane, before = self._stacked.pop()
            self._front[pane.at] = before
        if any(pane.last < window for pane in self._waiting):
            self._restack(window)

    def read(self, at: At) -> FloatArray:
        """Return the extremes of some keys."""
        self._restack_if_stale()
        greatest: FloatArray = np.maximum(self._front[at], self._back[at])
        return self._sign * greatest

    def _restack_if_stale(self) -> None:
        if self._stale:
            self._stale = False
            self._restack(-(2**63))

    def _restack(self, window: int) -> None:
        panes = [pane for pane, _ in self._stacked] + self._waiting
        self._clear(panes)
        for pane in sorted((each for each in panes if each.last >= window), key=lambda each: -each.last):
            before = self._front[pane.at].copy()
            self._stacked.append((pane, before))
            raise_to(self._front, pane.at, pane.values)

    def _clear(self, panes: Sequence[_Pane]) -> None:
        for pane in panes:
            self._back[pane.at] = -np.inf
            self._front[pane.at] = -np.inf
        self._waiting, self._stacked = [], []


def _grown(column: FloatArray, size: int) -> FloatArray:
    wider = np.full(size, -np.inf)
    wider[: len(column)] = column
    return wider
