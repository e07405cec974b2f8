"""A part of every open window's content: enough to know what an answer may be missing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acquatop.topk.columns import newest_of
from acquatop.topk.contract import NO_ROWS, AnyArray, IntArray, Rows

_ROOM = 512


@dataclass(frozen=True)
class _Pane:
    first: int
    last: int
    rows: Rows
    gone: npt.NDArray[np.bool_]
    count: int


class WindowSample:
    """Solutions of each open pane: all of a small pane, of a large one a random part.

    A pane of n solutions costs O(``room``), and memory is O(open panes · ``room``).
    """

    def __init__(self, random: np.random.Generator, room: int = _ROOM) -> None:
        self._random = random
        self._room = room
        self._panes: list[_Pane] = []

    def chosen(self, count: int) -> IntArray:
        """Return which solutions of a pane of so many to hand in: all, or about ``room`` of them."""
        if count <= self._room:
            return np.arange(count)
        return np.unique(self._random.integers(0, count, self._room))

    def add(self, first: int, last: int, rows: Rows, gone: npt.NDArray[np.bool_], count: int) -> None:
        """Take in those chosen of a pane of ``count`` solutions; those ``gone`` only replace older ones."""
        if first <= last and len(rows):
            self._panes.append(_Pane(first, last, rows, gone, count))

    def of(self, window: int, without: AnyArray) -> tuple[Rows, float]:
        """Return solutions in a window but those of some identities, and how many they stand for.

        O(what is held of the window).
        """
        panes = [pane for pane in self._panes if pane.first <= window <= pane.last]
        if not panes:
            return NO_ROWS, 0.0
        rows = Rows.together(pane.rows for pane in panes)
        gone = np.concatenate([pane.gone for pane in panes])
        weights = np.concatenate([np.full(len(pane.rows), pane.count / len(pane.rows)) for pane in panes])
        at = newest_of(rows.identities, rows.times)
        others = set(without.tolist())
        is_other = np.fromiter((each not in others for each in rows.identities[at].tolist()), np.bool_, len(at))
        at = at[is_other & ~gone[at]]
        return rows.take(at), float(weights[at].sum())

    def close_before(self, window: int) -> None:
        """Forget the panes that lie only in windows before this one."""
        self._panes = [pane for pane in self._panes if pane.last >= window]
