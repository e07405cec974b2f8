"""Limits beyond SPARQL, for whole windows: of each group, and with what ties with the last."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

from acquatop.query.cut import LimitCut, classes_of
from acquatop.query.sparql.terms import Solution, text_of
from acquatop.query.sparql.total_order import Visible, totally_ordered
from acquatop.query.sparql.written_out_groups import with_written_out_groups
from rspql import ast
from rspql.scope import selected


class LimitedRows:
    """SELECT query with a ``cut``, as queries without any limit, and the rows of these that stay.

    If ties count, the second query has them in the opposite order: so the engine's own order says
    what ties. Without DISTINCT, equal rows can have different keys, which are selected, too.
    """

    def __init__(self, query: ast.Query, visible: Visible) -> None:
        assert isinstance(query.form, ast.Select)
        assert query.cut is not None
        assert query.limit is not None
        self._per = tuple(each.name for each in query.cut.per)
        self._cut = LimitCut(query.limit, query.offset or 0, query.cut.with_ties)
        bare = replace(query, cut=None, limit=None, offset=None)
        self.names = tuple(selected(query)) if query.form.projection else tuple(visible(bare))
        bare = with_written_out_groups(replace(bare, form=self._form(query)))
        ordered = totally_ordered(bare, visible)
        self.queries: tuple[ast.Query, ...] = (ordered,)
        """Queries to evaluate."""
        if query.cut.with_ties:
            last = (
                replace(each, descending=not each.descending)
                for each in ordered.order[len(query.order) :]
            )
            order = (*ordered.order[: len(query.order)], *last)
            self.queries = (ordered, replace(ordered, order=order))

    def _form(self, query: ast.Query) -> ast.Select:
        """Return what is selected, and the groups and the keys."""
        assert isinstance(query.form, ast.Select)
        assert query.cut is not None
        items = query.form.projection or tuple(map(ast.Variable, self.names))
        if query.form.duplicates == "DISTINCT":
            return replace(query.form, projection=items)
        groups = (ast.Variable(name) for name in self._per if name not in self.names)
        keys = _keys(query) if query.cut.with_ties else ()
        return ast.Select((*items, *dict.fromkeys(groups), *keys))

    def kept(self, found: Sequence[Sequence[Solution]]) -> list[Solution]:
        """Return the rows that stay, given those of each query."""
        first, *others = found
        rows = list(map(_row, first))
        classes = classes_of(rows, list(map(_row, others[0]))) if others else range(len(rows))
        groups = [
            tuple(text_of(row[name]) if name in row else None for name in self._per)
            for row in first
        ]
        return [
            {name: first[at][name] for name in self.names if name in first[at]}
            for at in self._cut.kept(groups, classes)
        ]


def _row(solution: Solution) -> Hashable:
    return frozenset((name, text_of(term)) for name, term in solution.items())


def _keys(query: ast.Query) -> Iterator[ast.Assignment]:
    """Yield the keys of ORDER BY under fresh names."""
    taken = {node.name for node in ast.walk(query) if isinstance(node, ast.Variable)}
    names = (f"key{number}" for number in itertools.count())
    free = (name for name in names if name not in taken)
    for each in query.order:
        yield ast.Assignment(each.expression, ast.Variable(next(free)))
