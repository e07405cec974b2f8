"""Sources of a table's best rows: a remote that is asked, or what a feed has said so far."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from acquatop.query.table.merits import Merits
from acquatop.query.table.rows import TableRows
from acquatop.refresh.ranked_remote import BestReply
from acquatop.topk.snapshot import State, pack, reading, unpack
from replica.budget import NOTHING, Budget, Spending
from replica.remotes.best import BestRows
from replica.store import Solution

_KIND, _VERSION = "held table", 1

Changes = Mapping[str, Sequence[Solution]]
"""All that holds now of some subjects; nothing of those that are gone."""


class RowSource(Protocol):
    """Source that is asked for the best rows; it has one request under way at a time."""

    is_asked: bool
    failure: str | None

    @property
    def budget(self) -> Budget:
        """Budget of one look."""

    def begin(self, at_ms: int) -> None:
        """Begin a look at a time."""

    def ask(self, count: int) -> bool:
        """Ask for the best ``count`` rows, or as many as allowed; return True if that is done."""

    def reply(self, longest_wait: float) -> BestReply | None:
        """Return the reply, once it comes; None after the deadline."""

    def take_spending(self) -> Spending:
        """Return what has been spent since the last call."""

    def take_rejected(self) -> Counter[str]:
        """Return the rows that could not be used since the last call, by reason."""

    def snapshot(self) -> bytes:
        """Return the state."""

    def resume(self, snapshot: bytes) -> None:
        """Continue from a state."""


class HeldTable:
    """Table that nobody can be asked for: all rows that a feed has said are held.

    Its best are found in O(n log count).
    """

    def __init__(self, key: str, merits: Merits) -> None:
        self.is_asked = False
        self.failure: str | None = None
        self.has_heard = False
        """True once anything has been said."""
        self._rows = TableRows(key)
        self._merits = merits
        self._of: dict[str, float] = {}
        self._count = 0

    budget = NOTHING

    def begin(self, at_ms: int) -> None:
        """Do nothing: there is nothing to spend."""

    def take(self, changes: Changes) -> None:
        """Hold what has changed."""
        self.has_heard = True
        for row in self._rows.of(changes):
            del self._of[row]
        self._rows.let_go(changes)
        solutions = [each for several in changes.values() for each in several]
        rows = self._rows.hold(solutions).tolist()
        self._of.update(zip(rows, self._merits(solutions).tolist(), strict=True))

    def ask(self, count: int) -> bool:
        """Note the number of rows."""
        self._count, self.is_asked = count, True
        return True

    def reply(self, longest_wait: float) -> BestReply | None:
        """Return the best rows, at once."""
        if not self.is_asked:
            return None
        self.is_asked = False
        ranked = ((-merit, row) for row, merit in self._of.items() if not np.isnan(merit))
        best = [self._rows[row] for _, row in heapq.nsmallest(self._count, ranked)]
        rows = BestRows(best, len(best) < self._count, ties_by_key=True)
        return BestReply(rows, self._count, 0.0)

    def take_spending(self) -> Spending:
        """Return nothing."""
        return Spending()

    def take_rejected(self) -> Counter[str]:
        """Return nothing."""
        return Counter()

    def snapshot(self) -> bytes:
        """Return the rows."""
        return pack(_KIND, _VERSION, State({"rows": self._rows.state()}, {}))

    def resume(self, snapshot: bytes) -> None:
        """Hold the rows of a state, as far as nothing newer has been said of their subjects."""
        with reading():
            rows = unpack(_KIND, _VERSION, snapshot).settings["rows"]
        changes: dict[str, list[Solution]] = {}
        for each in rows:
            changes.setdefault(each[self._rows.key], []).append(each)
        known = {key: several for key, several in changes.items() if not self._rows.of([key])}
        if known:
            self.take(known)
