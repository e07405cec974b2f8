"""Ranking of one of the queries that are answered from one structure."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from acquatop.ingest.scoring import ReplicaScoring
from acquatop.query.contenders import Contenders, first_of
from acquatop.query.exactness import Extents
from acquatop.topk.contract import Rows, Top
from rspql.plan import TopKPlan
from rspql.scoring.capacity import DOUBLES


class SharedRanking:
    """Closing window of a query, as the shared structure has it."""

    def __init__(self, plan: TopKPlan) -> None:
        self.k = plan.k + plan.offset
        self.scoring = ReplicaScoring(plan.score, None)
        self._exact: Extents = dict.fromkeys(plan.score.stream_variables, DOUBLES)
        self._terms = plan.stream_variables
        self._top: Top | None = None
        self._unscored = 0

    def show(self, top: Top, unscored: int) -> None:
        """Set the window that closes now."""
        self._top, self._unscored = top, unscored

    def top(self, window: int) -> Top:
        """Return the window's best."""
        assert self._top is not None
        assert self._top.window == window, "only the window that closes now is known"
        return self._top

    def terms(self, rows: Rows, at: int) -> Mapping[str, str]:
        """Return the terms of one of the best, as bound by the window's pattern."""
        return dict(zip(self._terms, (column[at] for column in rows.carried), strict=True))

    @property
    def keeps_terms(self) -> bool:
        """True: rows have all their terms."""
        return True

    def ratios(self, rows: Rows, at: int) -> Mapping[str, Fraction]:
        """Return nothing: terms are as they came."""
        return {}

    def contenders(self, window: int, most: int) -> Contenders:
        """Return the best themselves: others are in the structure that queries share."""
        top = self.top(window)
        return first_of(top.rows, top.merits, top.rows.parts, most, is_whole=False)

    def snapshot(self) -> bytes:
        """Return no bytes: the content holds the whole state."""
        return b""

    def resume(self, snapshot: bytes) -> None:
        """Do nothing."""

    def extents(self, window: int) -> Extents:
        """Return sizes for which scores have all digits: the log of panes knows of others."""
        return self._exact

    def unscored(self, window: int) -> int:
        """Return the number of the window's solutions without a score."""
        return self._unscored
