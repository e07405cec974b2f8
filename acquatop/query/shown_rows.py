"""Rows of a top-k query's answers as they are shown, with all that they compute."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from rdflib import Literal

from acquatop.answer.render import Bindings, Rendering
from acquatop.ingest.terms import to_ast
from acquatop.query.cut import classes_of
from acquatop.query.sparql.engine import LocalEngine
from acquatop.query.sparql.evaluate import Evaluator
from acquatop.query.sparql.functions import called_functions
from acquatop.query.sparql.shown_terms import rdflib_of
from replica.terms import is_term
from rspql import ast
from rspql.plan import Finish, RemotePart, TopKPlan
from rspql.scope import used_in

_GIVEN = ast.Iri("urn:acquatop:solutions")
_SOLUTIONS = ast.ServicePattern(_GIVEN, ast.Group(()))


@dataclass(frozen=True)
class RankedSolution:
    """Solution among the best: its terms as N-Triples text, its score, ratios of its decimals."""

    terms: Mapping[str, str]
    score: float
    ratios: Mapping[str, Fraction] = field(default_factory=dict)


@dataclass(frozen=True)
class ShownRow:
    """Row of one of some solutions: its ``position`` among these, and what it shows.

    Rows of one ``group`` have the same terms there; equal numbers in ``tied`` say that ORDER BY
    does not tell rows apart.
    """

    position: int
    bindings: Bindings
    group: tuple[Hashable, ...]
    tied: int


class ShownRows:
    """Renderer of a top-k query's best solutions."""

    def __init__(self, plan: TopKPlan) -> None:
        self._projection = plan.projection
        self._score = plan.score.variable
        self._per = plan.finish.per if plan.finish else ()
        self._made = {each.variable.name for each in plan.computed}
        self._rendering = Rendering(plan)
        finish = plan.finish or Finish()
        is_computed = bool(plan.computed or finish.keys) or finish.holds is not None
        self._computed = _Computed(plan, self._rendering) if is_computed else None
        self.depend_on_time = any(
            isinstance(node, ast.Call) and node.function == "now"
            for column in plan.computed
            for node in ast.walk(column)
        )
        """True if the same solution is shown otherwise at another time."""

    def score_of(self, merit: float) -> float:
        """Return the score of a merit."""
        return self._rendering.score_of(merit)

    def bindings(self, solutions: Sequence[RankedSolution], at_ms: int) -> list[Bindings]:
        """Return what solutions show at a time. With computed columns, one evaluation for all."""
        found = [
            self._rendering.bindings(each.terms, each.score, each.ratios) for each in solutions
        ]
        if self._computed is None or not solutions:
            return [*found]
        columns = self._computed.of(solutions, at_ms)
        return [self._together(found[at], more) for at, more in columns]

    def ordered(
        self, solutions: Sequence[RankedSolution], ranks: Sequence[int], at_ms: int
    ) -> list[ShownRow]:
        """Return the rows of solutions by their rank and then by the plan's other keys."""
        if not solutions:
            return []
        found = [
            self._rendering.bindings(each.terms, each.score, each.ratios) for each in solutions
        ]
        columns: list[tuple[int, Bindings]] = [(at, {}) for at in range(len(solutions))]
        tied: Sequence[int] = ranks
        if self._computed is not None:
            columns = self._computed.of(solutions, at_ms, ranks)
            tied = self._computed.tied(solutions, at_ms, ranks, columns)
        return [
            ShownRow(
                at, self._together(found[at], more), self._group(solutions[at], more), tied[place]
            )
            for place, (at, more) in enumerate(columns)
        ]

    def _group(self, solution: RankedSolution, more: Bindings) -> tuple[Hashable, ...]:
        return tuple(self._grouping(name, solution, more) for name in self._per)

    def _grouping(self, name: str, solution: RankedSolution, more: Bindings) -> Hashable:
        if name in self._made:
            return more.get(name)
        if name == self._score:
            return self._rendering.score_term(solution.terms, solution.score, solution.ratios)
        return solution.terms.get(name) or None

    def _together(self, row: Bindings, more: Bindings) -> Bindings:
        every = {**row, **more}
        return {name: every[name] for name in self._projection if name in every}


