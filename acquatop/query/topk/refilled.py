"""Topk+N over a list that is refilled from the windows' content."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from acquatop.ingest.panes import Pane
from acquatop.ingest.reduce.pane_best import PaneSummary
from acquatop.query.topk.ranking import TopKN
from acquatop.topk.contract import FloatArray
from acquatop.topk.pane_dominance import PaneDominance
from acquatop.topk.refill.controller import Controller
from acquatop.topk.refill.refilled import Refilled


class RefilledTopKN(TopKN[Refilled]):
    """Candidates of a query, with the windows' content: dropped ones make no answer uncertain.

    The costs of a refill and of an update are measured in rows scored, not in seconds: the same
    input gives the same n.
    """

    def _new_list(self, n: int) -> Refilled:
        controller = Controller(self.k, self.k + n)
        return Refilled(
            self._held_with, self.scoring, controller, in_order=False, clock=self._scored
        )

    def _add(self, pane: Pane, solutions: pa.Table, parts: tuple[FloatArray, ...]) -> None:
        arrivals = self._rows(solutions, parts, np.arange(len(solutions)))
        self._take(arrivals, self.list.add(pane.first, pane.last, arrivals))

    def _note_pruned(self, first: int, last: int, summary: PaneSummary) -> None:
        # The content lacks them, so they cannot be brought back.
        self.list.note_lost(first, last, np.inf, summary.lows, summary.highs)

    def apply_changes(self, keys: Iterable[str], first: frozenset[str]) -> None:
        """Do the same with all keys: the list wakes those that wait in its own content."""
        super().apply_changes(keys, frozenset())

    def _kept_keys(self) -> Iterable[str]:
        return self.list.keys()

    def _held_with(self, n: int) -> PaneDominance:
        return PaneDominance(self.k, n, self.scoring)

    def _scored(self) -> float:
        return float(self.scoring.scored)
