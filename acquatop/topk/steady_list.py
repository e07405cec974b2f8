"""List of candidates for scores that never change, around any structure of the core's contract."""

from __future__ import annotations

import math

from acquatop.topk.contract import AnyArray, Certainty, FloatArray, IntArray, Rows, Top, TopK
from acquatop.topk.dropped_bounds import LOST, DroppedBounds, Rank, best_with, rank_from
from acquatop.topk.pane_top import Scored, place
from acquatop.topk.snapshot import State, pack, pack_parts, reading, unpack, unpack_parts

_KIND, _VERSION = "steady-list", 1


class SteadyList:
    """Decorator of a structure whose answers are exact for what was added.

    What came too late to be added is accounted for here, so the structure need not know of it.

    >>> import numpy as np
    >>> from acquatop.topk.papers.mintopk.pretopk import PreTopk
    >>> held = SteadyList(PreTopk(k=1))
    >>> rows = Rows(np.array([3]), np.array(["a"]), np.array(["a"]), (np.array([5.0]),))
    >>> rejected = held.add(0, 1, rows)
    >>> held.note_lost(0, 0, merit=7.0)
    >>> held.top(0).certainty.value, held.top(0).bound, held.top(1).certainty.value
    ('approximate', 7.0, 'exact')
    """

    n = 0

    def __init__(self, structure: TopK) -> None:
        self._structure = structure
        self._lost = DroppedBounds()

    @property
    def k(self) -> int:
        """Largest number of rows in an answer."""
        return self._structure.k

    @property
    def rejected(self) -> int:
        """Number of arrivals without a merit."""
        return self._structure.rejected

    @rejected.setter
    def rejected(self, count: int) -> None:
        self._structure.rejected = count

    def add(
        self, first: int, last: int, arrivals: Rows, merits: FloatArray | None = None
    ) -> IntArray:
        """Add arrivals; the structure computes their merits itself."""
        return self._structure.add(first, last, arrivals)

    def note_pruned(
        self, first: int, last: int, lows: tuple[float, ...], highs: tuple[float, ...]
    ) -> None:
        """Do nothing: what k better ones of its pane outlive is never missed."""

    def note_lost(
        self,
        first: int,
        last: int,
        merit: float = math.inf,
        lows: tuple[float, ...] = (),
        highs: tuple[float, ...] = (),
        rank: Rank | None = None,
    ) -> None:
        """Note that windows lack an arrival that is worth ``merit`` at most."""
        self._lost.note(last, best_with(merit) if rank is None else rank)

    def settle(self, window: int) -> None:
        """Do nothing: the structure takes in its panes when it is asked."""

    def top(self, window: int) -> Top:
        """Return the best k of a complete window, in doubt if it lacks a better arrival."""
        found = self._structure.top(window)
        lost = self._lost.best(window)
        if lost is None:
            return found
        if len(found) == self.k and place(Scored(found.merits, found.rows), -1) < lost:
            return found
        return Top(window, found.rows, found.merits, Certainty.APPROXIMATE, LOST, lost.merit)

    def lost(self, window: int) -> tuple[Rank, tuple[float, ...], tuple[float, ...]] | None:
        """Return the best place of what a window lacks; ranges of parts are not kept."""
        rank = self._lost.best(window)
        return None if rank is None else (rank, (), ())

    def covering(self, window: int) -> Rows:
        """Return the rows held, best first: closed windows' are gone, later ones' may be there."""
        return self._structure.held()

    def change(self, keys: AnyArray) -> Rows:
        """Forward the call, which the structure may refuse."""
        return self._structure.change(keys)

    def remove(self, identities: AnyArray) -> None:
        """Forward the call, which the structure may refuse."""
        self._structure.remove(identities)

    def close_before(self, window: int) -> None:
        """Close all windows before this one."""
        self._structure.close_before(window)
        self._lost.close_before(window)

    def held(self) -> Rows:
        """Return all rows that are held, best first."""
        return self._structure.held()

    def __len__(self) -> int:
        return len(self._structure)

    def snapshot(self) -> bytes:
        """Return the complete state as bytes."""
        steps = [[last, list(rank)] for last, rank in self._lost.steps]
        return pack_parts(
            {
                "lost": pack(_KIND, _VERSION, State({"steps": steps}, {})),
                "structure": self._structure.snapshot(),
            }
        )

    def resume(self, snapshot: bytes) -> None:
        """Continue from a snapshot, before anything is added."""
        with reading():
            parts = unpack_parts(snapshot)
            for last, rank in unpack(_KIND, _VERSION, parts["lost"]).settings["steps"]:
                self._lost.note(last, rank_from(rank))
            self._structure.resume(parts["structure"])

    def _check(self) -> None:
        """Assert every invariant."""
        self._lost._check()
        self._structure._check()
