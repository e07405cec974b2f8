"""Builder from parse tree to abstract syntax tree: one method per grammar rule, with its name."""

# ruff: noqa: D102 (grammar.lark says what each method builds, in the rule of that name)

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lark import Token, v_args
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive

from rspql import ast
from rspql.built_ins import CHANGE, arity_problem
from rspql.diagnostics import Diagnostic
from rspql.durations import epoch_ms, milliseconds
from rspql.iris import is_absolute, resolve
from rspql.names import is_name
from rspql.source import Source

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

_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", "\\": "\\", '"': '"', "'": "'"}
_NIL, _FIRST, _REST = (ast.RDF + name for name in ("nil", "first", "rest"))
_MISSING_UNIT = "write a unit, such as 9m, 30s, 500ms or PT9M"
_DURATION_TYPES = (ast.XSD + "string", ast.XSD + "duration", ast.XSD + "dayTimeDuration")


@dataclass(frozen=True)
class _Described:
    """A node of a triple, with the triples of its description (a collection or ``[ … ]``).

    ``parts`` nests as descriptions do: copying triples at every level would take quadratic time.
    """

    term: ast.Term
    parts: list[ast.TriplePattern | _Described]

    def triples(self) -> list[ast.TriplePattern]:
        """Return all triples in source order, without recursion."""
        found: list[ast.TriplePattern] = []
        pending: list[ast.TriplePattern | _Described] = [self]
        while pending:
            part = pending.pop()
            if isinstance(part, _Described):
                pending.extend(reversed(part.parts))
            else:
                found.append(part)
        return found


@dataclass(frozen=True)
class _WindowSpec:
    width: int
    slide: int
    counts: bool = False
    start_ms: int | None = None
    triples: bool = False


@dataclass(frozen=True)
class _Output:
    operator: str
    span: ast.Span


@dataclass(frozen=True)
class _NamedGraph:
    iri: ast.Iri


@dataclass(frozen=True)
class _DefaultGraph:
    iri: ast.Iri


def _nodes(children: list[Any]) -> list[Any]:
    """Return the children that carry meaning: no keywords, no clauses that are already handled."""
    return [child for child in children if child is not None and not isinstance(child, Token)]


def _keywords(children: list[Any]) -> set[str]:
    return {child.type for child in children if isinstance(child, Token)}


