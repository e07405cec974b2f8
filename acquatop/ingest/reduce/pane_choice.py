"""Choice of the records of a pane that one query keeps, as their merits come block by block."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from acquatop.ingest.reduce.identities import Identified, TieIdentities
from acquatop.ingest.reduce.panes import Positions, within
from acquatop.ingest.scoring import BoolArray
from acquatop.ingest.unscored import LIMIT
from acquatop.topk.contract import FloatArray, IntArray
from acquatop.topk.order import best


class Timed(Identified, Protocol):
    """Records that have times and identities."""

    @property
    def times(self) -> IntArray:
        """Event time of each record."""


@dataclass(frozen=True)
class Chosen:
    """Records kept, by position, and whether some with and without a merit are left out."""

    rows: IntArray
    let_go: bool
    shed: bool


class PaneChoice:
    """The best ``capacity`` of a pane, and the newest 10 000 without a merit.

    Of a block, usually none is as good as those before: then it is looked at once. Memory is
    O(capacity + block), unless many tie.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._bar = -math.inf
        """Merit below which none is among the best."""
        self._places: list[IntArray] = []
        self._merits: list[FloatArray] = []
        self._held, self._room = 0, 2 * capacity
        self._scored = 0
        self._waiting: list[IntArray] = []

    def add(self, start: int, merits: FloatArray) -> None:
        """Take in the merits of a block that begins at a place of the pane."""
        top = merits.max()
        if math.isnan(top):
            waits = np.isnan(merits)
            self._waiting.append(start + np.flatnonzero(waits))
            self._scored += len(merits) - len(self._waiting[-1])
            self._keep(start, merits, ~waits & (merits >= self._bar))
            return
        self._scored += len(merits)
        if top >= self._bar:
            self._keep(start, merits, merits >= self._bar)

    def _keep(self, start: int, merits: FloatArray, are_good: BoolArray) -> None:
        at = np.flatnonzero(are_good)
        self._places.append(start + at)
        self._merits.append(merits[at])
        self._held += len(at)
        if self._held > self._room:
            self._narrow()

    def _narrow(self) -> None:
        """Forget those that cannot be among the best."""
        places, merits = self._together()
        if not self._capacity:
            self._bar = math.inf
            at = np.empty(0, dtype=np.int64)
        else:
            self._bar = float(np.partition(merits, -self._capacity)[-self._capacity])
            at = np.flatnonzero(merits >= self._bar)
        self._places, self._merits = [places[at]], [merits[at]]
        self._held = len(at)
        # Those that tie stay: what they cost is spread over as many again.
        self._room = 2 * max(self._capacity, self._held)

    def _together(self) -> tuple[IntArray, FloatArray]:
        return (
            np.concatenate([np.empty(0, dtype=np.int64), *self._places]),
            np.concatenate([np.empty(0), *self._merits]),
        )

    def of(self, found: Timed, at: Positions) -> Chosen:
        """Return the records that are kept, given the pane's positions."""
        places, merits = self._together()
        rows = within(at, places)
        times = found.times
        order = best(self._capacity, merits, times[rows], TieIdentities(found, rows))
        is_left = self._scored > self._capacity
        if not self._waiting:
            return Chosen(rows[order], is_left, False)
        waiting = within(at, np.concatenate(self._waiting))
        shed = len(waiting) > LIMIT
        if shed:
            waiting = waiting[np.lexsort((waiting, -times[waiting]))[:LIMIT]]
        return Chosen(np.concatenate([rows[order], waiting]), is_left, shed)
