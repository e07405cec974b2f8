"""Bounds of the number of solutions: a pattern may make very many of few records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa

from acquatop.errors import EvaluationError
from acquatop.topk.contract import FloatArray, IntArray
from rspql import ast

MOST_OF_RECORD = 1_000
"""Number of solutions of one record up to which a pattern is matched as records come."""
MOST_TOGETHER = 10_000_000
"""Number of solutions that the records of a pane may make together with those before."""

_Matches = Callable[[ast.TriplePattern], FloatArray]
"""Function that returns how many triples match a pattern, graph by graph."""


def check_count(count: float) -> None:
    """Raise :class:`EvaluationError` if records make so many solutions together."""
    if count > MOST_TOGETHER:
        raise EvaluationError(
            f"records of the same subjects may make {count:.0e} solutions together, more than "
            f"{MOST_TOGETHER:.0e}\n  hint: ask for fewer properties of one subject at once"
        )


class SolutionCount:
    """Greatest number of solutions of a pattern over graphs with the objects of some predicates."""

    def __init__(self, group: ast.Group, predicates: Sequence[str]) -> None:
        self._group = group
        self._places = {each: at for at, each in enumerate(predicates)}

    def of_record(self) -> float:
        """Return the number for a graph with one object of each predicate."""
        found = _most(self._group, lambda triple: np.full(1, float(len(self._matched(triple)))))
        return float(found.max())

    def check(self, graphs: IntArray, objects: Sequence[pa.Array]) -> None:
        """Raise :class:`EvaluationError` for too many solutions of graphs, given row by row.

        O(rows); O(rows log rows) if that might be so.
        """
        if not len(graphs):
            return
        size = int(graphs.max()) + 1
        for count in (_count, _distinct_count):
            found = self._over([count(graphs, each, size) for each in objects], size)
            if found <= MOST_TOGETHER:
                return
        check_count(found)

    def _over(self, counts: Sequence[FloatArray], size: int) -> float:
        """Return the number for graphs with so many objects of each predicate."""

        def matches(triple: ast.TriplePattern) -> FloatArray:
            return sum((counts[at] for at in self._matched(triple)), np.zeros(size))

        return float(np.broadcast_to(_most(self._group, matches), size).sum())

    def _matched(self, triple: ast.TriplePattern) -> Sequence[int]:
        """Return the places of the predicates whose triples may match a pattern."""
        match triple.predicate:
            case ast.Iri(iri) | ast.InversePath(ast.Iri(iri)):
                named = [iri]
            case ast.AlternativePath(paths):
                named = [each.value for each in paths if isinstance(each, ast.Iri)]
            case _:
                named = list(self._places)
        return [self._places[each] for each in named if each in self._places]


class UnknownCount(SolutionCount):
    """No bound: how many solutions there are is known once they are made."""

    def of_record(self) -> float:
        """Return one: a record makes few by itself."""
        return 1.0

    def check(self, graphs: IntArray, objects: Sequence[pa.Array]) -> None:
        """Let any graphs be matched."""


def _count(graphs: IntArray, objects: pa.Array, size: int) -> FloatArray:
    """Return the number of objects in each graph."""
    there = objects.is_valid().to_numpy(zero_copy_only=False)
    return np.bincount(graphs[there], minlength=size).astype(np.float64)


def _distinct_count(graphs: IntArray, objects: pa.Array, size: int) -> FloatArray:
    """Return the number of different objects in each graph."""
    codes = objects.dictionary_encode().indices.fill_null(-1).to_numpy().astype(np.int64)
    pairs = np.unique(np.stack((graphs, codes))[:, codes >= 0], axis=1)
    return np.bincount(pairs[0], minlength=size).astype(np.float64)


def _most(group: ast.Group, matches: _Matches) -> FloatArray:
    """Return how many solutions of a group there can be at most, graph by graph."""
    return reduce(np.multiply, (_of(each, matches) for each in group.elements), np.ones(1))


def _of(element: ast.Pattern, matches: _Matches) -> FloatArray:
    match element:
        case ast.TriplePattern():
            return matches(element)
        case ast.Group():
            return _most(element, matches)
        case ast.OptionalPattern(group) | ast.MinusPattern(group):
            return np.maximum(_most(group, matches), 1.0)
        case ast.UnionPattern(groups):
            return reduce(np.add, (_most(each, matches) for each in groups))
        case ast.Values(_, rows):
            return np.full(1, float(len(rows)))
        case _:
            return np.ones(1)