class _Computed:
    """Columns besides the score, and order, as a SPARQL engine computes them of solutions."""

    def __init__(self, plan: TopKPlan, rendering: Rendering) -> None:
        self._rendering = rendering
        self._score = plan.score.variable
        finish = plan.finish or Finish()
        keys = finish.keys
        made = {each.variable.name for each in plan.computed}
        holds = [] if finish.holds is None else [ast.Filter(finish.holds)]
        expressions = [*(each.expression for each in plan.computed), *keys, *holds]
        used = {name: None for each in expressions for name in used_in(each)}
        self._names = [name for name in used if name not in made]
        names = (f"row{number}" for number in itertools.count())
        free = (name for name in names if name not in made and name not in used)
        self._row, self._rank = row, rank = next(free), next(free)
        needed = dict.fromkeys((*plan.projection, *finish.per))
        shown = [ast.Variable(name) for name in needed if name in made]
        query = ast.Query(
            ast.Select((ast.Variable(row), *shown)),
            ast.Group((_SOLUTIONS, *plan.computed, *holds)),
            order=(
                ast.OrderCondition(ast.Variable(rank)),
                *keys,
                ast.OrderCondition(ast.Variable(row)),
            ),
        )
        functions = called_functions(query, plan.score.functions)
        part = RemotePart(_SOLUTIONS, _GIVEN, (row, rank, *self._names), None, None)
        self._evaluator = Evaluator(query, LocalEngine(functions=functions), remotes=[part])
        last = replace(query.order[-1], descending=True)
        backwards = replace(query, order=(*query.order[:-1], last))
        self._backwards = (
            Evaluator(backwards, LocalEngine(functions=functions), remotes=[part])
            if keys and finish.with_ties
            else None
        )
        """Evaluator that puts solutions that tie in the opposite order; None if none is needed."""

    def of(
        self,
        solutions: Sequence[RankedSolution],
        at_ms: int,
        ranks: Sequence[int] | None = None,
    ) -> list[tuple[int, Bindings]]:
        """Return the places and computed columns of solutions, in the order of ranks and keys.

        Without ``ranks``, they keep their order.
        """
        return self._evaluated(self._evaluator, solutions, at_ms, ranks or range(len(solutions)))

    def tied(
        self,
        solutions: Sequence[RankedSolution],
        at_ms: int,
        ranks: Sequence[int],
        columns: Sequence[tuple[int, Bindings]],
    ) -> Sequence[int]:
        """Return an equal number for ordered ``columns`` that tie, in their order."""
        order = [at for at, _ in columns]
        if self._backwards is None:
            return [ranks[at] for at in order]
        otherwise = self._evaluated(self._backwards, solutions, at_ms, ranks)
        return classes_of(order, [at for at, _ in otherwise])

    def _evaluated(
        self,
        evaluator: Evaluator,
        solutions: Sequence[RankedSolution],
        at_ms: int,
        ranks: Sequence[int],
    ) -> list[tuple[int, Bindings]]:
        variables = tuple(map(ast.Variable, (self._row, self._rank, *self._names)))
        rows = (
            (_integer(at), _integer(rank), *self._values(each))
            for at, (each, rank) in enumerate(zip(solutions, ranks, strict=True))
        )
        given = ast.Values(variables, tuple(rows))
        result = evaluator.evaluate({_SOLUTIONS: given}, at_ms)
        return [
            (
                int(row[self._row].value),
                {name: rdflib_of(term) for name, term in row.items() if name != self._row},
            )
            for row in result.rows
        ]

    def _values(self, solution: RankedSolution) -> Iterable[ast.Iri | ast.Literal | None]:
        for name in self._names:
            if name == self._score:
                yield _literal(
                    self._rendering.score_term(solution.terms, solution.score, solution.ratios)
                )
            else:
                term = solution.terms.get(name, "")
                # The engine reads no others in a query.
                yield to_ast(term) if is_term(term) else None


def _integer(number: int) -> ast.Literal:
    return ast.Literal(str(number), ast.XSD + "integer")


def _literal(term: Literal) -> ast.Literal:
    return ast.Literal(str(term), str(term.datatype))
