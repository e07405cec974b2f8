"""Rows of a top-k query's answers as they are shown, with all that they compute."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from rdflib import Literal
from rdflib.term import Identifier

from acquatop.answer.render import Bindings, Rendering
from acquatop.ingest.terms import to_ast
from acquatop.query.sparql.engine import LocalEngine
from acquatop.query.sparql.evaluate import Evaluator
from acquatop.query.sparql.functions import called_functions
from acquatop.query.sparql.terms import rdflib_of
from rspql import ast
from rspql.plan import RemotePart, TopKPlan
from rspql.scope import used_in

_SOLUTIONS = ast.ServicePattern(ast.Iri("urn:acquatop:solutions"), ast.Group(()))


@dataclass(frozen=True)
class RankedSolution:
    """Solution among the best: its terms as N-Triples text, its score, ratios of its decimals."""

    terms: Mapping[str, str]
    score: float
    ratios: Mapping[str, Fraction] = field(default_factory=dict)


class ShownRows:
    """Renderer of a top-k query's best solutions."""

    def __init__(self, plan: TopKPlan) -> None:
        self._projection = plan.projection
        self._rendering = Rendering(plan)
        self._computed = _Computed(plan, self._rendering) if plan.computed else None
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
        rows = ({**row, **more} for row, more in zip(found, columns, strict=True))
        return [{name: row[name] for name in self._projection if name in row} for row in rows]


class _Computed:
    """Columns besides the score, as a SPARQL engine computes them of given solutions."""

    def __init__(self, plan: TopKPlan, rendering: Rendering) -> None:
        self._rendering = rendering
        self._score = plan.score.variable
        made = {each.variable.name for each in plan.computed}
        used = {name: None for each in plan.computed for name in used_in(each.expression)}
        self._names = [name for name in used if name not in made]
        taken = {*made, *used}
        names = (f"row{number}" for number in itertools.count())
        self._row = row = next(name for name in names if name not in taken)
        shown = [ast.Variable(name) for name in plan.projection if name in made]
        query = ast.Query(
            ast.Select((ast.Variable(row), *shown)),
            ast.Group((_SOLUTIONS, *plan.computed)),
            order=(ast.OrderCondition(ast.Variable(row)),),
        )
        functions = called_functions(query, plan.score.functions)
        part = RemotePart(
            _SOLUTIONS, ast.Iri("urn:acquatop:solutions"), (row, *self._names), None, None
        )
        self._evaluator = Evaluator(query, LocalEngine(functions=functions), remotes=[part])

    def of(
        self, solutions: Sequence[RankedSolution], at_ms: int
    ) -> Iterable[Mapping[str, Identifier]]:
        """Return the computed columns of each solution."""
        variables = tuple(map(ast.Variable, (self._row, *self._names)))
        rows = (
            (ast.Literal(str(number), ast.XSD + "integer"), *self._values(each))
            for number, each in enumerate(solutions)
        )
        given = ast.Values(variables, tuple(rows))
        result = self._evaluator.evaluate({_SOLUTIONS: given}, at_ms)
        return [
            {name: rdflib_of(term) for name, term in row.items() if name != self._row}
            for row in result.rows
        ]

    def _values(self, solution: RankedSolution) -> Iterable[ast.Iri | ast.Literal | None]:
        for name in self._names:
            if name == self._score:
                yield _literal(
                    self._rendering.score_term(solution.terms, solution.score, solution.ratios)
                )
            else:
                yield to_ast(solution.terms[name]) if name in solution.terms else None


def _literal(term: Literal) -> ast.Literal:
    return ast.Literal(str(term), str(term.datatype))
