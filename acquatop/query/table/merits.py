"""Merits of a table's solutions: on columns, or as a SPARQL engine computes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from acquatop.ingest.terms import to_ast
from acquatop.query.sparql.engine import LocalEngine
from acquatop.query.sparql.evaluate import Evaluator
from acquatop.query.sparql.functions import called_functions
from acquatop.query.sparql.terms import text_of
from acquatop.query.table.fast_merits import fast_merits
from acquatop.topk.contract import FloatArray
from replica.store import Solution
from replica.terms import is_term, number_of
from rspql import ast
from rspql.plan import RemotePart, TableRanking
from rspql.scoring import FunctionRegistry


class Merits:
    """Function from solutions to merits: the rank, or its negative if the least are wanted.

    What a filter leaves out, and what has no number, has none: NaN.
    """

    def __init__(self, ranking: TableRanking, functions: FunctionRegistry) -> None:
        self._ranking = ranking
        self._fast = fast_merits(ranking, functions)
        self._sign = 1.0 if ranking.descending else -1.0
        taken = {each.name for each in ast.walk(ranking.ranked) if isinstance(each, ast.Variable)}
        self._row = next(name for at in range(len(taken) + 1) if (name := f"row{at}") not in taken)
        form = ast.Select((ast.Variable(self._row), ast.Variable(ranking.rank)))
        names = (*ranking.variables, self._row)
        part = RemotePart(ranking.pattern, ranking.iri, names, None, None)
        query = replace(ranking.ranked, form=form)
        engine = LocalEngine(functions=called_functions(query, functions))
        self._evaluator = Evaluator(query, engine, remotes=[part])

    def __call__(self, solutions: Sequence[Solution]) -> FloatArray:
        """Return the merit of each solution."""
        if not solutions:
            return np.empty(0)
        ranks = None if self._fast is None else self._fast(solutions)
        return self.by_engine(solutions) if ranks is None else self._sign * ranks

    def by_engine(self, solutions: Sequence[Solution]) -> FloatArray:
        """Return the merit of each solution, as an engine computes it."""
        merits = np.full(len(solutions), np.nan)
        given = {self._ranking.pattern: self._given(solutions)}
        for row in self._evaluator.evaluate(given, 0).rows:
            rank = number_of(text_of(row[self._ranking.rank]))
            merits[int(row[self._row].value)] = self._sign * rank
        return merits

    def score(self, merit: float) -> float:
        """Return the score of a merit."""
        return self._sign * merit

    def _given(self, solutions: Sequence[Solution]) -> ast.Values:
        row = ast.Variable(self._row)
        given = values_of(self._ranking.variables, solutions)
        rows = (
            (*each, ast.Literal(str(at), ast.XSD + "integer")) for at, each in enumerate(given.rows)
        )
        return ast.Values((*given.variables, row), tuple(rows))


def values_of(names: Sequence[str], solutions: Sequence[Solution]) -> ast.Values:
    """Return solutions as a VALUES block."""
    rows = tuple(
        tuple(to_ast(term) if is_term(term := each.get(name, "")) else None for name in names)
        for each in solutions
    )
    return ast.Values(tuple(map(ast.Variable, names)), rows)
