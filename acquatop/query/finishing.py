"""Making of an answer of the best solutions by the score: more keys, equal rows, groups, ties."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from acquatop.answer.render import Bindings
from acquatop.ingest.unscored import objects
from acquatop.query.cut import LimitCut
from acquatop.query.joined_top import JoinedTop
from acquatop.query.shown_rows import RankedSolution, ShownRow, ShownRows
from acquatop.query.tie_breaking import within_first
from acquatop.topk.contract import AnyArray, Rows, Top
from acquatop.topk.groups import bars_of, groups_of
from rspql import ast
from rspql.plan import TopKPlan

_FEW = 4
"""Number of solutions for each one wanted up to which the engine orders all that tie."""
_GROWTH = 4
"""Factor by which more solutions are looked at until enough of them are distinct."""


class Unlimited(Protocol):
    """Ranking that holds all solutions of its windows, or all that can be among the best."""

    def best(self, window: int, count: int) -> Top:
        """Return the best ``count`` of a window, and all that tie with the last of them."""

    def best_of_groups(self, window: int, count: int, per: Sequence[str]) -> Top | None:
        """Return the best ``count`` of each group, and all that tie with its last.

        None if the groups' variables are not all at hand.
        """

    def column(self, rows: Rows, name: str) -> Sequence[str] | None:
        """Return the terms of a variable as they came; None if they are not at hand."""


class UnlimitedResults(Protocol):
    """Ranking of all results that solutions are part of."""

    def best(self, window: int, count: int) -> JoinedTop:
        """Return the best ``count`` results of a window at least, and all that tie with the last.

        Others are not better than the last one.
        """

    def best_of_groups(self, window: int, count: int, per: Sequence[str]) -> JoinedTop | None:
        """Return the best ``count`` results of each group at least, and all that tie.

        None if the groups' variables are not all at hand.
        """

    def column(self, rows: Rows, name: str) -> Sequence[str] | None:
        """Return the terms of a variable of the stream; None for others."""


@dataclass(frozen=True)
class Finished:
    """Results of a window, and what those after the first ``offset`` show."""

    top: JoinedTop
    bindings: Sequence[Bindings]
    offset: int


class Finishing:
    """Maker of answers for a plan with a ``finish``."""

    def __init__(self, plan: TopKPlan, shown: ShownRows) -> None:
        assert plan.finish is not None
        self._wanted = plan.k + plan.offset
        self._offset = plan.offset
        self._finish = finish = plan.finish
        self._of_remote = plan.service.variables if plan.service else ()
        self._shown = shown
        self._cut = (
            LimitCut(plan.k, plan.offset, finish.with_ties)
            if finish.per
            else LimitCut(self._wanted, 0, finish.with_ties)
        )

    @property
    def is_estimated(self) -> bool:
        """True if the quality of an answer is that of the best k by the score."""
        finish = self._finish
        return not (finish.is_distinct or finish.per or finish.with_ties)

    def of(
        self,
        ranking: UnlimitedResults,
        window: int,
        solutions_of: Callable[[Any], Sequence[RankedSolution]],
        at_ms: int,
    ) -> Finished:
        """Return the results of a window, at a time."""
        if self._finish.per:
            top = self._of_groups(ranking, window)
            return self._results(top, solutions_of(top), at_ms)
        count = self._wanted
        while True:
            top = ranking.best(window, count)
            if len(top) > _FEW * count:
                top = self._narrowed(ranking, top)
            found = self._results(top, solutions_of(top), at_ms)
            if len(found.top) >= self._wanted or len(top) < count:
                return found
            count = max(len(top), count) * _GROWTH

    def _of_groups(self, ranking: UnlimitedResults, window: int) -> JoinedTop:
        """Return the best results of each group, or all if they cannot be told apart yet.

        Results that are not distinct yet, or that an engine groups, are chosen among afterwards.
        """
        per = self._finish.per
        if self._finish.is_distinct:
            return ranking.best(window, sys.maxsize)
        found = ranking.best_of_groups(window, self._wanted, per)
        top = ranking.best(window, sys.maxsize) if found is None else found
        columns = [self._column(ranking, top, name) for name in per]
        known = [each for each in columns if each is not None]
        if len(known) < len(columns):
            return top
        bars = bars_of(groups_of(known, len(top)), top.merits, self._wanted)
        return top.take(np.flatnonzero(top.merits >= bars))

    def _column(self, ranking: UnlimitedResults, top: JoinedTop, name: str) -> AnyArray | None:
        texts = ranking.column(top.rows, name)
        if texts is None and name in self._of_remote:
            texts = [each.get(name, "") for each in top.terms]
        return None if texts is None else objects([*texts])

    def _narrowed(self, ranking: UnlimitedResults, top: JoinedTop) -> JoinedTop:
        """Leave out some of those that tie by the score if the next key puts them behind enough."""
        keys = self._finish.keys
        if self._finish.is_distinct or not keys or not isinstance(keys[0].expression, ast.Variable):
            return top
        tied = np.flatnonzero(top.merits == top.merits[-1])
        texts = self._column(ranking, top.take(tied), keys[0].expression.name)
        if texts is None:
            return top
        count = self._wanted - (len(top) - len(tied))
        first = within_first(texts.tolist(), count, descending=keys[0].descending)
        if first is None:
            return top
        at = np.concatenate((np.arange(len(top) - len(tied)), tied[first]))
        return top.take(at)

    def _results(self, top: JoinedTop, solutions: Sequence[RankedSolution], at_ms: int) -> Finished:
        """Return those of some solutions that are results, in order, each row once if distinct."""
        # Infinite merits have no differences.
        is_another = top.merits[1:] != top.merits[:-1]
        ranks = np.cumsum(np.concatenate(([False], is_another))[: len(top)]).tolist()
        ordered = self._shown.ordered(solutions, ranks, at_ms)
        if self._finish.is_distinct:
            firsts: dict[frozenset[tuple[str, object]], ShownRow] = {}
            for each in ordered:
                firsts.setdefault(frozenset(each.bindings.items()), each)
            ordered = list(firsts.values())
        kept = self._cut.kept([each.group for each in ordered], [each.tied for each in ordered])
        ordered = [ordered[at] for at in kept]
        at = np.array([each.position for each in ordered], dtype=np.int64)
        merits = top.merits[at]
        is_full = not self._finish.per and len(at) >= self._wanted
        bar = float(merits[-1]) if is_full else -math.inf
        offset = 0 if self._finish.per else self._offset
        return Finished(
            replace(top.take(at), bar=bar),
            [each.bindings for each in ordered[offset:]],
            offset,
        )
