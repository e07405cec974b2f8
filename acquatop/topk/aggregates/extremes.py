"""Sliding maximum per key over panes: a maximum cannot be undone by subtraction.

Two stacks serve all keys at once. Panes that enter raise the *back*, one running maximum per key.
When the first of them must leave, all are moved to the *front*, newest first, each with its keys'
earlier maxima: those of the panes that outlive it. From then on, a pane that leaves restores these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acquatop.topk.aggregates.partials import At, BoolArray, Columns, Partial, raise_to
from acquatop.topk.contract import AnyArray, FloatArray, IntArray


@dataclass(frozen=True)
class _Pane:
    last: int
    at: At
    values: FloatArray


class Extremes:
    """Greatest or smallest value per key. A pane of m keys costs O(m) over its life.

    If panes leave in another order than they entered, a departure costs O(all that is held). So
    does a withdrawal of values, all together.
    """

    def __init__(self, *, smallest: bool = False) -> None:
        self.stackings = 0
        """Number of times that a pane was stacked: once each if they come in order."""
        self._sign = -1.0 if smallest else 1.0
        self._back = np.empty(0)
        self._front = np.empty(0)
        self._waiting: list[_Pane] = []
        self._stacked: list[tuple[_Pane, FloatArray]] = []
        self._stale = False

    def fold(self, slots: IntArray, size: int, values: AnyArray) -> Columns:
        """Return the extremes per slot, with the sign that turns them into maxima."""
        greatest = np.full(size, -np.inf)
        # Adding zero turns -0.0 into 0.0; otherwise the order of events would choose.
        np.maximum.at(greatest, slots, self._sign * (values + 0.0))
        return {0: greatest}

    def unfold(
        self,
        slots: IntArray,
        size: int,
        values: AnyArray,
        left: tuple[IntArray, AnyArray] | None,
    ) -> Columns:
        """Return the extremes of the values left, or values that change none."""
        return {0: np.full(size, -np.inf)} if left is None else self.fold(left[0], size, left[1])

    def clear(self, columns: Columns, at: BoolArray) -> None:
        """Reset the extremes of some keys in a partial: values cannot be subtracted from them."""
        columns[0][at] = -np.inf
        self._stale = True

    def merge(self, places: Sequence[At], columns: Sequence[Columns], size: int) -> Columns:
        """Return the extremes of several partials, whose keys have places among ``size``."""
        greatest = np.full(size, -np.inf)
        for at, each in zip(places, columns, strict=True):
            raise_to(greatest, at, each[0])
        return {0: greatest}

    def grow(self, size: int) -> None:
        """Make room for more keys."""
        self._back, self._front = _grown(self._back, size), _grown(self._front, size)

    def enter(self, last: int, partial: Partial) -> None:
        """Add a partial's values, which count until after the window ``last``."""
        pane = _Pane(last, partial.at, partial.columns[0])
        self._waiting.append(pane)
        raise_to(self._back, pane.at, pane.values)

    def exchange(
        self, last: int, before: Sequence[Partial], change: Partial, after: Partial
    ) -> None:
        """Replace several partials by one; all panes are restacked if that changes an extreme."""
        if not self._stale:
            return
        panes = [pane for pane, _ in self._stacked] + self._waiting
        kept = [pane for pane in panes if pane.last != last]
        self._clear(panes)
        self._waiting = [*kept, _Pane(last, after.at, after.columns[0])]

    def leave(self, window: int, gone: Sequence[Partial]) -> None:
        """Remove the panes whose last window is before this one."""
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

    def rolled_up(self, at: IntArray, groups: IntArray, size: int) -> FloatArray:
        """Return the extremes of groups of keys."""
        greatest = np.full(size, -np.inf)
        np.maximum.at(greatest, groups, self._sign * self.read(at))
        return self._sign * greatest

    def _restack_if_stale(self) -> None:
        if self._stale:
            self._stale = False
            self._restack(-(2**63))

    def _restack(self, window: int) -> None:
        panes = [pane for pane, _ in self._stacked] + self._waiting
        self._clear(panes)
        for pane in sorted(
            (each for each in panes if each.last >= window), key=lambda each: -each.last
        ):
            before = self._front[pane.at].copy()
            self._stacked.append((pane, before))
            self.stackings += 1
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
