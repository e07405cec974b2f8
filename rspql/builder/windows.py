"""Builder of what RSP-QL adds: the registration and windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lark import Token, v_args
from lark.tree import Meta

from rspql import ast
from rspql.builder.base import nodes
from rspql.builder.patterns import PatternBuilder
from rspql.builder.terms import DEFAULT_NAMESPACE
from rspql.diagnostics import Diagnostic
from rspql.durations import epoch_ms, milliseconds

_MISSING_UNIT = "write a unit, such as 9m, 30s, 500ms or PT9M"
_DURATION_TYPES = (ast.XSD + "string", ast.XSD + "duration", ast.XSD + "dayTimeDuration")


@dataclass(frozen=True)
class _WindowSpec:
    width: int
    slide: int
    counts: bool = False
    start_ms: int | None = None
    triples: bool = False


@v_args(meta=True)
class WindowBuilder(PatternBuilder):
    """Builder of the registration and of windows."""

    def output_kind(self, meta: Meta, children: list[Token]) -> str:
        kind = children[0].type
        return kind if kind in ("ISTREAM", "DSTREAM") else "RSTREAM"

    def computed_every(self, meta: Meta, children: list[Any]) -> int:
        every: int = nodes(children)[0]
        return every

    def _named(self, name: ast.Iri | str, meta: Meta) -> ast.Iri:
        """Return the IRI of a name; one without a prefix is in the empty prefix's namespace."""
        if isinstance(name, ast.Iri):
            return name
        return ast.Iri(self._prefixes.get("", DEFAULT_NAMESPACE) + name, span=self._span(meta))

    def register(self, meta: Meta, children: list[Any]) -> ast.Registration:
        output, name, *every = nodes(children)
        return ast.Registration(
            self._named(name, meta), output, next(iter(every), None), span=self._span(meta)
        )

    def length(self, meta: Meta, children: list[Any]) -> int:
        (written,) = children
        text = written.lexical if isinstance(written, ast.Literal) else str(written)
        if isinstance(written, ast.Literal) and written.datatype not in _DURATION_TYPES:
            self._report("duration", f'"{text}" is not a duration', meta, _MISSING_UNIT)
            return 1
        if isinstance(written, Token) and written.type != "DURATION":
            if self._bare_unit is None:
                self._report("duration", f'"{text}" has no unit', meta, _MISSING_UNIT)
                return 1
            text += self._bare_unit
        try:
            return milliseconds(text)
        except ValueError as error:
            self._report("duration", str(error), meta)
            return 1

    def step(self, meta: Meta, children: list[Any]) -> int:
        length: int = nodes(children)[0]
        return length

    def start(self, meta: Meta, children: list[Any]) -> ast.Literal:
        literal: ast.Literal = nodes(children)[0]
        return literal

    def range_spec(self, meta: Meta, children: list[Any]) -> _WindowSpec:
        lengths = [child for child in children if isinstance(child, int)]
        start = next((child for child in children if isinstance(child, ast.Literal)), None)
        return _WindowSpec(
            lengths[0], lengths[-1], start_ms=None if start is None else self._instant(start, meta)
        )

    def _instant(self, literal: ast.Literal, meta: Meta) -> int | None:
        if literal.datatype in (ast.XSD + "dateTime", ast.XSD + "string"):
            try:
                return epoch_ms(literal.lexical)
            except ValueError as error:
                message = str(error)
        else:
            message = f'"{literal.lexical}" is not an xsd:dateTime'
        hint = 'write it as "2026-01-31T12:00:00Z"^^xsd:dateTime'
        self.diagnostics.append(Diagnostic("start", message, literal.span, hint))
        return None

    def elements_spec(self, meta: Meta, children: list[Any]) -> _WindowSpec:
        counts = [self._whole(child, meta) for child in children if child.type == "INTEGER"]
        if 0 in counts:
            self._report(
                "window-size", "a window must hold at least one element, and move by one", meta
            )
        triples = any(child.type == "TRIPLES" for child in children)
        return _WindowSpec(counts[0], counts[-1], counts=True, triples=triples)

    def named_window_clause(self, meta: Meta, children: list[Any]) -> ast.WindowClause:
        window, *rest = nodes(children)
        stream = next(each for each in rest if not isinstance(each, _WindowSpec))
        spec = next(each for each in rest if isinstance(each, _WindowSpec))
        return ast.WindowClause(
            window,
            stream,
            spec.width,
            spec.slide,
            spec.counts,
            spec.start_ms,
            spec.triples,
            span=self._span(meta),
        )

    def window_clause_as(self, meta: Meta, children: list[Any]) -> ast.WindowClause:
        stream, spec, window = nodes(children)
        clause: ast.WindowClause = self.named_window_clause(meta, [window, stream, spec])
        return clause

    def stream_name(self, meta: Meta, children: list[Any]) -> ast.Iri:
        return self._named(children[0], meta)
