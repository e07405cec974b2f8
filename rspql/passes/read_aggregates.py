"""Read the aggregates of a sub-query that groups: keys, columns, and the groups that it keeps."""

from __future__ import annotations

from rspql import ast
from rspql.passes.not_incremental import NotIncremental
from rspql.plan import AggregateColumn, Aggregation
from rspql.printer import expression_text
from rspql.scope import Names

KEPT_UP = ("count", "sum", "min", "max", "avg")
"""Aggregates that can be updated incrementally as events come and go."""
_ALIKE = ("min", "max")
"""Aggregates that repeated values do not change."""


def read_aggregates(
    query: ast.Query, pattern: Names
) -> tuple[Aggregation, tuple[ast.Expression, ...]]:
    """Return the aggregates of a sub-query over a pattern, and conditions on them.

    ``pattern`` are the variables that it binds. Raises :class:`NotIncremental` with the first
    reason why they cannot be kept up to date.
    """
    keys = _keys(query, pattern)
    _check_clauses(query)
    assert isinstance(query.form, ast.Select)
    for key in keys:
        if key not in query.form.projection:
            raise NotIncremental(
                f"the sub-query does not select ?{key.name}, which it groups by", query.form
            )
    columns = _Columns(pattern)
    for item in query.form.projection:
        if isinstance(item, ast.Assignment):
            columns.select(item)
    having = tuple(columns.over(each, keys) for each in query.having)
    if not columns.all:
        raise NotIncremental("it groups, but aggregates nothing", query.form)
    names = tuple(key.name for key in keys)
    of = columns.distinct_of()
    identity = tuple(pattern) if of is None else tuple(dict.fromkeys((*names, of)))
    aggregation = Aggregation(
        names[0],
        tuple(columns.all),
        identity,
        more_keys=names[1:],
        is_distinct=of is not None,
    )
    return aggregation, having


def _keys(query: ast.Query, pattern: Names) -> tuple[ast.Variable, ...]:
    """Return the variables by which a sub-query groups."""
    if not query.group_by:
        aggregates = any(isinstance(node, ast.Aggregate) for node in ast.walk(query.form))
        what = (
            "aggregates the whole window"
            if aggregates
            else "selects in a query of its own, without GROUP BY"
        )
        raise NotIncremental(f"it {what}", query.form)
    keys: list[ast.Variable] = []
    for key in query.group_by:
        if not isinstance(key, ast.Variable):
            raise NotIncremental("it groups by an expression", key)
        if key.name not in pattern:
            raise NotIncremental(
                f"nothing in the WINDOW always binds ?{key.name}, which it groups by", key
            )
        keys += [] if key in keys else [key]
    return tuple(keys)


def _check_clauses(query: ast.Query) -> None:
    """Raise if a sub-query has clauses that drop or add groups."""
    assert isinstance(query.form, ast.Select)
    if query.form.duplicates:
        raise NotIncremental(f"it selects {query.form.duplicates} groups", query.form)
    if query.order or query.limit is not None or query.offset is not None:
        raise NotIncremental(
            "the sub-query orders or cuts its groups", query.order[0] if query.order else query.form
        )
    if query.values:
        raise NotIncremental("it also needs static data", query.values)


class _Columns:
    """Columns of a sub-query's aggregates. Those that only HAVING needs have no variable's name."""

    def __init__(self, pattern: Names) -> None:
        self._pattern = pattern
        self._made: dict[ast.Aggregate, str] = {}
        self.all: list[AggregateColumn] = []

    def select(self, item: ast.Assignment) -> None:
        """Add an aggregate that is selected under a name."""
        if not isinstance(item.expression, ast.Aggregate):
            raise NotIncremental(
                f"the sub-query computes ?{item.variable.name}, which is not an aggregate alone",
                item,
            )
        self._add(item.variable.name, item.expression)

    def over(self, condition: ast.Expression, keys: tuple[ast.Variable, ...]) -> ast.Expression:
        """Return a condition on groups with names in place of its aggregates."""
        _check_grouped(condition, keys)

        def change(node: ast.Node) -> ast.Node:
            return (
                ast.Variable(self._named(node), span=node.span)
                if isinstance(node, ast.Aggregate)
                else node
            )

        return ast.rewritten(condition, change)

    def distinct_of(self) -> str | None:
        """Return the variable whose distinct values are aggregated; None if all values are."""
        distinct = [each for each in self._made if each.distinct and each.function not in _ALIKE]
        if not distinct:
            return None
        (of, *others) = dict.fromkeys(
            each.argument
            for each in self._made
            if each in distinct or each.function in _ALIKE or not each.distinct
        )
        plain = [each for each in self._made if each not in distinct]
        if others or any(each.function not in _ALIKE for each in plain):
            raise NotIncremental(
                "it aggregates distinct values beside others: all must be of one variable's",
                distinct[0],
            )
        assert isinstance(of, ast.Variable)
        return of.name

    def _named(self, aggregate: ast.Aggregate) -> str:
        if aggregate not in self._made:
            self._add(expression_text(aggregate), aggregate)
        return self._made[aggregate]

    def _add(self, name: str, aggregate: ast.Aggregate) -> None:
        function = aggregate.function.upper()
        if aggregate.function not in KEPT_UP:
            raise NotIncremental(
                f"{function} is not kept up to date as events come and go", aggregate
            )
        of = aggregate.argument
        if of is not None and not isinstance(of, ast.Variable):
            raise NotIncremental(f"{function} is of an expression", aggregate)
        if of is None and aggregate.distinct:
            raise NotIncremental(
                f"{function}(DISTINCT *) is not kept up to date as events come and go", aggregate
            )
        if of is not None and of.name not in self._pattern:
            raise NotIncremental(
                f"nothing in the WINDOW always binds ?{of.name}, which {function} is of", aggregate
            )
        # Every solution of a star binds all its variables, so counting one of them is counting
        # solutions.
        counted = None if of is None or function == "COUNT" else of.name
        self._made.setdefault(aggregate, name)
        self.all.append(AggregateColumn(name, aggregate.function, counted))


def _check_grouped(condition: ast.Expression, keys: tuple[ast.Variable, ...]) -> None:
    """Raise if a condition on groups needs more than their keys and aggregates."""
    pending: list[ast.Node] = [condition]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Exists):
            raise NotIncremental("an expression needs the whole window", node)
        if isinstance(node, ast.Variable) and node not in keys:
            raise NotIncremental(
                f"HAVING needs ?{node.name}, which is neither grouped by nor aggregated", node
            )
        pending += [] if isinstance(node, ast.Aggregate) else list(ast.children(node))
