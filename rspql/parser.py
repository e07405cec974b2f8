"""Text to abstract syntax tree."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any
from urllib.parse import urljoin

from lark import Discard, Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError
from lark.tree import Meta

from rspql import ast
from rspql.diagnostics import Diagnostic, QueryError, nearest
from rspql.durations import milliseconds

_NOT_SUPPORTED = frozenset(
    "ASK CONSTRUCT DESCRIBE DISTINCT REDUCED GRAPH OPTIONAL UNION MINUS VALUES EXISTS GROUP HAVING "
    "OFFSET IN NOT COMPUTED LANDMARK ELEMENTS TRIPLES ROWS COUNT SUM MIN MAX AVG SAMPLE GROUP_CONCAT".split()
)
_FRIENDLY = {
    "VAR": "a variable",
    "IRIREF": "an IRI",
    "PNAME_LN": "an IRI",
    "PNAME_NS": "an IRI",
    "INTEGER": "a number",
    "DECIMAL": "a number",
    "DOUBLE": "a number",
    "INTEGER_SIGNED": "a number",
    "DECIMAL_SIGNED": "a number",
    "DOUBLE_SIGNED": "a number",
    "STRING_LITERAL1": "a string",
    "STRING_LITERAL2": "a string",
    "STRING_LITERAL_LONG1": "a string",
    "STRING_LITERAL_LONG2": "a string",
    "BARE_NAME": "a function",
    "BUILT_IN": "a function",
    "DURATION": "a duration such as 9m or PT9M",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "LPAR": "'('",
    "RPAR": "')'",
    "LSQB": "'['",
    "RSQB": "']'",
    "DOT": "'.'",
    "COMMA": "','",
    "SEMICOLON": "';'",
    "STAR": "'*'",
    "RELATION": "a comparison",
    "$END": "the end of the query",
}


def parse(text: str, *, prefixes: Mapping[str, str] | None = None, file: str = "<query>") -> ast.SelectQuery:
    """Return the abstract syntax tree of a query; :class:`QueryError` says what is wrong with it.

    ``prefixes`` are known without being declared, such as a catalog's.

    >>> parse("SELECT ?u FROM NAMED WINDOW <http://w> ON <http://s> [RANGE 9m] WHERE { }").windows[0].slide_ms
    540000
    """
    try:
        tree = _grammar().parse(text)
    except UnexpectedInput as error:
        raise QueryError([_syntax_diagnostic(error, text)], text, file) from None
    builder = _AstBuilder(dict(prefixes or {}))
    try:
        query = builder.transform(tree)
    except VisitError as error:
        raise error.orig_exc from error
    if builder.diagnostics:
        raise QueryError(builder.diagnostics, text, file)
    assert isinstance(query, ast.SelectQuery)
    return query


@functools.cache
def _grammar() -> Lark:
    source = resources.files("rspql").joinpath("grammar.lark").read_text("utf-8")
    return Lark(source, parser="lalr", start="query", propagate_positions=True, maybe_placeholders=False)


def _syntax_diagnostic(error: UnexpectedInput, text: str) -> Diagnostic:
    start = error.pos_in_stream if error.pos_in_stream is not None else len(text)
    at_end = isinstance(error, UnexpectedToken) and error.token.type == "$END"
    if at_end:
        start = len(text.rstrip())
    word = re.compile(r"[^\W\d]\w*|\S").match(text, start)
    found = word[0] if word else ""
    line = text.count("\n", 0, start) + 1
    span = ast.Span(start, start + max(1, len(found)), line, start - (text.rfind("\n", 0, start) + 1) + 1)
    if found.upper() in _NOT_SUPPORTED:
        return Diagnostic("unsupported", f"{found.upper()} is not supported yet", span)
    names = error.allowed if isinstance(error, UnexpectedCharacters) else getattr(error, "expected", ())
    expected = sorted({_FRIENDLY.get(name, name) for name in names or ()})
    message = "the query ends too early" if not found else f'unexpected "{found}"'
    return Diagnostic("syntax", message, span, _expectation(found, expected))


def _expectation(found: str, expected: list[str]) -> str | None:
    keyword = nearest(found.upper(), [name for name in expected if name.isupper()])
    if keyword:
        return f"did you mean {keyword}?"
    return f"expected {' or '.join(expected)}" if 0 < len(expected) <= 8 else None


def _span(meta: Meta) -> ast.Span | None:
    if meta.empty:
        return None
    return ast.Span(meta.start_pos, meta.end_pos, meta.line, meta.column)


def _token_span(token: Token) -> ast.Span:
    return ast.Span(token.start_pos or 0, token.end_pos or 0, token.line or 1, token.column or 1)


_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", "\\": "\\", '"': '"', "'": "'"}
# Tokens that carry meaning; every other one is a keyword, whose rule has said what it means.
_MEANINGFUL = frozenset(
    "ASC DESC STREAM RSTREAM ISTREAM DSTREAM QUERY TRUE FALSE STAR RELATION BUILT_IN BARE_NAME "
    "DURATION VAR IRIREF PNAME_LN PNAME_NS LANGTAG INTEGER DECIMAL DOUBLE INTEGER_SIGNED "
    "DECIMAL_SIGNED DOUBLE_SIGNED STRING_LITERAL1 STRING_LITERAL2 STRING_LITERAL_LONG1 "
    "STRING_LITERAL_LONG2".split()
)


@v_args(meta=True)
class _AstBuilder(Transformer[Token, ast.SelectQuery]):
    """Builds the tree bottom-up; one method per rule of the grammar, named as the rule."""

    def __init__(self, prefixes: dict[str, str]) -> None:
        super().__init__()
        self._prefixes = prefixes
        self._base = ""
        self.diagnostics: list[Diagnostic] = []

    def __default_token__(self, token: Token) -> Any:
        return token if token.type in _MEANINGFUL else Discard

    def _report(self, code: str, message: str, span: ast.Span | None, hint: str | None = None) -> None:
        self.diagnostics.append(Diagnostic(code, message, span, hint))

    # Prologue and names

    def base_decl(self, meta: Meta, children: list[Token]) -> Any:
        self._base = urljoin(self._base, children[0][1:-1])
        return Discard

    def prefix_decl(self, meta: Meta, children: list[Token]) -> Any:
        self._prefixes[children[0][:-1]] = urljoin(self._base, children[1][1:-1])
        return Discard

    def prologue(self, meta: Meta, children: list[Any]) -> Any:
        return Discard

    def iri_ref(self, meta: Meta, children: list[Token]) -> ast.Iri:
        value = urljoin(self._base, children[0][1:-1]) if self._base else children[0][1:-1]
        if ":" not in value:
            hint = "declare a BASE or write the whole IRI"
            self._report("relative-iri", f"<{value}> is relative", _span(meta), hint)
        return ast.Iri(value, span=_span(meta))

    def prefixed_name(self, meta: Meta, children: list[Token]) -> ast.Iri:
        prefix, _, local = children[0].partition(":")
        if prefix not in self._prefixes:
            hint = f'add a line "PREFIX {prefix}: <…>", or a default to the catalog\'s [prefixes]'
            self._report("undeclared-prefix", f'the prefix "{prefix}:" is not declared', _span(meta), hint)
        local = re.sub(r"\\(.)", r"\1", local)
        return ast.Iri(self._prefixes.get(prefix, "") + local, span=_span(meta))

    def rdf_type(self, meta: Meta, children: list[Any]) -> ast.Iri:
        return ast.Iri(ast.RDF + "type", span=_span(meta))

    def var(self, meta: Meta, children: list[Token]) -> ast.Variable:
        return ast.Variable(children[0][1:], span=_span(meta))

    # Literals

    def string(self, meta: Meta, children: list[Token]) -> str:
        quotes = 3 if children[0].type.startswith("STRING_LITERAL_LONG") else 1
        return re.sub(r"\\(.)", lambda match: _ESCAPES[match[1]], children[0][quotes:-quotes])

    def rdf_literal(self, meta: Meta, children: list[str]) -> ast.Literal:
        return ast.Literal(children[0], span=_span(meta))

    def tagged_literal(self, meta: Meta, children: list[str]) -> ast.Literal:
        return ast.Literal(children[0], ast.RDF + "langString", children[1][1:].lower(), span=_span(meta))

    def typed_literal(self, meta: Meta, children: list[Any]) -> ast.Literal:
        return ast.Literal(children[0], children[1].value, span=_span(meta))

    def number(self, meta: Meta, children: list[Token]) -> ast.Literal:
        datatype = children[0].type.removesuffix("_SIGNED").lower()
        return ast.Literal(str(children[0]), ast.XSD + datatype, span=_span(meta))

    signed_number = number

    def boolean_literal(self, meta: Meta, children: list[Token]) -> ast.Literal:
        return ast.Literal(children[0].lower(), ast.XSD + "boolean", span=_span(meta))

    # Expressions

    def built_in_call(self, meta: Meta, children: list[Any]) -> ast.Call:
        return ast.Call(children[0].lower(), tuple(children[1:]), span=_span(meta))

    def function_call(self, meta: Meta, children: list[Any]) -> ast.Call:
        name = children[0] if isinstance(children[0], ast.Iri) else str(children[0])
        return ast.Call(name, tuple(children[1:]), span=_span(meta))

    def relation(self, meta: Meta, children: list[Any]) -> ast.Binary:
        return ast.Binary(str(children[1]), children[0], children[2], span=_span(meta))

    def add_signed(self, meta: Meta, children: list[Any]) -> ast.Binary:
        return ast.Binary("+", children[0], children[1], span=_span(meta))

    # Patterns

    def triples_same_subject(self, meta: Meta, children: list[Any]) -> list[ast.TriplePattern]:
        subject, properties = children
        return [
            ast.TriplePattern(subject, predicate, object_, span=_span(meta))
            for predicate, objects in properties
            for object_ in objects
        ]

    def property_list_not_empty(self, meta: Meta, children: list[Any]) -> list[tuple[Any, Any]]:
        return list(zip(children[::2], children[1::2], strict=True))

    def object_list(self, meta: Meta, children: list[Any]) -> list[Any]:
        return children

    def triples_block(self, meta: Meta, children: list[list[ast.TriplePattern]]) -> list[ast.TriplePattern]:
        return [triple for block in children for triple in block]

    def window_graph_pattern(self, meta: Meta, children: list[Any]) -> ast.WindowPattern:
        return ast.WindowPattern(children[0], children[1], span=_span(meta))

    def service_graph_pattern(self, meta: Meta, children: list[Any]) -> ast.ServicePattern:
        return ast.ServicePattern(children[0], children[1], span=_span(meta))

    def filter(self, meta: Meta, children: list[Any]) -> ast.Filter:
        return ast.Filter(children[0], span=_span(meta))

    def assignment(self, meta: Meta, children: list[Any]) -> ast.Assignment:
        return ast.Assignment(children[0], children[1], span=_span(meta))

    bind = assignment

    def group_graph_pattern(self, meta: Meta, children: list[Any]) -> ast.Group:
        elements: list[ast.Pattern] = []
        for child in children:
            elements.extend(child if isinstance(child, list) else [child])
        return ast.Group(tuple(elements), span=_span(meta))

    def where_clause(self, meta: Meta, children: list[ast.Group]) -> ast.Group:
        return children[0]

    # Windows and modifiers

    def _milliseconds(self, token: Token) -> int:
        try:
            return milliseconds(str(token))
        except ValueError as error:
            self._report("duration", str(error), _token_span(token))
            return 1

    def window_spec(self, meta: Meta, children: list[Token]) -> tuple[int, int]:
        lengths = [self._milliseconds(token) for token in children]
        return lengths[0], lengths[-1]

    def named_window_clause(self, meta: Meta, children: list[Any]) -> ast.WindowClause:
        # The optional STREAM keyword between the two names says nothing.
        window, stream, (width, slide) = (child for child in children if not isinstance(child, Token))
        return ast.WindowClause(window, stream, width, slide, span=_span(meta))

    def output_kind(self, meta: Meta, children: list[Token]) -> str:
        kind = children[0].type
        return kind if kind in ("ISTREAM", "DSTREAM") else "RSTREAM"

    def register(self, meta: Meta, children: list[Any]) -> ast.Registration:
        return ast.Registration(children[1], children[0], span=_span(meta))

    def directed_order(self, meta: Meta, children: list[Any]) -> ast.OrderCondition:
        return ast.OrderCondition(children[1], children[0].type == "DESC", span=_span(meta))

    def plain_order(self, meta: Meta, children: list[Any]) -> ast.OrderCondition:
        return ast.OrderCondition(children[0], False, span=_span(meta))

    def order_clause(self, meta: Meta, children: list[Any]) -> tuple[ast.OrderCondition, ...]:
        return tuple(children)

    def limit_clause(self, meta: Meta, children: list[Token]) -> int:
        return int(children[0])

    def solution_modifier(self, meta: Meta, children: list[Any]) -> tuple[tuple[ast.OrderCondition, ...], int | None]:
        order = next((child for child in children if isinstance(child, tuple)), ())
        limit = next((child for child in children if isinstance(child, int)), None)
        return order, limit

    # The query

    def select_clause(self, meta: Meta, children: list[Any]) -> tuple[Any, ...]:
        return tuple(child for child in children if not isinstance(child, Token))

    def select_query(self, meta: Meta, children: list[Any]) -> ast.SelectQuery:
        projection, *middle, (order, limit) = children
        windows = tuple(child for child in middle if isinstance(child, ast.WindowClause))
        where = next(child for child in middle if isinstance(child, ast.Group))
        return ast.SelectQuery(projection, windows, where, order, limit, span=_span(meta))

    def query(self, meta: Meta, children: list[Any]) -> ast.SelectQuery:
        *registration, select = children
        return ast.SelectQuery(
            select.projection,
            select.windows,
            select.where,
            select.order,
            select.limit,
            registration[0] if registration else None,
            span=_span(meta),
        )


def _unary(operator: str) -> Any:
    def build(self: _AstBuilder, meta: Meta, children: list[Any]) -> ast.Unary:
        return ast.Unary(operator, children[0], span=_span(meta))

    return build


def _binary(operator: str) -> Any:
    def build(self: _AstBuilder, meta: Meta, children: list[Any]) -> ast.Binary:
        return ast.Binary(operator, children[0], children[1], span=_span(meta))

    return build


for _rule, _operator in {"not_": "!", "plus": "+", "minus": "-"}.items():
    setattr(_AstBuilder, _rule, v_args(meta=True)(_unary(_operator)))
for _rule, _operator in {
    "or_": "||",
    "and_": "&&",
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
}.items():
    setattr(_AstBuilder, _rule, v_args(meta=True)(_binary(_operator)))
