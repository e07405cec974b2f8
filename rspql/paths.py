"""Property paths: their lengths, and the steps between which they have nodes of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rspql import ast

ANY = "*"
"""Stands for any predicate."""


def may_be_empty(path: ast.Variable | ast.Path) -> bool:
    """Return True if a path may be of length zero.

    >>> friend = ast.Iri("urn:friend")
    >>> may_be_empty(ast.RepeatedPath(friend, "?")), may_be_empty(ast.RepeatedPath(friend, "+"))
    (True, False)
    """
    match path:
        case ast.RepeatedPath(inner, modifier):
            return modifier != "+" or may_be_empty(inner)
        case ast.InversePath(inner):
            return may_be_empty(inner)
        case ast.SequencePath(paths):
            return all(map(may_be_empty, paths))
        case ast.AlternativePath(paths):
            return any(map(may_be_empty, paths))
        case _:
            return False


def forward(triple: ast.TriplePattern) -> ast.TriplePattern:
    """Return a triple pattern without an inverse path as a whole: its ends change places."""
    if not isinstance(triple.predicate, ast.InversePath):
        return triple
    inner = triple.predicate.path
    return forward(ast.TriplePattern(triple.object, inner, triple.subject, span=triple.span))


def ends_of(triple: ast.TriplePattern, term: ast.Term) -> Iterator[str | None]:
    """Yield the predicates whose objects a term of a triple pattern is; None if it is a subject.

    >>> observed, value = ast.Variable("observed"), ast.Variable("value")
    >>> path = ast.SequencePath((ast.Iri("urn:result"), ast.Iri("urn:value")))
    >>> triple = ast.TriplePattern(observed, path, value)
    >>> list(ends_of(triple, value)), list(ends_of(triple, observed))
    (['urn:value'], [None])
    """
    if triple.subject == term:
        yield from _ends(triple.predicate, at_end=False)
    if triple.object == term:
        yield from _ends(triple.predicate, at_end=True)
    if triple.predicate == term:
        yield None


def _ends(path: ast.Variable | ast.Path, *, at_end: bool) -> Iterator[str | None]:
    match path:
        case ast.Iri(iri):
            yield iri if at_end else None
        case ast.InversePath(inner):
            yield from _ends(inner, at_end=not at_end)
        case ast.AlternativePath(paths):
            for each in paths:
                yield from _ends(each, at_end=at_end)
        case ast.SequencePath(paths):
            for each in reversed(paths) if at_end else paths:
                yield from _ends(each, at_end=at_end)
                if not may_be_empty(each):
                    break
        case ast.RepeatedPath(inner, modifier):
            yield from _ends(inner, at_end=at_end)
            if modifier != "+":
                yield None
        case _:
            yield ANY if at_end else None


def linking_predicates(group: ast.Group) -> frozenset[str]:
    """Return the predicates whose objects a group's patterns join on; ANY stands for all with IRIs.

    >>> observed, value = ast.Variable("observed"), ast.Variable("value")
    >>> path = ast.SequencePath((ast.Iri("urn:result"), ast.Iri("urn:value")))
    >>> list(linking_predicates(ast.Group((ast.TriplePattern(observed, path, value),))))
    ['urn:result']
    """
    triples = [forward(node) for node in ast.walk(group) if isinstance(node, ast.TriplePattern)]
    joined = {
        term
        for term, count in _uses(group).items()
        if count > 1 and isinstance(term, ast.Variable | ast.BlankNode)
    }
    return frozenset(
        predicate
        for each in triples
        for predicate in _linking(each.predicate, each.subject in joined, each.object in joined)
    )


def joins_of_any_objects(group: ast.Group) -> Iterator[ast.TriplePattern]:
    """Yield the triple patterns of a group that join any predicate's objects with objects."""
    triples = [forward(node) for node in ast.walk(group) if isinstance(node, ast.TriplePattern)]
    objects = Counter(each.object for each in triples)
    subjects = {each.subject for each in triples}
    uses = _uses(group)
    for each in triples:
        joins_objects = objects[each.object] > 1 or each.object not in subjects
        is_any = ANY in _ends(each.predicate, at_end=True)
        if is_any and joins_objects and uses[each.object] > 1:
            yield each


def _uses(node: ast.Node) -> Counter[ast.Term]:
    """Return how often each term is an end of a triple pattern: of branches, in any one of them."""
    match node:
        case ast.TriplePattern(subject, _, object_):
            return Counter((subject, object_))
        case ast.UnionPattern(groups):
            most: Counter[ast.Term] = Counter()
            for group in groups:
                most |= _uses(group)
            return most
        case _:
            return sum(map(_uses, ast.children(node)), Counter())


def _linking(path: ast.Variable | ast.Path, begins: bool, ends: bool) -> Iterator[str]:
    """Yield the predicates of a path whose objects are joined on; so are its ends, if told."""
    match path:
        case ast.Iri(iri):
            if ends:
                yield iri
        case ast.InversePath(inner):
            yield from _linking(inner, ends, begins)
        case ast.AlternativePath(paths):
            for each in paths:
                yield from _linking(each, begins, ends)
        case ast.SequencePath(paths):
            last = len(paths) - 1
            for at, each in enumerate(paths):
                yield from _linking(each, begins or at > 0, ends or at < last)
        case ast.RepeatedPath(inner, modifier):
            several = modifier != "?"
            yield from _linking(inner, begins or several, ends or several)
        case _:
            if begins or ends:
                yield ANY
