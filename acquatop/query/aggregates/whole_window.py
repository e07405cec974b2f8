"""Ranking of the one group that all solutions of a window are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from acquatop.query.aggregates.ranking import AggregateRanking
from acquatop.topk.aggregates.aggregate_totals import AggregateKind
from acquatop.topk.aggregates.multi_aggregate import Columnwise
from acquatop.topk.contract import Rows, Top

_ALL = ""
"""Key of all solutions."""
_OF_NOTHING = {AggregateKind.COUNT: 0.0, AggregateKind.SUM: 0.0}


def parts_of_nothing(kinds: Sequence[AggregateKind]) -> Columnwise:
    """Return the aggregates of one group without a solution."""
    return tuple(np.array([_OF_NOTHING.get(kind, np.nan)]) for kind in kinds)


class WholeWindowRanking(AggregateRanking):
    """Ranking of one group, which is there even if it has no solution: then its count is zero."""

    def top(self, window: int) -> Top:
        """Return the group, if it has a score."""
        found = super().top(window)
        return found if len(self.list.inside()) else self._nothing(found)

    def best(self, window: int, count: int) -> Top:
        """Return the same: it is the best of any number."""
        found = super().best(window, count)
        return found if len(self.list.inside()) else self._nothing(found)

    def _nothing(self, found: Top) -> Top:
        """Return what says so much of the group without a solution."""
        parts = parts_of_nothing(self._columns.aggregates)
        merits = self.scoring.merits_at(
            np.array([-1]), self._merits.parts(parts), self._columns.ratios(parts)
        )
        keys = np.array([_ALL], dtype=object)
        _, closes_ms = self._windows.bounds(found.window)
        rows = Rows(np.array([closes_ms]), keys, keys, parts)
        at = np.flatnonzero(~np.isnan(merits))
        return replace(found, rows=rows.take(at), merits=merits[at])
