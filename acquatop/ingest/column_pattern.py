"""Evaluation of simple patterns on records that are each alone, by whole columns.

A record that nothing else is said about is one row: triple patterns of its subject, OPTIONAL,
UNION, MINUS, EXISTS and VALUES select rows and columns then. No SPARQL engine is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.ingest.record_graphs import Bindings, RecordRows
from acquatop.ingest.terms import from_ast
from acquatop.topk.contract import IntArray
from rspql import ast


@dataclass(frozen=True)
class _Found:
    """Solutions so far: the row of each, and the terms of variables, null where unbound."""

    rows: IntArray
    terms: Mapping[str, pa.Array]

    def where(self, mask: pa.BooleanArray) -> _Found:
        terms = {name: column.filter(mask) for name, column in self.terms.items()}
        return _Found(self.rows[np.asarray(mask.to_numpy(zero_copy_only=False))], terms)

    def with_(self, terms: Mapping[str, pa.Array]) -> _Found:
        return _Found(self.rows, {**self.terms, **terms})


_Step = Callable[[RecordRows, _Found], _Found]


class ColumnPattern:
    """Pattern that some rows are matched with, each by itself."""

    def __init__(self, steps: Sequence[_Step], variables: Sequence[str]) -> None:
        self._steps = steps
        self._variables = variables

    def solutions(self, rows: RecordRows) -> Bindings:
        """Return the solutions of rows, each a graph of its own, in their order. O(n)."""
        found = _after(self._steps, rows, _Found(np.arange(len(rows.subjects)), {}))
        order = np.argsort(found.rows, kind="stable")
        nothing = pa.repeat("", len(order))
        terms = [
            pc.coalesce(found.terms[name], "").take(pa.array(order))
            if name in found.terms
            else nothing
            for name in self._variables
        ]
        return Bindings(found.rows[order], terms)


def column_pattern(
    group: ast.Group, variables: Sequence[str], predicates: Collection[str]
) -> ColumnPattern | None:
    """Return a group as a pattern over columns; None if it is not simple.

    ``predicates`` are those whose objects have the same text here as a SPARQL engine gives them.
    """
    known: set[str] = set()
    maybe: set[str] = set()
    steps: list[_Step] = []
    for element in _in_order(group.elements):
        step = _step(element, known, maybe, predicates)
        if step is None:
            return None
        steps.append(step)
    return ColumnPattern(steps, variables)


def _in_order(elements: Iterable[ast.Pattern]) -> Sequence[ast.Pattern]:
    """Return elements as they take effect: filters of a group hold for all of it."""
    return sorted(elements, key=lambda each: isinstance(each, ast.Filter | ast.Values))


def _step(
    element: ast.Pattern, known: set[str], maybe: set[str], predicates: Collection[str]
) -> _Step | None:
    """Return the step of one element behind others that bind ``known``, and ``maybe`` more."""
    match element:
        case ast.TriplePattern():
            return _triple(element, known, maybe, predicates)
        case ast.Group():
            return _union([element], known, maybe, predicates)
        case ast.UnionPattern(groups):
            return _union(groups, known, maybe, predicates)
        case ast.OptionalPattern(group):
            star = _star(group, known, maybe, predicates)
            return None if star is None else _optional(star, maybe, known)
        case ast.MinusPattern(group):
            star = _star(group, known, maybe, predicates)
            return None if star is None else _existing(star, negated=True)
        case ast.Filter(ast.Exists(group, negated)):
            star = _star(group, known, maybe, predicates)
            return None if star is None else _existing(star, negated=negated)
        case ast.Values((variable,), rows) if variable.name in known:
            return _values(variable.name, rows)
        case _:
            return None


def _triple(
    triple: ast.TriplePattern, known: set[str], maybe: set[str], predicates: Collection[str]
) -> _Step | None:
    predicate = triple.predicate
    if not isinstance(predicate, ast.Iri) or predicate.value not in predicates:
        return None
    ends = [_end(triple.subject), _end(triple.object)]
    names = [each for each in ends if isinstance(each, str) and each.startswith("?")]
    if None in ends or len(set(names)) < len(names) or any(each[1:] in maybe for each in names):
        return None
    known.update(each[1:] for each in names)
    subject, object_ = ends
    assert subject is not None
    assert object_ is not None
    return _Triple(subject, predicate.value, object_)


def _end(term: ast.Term) -> str | None:
    """Return a variable with its mark, a constant's text, or None for what is not simple."""
    match term:
        case ast.Variable(name):
            return f"?{name}"
        case ast.BlankNode(label):
            return f"?_:{label}"
        case ast.Iri():
            return from_ast(term)
        case ast.Literal(lexical, datatype, None):
            is_whole = datatype == ast.XSD + "integer" and lexical == str(_whole(lexical))
            return from_ast(term) if is_whole or datatype == ast.XSD + "string" else None
        case _:
            return None


