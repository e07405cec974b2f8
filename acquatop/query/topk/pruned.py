"""Topk+N over a list that drops the solutions that may never matter."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.ingest.panes import Pane
from acquatop.ingest.reduce.pane_best import PaneSummary
from acquatop.ingest.solution_columns import IDENTITY, KEY
from acquatop.query.topk.ranking import TopKN, times_of
from acquatop.topk.candidate_list import CandidateList, open_list
from acquatop.topk.contract import FloatArray, IntArray
from acquatop.topk.dropped_bounds import Rank
from acquatop.topk.order import best
from acquatop.topk.strategies import OWN, TopKStrategy


class PrunedTopKN(TopKN[CandidateList]):
    """Candidates of a query; what is dropped bounds the answers that may lack it."""

    strategy: TopKStrategy = OWN["pane-dominance"]
    """Structure of its list."""

    def keep_by(self, strategy: TopKStrategy) -> None:
        """Keep the candidates by another structure, before any has come."""
        if strategy is not self.strategy:
            self.strategy = strategy
            self.list = self._new_list(self.list.n)

    def _new_list(self, n: int) -> CandidateList:
        fixed = self._distinct and self._store is None
        return open_list(
            self.strategy, self.k, n, self.scoring, distinct=self._distinct, fixed=fixed
        )

    def _add(self, pane: Pane, solutions: pa.Table, parts: tuple[FloatArray, ...]) -> None:
        keys = solutions.column(KEY).combine_chunks().dictionary_encode()
        merits = self.scoring.merits_of(keys.dictionary.to_pylist(), keys.indices.to_numpy(), parts)
        chosen, rest = self._choose(solutions, merits)
        self._forget(solutions, parts, merits, rest, pane)
        arrivals = self._rows(solutions, parts, chosen)
        self._take(arrivals, self.list.add(pane.first, pane.last, arrivals, merits[chosen]))

    def _note_pruned(self, first: int, last: int, summary: PaneSummary) -> None:
        self.list.note_pruned(first, last, summary.lows, summary.highs)

    def _choose(self, solutions: pa.Table, merits: FloatArray) -> tuple[IntArray, IntArray]:
        """Return the solutions to keep and the others.

        Kept are the pane's best K+N, all without a merit, and all that replace a held one.
        """
        goes_on = np.isnan(merits)
        if not self._distinct:
            held = pa.array(
                [*self.list.held().identities.tolist(), *self.waiting.identities()], pa.string()
            )
            goes_on |= pc.is_in(solutions.column(IDENTITY), value_set=held).to_numpy(
                zero_copy_only=False
            )
        scored = np.flatnonzero(~np.isnan(merits))
        # Rows come sorted by identity, so positions order as identities do.
        goes_on[
            scored[
                best(self.list.k + self.list.n, merits[scored], times_of(solutions)[scored], scored)
            ]
        ] = True
        return np.flatnonzero(goes_on), np.flatnonzero(~goes_on)

    def _forget(
        self,
        solutions: pa.Table,
        parts: tuple[FloatArray, ...],
        merits: FloatArray,
        rest: IntArray,
        pane: Pane,
    ) -> None:
        if not len(rest):
            return
        times = times_of(solutions)
        (at,) = rest[best(1, merits[rest], times[rest], rest)].tolist()
        rank = Rank(-float(merits[at]), -int(times[at]), solutions.column(IDENTITY)[at].as_py())
        lows = tuple(float(part[rest].min()) for part in parts)
        highs = tuple(float(part[rest].max()) for part in parts)
        self.list.note_lost(pane.first, pane.last, lows=lows, highs=highs, rank=rank)

    def _kept_keys(self) -> Iterable[str]:
        keys: Iterable[str] = self.list.held().keys.tolist()
        return keys
