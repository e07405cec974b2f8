"""Aggregates of terms: computed at a close, of the solutions of some groups."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from acquatop.ingest.panes import Pane
from acquatop.ingest.terms import to_ast
from acquatop.ingest.unscored import objects
from acquatop.plan.bound import BoundQuery
from acquatop.query.sparql.engine import LocalEngine
from acquatop.query.sparql.evaluate import Evaluator
from acquatop.query.sparql.functions import called_functions
from acquatop.query.sparql.terms import text_of
from acquatop.query.topk.retained import RetainedTopKN
from acquatop.topk.contract import Rows
from replica.terms import is_term
from rspql import ast
from rspql.plan import RemotePart, Score, TopKPlan
from rspql.scope import used_in

_GIVEN = ast.Iri("urn:acquatop:solutions")
_SOLUTIONS = ast.ServicePattern(_GIVEN, ast.Group(()))
_ANY = ast.Literal("0", ast.XSD + "integer")
_MOST_TERMS = 1 << 14
"""Number of terms that are read once for all groups: those of dates and names come again."""

Terms = Mapping[str, str]


class GatheredSolutions:
    """Solutions of the open windows, by group, and the aggregates that are computed of them.

    Adding n solutions costs O(n). The aggregates of some groups cost O(n) for the n solutions of a
    window, and one evaluation of a SPARQL engine over those of the groups. Memory is O(solutions of
    the open windows).
    """

    def __init__(self, bound: BoundQuery) -> None:
        plan = bound.plan
        assert plan.aggregate is not None
        score = Score(_ANY, True, None, (), (), functions=plan.score.functions)
        whole = replace(plan, aggregate=None, score=score, k=1, offset=0, finish=None)
        self._held = RetainedTopKN(
            whole, None, bound.windows, n=0, distinct=bound.arrivals == "distinct"
        )
        self._aggregates = _Aggregates(plan)
        self._names = plan.stream_variables

    def add_pane(self, pane: Pane) -> None:
        """Take in the solutions of one pane."""
        self._held.add_pane(pane)

    def close_before(self, window: int) -> None:
        """Release solutions that lie only in earlier windows."""
        self._held.close_before(window)

    def of(self, window: int, keys: Sequence[str]) -> list[Terms]:
        """Return the aggregates of some groups of a window, as terms: those that are no errors."""
        rows = self._held.of_keys(window, objects([*keys]))
        return self._aggregates.of(self._solutions(rows), keys)

    def _solutions(self, rows: Rows) -> list[tuple[str, Terms]]:
        """Return each solution's key and terms, in an order that no cut into batches changes."""
        columns = [column.tolist() for column in rows.carried]
        found = sorted(zip(rows.keys.tolist(), *columns, strict=True))
        return [(key, dict(zip(self._names, terms, strict=True))) for key, *terms in found]

    def snapshot(self) -> bytes:
        """Return the whole state."""
        return self._held.snapshot()

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot."""
        self._held.resume(snapshot)


class _Aggregates:
    """Aggregates as a SPARQL engine computes them of the solutions of some groups."""

    def __init__(self, plan: TopKPlan) -> None:
        assert plan.aggregate is not None
        used = {name: None for each in plan.gathered for name in used_in(each.expression)}
        self._names = tuple(used)
        self._is_one = not plan.aggregate.keys
        taken = {*used, *(each.variable.name for each in plan.gathered)}
        self._group = next(name for at in itertools.count() if (name := f"group{at}") not in taken)
        group = () if self._is_one else (ast.Variable(self._group),)
        query = ast.Query(
            ast.Select((*group, *plan.gathered)), ast.Group((_SOLUTIONS,)), group_by=group
        )
        part = RemotePart(_SOLUTIONS, _GIVEN, (self._group, *self._names), None, None)
        functions = called_functions(query, plan.score.functions)
        self._evaluator = Evaluator(query, LocalEngine(functions=functions), remotes=[part])

    def of(self, solutions: Sequence[tuple[str, Terms]], keys: Sequence[str]) -> list[Terms]:
        """Return the aggregates of each group, given its key."""
        numbers = {key: at for at, key in enumerate(dict.fromkeys(keys))}
        rows = tuple(
            (
                ast.Literal(str(numbers[key]), ast.XSD + "integer"),
                *(_value(solution.get(name, "")) for name in self._names),
            )
            for key, solution in solutions
        )
        variables = tuple(map(ast.Variable, (self._group, *self._names)))
        result = self._evaluator.evaluate({_SOLUTIONS: ast.Values(variables, rows)}, 0)
        found: dict[int, Terms] = {}
        for row in result.rows:
            at = 0 if self._is_one else int(row[self._group].value)
            found[at] = {name: text_of(term) for name, term in row.items() if name != self._group}
        return [found.get(numbers[key], {}) for key in keys]


@functools.lru_cache(_MOST_TERMS)
def _value(term: str) -> ast.Iri | ast.Literal | None:
    return to_ast(term) if term and is_term(term) else None


class GatheredTerms:
    """Aggregates of terms of the best groups of a window, computed once for all of them."""

    def __init__(self, solutions: GatheredSolutions) -> None:
        self._solutions = solutions
        self._window = 0
        self._of: Rows | None = None
        self._found: list[Terms] = []

    def enter(self, window: int) -> None:
        """Go on with a window, all of whose solutions have come."""
        self._window, self._of = window, None

    def terms(self, rows: Rows, at: int) -> Terms:
        """Return the aggregates of one of the best groups."""
        if self._of is not rows:
            self._of = rows
            self._found = self._solutions.of(self._window, np.asarray(rows.keys).tolist())
        return self._found[at]