def _whole(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


@dataclass(frozen=True)
class _Triple:
    """Step that keeps the rows with a triple."""

    subject: str
    predicate: str
    object: str

    def __call__(self, rows: RecordRows, found: _Found) -> _Found:
        at = pa.array(found.rows)
        objects = rows.objects[list(rows.predicates).index(self.predicate)].take(at)
        mask, new = pc.is_valid(objects), {}
        for end, values in ((self.subject, rows.subjects.take(at)), (self.object, objects)):
            if not end.startswith("?"):
                mask = pc.and_(mask, pc.equal(values, end))
            elif end[1:] in found.terms:
                mask = pc.and_(mask, pc.equal(values, found.terms[end[1:]]))
            else:
                new[end[1:]] = values
        return found.with_(new).where(pc.fill_null(mask, False))


def _star(
    group: ast.Group, known: set[str], maybe: set[str], predicates: Collection[str]
) -> Sequence[_Step] | None:
    """Return the steps of a group of triple patterns about a subject that is known."""
    steps: list[_Step] = []
    inner = set(known)
    for each in group.elements:
        if not isinstance(each, ast.TriplePattern) or not isinstance(each.subject, ast.Variable):
            return None
        step = _triple(each, inner, maybe, predicates)
        if step is None or each.subject.name not in known:
            return None
        steps.append(step)
    return steps or None


def _optional(star: Sequence[_Step], maybe: set[str], known: set[str]) -> _Step:
    names = {
        end[1:]
        for step in star
        if isinstance(step, _Triple)
        for end in (step.subject, step.object)
        if end.startswith("?")
    }
    maybe |= names - known

    def step(rows: RecordRows, found: _Found) -> _Found:
        inner, places = _matched(star, rows, found)
        taken = pa.array(places, mask=places < 0)
        return found.with_(
            {
                name: column.take(taken)
                for name, column in inner.terms.items()
                if name not in found.terms
            }
        )

    return step


def _existing(star: Sequence[_Step], *, negated: bool) -> _Step:
    def step(rows: RecordRows, found: _Found) -> _Found:
        _, places = _matched(star, rows, found)
        return found.where(pa.array((places < 0) == negated))

    return step


def _matched(star: Sequence[_Step], rows: RecordRows, found: _Found) -> tuple[_Found, IntArray]:
    """Return what matches further patterns, and the place of each solution there, or -1."""
    numbers = pa.array(np.arange(len(found.rows)))
    inner = _after(star, rows, found.with_({"": numbers}))
    kept = np.asarray(inner.terms[""].to_numpy(zero_copy_only=False), dtype=np.int64)
    places = np.full(len(found.rows), -1)
    places[kept] = np.arange(len(kept))
    terms = {name: column for name, column in inner.terms.items() if name}
    return _Found(inner.rows, terms), places


def _union(
    groups: Sequence[ast.Group], known: set[str], maybe: set[str], predicates: Collection[str]
) -> _Step | None:
    branches: list[Sequence[_Step]] = []
    bound: list[set[str]] = []
    for group in groups:
        inner = set(known)
        steps = [
            _triple(each, inner, maybe, predicates) if isinstance(each, ast.TriplePattern) else None
            for each in group.elements
        ]
        taken = [each for each in steps if each is not None]
        if len(taken) < len(steps):
            return None
        branches.append(taken)
        bound.append(inner)
    every = set.intersection(*bound)
    maybe |= set.union(*bound) - every
    known |= every

    def step(rows: RecordRows, found: _Found) -> _Found:
        parts = [_after(branch, rows, found) for branch in branches]
        names = dict.fromkeys(name for part in parts for name in part.terms)
        terms = {
            name: pa.chunked_array(
                [part.terms.get(name, pa.nulls(len(part.rows), pa.string())) for part in parts],
                pa.string(),
            ).combine_chunks()
            for name in names
        }
        return _Found(np.concatenate([part.rows for part in parts]), terms)

    return step


def _values(name: str, rows: Sequence[Sequence[ast.Term | None]]) -> _Step | None:
    terms = [None if value is None else _end(value) for (value,) in rows]
    if None in terms or len(set(terms)) < len(terms):
        return None
    wanted = pa.array(terms, pa.string())

    def step(rows: RecordRows, found: _Found) -> _Found:
        return found.where(pc.is_in(found.terms[name], value_set=wanted))

    return step


def _after(steps: Iterable[_Step], rows: RecordRows, found: _Found) -> _Found:
    for step in steps:
        found = step(rows, found)
    return found
