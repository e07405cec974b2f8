"""Order by a term of any kind: rank by its place in SPARQL's order, then by the term itself."""

from __future__ import annotations

from dataclasses import replace

from rspql import ast
from rspql.passes.join_windows import JoinedParts
from rspql.passes.not_incremental import NotIncremental
from rspql.passes.read_stream import StreamPart
from rspql.passes.recognise_topk import Ranking
from rspql.plan import PLACE
from rspql.scope import used_in
from rspql.scoring import FunctionRegistry
from rspql.term_conditions import term_value

_TRUE = ast.Literal("true", ast.XSD + "boolean")
_ARITHMETIC = ("+", "-", "*", "/")
_SAME = ast.Literal("0", ast.XSD + "integer")


def by_term(query: ast.Query, ranking: Ranking) -> Ranking:
    """Return a ranking by the first key of ORDER BY as a term, whatever its kind.

    A name for it in SELECT is no name of a score.
    """
    key = query.order[0]
    # A value that equals itself is neither an error nor NaN. A variable may be unbound.
    holds: ast.Expression = ast.Binary("=", key.expression, key.expression)
    if isinstance(ranking.expression, ast.Variable):
        holds = ast.Call("coalesce", (holds, _TRUE))
    return replace(
        ranking,
        variable=None,
        more_keys=(key, *ranking.more_keys),
        orders_terms=True,
        only_place=True,
        holds=holds,
    )


def with_place(ranking: Ranking, part: StreamPart, functions: FunctionRegistry) -> Ranking:
    """Return a ranking by the place of a term, if the term is one of each of a window's solutions.

    Places are the same for all otherwise: then the key alone orders them. Raises
    :class:`NotIncremental` for arithmetic, whose numbers need all their digits.
    """
    term = ranking.expression
    if term is None:
        raise NotIncremental("the score is too large with all names written out", None)
    for node in ast.walk(term):
        if isinstance(node, ast.Unary | ast.Binary) and node.operator in _ARITHMETIC:
            raise NotIncremental("arithmetic is not computed on numbers alone", node)
    is_known = (
        part.aggregate is None
        and not isinstance(part, JoinedParts)
        and all(name in part.bound for name in used_in(term))
        and term_value(term, functions) is not None
    )
    if not is_known:
        return replace(ranking, expression=_SAME)
    return replace(ranking, expression=ast.Variable(PLACE), term=term)
