"""Plan the numbers of a score that only a window's close tells: ages, and values of before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rspql import ast
from rspql.passes.look_back import AGE_DECAY
from rspql.passes.not_incremental import NotIncremental
from rspql.passes.recognise_topk import Ranking
from rspql.passes.stream_past import BEFORE
from rspql.plan import AtClose, StreamPast
from rspql.scope import used_in
from rspql.scoring import FunctionRegistry, scoring_function
from rspql.scoring.functions import FloatArray

DECAYED = "urn:acquatop:function:decayed"
"""Function of two instants and a half-life, all in milliseconds."""


def decayed(now: FloatArray, instant: FloatArray, half_life: FloatArray) -> FloatArray:
    """Return 1 for an instant of now or later, and half as much after each half-life before it.

    >>> decayed(np.array([30.0, 30.0]), np.array([20.0, 40.0]), np.array([10.0, 10.0]))
    array([0.5, 1. ])
    """
    return np.exp2(-np.maximum(0.0, now - instant) / half_life)


@dataclass(frozen=True)
class TimedRanking:
    """Ranking by numbers of a close, as variables, and the query without what joins them."""

    query: ast.Query
    ranking: Ranking
    functions: FunctionRegistry
    at_close: AtClose


def timed_ranking(
    query: ast.Query,
    ranking: Ranking,
    before: Sequence[StreamPast],
    functions: FunctionRegistry,
) -> TimedRanking | None:
    """Return a ranking that needs numbers of a close; None for one that needs none.

    Raises :class:`NotIncremental` for one that needs others than it can have.
    """
    expression = ranking.expression
    if expression is None or not (before or any(map(_is_decay, ast.walk(expression)))):
        return None
    fresh = _fresh({node.name for node in ast.walk(query) if isinstance(node, ast.Variable)})
    now = fresh("now")
    instants: dict[str, str] = {}

    def written(node: ast.Node) -> ast.Node:
        if not _is_decay(node):
            return node
        assert isinstance(node, ast.Call)
        _, instant, half_life = node.arguments
        if not isinstance(instant, ast.Variable):
            raise NotIncremental("it decays by the age of what it computes", node)
        name = instants.setdefault(instant.name, fresh(f"{instant.name}_instant"))
        arguments = (ast.Variable(now), ast.Variable(name), _in_milliseconds(half_life))
        return ast.Call(ast.Iri(DECAYED), arguments, span=node.span)

    expression = ast.rewritten(expression, written)
    _check_past(expression, before)
    at_close = AtClose(
        now if instants else None, tuple((name, of) for of, name in instants.items()), tuple(before)
    )
    function = scoring_function(decayed, directions=(-1, 1, 1), range=(0.0, 1.0))
    return TimedRanking(
        _without_past(query),
        replace(ranking, expression=expression),
        functions.with_function(DECAYED, function),
        at_close,
    )


def _is_decay(node: ast.Node) -> bool:
    return isinstance(node, ast.Call) and node.function == ast.Iri(AGE_DECAY)


def _in_milliseconds(half_life: ast.Expression) -> ast.Literal:
    assert isinstance(half_life, ast.Literal)
    return ast.Literal(repr(float(half_life.lexical) * 1000), half_life.datatype)


def _check_past(expression: ast.Expression, before: Sequence[StreamPast]) -> None:
    """Raise if a score tells the lack of a past value from a number."""
    names = {past.name for each in before for past in each.past}
    for node in ast.walk(expression):
        if isinstance(node, ast.Call) and node.function in ("coalesce", "if", "bound"):
            for name in used_in(node):
                if name in names:
                    raise NotIncremental("a value of before may be unbound in its score", node)


def _without_past(query: ast.Query) -> ast.Query:
    """Return a query without the patterns where past values of its stream are joined."""
    assert query.where is not None
    kept = tuple(each for each in query.where.elements if not _joins_past(each))
    return replace(query, where=replace(query.where, elements=kept))


def _joins_past(element: ast.Pattern) -> bool:
    return (
        isinstance(element, ast.ServicePattern)
        and isinstance(element.service, ast.Iri)
        and element.service.value.startswith(BEFORE)
    )


def _fresh(taken: Iterable[str]) -> Callable[[str], str]:
    """Return a function that makes names which no variable has."""
    known = set(taken)

    def fresh(stem: str) -> str:
        while stem in known:
            stem += "_"
        known.add(stem)
        return stem

    return fresh