@v_args(meta=True)
class AstBuilder(Transformer_NonRecursive[Token, ast.Query]):
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
        self._outputs: list[_Output] = []
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
        return ast.Iri(_NIL, span=self._span(meta))

    # Expressions

    def expression_list(self, meta: Meta, children: list[Any]) -> tuple[ast.Expression, ...]:
        return tuple(_nodes(children))

    def built_in_function(self, meta: Meta, children: list[Any]) -> ast.Call:
        name, arguments = children[0].lower(), children[1]
        problem = arity_problem(name, len(arguments))
        if problem:
            self._report("arity", problem, meta)
        base = self._base if name in ("iri", "uri") and is_absolute(self._base) else None
        return ast.Call(name, arguments, base=base, span=self._span(meta))

    def bound(self, meta: Meta, children: list[Any]) -> ast.Call:
        return ast.Call("bound", tuple(_nodes(children)), span=self._span(meta))

    def function_call(self, meta: Meta, children: list[Any]) -> ast.Call:
        name, *arguments = _nodes(children)
        return ast.Call(
            name, tuple(arguments), "DISTINCT" in _keywords(children), span=self._span(meta)
        )

    def relation(self, meta: Meta, children: list[Any]) -> ast.Binary:
        return ast.Binary(str(children[1]), children[0], children[2], span=self._span(meta))

    def in_(self, meta: Meta, children: list[Any]) -> ast.In:
        operand, choices = _nodes(children)
        return ast.In(operand, choices, "NOT" in _keywords(children), span=self._span(meta))

    not_in = in_

    def exists(self, meta: Meta, children: list[Any]) -> ast.Exists:
        return ast.Exists(_nodes(children)[0], "NOT" in _keywords(children), span=self._span(meta))

    not_exists = exists

    def count(self, meta: Meta, children: list[Any]) -> ast.Aggregate:
        arguments = _nodes(children)
        argument = arguments[0] if arguments else None
        return ast.Aggregate(
            "count", argument, "DISTINCT" in _keywords(children), span=self._span(meta)
        )

    def aggregate(self, meta: Meta, children: list[Any]) -> ast.Aggregate:
        distinct = "DISTINCT" in _keywords(children)
        return ast.Aggregate(
            children[0].lower(), _nodes(children)[0], distinct, span=self._span(meta)
        )

    def group_concat(self, meta: Meta, children: list[Any]) -> ast.Aggregate:
        argument, *separator = _nodes(children)
        distinct = "DISTINCT" in _keywords(children)
        return ast.Aggregate(
            "group_concat", argument, distinct, next(iter(separator), None), span=self._span(meta)
        )

    # Triples

    def _describe(self, subject: Any, properties: Any, span: ast.Span | None) -> _Described:
        """Return a subject with its own description's triples, then those of its properties."""
        described = subject if isinstance(subject, _Described) else _Described(subject, [])
        parts: list[ast.TriplePattern | _Described] = [described]
        for verb, objects in properties or ():
            for each in objects:
                node = each if isinstance(each, _Described) else _Described(each, [])
                parts += [ast.TriplePattern(described.term, verb, node.term, span=span), node]
        return _Described(described.term, parts)

    def triples_same_subject(self, meta: Meta, children: list[Any]) -> list[ast.TriplePattern]:
        subject, *properties = children
        span = self._span(meta)
        return self._describe(subject, properties[0] if properties else None, span).triples()

    triples_same_subject_path = triples_same_subject

    def property_list(self, meta: Meta, children: list[Any]) -> list[tuple[Any, Any]]:
        return list(zip(children[::2], children[1::2], strict=True))

    property_list_path = property_list

    def verb(self, meta: Meta, children: list[Any]) -> Any:
        return self.rdf_type(meta, []) if isinstance(children[0], Token) else children[0]

    verb_path = verb_simple = verb

    def object_list(self, meta: Meta, children: list[Any]) -> list[Any]:
        return children

    object_list_path = object_list

    def blank_node_property_list(self, meta: Meta, children: list[Any]) -> _Described:
        span = self._span(meta)
        return self._describe(self._new_blank(span), children[0], span)

    blank_node_property_list_path = blank_node_property_list

    def collection(self, meta: Meta, children: list[Any]) -> _Described:
        span = self._span(meta)
        first, rest, nil = (ast.Iri(name, span=span) for name in (_FIRST, _REST, _NIL))
        cells = [self._new_blank(span) for _ in children]
        parts: list[ast.TriplePattern | _Described] = [
            self._describe(cell, [(first, [child]), (rest, [following])], span)
            for cell, child, following in zip(cells, children, [*cells[1:], nil], strict=True)
        ]
        return _Described(cells[0], parts)

    collection_path = collection

    def triples_block(
        self, meta: Meta, children: list[list[ast.TriplePattern]]
    ) -> list[ast.TriplePattern]:
        return [triple for block in children for triple in block]

    triples_template = triples_block

    # Paths

    def path_alternative(self, meta: Meta, children: list[Any]) -> ast.AlternativePath:
        return ast.AlternativePath(tuple(children), span=self._span(meta))

    def path_sequence(self, meta: Meta, children: list[Any]) -> ast.SequencePath:
        return ast.SequencePath(tuple(children), span=self._span(meta))

    def path_inverse(self, meta: Meta, children: list[Any]) -> ast.InversePath:
        return ast.InversePath(children[0], span=self._span(meta))

    def path_mod(self, meta: Meta, children: list[Token]) -> str:
        return str(children[0])

    def path_repeated(self, meta: Meta, children: list[Any]) -> ast.RepeatedPath:
        return ast.RepeatedPath(children[0], children[1], span=self._span(meta))

    def path_one_in_property_set(self, meta: Meta, children: list[Any]) -> ast.Iri:
        iri: ast.Iri = self.verb(meta, children)
        return iri

    def path_one_inverse(self, meta: Meta, children: list[Any]) -> ast.InversePath:
        return ast.InversePath(self.verb(meta, children), span=self._span(meta))

    def path_negated_property_set(self, meta: Meta, children: list[Any]) -> tuple[Any, ...]:
        return tuple(_nodes(children))

    def path_negated(self, meta: Meta, children: list[Any]) -> ast.NegatedPath:
        return ast.NegatedPath(children[0], span=self._span(meta))

    # Patterns

    def window_graph_pattern(self, meta: Meta, children: list[Any]) -> ast.WindowPattern:
        return ast.WindowPattern(*_nodes(children), span=self._span(meta))

    def graph_graph_pattern(self, meta: Meta, children: list[Any]) -> ast.GraphPattern:
        return ast.GraphPattern(*_nodes(children), span=self._span(meta))

    def service_graph_pattern(self, meta: Meta, children: list[Any]) -> ast.ServicePattern:
        service, group = _nodes(children)
        return ast.ServicePattern(
            service, group, "SILENT" in _keywords(children), span=self._span(meta)
        )

    def optional_graph_pattern(self, meta: Meta, children: list[Any]) -> ast.OptionalPattern:
        return ast.OptionalPattern(*_nodes(children), span=self._span(meta))

    def minus_graph_pattern(self, meta: Meta, children: list[Any]) -> ast.MinusPattern:
        return ast.MinusPattern(*_nodes(children), span=self._span(meta))

    def group_or_union_graph_pattern(
        self, meta: Meta, children: list[Any]
    ) -> ast.Group | ast.UnionPattern:
        groups = _nodes(children)
        return (
            groups[0]
            if len(groups) == 1
            else ast.UnionPattern(tuple(groups), span=self._span(meta))
        )

    def filter(self, meta: Meta, children: list[Any]) -> ast.Filter:
        return ast.Filter(*_nodes(children), span=self._span(meta))

    def assignment_item(self, meta: Meta, children: list[Any]) -> ast.Assignment:
        return ast.Assignment(*_nodes(children), span=self._span(meta))

    bind = group_assignment = assignment_item

    def undef(self, meta: Meta, children: list[Any]) -> tuple[()]:
        return ()

    def data_row(self, meta: Meta, children: list[Any]) -> tuple[Any, ...]:
        return tuple(child or None for child in _nodes(children))

    def inline_data_one_var(self, meta: Meta, children: list[Any]) -> ast.Values:
        variable, *values = _nodes(children)
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
        values: ast.Values = _nodes(children)[0]
        return values

    values_clause = inline_data

    def group_graph_pattern(self, meta: Meta, children: list[Any]) -> ast.Group:
        elements: list[ast.Pattern] = []
        for child in children:
            elements.extend(child if isinstance(child, list) else [child])
        return ast.Group(tuple(elements), span=self._span(meta))

    def where_clause(self, meta: Meta, children: list[Any]) -> ast.Group:
        group: ast.Group = _nodes(children)[0]
        return group

    # RSP-QL: registration and windows

    def output_kind(self, meta: Meta, children: list[Token]) -> str:
        kind = children[0].type
        return kind if kind in ("ISTREAM", "DSTREAM") else "RSTREAM"

    def computed_every(self, meta: Meta, children: list[Any]) -> int:
        every: int = _nodes(children)[0]
        return every

    def _named(self, name: ast.Iri | str, meta: Meta) -> ast.Iri:
        """Return the IRI of a name; one without a prefix is in the empty prefix's namespace."""
        if isinstance(name, ast.Iri):
            return name
        return ast.Iri(self._prefixes.get("", DEFAULT_NAMESPACE) + name, span=self._span(meta))

    def register(self, meta: Meta, children: list[Any]) -> ast.Registration:
        output, name, *every = _nodes(children)
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
        length: int = _nodes(children)[0]
        return length

    def start(self, meta: Meta, children: list[Any]) -> ast.Literal:
        literal: ast.Literal = _nodes(children)[0]
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
        window, *rest = _nodes(children)
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
        stream, spec, window = _nodes(children)
        clause: ast.WindowClause = self.named_window_clause(meta, [window, stream, spec])
        return clause

    def stream_name(self, meta: Meta, children: list[Any]) -> ast.Iri:
        return self._named(children[0], meta)

    def default_graph_clause(self, meta: Meta, children: list[Any]) -> _DefaultGraph:
        return _DefaultGraph(_nodes(children)[0])

    def named_graph_clause(self, meta: Meta, children: list[Any]) -> _NamedGraph:
        return _NamedGraph(_nodes(children)[0])

    # Modifiers

    def group_clause(self, meta: Meta, children: list[Any]) -> dict[str, Any]:
        return {"group_by": tuple(_nodes(children))}

    def having_clause(self, meta: Meta, children: list[Any]) -> dict[str, Any]:
        return {"having": tuple(_nodes(children))}

    def order_condition(self, meta: Meta, children: list[Any]) -> ast.OrderCondition:
        descending = "DESC" in _keywords(children)
        return ast.OrderCondition(_nodes(children)[0], descending, span=self._span(meta))

    def order_clause(self, meta: Meta, children: list[Any]) -> dict[str, Any]:
        return {"order": tuple(_nodes(children))}

    def limit_clause(self, meta: Meta, children: list[Any]) -> dict[str, Any]:
        _, count, *more = children
        clause: dict[str, Any] = {"limit": self._whole(count, meta)}
        for each in more:
            clause |= each
        if more:
            per, ties = clause.pop("per", ()), clause.pop("with_ties", False)
            clause["cut"] = ast.LimitScope(per, ties, span=self._span(meta))
        return clause

    def per(self, meta: Meta, children: list[Any]) -> dict[str, Any]:
        return {"per": tuple(_nodes(children))}

    def with_ties(self, meta: Meta, children: list[Any]) -> dict[str, Any]:
        return {"with_ties": True}

    def offset_clause(self, meta: Meta, children: list[Token]) -> dict[str, Any]:
        return {"offset": self._whole(children[1], meta)}

    def _whole(self, digits: str, meta: Meta) -> int:
        if len(digits.lstrip("0")) > MOST_DIGITS:
            self._report(
                "number",
                f"this number is too large: at most {MOST_DIGITS} digits are supported",
                meta,
            )
            return 1
        return int(digits)

    def solution_modifier(self, meta: Meta, children: list[dict[str, Any]]) -> dict[str, Any]:
        return {name: value for child in children for name, value in child.items()}

    # Query forms: each method returns the query's clauses by name

    def _clauses(self, form: ast.Node, parts: list[Any]) -> dict[str, Any]:
        clauses: dict[str, Any] = {"form": form, "where": None}
        for part in parts:
            if isinstance(part, dict):
                clauses |= part
            elif isinstance(part, ast.Group):
                clauses["where"] = part
            elif isinstance(part, ast.Values):
                clauses["values"] = part
        clauses["windows"] = tuple(part for part in parts if isinstance(part, ast.WindowClause))
        clauses["default_graphs"] = tuple(
            part.iri for part in parts if isinstance(part, _DefaultGraph)
        )
        clauses["named_graphs"] = tuple(part.iri for part in parts if isinstance(part, _NamedGraph))
        return clauses

    def select_clause(self, meta: Meta, children: list[Any]) -> ast.Select:
        duplicates = next(
            (each for each in ("DISTINCT", "REDUCED") if each in _keywords(children)), None
        )
        items = tuple(child for child in _nodes(children) if not isinstance(child, _Output))
        self._note_output(children)
        return ast.Select(items, duplicates, span=self._span(meta))

    def output_operator(self, meta: Meta, children: list[Token]) -> _Output:
        return _Output(children[0].type, self._source.span(meta.start_pos, meta.end_pos))

    def _note_output(self, children: list[Any]) -> None:
        self._outputs += [child for child in children if isinstance(child, _Output)]

    def select_query(self, meta: Meta, children: list[Any]) -> dict[str, Any]:
        form, *parts = children
        return self._clauses(form, parts)

    def sub_select(self, meta: Meta, children: list[Any]) -> ast.SubSelect:
        # The last operator seen belongs to this query if it stands within it. Those of inner
        # queries are already removed.
        start = self._source.span(meta.start_pos, meta.end_pos).start
        while self._outputs and self._outputs[-1].span.start >= start:
            message = "only the query itself makes a stream, not a query within it"
            self.diagnostics.append(Diagnostic("syntax", message, self._outputs.pop().span))
        query = ast.Query(**self.select_query(meta, children), span=self._span(meta))
        return ast.SubSelect(query, span=self._span(meta))

    def construct_template(self, meta: Meta, children: list[Any]) -> ast.Construct:
        return ast.Construct(tuple(children[0]) if children else (), span=self._span(meta))

    def construct_query(self, meta: Meta, children: list[Any]) -> dict[str, Any]:
        self._note_output(children)
        form, *parts = (child for child in _nodes(children) if not isinstance(child, _Output))
        return self._clauses(form, parts)

    def construct_short(self, meta: Meta, children: list[Any]) -> dict[str, Any]:
        triples = tuple(next((child for child in children if isinstance(child, list)), ()))
        form = ast.Construct(triples, span=self._span(meta))
        return self._clauses(form, [ast.Group(triples, span=self._span(meta)), *_nodes(children)])

    def describe_query(self, meta: Meta, children: list[Any]) -> dict[str, Any]:
        targets = tuple(child for child in children if isinstance(child, ast.Variable | ast.Iri))
        return self._clauses(ast.Describe(targets, span=self._span(meta)), _nodes(children))

    def ask_query(self, meta: Meta, children: list[Any]) -> dict[str, Any]:
        return self._clauses(ast.Ask(span=self._span(meta)), _nodes(children))

    def query(self, meta: Meta, children: list[Any]) -> ast.Query:
        parts = _nodes(children)
        clauses = next(part for part in parts if isinstance(part, dict))
        dataset = self._clauses(clauses["form"], parts[: parts.index(clauses)])
        for name in ("windows", "default_graphs", "named_graphs"):
            clauses[name] = dataset[name] + clauses[name]
        clauses["output"] = self._outputs[0].operator if self._outputs else None
        clauses["registration"] = next(
            (part for part in parts if isinstance(part, ast.Registration)), None
        )
        clauses["values"] = next((part for part in parts if isinstance(part, ast.Values)), None)
        query = ast.Query(**clauses, span=self._span(meta))
        self._judge_undeclared(query)
        return query

    def _judge_undeclared(self, query: ast.Query) -> None:
        """Report names without a declared prefix.

        In RSP-QL the empty prefix and the usual ones need no declaration.
        """
        if query.registration or query.windows:
            for prefix in ("", *USUAL_PREFIXES):
                self._undeclared.pop(prefix, None)
        found = [each for each_prefix in self._undeclared.values() for each in each_prefix]
        self.diagnostics += sorted(found, key=lambda each: each.span.start if each.span else 0)


def _operator(symbol: str, arity: int) -> Callable[..., ast.Unary | ast.Binary]:
    def build(self: AstBuilder, meta: Meta, children: list[Any]) -> ast.Unary | ast.Binary:
        operands = _nodes(children)
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
    setattr(AstBuilder, _rule, v_args(meta=True)(_operator(_symbol, _arity)))
