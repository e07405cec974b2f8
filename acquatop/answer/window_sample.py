"""Sample of every open window's content, enough to estimate what an answer may be missing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acquatop.topk.columns import newest_of
from acquatop.topk.contract import NO_ROWS, AnyArray, IntArray, Rows
from acquatop.topk.snapshot import (
    State,
    pack,
    random_settings,
    reading,
    rows_of,
    set_random,
    table_of,
    unpack,
)

_KIND, _VERSION = "window sample", 1
_ROOM = 512


@dataclass(frozen=True)
class _Pane:
    first: int
    last: int
    rows: Rows
    gone: npt.NDArray[np.bool_]
    count: int
    is_distinct: bool = False
    """True if no solution here replaces another."""


class WindowSample:
    """Solutions of each open pane: all of a small pane, a random sample of a large one.

    A pane of n solutions costs O(``room``), and memory is O(open panes · ``room``).
    """

    def __init__(self, random: np.random.Generator, room: int = _ROOM) -> None:
        self._random = random
        self.room = room
        self._panes: list[_Pane] = []

    def chosen(self, count: int) -> IntArray:
        """Return which of a pane's ``count`` solutions to add: all, or about ``room`` of them."""
        if count <= self.room:
            return np.arange(count)
        return np.unique(self._random.integers(0, count, self.room))

    def add(
        self, first: int, last: int, rows: Rows, gone: npt.NDArray[np.bool_], count: int
    ) -> None:
        """Add the chosen ones of a pane's ``count`` solutions.

        Those ``gone`` only replace older ones.
        """
        if first <= last and len(rows):
            self._panes.append(_Pane(first, last, rows, gone, count))

    def merge(self, first: int, last: int, rows: Rows, count: int) -> None:
        """Add some of ``count`` more solutions of a pane, all chosen with the same probability.

        O(``room``).
        """
        at = next(
            (at for at, each in enumerate(self._panes) if (each.first, each.last) == (first, last)),
            None,
        )
        if at is None:
            if first <= last and len(rows):
                self._panes.append(_merged(first, last, rows, count))
            return
        before = self._panes[at]
        total = before.count + count
        if total > self.room:
            # Each part gets the share of the room that it has in the pane.
            share = max(1, round(self.room * before.count / total))
            rows = Rows.together(
                [self._some(before.rows, share), self._some(rows, max(1, self.room - share))]
            )
        else:
            rows = Rows.together([before.rows, rows])
        self._panes[at] = _merged(first, last, rows, total)

    def _some(self, rows: Rows, count: int) -> Rows:
        if count >= len(rows):
            return rows
        return rows.take(np.sort(self._random.choice(len(rows), count, replace=False)))

    def of(self, window: int, without: AnyArray) -> tuple[Rows, float]:
        """Return solutions in a window, without some identities, and how many they stand for.

        O(solutions held of the window).
        """
        panes = [pane for pane in self._panes if pane.first <= window <= pane.last]
        if not panes:
            return NO_ROWS, 0.0
        rows = Rows.together(pane.rows for pane in panes)
        gone = np.concatenate([pane.gone for pane in panes])
        weights = np.concatenate(
            [np.full(len(pane.rows), pane.count / len(pane.rows)) for pane in panes]
        )
        # Telling identities apart takes longer than all the rest.
        are_distinct = all(pane.is_distinct for pane in panes)
        at = np.arange(len(rows)) if are_distinct else newest_of(rows.identities, rows.times)
        others = set(without.tolist())
        is_other = np.fromiter(
            (each not in others for each in rows.identities[at].tolist()), np.bool_, len(at)
        )
        at = at[is_other & ~gone[at]]
        return rows.take(at), float(weights[at].sum())

    def close_before(self, window: int) -> None:
        """Drop the panes that lie only in earlier windows."""
        self._panes = [pane for pane in self._panes if pane.last >= window]

    def snapshot(self) -> bytes:
        """Return the whole state, with the random state."""
        panes = {
            name: np.array([getattr(pane, name) for pane in self._panes], dtype=np.int64)
            for name in ("first", "last", "count")
        }
        tables = {
            "panes": {
                **panes,
                "size": np.array([len(pane.rows) for pane in self._panes], dtype=np.int64),
            }
        }
        if self._panes:
            rows = Rows.together(pane.rows for pane in self._panes)
            tables["rows"] = {
                **table_of(rows),
                "gone": np.concatenate([pane.gone for pane in self._panes]),
            }
        return pack(_KIND, _VERSION, State({"random": random_settings(self._random)}, tables))

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot; raises ``SnapshotError`` for any other bytes."""
        state = unpack(_KIND, _VERSION, snapshot)
        panes: list[_Pane] = []
        with reading():
            columns, start = state.tables["panes"], 0
            each = (columns[name].tolist() for name in ("first", "last", "count", "size"))
            for first, last, count, size in zip(*each, strict=True):
                at = slice(start, start + size)
                rows, gone = (
                    rows_of(state.tables["rows"]).take(at),
                    state.tables["rows"]["gone"][at],
                )
                panes.append(_Pane(first, last, rows, gone, count))
                start += size
            set_random(self._random, state.settings["random"])
        self._panes = panes


def _merged(first: int, last: int, rows: Rows, count: int) -> _Pane:
    return _Pane(first, last, rows, np.zeros(len(rows), dtype=np.bool_), count, is_distinct=True)
