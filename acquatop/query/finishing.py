"""Making of an answer of the best solutions by the score: more keys, distinct rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from acquatop.answer.render import Bindings
from acquatop.query.shown_rows import RankedSolution, ShownRows
from acquatop.query.tie_breaking import within_first
from acquatop.topk.contract import Rows, Top
from rspql import ast
from rspql.plan import TopKPlan

_FEW = 4
"""Number of solutions for each one wanted up to which the engine orders all that tie."""
_GROWTH = 4
"""Factor by which more solutions are looked at until enough of them are distinct."""


class Unlimited(Protocol):
    """Ranking that holds all solutions of its windows."""

    def best(self, window: int, count: int) -> Top:
        """Return the best ``count`` of a window, and all that tie with the last of them."""

    def column(self, rows: Rows, name: str) -> Sequence[str] | None:
        """Return the terms of a variable as they came; None if they are not at hand."""


@dataclass(frozen=True)
class Finished:
    """Results of a window, and what those after the offset show."""

    top: Top
    bindings: Sequence[Bindings]


class Finishing:
    """Maker of answers for a plan with a ``finish``."""

    def __init__(self, plan: TopKPlan, shown: ShownRows) -> None:
        assert plan.finish is not None
        self._wanted = plan.k + plan.offset
        self._offset = plan.offset
        self._finish = plan.finish
        self._shown = shown

    @property
    def is_distinct(self) -> bool:
        """True if equal rows are one."""
        return self._finish.is_distinct

    def of(
        self,
        ranking: Unlimited,
        window: int,
        solutions_of: Callable[[Any], Sequence[RankedSolution]],
        at_ms: int,
    ) -> Finished:
        """Return the results of a window, at a time."""
        count = self._wanted
        while True:
            top = ranking.best(window, count)
            if len(top) > _FEW * count:
                top = self._narrowed(ranking, top)
            found = self._results(top, solutions_of(top), at_ms)
            if len(found.top) >= self._wanted or len(top) < count:
                return found
            count = max(len(top), count) * _GROWTH

    def _narrowed(self, ranking: Unlimited, top: Top) -> Top:
        """Leave out some of those that tie by the score if the next key puts them behind enough."""
        keys = self._finish.keys
        if self.is_distinct or not keys or not isinstance(keys[0].expression, ast.Variable):
            return top
        tied = np.flatnonzero(top.merits == top.merits[-1])
        texts = ranking.column(top.rows.take(tied), keys[0].expression.name)
        if texts is None:
            return top
        count = self._wanted - (len(top) - len(tied))
        first = within_first(texts, count, descending=keys[0].descending)
        if first is None:
            return top
        at = np.concatenate((np.arange(len(top) - len(tied)), tied[first]))
        return top.take(at)

    def _results(self, top: Top, solutions: Sequence[RankedSolution], at_ms: int) -> Finished:
        """Return the first of some solutions, in order, and each row once if it is distinct."""
        ranks = np.cumsum(np.diff(-top.merits, prepend=-top.merits[:1]) != 0).tolist()
        ordered = self._shown.ordered(solutions, ranks, at_ms)
        if self._finish.is_distinct:
            firsts: dict[frozenset[tuple[str, object]], tuple[int, Bindings]] = {}
            for position, bindings in ordered:
                firsts.setdefault(frozenset(bindings.items()), (position, bindings))
            ordered = list(firsts.values())
        ordered = ordered[: self._wanted]
        at = np.array([position for position, _ in ordered], dtype=np.int64)
        merits = top.merits[at]
        bar = float(merits[-1]) if len(at) == self._wanted else -math.inf
        return Finished(
            replace(top, rows=top.rows.take(at), merits=merits, bar=bar),
            [bindings for _, bindings in ordered[self._offset :]],
        )
