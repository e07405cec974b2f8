"""Builder of patterns."""

from __future__ import annotations

from typing import Any

from lark import v_args
from lark.tree import Meta

from rspql import ast
from rspql.builder.base import keywords, nodes
from rspql.builder.triples import TripleBuilder


@v_args(meta=True)
class PatternBuilder(TripleBuilder):
    """Builder of patterns."""

    def window_graph_pattern(self, meta: Meta, children: list[Any]) -> ast.WindowPattern:
        return ast.WindowPattern(*nodes(children), span=self._span(meta))

    def graph_graph_pattern(self, meta: Meta, children: list[Any]) -> ast.GraphPattern:
        return ast.GraphPattern(*nodes(children), span=self._span(meta))

    def service_graph_pattern(self, meta: Meta, children: list[Any]) -> ast.ServicePattern:
        service, group = nodes(children)
        return ast.ServicePattern(
            service, group, "SILENT" in keywords(children), span=self._span(meta)
        )

    def optional_graph_pattern(self, meta: Meta, children: list[Any]) -> ast.OptionalPattern:
        return ast.OptionalPattern(*nodes(children), span=self._span(meta))

    def minus_graph_pattern(self, meta: Meta, children: list[Any]) -> ast.MinusPattern:
        return ast.MinusPattern(*nodes(children), span=self._span(meta))

    def group_or_union_graph_pattern(
        self, meta: Meta, children: list[Any]
    ) -> ast.Group | ast.UnionPattern:
        groups = nodes(children)
        return (
            groups[0]
            if len(groups) == 1
            else ast.UnionPattern(tuple(groups), span=self._span(meta))
        )

    def filter(self, meta: Meta, children: list[Any]) -> ast.Filter:
        return ast.Filter(*nodes(children), span=self._span(meta))

    def assignment_item(self, meta: Meta, children: list[Any]) -> ast.Assignment:
        return ast.Assignment(*nodes(children), span=self._span(meta))

    bind = group_assignment = assignment_item

    def undef(self, meta: Meta, children: list[Any]) -> tuple[()]:
        return ()

    def data_row(self, meta: Meta, children: list[Any]) -> tuple[Any, ...]:
        return tuple(child or None for child in nodes(children))

    def inline_data_one_var(self, meta: Meta, children: list[Any]) -> ast.Values:
        variable, *values = nodes(children)
        return ast.Values(
            (variable,), tuple((value or None,) for value in values), span=self._span(meta)
        )

    def inline_data_full(self, meta: Meta, children: list[Any]) -> ast.Values:
        variables = tuple(child for child in children if isinstance(child, ast.Variable))
        rows = tuple(child for child in children if isinstance(child, tuple))
        if any(len(row) != len(variables) for row in rows):
            self._report(
                "values",
                f"a row of VALUES must have {len(variables)} values, one per variable",
                meta,
            )
        if len({variable.name for variable in variables}) < len(variables):
            self._report("values", "a variable stands twice in this VALUES", meta)
        return ast.Values(variables, rows, span=self._span(meta))

    def inline_data(self, meta: Meta, children: list[Any]) -> ast.Values:
        values: ast.Values = nodes(children)[0]
        return values

    values_clause = inline_data

    def group_graph_pattern(self, meta: Meta, children: list[Any]) -> ast.Group:
        elements: list[ast.Pattern] = []
        for child in children:
            elements.extend(child if isinstance(child, list) else [child])
        return ast.Group(tuple(elements), span=self._span(meta))

    def where_clause(self, meta: Meta, children: list[Any]) -> ast.Group:
        group: ast.Group = nodes(children)[0]
        return group
