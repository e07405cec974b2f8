"""Plan the score of a top-k query and its condition on both sides of a join."""

from __future__ import annotations

from rspql import ast
from rspql.diagnostics import Diagnostic, nearest
from rspql.passes.not_incremental import NotIncremental
from rspql.passes.numbers_alone import check_arithmetic, check_conditions, check_remote_values
from rspql.passes.push_filters import PushedFilters
from rspql.passes.read_stream import StreamPart
from rspql.passes.recognise_topk import Ranking
from rspql.plan import PLACE, Aggregation, Score
from rspql.scope import Names
from rspql.scoring import (
    EVERYTHING,
    FunctionRegistry,
    Interval,
    check_expression,
    range_of_aggregate,
    ranges_of,
    variables_in,
)


def planned_score(
    ranking: Ranking,
    pushed: PushedFilters,
    part: StreamPart,
    remote: Names,
    functions: FunctionRegistry,
    found: list[Diagnostic],
) -> Score:
    """Return the score of a ranking under the filters on both sides; appends its mistakes."""
    expression, stream = ranking.expression, part.bound
    if ranking.term is not None:
        stream = {**stream, PLACE: None}
    if expression is None:
        raise NotIncremental("the score is too large with all names written out", None)
    if isinstance(expression, ast.Variable) and expression.name not in stream:
        message = (
            f"?{expression.name} comes from the remote and need not be a number; 0 + "
            f"?{expression.name} would be one"
        )
        raise NotIncremental(message, expression)
    check_arithmetic(expression, functions)
    check_expression(expression, found, functions=functions)
    check_conditions(pushed.joined, functions)
    for condition in pushed.joined:
        for name in variables_in(condition):
            if name not in stream and name not in remote:
                raise NotIncremental(f"nothing binds ?{name}, which a filter needs", condition)
    for each in (expression, *pushed.joined):
        check_remote_values(each, stream, is_condition=each is not expression)
    whole = _conjunction(pushed.joined)
    needed = [*variables_in(expression), *(variables_in(whole) if whole else ())]
    for name, span in variables_in(expression).items():
        if name not in stream and name not in remote:
            near = nearest(name, [*stream, *remote])
            hint = f"did you mean ?{near}?" if near else None
            message = f"nothing binds ?{name}, which the score needs"
            found.append(Diagnostic("unbound", message, span, hint))
    used = tuple(dict.fromkeys(needed))
    check_keys_unused(part, used, expression)
    return Score(
        expression=expression,
        descending=ranking.descending,
        variable=ranking.variable if ranking.variable not in (*stream, *remote) else None,
        stream_variables=tuple(name for name in used if name in stream),
        remote_variables=tuple(name for name in used if name in remote and name not in stream),
        condition=whole,
        ranges=_ranges(pushed, part.aggregate),
        functions=functions,
        orders_terms=ranking.orders_terms,
        only_place=ranking.only_place,
        term=ranking.term,
    )


def check_numeric(ranking: Ranking, functions: FunctionRegistry) -> None:
    """Raise if a score is not made of numbers; SPARQL orders other values too."""
    if ranking.expression is None:
        return
    check_arithmetic(ranking.expression, functions)
    problems: list[Diagnostic] = []
    check_expression(ranking.expression, problems, functions=functions)
    if problems:
        raise NotIncremental(problems[0].message, ranking.expression)


def check_keys_unused(part: StreamPart, used: tuple[str, ...], expression: ast.Expression) -> None:
    """Raise if a score or a filter on aggregates computes with what is grouped by."""
    for name in part.aggregate.keys if part.aggregate else ():
        if name in used:
            message = (
                f"?{name}, which it groups by, is no part of a score or of a filter on aggregates"
            )
            raise NotIncremental(message, expression)


def _ranges(pushed: PushedFilters, aggregate: Aggregation | None) -> dict[str, Interval]:
    """Return the ranges of a score's variables, as far as filters and aggregates tell."""
    arriving = ranges_of(pushed.stream)
    if aggregate is not None:
        arriving = {
            column.variable: range_of_aggregate(
                column.function,
                arriving.get(column.of or "", EVERYTHING),
                may_be_none=column.of in aggregate.uncertain or not aggregate.keys,
            )
            for column in aggregate.columns
        }
    return ranges_of((*pushed.remote, *pushed.joined), arriving)


def _conjunction(parts: tuple[ast.Expression, ...]) -> ast.Expression | None:
    whole: ast.Expression | None = None
    for part in parts:
        whole = part if whole is None else ast.Binary("&&", whole, part, span=part.span)
    return whole
