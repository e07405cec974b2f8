"""Push filters to where they can be decided: the stream, the remote, or the join of both."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rspql import ast
from rspql.scope import Names, used_in


@dataclass(frozen=True)
class PushedFilters:
    """Filters by where they are decided, each list in source order."""

    stream: tuple[ast.Expression, ...]
    remote: tuple[ast.Expression, ...]
    joined: tuple[ast.Expression, ...]


def push_filters(filters: Iterable[ast.Expression], stream: Names, remote: Names) -> PushedFilters:
    """Return the filters of a join by side, given the variables that each side always binds.

    A conjunction is split and each part placed on its own. A filter that both sides could decide
    goes to the stream, which is local. A filter that neither side can decide alone stays with the
    join.
    """
    on_stream, on_remote, joined = [], [], []
    for part in (part for each in filters for part in conjuncts(each)):
        names = used_in(part)
        if all(name in stream for name in names):
            on_stream.append(part)
        elif all(name in remote for name in names):
            on_remote.append(part)
        else:
            joined.append(part)
    return PushedFilters(tuple(on_stream), tuple(on_remote), tuple(joined))


def conjuncts(expression: ast.Expression) -> list[ast.Expression]:
    """Return the parts of a conjunction, in source order."""
    if isinstance(expression, ast.Binary) and expression.operator == "&&":
        return [*conjuncts(expression.left), *conjuncts(expression.right)]
    return [expression]
