"""Triples about resources, for DESCRIBE."""

from __future__ import annotations

from collections.abc import Iterable

from pyoxigraph import BlankNode, Literal, Store

from acquatop.query.sparql.terms import Term, text_of


def describe(store: Store, resources: Iterable[Term]) -> tuple[str, ...]:
    """Return all triples about resources, in any graph, and about blank nodes reached from them.

    The triples are sorted.
    """
    found: set[str] = set()
    pending = [each for each in resources if not isinstance(each, Literal)]
    seen = set(pending)
    while pending:
        for quad in store.quads_for_pattern(pending.pop(), None, None):
            found.add(f"{' '.join(map(text_of, (quad.subject, quad.predicate, quad.object)))} .")
            if isinstance(quad.object, BlankNode) and quad.object not in seen:
                seen.add(quad.object)
                pending.append(quad.object)
    return tuple(sorted(found))
