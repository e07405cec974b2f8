"""Plan a query for evaluation window by window: plain SPARQL over the windows as named graphs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from rspql import ast
from rspql.diagnostics import Diagnostic
from rspql.passes.counted_names import with_counted_names
from rspql.passes.exact_calls import ExactCalls
from rspql.passes.recognise_topk import Ranking
from rspql.passes.split_sources import Sources, without_windows
from rspql.plan import RemotePart, WindowedPlan
from rspql.scope import selected
from rspql.scoring import FunctionRegistry, check_expression, to_sparql, with_ordered_nan
from rspql.scoring.library import division_by_zero

VOLATILE = frozenset("now rand uuid struuid bnode".split())
"""Functions whose value depends on when and where they are evaluated."""

_AnyNode = TypeVar("_AnyNode", bound=ast.Node)

_TRUE = ast.Literal("true", ast.XSD + "boolean")
_ONE = ast.Literal("1.0E0", ast.XSD + "double")
_PARTS = ast.Literal("1.0E8", ast.XSD + "double")
_ZERO = ast.Literal("0", ast.XSD + "integer")
_CERTAIN = (ast.Variable, ast.Literal, ast.Unary, ast.Binary)
"""Nodes that fail if any of their operands fails, but for comparisons, which are no scores."""

OWN_FUNCTIONS = "urn:acquatop:function:"
"""Namespace in which an engine finds registered functions that have a bare name."""


def plan_windowed(
    query: ast.Query,
    sources: Sources,
    ranking: Ranking | None,
    output: str,
    functions: FunctionRegistry,
    *,
    calls: ExactCalls | None = None,
    is_numeric: bool = False,
) -> WindowedPlan:
    """Return the plan of a normalised query; ``ranking`` is that of a top-k query.

    Solutions of a top-k query are no results if their score is an error or not a number. With
    ``is_numeric`` the score is a number even if it is a variable of the patterns. With ``calls``,
    among which are those in the query, scores have all digits. Otherwise the query is plain SPARQL.
    """
    expand = expander(functions)
    remotes = tuple(_expanded(part, expand) for part in sources.remotes)
    scored = _scored_only(query, ranking, functions, calls, is_numeric) if ranking else query
    plain = _evaluable(ast.rewritten(without_windows(scored), expand))
    return WindowedPlan(
        name=query.registration.name.value if query.registration else None,
        output=output,
        windows=sources.windows,
        query=plain,
        remotes=remotes,
        score_variable=ranking.variable if ranking else None,
        functions=functions,
        computed={} if calls is None else calls.computed,
        before=tuple(
            replace(each, source=_evaluable(ast.rewritten(each.source, expand)))
            for each in sources.before
        ),
    )


def _expanded(part: RemotePart, expand: Callable[[ast.Node], ast.Node]) -> RemotePart:
    source = _evaluable(ast.rewritten(part.key_source, expand)) if part.key_source else None
    return replace(part, pattern=ast.rewritten(part.pattern, expand), key_source=source)


def expander(functions: FunctionRegistry) -> Callable[[ast.Node], ast.Node]:
    """Return a function that rewrites calls of AcquaTop's own functions to plain SPARQL."""

    def expand(node: ast.Node) -> ast.Node:
        if not isinstance(node, ast.Call) or functions.find(node.function) is None:
            return node
        plain = to_sparql(node, functions)
        if plain is not None:
            return plain
        if isinstance(node.function, ast.Iri):
            return node
        return replace(node, function=ast.Iri(OWN_FUNCTIONS + node.function.lower()))

    return expand


def evaluable(node: _AnyNode, functions: FunctionRegistry) -> _AnyNode:
    """Return a tree as an engine evaluates it: plain SPARQL, in the engine's shapes."""
    return _evaluable(ast.rewritten(node, expander(functions)))


def _scored_only(
    query: ast.Query,
    ranking: Ranking,
    functions: FunctionRegistry,
    calls: ExactCalls | None,
    is_numeric: bool,
) -> ast.Query:
    """Return a top-k query that leaves out solutions whose score is an error or NaN.

    An ORDER BY on a variable bound by the patterns (text, or unbound) follows SPARQL, but NaN has
    no place in it either. An ORDER BY on groups follows SPARQL in all. Numeric scores that are
    computed are ordered with all their digits with ``calls``, else as doubles. The selected score
    has SPARQL's own type if that can be computed.
    """
    assert query.where is not None
    form = query.form
    items = form.projection if isinstance(form, ast.Select) else ()
    computes = [item for item in items if isinstance(item, ast.Assignment)]
    grouped = query.group_by or query.having or any(map(_aggregates, (*computes, *query.order)))
    if grouped or ranking.expression is None:
        return query
    if isinstance(ranking.expression, ast.Variable) and not is_numeric:
        return _without_nan(query, ranking.expression)
    rank = _fresh_variable("rank", query)
    is_arithmetic = _is_arithmetic(ranking, functions)
    ranked = to_sparql(ranking.expression, functions, doubles=True) if is_arithmetic else None
    typed = to_sparql(ranking.expression, functions)
    inner = ast.Group((*query.where.elements, *((query.values,) if query.values else ())))
    if (ranked or (is_arithmetic and calls)) and ranking.variable is not None:
        score = _score(ranking.expression, typed, ranked, calls)
        inner, computes = (
            _rescored(inner, ranking.variable, score),
            _rescored_items(computes, ranking.variable, score),
        )
    rank_of = ranked or query.order[0].expression
    more: tuple[ast.OrderCondition, ...] = ()
    if calls is not None and is_arithmetic:
        rank_of, rest = calls.rank(ranking.expression)
        more = (replace(query.order[0], expression=rest),)
    # A value that equals itself is neither an error nor NaN.
    has_rank = ast.Binary("=", rank, rank)
    where = ast.Group((inner, *computes, ast.Assignment(rank_of, rank), ast.Filter(has_rank)))
    if isinstance(form, ast.Select):
        form = replace(form, projection=tuple(map(ast.Variable, selected(query))))
    return replace(
        query,
        form=form,
        where=where,
        order=(replace(query.order[0], expression=rank), *more, *query.order[1:]),
        values=None,
    )


