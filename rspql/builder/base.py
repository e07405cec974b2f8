"""Base of the builders: the source, the problems found, and fresh blank nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lark import Token
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive

from rspql import ast
from rspql.diagnostics import Diagnostic
from rspql.source import Source


@dataclass(frozen=True)
class Output:
    """Operator of the output stream, as written."""

    operator: str
    span: ast.Span


def nodes(children: list[Any]) -> list[Any]:
    """Return the children that carry meaning: no keywords, no clauses that are already handled."""
    return [child for child in children if child is not None and not isinstance(child, Token)]


def keywords(children: list[Any]) -> set[str]:
    """Return the types of the tokens among the children."""
    return {child.type for child in children if isinstance(child, Token)}


class Builder(Transformer_NonRecursive[Token, ast.Query]):
    """Bottom-up builder of the tree, without recursion. Problems go to ``diagnostics``.

    ``bare_unit`` is the unit of durations without one; if it is None, they are an error.
    """

    def __init__(
        self, source: Source, prefixes: Mapping[str, str], base: str, bare_unit: str | None
    ) -> None:
        super().__init__(visit_tokens=False)
        self.diagnostics: list[Diagnostic] = []
        self._source = source
        self._prefixes = dict(prefixes)
        self._undeclared: dict[str, list[Diagnostic]] = {}
        self._base = base
        self._bare_unit = bare_unit
        self._outputs: list[Output] = []
        self._blanks = 0
        alike = re.findall(r"_:anon(_*)", source.parsed)
        self._blank_stem = "anon" + "_" * (1 + max(map(len, alike)) if alike else 0)

    def _span(self, meta: Meta) -> ast.Span | None:
        return None if meta.empty else self._source.span(meta.start_pos, meta.end_pos)

    def _report(self, code: str, message: str, meta: Meta, hint: str | None = None) -> None:
        self.diagnostics.append(Diagnostic(code, message, self._span(meta), hint))

    def _new_blank(self, span: ast.Span | None) -> ast.BlankNode:
        self._blanks += 1
        return ast.BlankNode(f"{self._blank_stem}{self._blanks}", span=span)
