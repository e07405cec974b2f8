"""Columns that a top-k query computes besides its score: for the rows of an answer alone."""

from __future__ import annotations

from collections.abc import Sequence

from rspql import ast
from rspql.passes.check_growth import OF_ROWS, check_growth
from rspql.passes.not_incremental import NotIncremental
from rspql.passes.plan_windowed import VOLATILE, evaluable
from rspql.scope import selected, used_in
from rspql.scoring import FunctionRegistry


def computed_columns(
    query: ast.Query,
    score: str | None,
    functions: FunctionRegistry,
    keys: Sequence[ast.OrderCondition] = (),
) -> tuple[ast.Assignment, ...]:
    """Return the columns that a query selects and computes besides the ``score``, and their needs.

    The ``keys`` of ORDER BY need columns, and so do the groups of a LIMIT. Columns are in the order
    of the query, with calls in SPARQL. Raises :class:`NotIncremental` for those that a row does not
    decide, or whose texts could fill the memory.
    """
    assert query.where is not None
    assert isinstance(query.form, ast.Select)
    items = (*query.where.elements, *query.form.projection)
    assigned = [each for each in items if isinstance(each, ast.Assignment)]
    needs = (*keys, *(query.cut.per if query.cut else ()))
    wanted = selected(query) | {name: None for each in needs for name in used_in(each)}
    needed: list[ast.Assignment] = []
    for each in reversed(assigned):
        if each.variable.name in wanted and each.variable.name != score:
            wanted |= used_in(each.expression)
            needed.append(each)
    needed.reverse()
    for each in needed:
        _check_decided(each)
    check_growth((*needed, *keys), OF_ROWS)
    return tuple(evaluable(each, functions) for each in needed)


def _check_decided(column: ast.Assignment) -> None:
    """Raise if a column is not decided by its row and the time."""
    for node in ast.walk(column.expression):
        name = node.function if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Exists | ast.Aggregate):
            raise NotIncremental(f"?{column.variable.name} needs the whole window", node)
        if name in VOLATILE and name != "now":
            raise NotIncremental(f"{str(name).upper()} is another with each evaluation", node)
