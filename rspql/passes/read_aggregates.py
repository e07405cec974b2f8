"""Read the aggregates of a sub-query that groups: keys, columns, and the groups that it keeps."""

from __future__ import annotations

from rspql import ast
from rspql.passes.derivations import Derivations
from rspql.passes.not_incremental import NotIncremental
from rspql.plan import AggregateColumn, Aggregation
from rspql.printer import expression_text
from rspql.scope import Names, used_in

KEPT_UP = ("count", "sum", "min", "max", "avg")
"""Aggregates that can be updated incrementally as events come and go."""
_ALIKE = ("min", "max")
"""Aggregates that repeated values do not change."""


def read_aggregates(
    query: ast.Query, pattern: Names, always: Names
) -> tuple[Aggregation, tuple[ast.Expression, ...]]:
    """Return the aggregates of a sub-query over a pattern, and conditions on them.

    ``pattern`` are the variables that it binds, ``always`` those that each solution binds. Raises
    :class:`NotIncremental` with the first reason why they cannot be kept up to date.
    """
    derived = Derivations(pattern)
    keys = _keys(query, always, derived)
    _check_clauses(query)
    assert isinstance(query.form, ast.Select)
    for key in keys:
        if key not in query.form.projection:
            raise NotIncremental(
                f"the sub-query does not select ?{key.name}, which it groups by", query.form
            )
    columns = _Columns(pattern, always, derived)
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
        names[0] if names else "",
        tuple(columns.all),
        identity,
        more_keys=names[1:],
        is_distinct=of is not None,
        derived=derived.all,
        uncertain=columns.uncertain,
    )
    return aggregation, having


def _keys(query: ast.Query, always: Names, derived: Derivations) -> tuple[ast.Variable, ...]:
    """Return the variables by which a sub-query groups: none for one group of all solutions."""
    aggregates = any(isinstance(node, ast.Aggregate) for node in ast.walk(query.form))
    if not query.group_by and not aggregates:
        raise NotIncremental("it selects in a query of its own, without GROUP BY", query.form)
    keys: list[ast.Variable] = []
    for key in query.group_by:
        if isinstance(key, ast.Assignment):
            keys.append(derived.named(key))
        elif not isinstance(key, ast.Variable):
            raise NotIncremental("it groups by an expression without a name", key)
        elif key.name not in always:
            raise NotIncremental(
                f"nothing in the WINDOW always binds ?{key.name}, which it groups by", key
            )
        else:
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

    def __init__(self, pattern: Names, always: Names, derived: Derivations) -> None:
        self._pattern = pattern
        self._always = always
        self._derived = derived
        self._made: dict[ast.Aggregate, str] = {}
        self.all: list[AggregateColumn] = []

    @property
    def uncertain(self) -> tuple[str, ...]:
        """Variables that are aggregated and may lack a value in a solution."""
        of = (each.of for each in self.all if each.of is not None)
        return tuple(dict.fromkeys(name for name in of if name not in self._always))

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
        assert of is not None
        return self._name_of(of)

    def _name_of(self, argument: ast.Expression) -> str:
        """Return the variable that an aggregate is of, which may be derived."""
        if isinstance(argument, ast.Variable):
            return argument.name
        return self._derived.of(argument)

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
        if of is None and aggregate.distinct:
            raise NotIncremental(
                f"{function}(DISTINCT *) is not kept up to date as events come and go", aggregate
            )
        for missing in (each for each in used_in(of) if each not in self._pattern) if of else ():
            raise NotIncremental(
                f"nothing in the WINDOW binds ?{missing}, which {function} is of", aggregate
            )
        if function == "COUNT" and isinstance(of, ast.Literal | ast.Iri) and not aggregate.distinct:
            of = None  # it has a value in each solution
        counted = None if of is None else self._name_of(of)
        if function == "COUNT" and counted in self._always:
            # Each solution binds it, so counting it is counting solutions.
            counted = None
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
