"""Builder of triples, descriptions and property paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lark import Token, v_args
from lark.tree import Meta

from rspql import ast
from rspql.builder.base import nodes
from rspql.builder.expressions import ExpressionBuilder
from rspql.builder.terms import NIL

_FIRST, _REST = ast.RDF + "first", ast.RDF + "rest"


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


@v_args(meta=True)
class TripleBuilder(ExpressionBuilder):
    """Builder of triples and of property paths."""

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
        first, rest, nil = (ast.Iri(name, span=span) for name in (_FIRST, _REST, NIL))
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
        return tuple(nodes(children))

    def path_negated(self, meta: Meta, children: list[Any]) -> ast.NegatedPath:
        return ast.NegatedPath(children[0], span=self._span(meta))