def _score(
    expression: ast.Expression,
    typed: ast.Expression | None,
    ranked: ast.Expression | None,
    calls: ExactCalls | None,
) -> ast.Expression:
    """Return the score to select: typed, or in doubles where the engine's decimals fail."""
    in_engine = _typed(typed, ranked) if typed and ranked else ranked or expression
    return in_engine if calls is None else calls.value(expression, in_engine)


def _without_nan(query: ast.Query, variable: ast.Variable) -> ast.Query:
    """Return a query without the solutions in which a variable is NaN: it differs from itself."""
    assert query.where is not None
    is_kept = ast.Call("coalesce", (ast.Binary("=", variable, variable), _TRUE))
    elements = (*query.where.elements, *((query.values,) if query.values else ()))
    where = ast.Group((*elements, ast.Filter(is_kept)))
    return replace(query, where=where, values=None)


def _typed(typed: ast.Expression, ranked: ast.Expression) -> ast.Expression:
    """Return a score with its own type, or in doubles where the engine's decimals fail.

    A failure can be anywhere within the score, and COALESCE then takes another value: so it must be
    the same number but for its last digits.
    """
    if all(isinstance(node, _CERTAIN) for node in ast.walk(typed)):
        return ast.Call("coalesce", (typed, ranked))
    difference = ast.Binary("-", ast.Binary("*", typed, _ONE), ranked)
    share = ast.Binary("*", ast.Binary("/", difference, ranked), _PARTS)
    is_near = ast.Binary("=", ast.Call("round", (share,)), _ZERO)
    is_same = ast.Binary("||", ast.Binary("=", typed, ranked), is_near)
    return ast.Call("coalesce", (ast.Call("if", (is_same, typed, division_by_zero())), ranked))


def _fresh_variable(stem: str, query: ast.Query) -> ast.Variable:
    """Return a variable that a query does not use."""
    taken = {node.name for node in ast.walk(query) if isinstance(node, ast.Variable)}
    names = (stem + "_" * length for length in itertools.count())
    return ast.Variable(next(name for name in names if name not in taken))


def _aggregates(node: ast.Node) -> bool:
    return any(isinstance(each, ast.Aggregate) for each in ast.walk(node))


def _is_arithmetic(ranking: Ranking, functions: FunctionRegistry) -> bool:
    problems: list[Diagnostic] = []
    assert ranking.expression is not None
    check_expression(ranking.expression, problems, functions=functions)
    return not problems


def _rescored(group: ast.Group, variable: str, score: ast.Expression) -> ast.Group:
    """Return a group whose last BINDs of a variable compute the given score.

    In a sub-select the same name is another variable.
    """
    elements: list[ast.Pattern] = list(group.elements)
    for at, element in enumerate(elements):
        if isinstance(element, ast.Assignment) and element.variable.name == variable:
            elements[at] = replace(element, expression=score)
    return ast.Group(tuple(elements))


def _rescored_items(
    items: list[ast.Assignment], variable: str, score: ast.Expression
) -> list[ast.Assignment]:
    return [
        replace(item, expression=score) if item.variable.name == variable else item
        for item in items
    ]


def _evaluable(node: _AnyNode) -> _AnyNode:
    """Return a tree in shapes that Oxigraph evaluates.

    SERVICE patterns stay as they are, because the remote evaluates them.
    """
    return ast.rewritten(node, _plainer, opaque=lambda each: isinstance(each, ast.ServicePattern))


def _plainer(node: ast.Node) -> ast.Node:
    """Return an equivalent node in a shape that Oxigraph evaluates."""
    match node:
        case ast.Filter(expression):
            return replace(node, expression=with_ordered_nan(expression, keeps_only_true=True))
        case ast.Assignment(expression) | ast.OrderCondition(expression):
            return replace(node, expression=with_ordered_nan(expression))
    if isinstance(node, ast.NegatedPath) and not node.choices:
        return ast.NegatedPath((ast.Iri(OWN_FUNCTIONS + "none"),))
    if not isinstance(node, ast.Query):
        return node
    node = with_counted_names(node)
    keys = [key for key in node.group_by if isinstance(key, ast.Assignment)]
    if keys:
        where = ast.Group((node.where or ast.Group(()), *keys))
        group_by = tuple(
            key.variable if isinstance(key, ast.Assignment) else key for key in node.group_by
        )
        node = replace(node, where=where, group_by=group_by)
    if isinstance(node.form, ast.Ask) and (node.group_by or node.having):
        one = ast.Assignment(ast.Literal("1", ast.XSD + "integer"), _fresh_variable("one", node))
        inner = replace(node, form=ast.Select((one,)), default_graphs=(), named_graphs=())
        where = ast.Group((ast.SubSelect(inner),))
        return ast.Query(
            node.form, where, default_graphs=node.default_graphs, named_graphs=node.named_graphs
        )
    return node
