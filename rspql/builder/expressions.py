"""Builder of expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lark import v_args
from lark.tree import Meta

from rspql import ast
from rspql.builder.base import keywords, nodes
from rspql.builder.terms import TermBuilder
from rspql.built_ins import arity_problem
from rspql.iris import is_absolute


@v_args(meta=True)
class ExpressionBuilder(TermBuilder):
    """Builder of expressions."""

    def expression_list(self, meta: Meta, children: list[Any]) -> tuple[ast.Expression, ...]:
        return tuple(nodes(children))

    def built_in_function(self, meta: Meta, children: list[Any]) -> ast.Call:
        name, arguments = children[0].lower(), children[1]
        problem = arity_problem(name, len(arguments))
        if problem:
            self._report("arity", problem, meta)
        base = self._base if name in ("iri", "uri") and is_absolute(self._base) else None
        return ast.Call(name, arguments, base=base, span=self._span(meta))

    def bound(self, meta: Meta, children: list[Any]) -> ast.Call:
        return ast.Call("bound", tuple(nodes(children)), span=self._span(meta))

    def function_call(self, meta: Meta, children: list[Any]) -> ast.Call:
        name, *arguments = nodes(children)
        return ast.Call(
            name, tuple(arguments), "DISTINCT" in keywords(children), span=self._span(meta)
        )

    def relation(self, meta: Meta, children: list[Any]) -> ast.Binary:
        return ast.Binary(str(children[1]), children[0], children[2], span=self._span(meta))

    def in_(self, meta: Meta, children: list[Any]) -> ast.In:
        operand, choices = nodes(children)
        return ast.In(operand, choices, "NOT" in keywords(children), span=self._span(meta))

    not_in = in_

    def exists(self, meta: Meta, children: list[Any]) -> ast.Exists:
        return ast.Exists(nodes(children)[0], "NOT" in keywords(children), span=self._span(meta))

    not_exists = exists

    def count(self, meta: Meta, children: list[Any]) -> ast.Aggregate:
        arguments = nodes(children)
        argument = arguments[0] if arguments else None
        return ast.Aggregate(
            "count", argument, "DISTINCT" in keywords(children), span=self._span(meta)
        )

    def aggregate(self, meta: Meta, children: list[Any]) -> ast.Aggregate:
        distinct = "DISTINCT" in keywords(children)
        return ast.Aggregate(
            children[0].lower(), nodes(children)[0], distinct, span=self._span(meta)
        )

    def group_concat(self, meta: Meta, children: list[Any]) -> ast.Aggregate:
        argument, *separator = nodes(children)
        distinct = "DISTINCT" in keywords(children)
        return ast.Aggregate(
            "group_concat", argument, distinct, next(iter(separator), None), span=self._span(meta)
        )


def _operator(symbol: str, arity: int) -> Callable[..., ast.Unary | ast.Binary]:
    def build(self: ExpressionBuilder, meta: Meta, children: list[Any]) -> ast.Unary | ast.Binary:
        operands = nodes(children)
        if arity == 1:
            return ast.Unary(symbol, operands[0], span=self._span(meta))
        return ast.Binary(symbol, operands[0], operands[1], span=self._span(meta))

    return build


for _rule, _symbol, _arity in (
    ("not_", "!", 1),
    ("plus", "+", 1),
    ("minus", "-", 1),
    ("or_", "||", 2),
    ("and_", "&&", 2),
    ("add", "+", 2),
    ("add_signed", "+", 2),
    ("subtract", "-", 2),
    ("multiply", "*", 2),
    ("divide", "/", 2),
):
    setattr(ExpressionBuilder, _rule, v_args(meta=True)(_operator(_symbol, _arity)))
