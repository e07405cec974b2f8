"""Builder of names, literals and other terms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lark import Token, v_args
from lark.tree import Meta

from rspql import ast
from rspql.builder.base import Builder
from rspql.built_ins import CHANGE
from rspql.diagnostics import Diagnostic
from rspql.iris import resolve
from rspql.names import is_name

MOST_DIGITS = 15
"""Maximum number of digits of a LIMIT, an OFFSET or a window's number of elements."""

DEFAULT_NAMESPACE = "urn:rspql:"
"""Default namespace of the empty prefix in an RSP-QL query.

Used if neither the query nor its catalog declares the empty prefix.
"""

USUAL_PREFIXES: Mapping[str, str] = {
    "change": CHANGE,
    "owl": "http://www.w3.org/2002/07/owl#",
    "rdf": ast.RDF,
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": ast.XSD,
}
"""Prefixes that an RSP-QL query need not declare."""

NIL = ast.RDF + "nil"

_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", "\\": "\\", '"': '"', "'": "'"}


@v_args(meta=True)
class TermBuilder(Builder):
    """Builder of names, literals and other terms."""

    # Prologue and names

    def base_decl(self, meta: Meta, children: list[Token]) -> None:
        self._base = resolve(self._base, children[1][1:-1])

    def _check_name(self, token: str, meta: Meta) -> None:
        if not is_name(token):
            self._report("syntax", f'"{token}" has a character that cannot stand in a name', meta)

    def prefix_decl(self, meta: Meta, children: list[Token]) -> None:
        self._check_name(children[1], meta)
        self._prefixes[children[1][:-1]] = resolve(self._base, children[2][1:-1])

    def prologue(self, meta: Meta, children: list[Any]) -> None:
        return None

    def iri_ref(self, meta: Meta, children: list[Token]) -> ast.Iri:
        return ast.Iri(resolve(self._base, children[0][1:-1]), span=self._span(meta))

    def prefixed_name(self, meta: Meta, children: list[Token]) -> ast.Iri:
        self._check_name(children[0], meta)
        prefix, _, local = children[0].partition(":")
        if prefix not in self._prefixes:
            message = f'the prefix "{prefix}:" is not declared'
            hint = f'add a line "PREFIX {prefix}: <…>", or a default to the catalog\'s [prefixes]'
            self._undeclared.setdefault(prefix, []).append(
                Diagnostic("undeclared-prefix", message, self._span(meta), hint)
            )
            namespace = USUAL_PREFIXES.get(prefix, DEFAULT_NAMESPACE)
        else:
            namespace = self._prefixes[prefix]
        if "\\" in local:
            local = re.sub(r"\\(.)", r"\1", local)
        return ast.Iri(namespace + local, span=self._span(meta))

    def rdf_type(self, meta: Meta, children: list[Any]) -> ast.Iri:
        return ast.Iri(ast.RDF + "type", span=self._span(meta))

    def bare_name(self, meta: Meta, children: list[Token]) -> str:
        return str(children[0])

    def var(self, meta: Meta, children: list[Token]) -> ast.Variable:
        self._check_name(children[0], meta)
        return ast.Variable(children[0][1:], span=self._span(meta))

    # Literals and other terms

    def string(self, meta: Meta, children: list[Token]) -> str:
        quotes = 3 if children[0].type.startswith("STRING_LITERAL_LONG") else 1
        text = children[0][quotes:-quotes]
        return (
            re.sub(r"\\(.)", lambda match: _ESCAPES[match[1]], text) if "\\" in text else str(text)
        )

    def rdf_literal(self, meta: Meta, children: list[str]) -> ast.Literal:
        return ast.Literal(children[0], span=self._span(meta))

    def tagged_literal(self, meta: Meta, children: list[str]) -> ast.Literal:
        return ast.Literal(
            children[0], ast.RDF + "langString", children[1][1:].lower(), span=self._span(meta)
        )

    def typed_literal(self, meta: Meta, children: list[Any]) -> ast.Literal:
        return ast.Literal(children[0], children[1].value, span=self._span(meta))

    def number(self, meta: Meta, children: list[Token]) -> ast.Literal:
        datatype = children[0].type.removesuffix("_SIGNED").lower()
        return ast.Literal(str(children[0]), ast.XSD + datatype, span=self._span(meta))

    signed_number = number

    def boolean_literal(self, meta: Meta, children: list[Token]) -> ast.Literal:
        return ast.Literal(children[0].lower(), ast.XSD + "boolean", span=self._span(meta))

    def blank_node(self, meta: Meta, children: list[Token]) -> ast.BlankNode:
        if children[0].type == "ANON":
            return self._new_blank(self._span(meta))
        self._check_name(children[0], meta)
        return ast.BlankNode(children[0][2:], span=self._span(meta))

    def nil(self, meta: Meta, children: list[Token]) -> ast.Iri:
        return ast.Iri(NIL, span=self._span(meta))

    def _whole(self, digits: str, meta: Meta) -> int:
        if len(digits.lstrip("0")) > MOST_DIGITS:
            self._report(
                "number",
                f"this number is too large: at most {MOST_DIGITS} digits are supported",
                meta,
            )
            return 1
        return int(digits)
