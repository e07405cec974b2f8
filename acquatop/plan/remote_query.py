"""Questions of queries to remotes, in the forms that the kinds of remotes need."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from acquatop.ingest.terms import from_ast
from replica.key_tuples import key_text, terms_in
from replica.remotes.records import RecordMapping, Star
from rspql.ast import (
    Group,
    Iri,
    Literal,
    Node,
    TriplePattern,
    Variable,
    base_of,
    rewritten,
    walk,
)
from rspql.diagnostics import Diagnostic, nearest
from rspql.printer import inside_text
from rspql.scope import visible


@dataclass(frozen=True)
class RemoteQuery:
    """SERVICE pattern, the variables wanted of it, and the key variable, if there is one."""

    group: Group
    variables: tuple[str, ...]
    key: str | None

    @property
    def text(self) -> str:
        """Inside of the pattern as SPARQL."""
        return inside_text(self.group)

    @property
    def base(self) -> str | None:
        """Base that the pattern's calls of IRI resolve against."""
        return base_of(self.group)

    def in_common_names(self) -> tuple[RemoteQuery, Mapping[str, str]]:
        """Return the question with its variables named by their order, and those names by its own.

        Questions that differ in nothing but the names of variables become equal.
        """
        used = [each.name for each in walk(self.group) if isinstance(each, Variable)]
        names = {name: f"v{at}" for at, name in enumerate(dict.fromkeys([*used, *self.variables]))}

        def renamed(node: Node) -> Node:
            return replace(node, name=names[node.name]) if isinstance(node, Variable) else node

        wanted = tuple(sorted(names[name] for name in self.variables))
        key = None
        if self.key is not None:
            key = key_text(names.get(each, each) for each in terms_in(self.key))
            names = {**names, self.key: key}
        return RemoteQuery(rewritten(self.group, renamed), wanted, key), names

    def star(self, mapping: RecordMapping) -> Star:
        """Return the pattern as a star of a mapping's properties, or as one of its patterns.

        Binding has checked that it is one.
        """
        star = star_in(mapping, self.group, self.key)
        if not isinstance(star, Star):
            raise ValueError(star.message)
        return star


def star_in(mapping: RecordMapping, group: Group, key: str | None) -> Star | Diagnostic:
    """Return a pattern as records of a mapping answer it, or a diagnostic if they cannot."""
    known = mapping.patterns.get(inside_text(group))
    if known is not None and known.key == key and set(visible(group)) <= {key, *known.variables}:
        return Star(key, {}, fields=known.variables)
    return star_of(group, key, mapping.properties.keys())


def star_of(group: Group, key: str | None, predicates: Collection[str]) -> Star | Diagnostic:
    """Return a pattern as a star around its key, or a diagnostic if records cannot answer it.

    ``predicates`` are those that the records have.
    """
    columns: dict[str, str] = {}
    constants: dict[str, str] = {}
    if key is None:
        message = (
            "a service of records is asked by key: "
            "its pattern must share a variable with what surrounds it"
        )
        return Diagnostic("unsupported", message, group.span)
    for element in group.elements:
        match element:
            case TriplePattern(Variable(subject), Iri(predicate), _) if (
                subject != key or predicate not in predicates
            ):
                return _not_of_the_star(element, subject, key, predicate, predicates)
            case TriplePattern(Variable(), Iri(predicate), Variable(name)) if (
                name != key and name not in columns
            ):
                columns[name] = predicate
            case TriplePattern(Variable(), Iri(predicate), Iri() | Literal() as term) if (
                predicate not in constants
            ):
                constants[predicate] = from_ast(term)
            case _:
                message = (
                    "a service of records answers patterns such as "
                    f"?{key} :property ?value, and nothing else"
                )
                hint = "write each variable and property once"
                return Diagnostic("unsupported", message, element.span, hint)
    return Star(key, columns, constants)


def _not_of_the_star(
    element: TriplePattern, subject: str, key: str, predicate: str, predicates: Collection[str]
) -> Diagnostic:
    if subject != key:
        message = (
            f"a service of records answers patterns around ?{key}, "
            f"by which it is asked, and not ?{subject}"
        )
        hint = "if its records are the pattern's solutions, say so in patterns of its mapping"
        return Diagnostic("unsupported", message, element.span, hint)
    near = nearest(predicate, predicates)
    listed = ", ".join(f"<{each}>" for each in predicates) or "none"
    hint = f"did you mean <{near}>?" if near else f"it has {listed}"
    return Diagnostic(
        "unknown-property",
        f"the service has no property <{predicate}>",
        element.predicate.span,
        hint,
    )
