"""Streams that queries make of their answers, for other queries to read.

A row of a SELECT is a record with a subject of its own. All that a CONSTRUCT's graph says of one
subject is a record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from acquatop.catalog.catalog import Catalog, Stream
from acquatop.plan.bound import Bound, BoundCounted, BoundQuery
from connectors.mapping import IRI, TERM, Property, TermProperty
from connectors.objects import AnyTerm, Objects
from connectors.timed_statements import StatementsMapping
from rspql import ast
from rspql.plan import Plan, TopKPlan
from rspql.scope import selected

CONNECTOR = "answers"
"""Mark used instead of a connector: the engine brings the records itself."""
_CERTAIN = (IRI, ast.XSD + "integer", ast.XSD + "string")


Made = tuple[str, Stream | str]
"""Name of a query, and the stream of its answers, or the reason why there is none."""


def made_by(bound: Bound) -> Made | None:
    """Return the stream that a query makes; None if it has no name in its text."""
    name = bound.plan.name
    return None if name is None else (name, _stream(name, bound))


def with_answers(catalog: Catalog, made: Iterable[Made | None]) -> Catalog:
    """Return a catalog with the streams that registered queries make, by their names.

    A stream of the catalog's own goes before one of the same name, and the query that was
    registered first before others. O(queries).
    """
    found: dict[str, Stream | str] = {}
    for name, stream in filter(None, made):
        found.setdefault(name, stream)
    streams = {name: each for name, each in found.items() if isinstance(each, Stream)}
    reasons = {name: each for name, each in found.items() if isinstance(each, str)}
    return replace(
        catalog,
        streams={**streams, **catalog.streams},
        unreadable={**reasons, **catalog.unreadable},
    )


def property_of(stream: str, variable: str) -> str:
    """Return the IRI of the property that has a variable's values in a stream of answers.

    >>> property_of("http://example.org/busy", "user")
    'http://example.org/user'
    """
    return stream[: 1 + max(stream.rfind(end) for end in "#/:")] + variable


def _stream(iri: str, bound: Bound) -> Stream | str:
    """Return the stream of a query's answers, or the reason why there is none."""
    form = _query(bound.plan).form
    match form:
        case ast.Select():
            types = _properties(bound)
            properties = {
                property_of(iri, name): types.get(name) or _anything(name)
                for name in _variables(bound.plan)
            }
            return _made(iri, bound, StatementsMapping(properties), "distinct")
        case ast.Construct(template):
            predicates = [triple.predicate for triple in template]
            if not all(isinstance(each, ast.Iri) for each in predicates):
                return "its template has a variable as a predicate"
            properties = {
                each.value: _anything(each.value)
                for each in predicates
                if isinstance(each, ast.Iri)
            }
            is_distinct = _makes_distinct(template)
            mapping = StatementsMapping(properties, several=not is_distinct)
            return _made(iri, bound, mapping, "distinct" if is_distinct else "all")
        case _:
            return f"the answers of {type(form).__name__.upper()} are no elements of a stream"


def _made(iri: str, bound: Bound, mapping: StatementsMapping, arrivals: str) -> Stream:
    return Stream(
        iri=iri,
        connector=CONNECTOR,
        options={},
        mapping=mapping,
        arrivals=arrivals,
        lateness_ms=0,
        start_ms=None,
        keys="driver",
        query=bound.name,
    )


def _query(plan: Plan) -> ast.Query:
    return plan.windowed.query if isinstance(plan, TopKPlan) else plan.query


def _variables(plan: Plan) -> Iterable[str]:
    return plan.projection if isinstance(plan, TopKPlan) else selected(plan.query)


def _makes_distinct(template: Iterable[ast.TriplePattern]) -> bool:
    """Return True if each record has a subject of its own, with one object of each property."""
    said = [(triple.subject, triple.predicate) for triple in template]
    return all(isinstance(subject, ast.BlankNode) for subject, _ in said) and len(said) == len(
        set(said)
    )


def _anything(name: str) -> Property:
    return TermProperty(name, TERM, objects=Objects((AnyTerm(),)))


def _properties(bound: Bound) -> Mapping[str, Property]:
    """Return the properties of variables whose values are certain to be of known datatypes.

    Doubles are left out: an infinite one is none on a stream.
    """
    query = bound.query if isinstance(bound, BoundCounted) else bound
    if not isinstance(query, BoundQuery):
        return {}
    found = {name: Property(name, datatype) for name, datatype in _known(query)}
    return {name: each for name, each in found.items() if each.datatype in _CERTAIN}


def _known(bound: BoundQuery) -> Iterator[tuple[str, str]]:
    if bound.parts:
        for part in bound.parts:
            yield from _known(part)
        return
    plan, matcher = bound.plan, bound.matcher
    aggregate = plan.aggregate
    for name in plan.stream_variables if aggregate is None else aggregate.keys:
        datatype = IRI if matcher.is_subject(name) else matcher.datatype(name)
        if datatype is not None:
            yield name, datatype
    for column in () if aggregate is None else aggregate.columns:
        datatype = None if column.of is None else matcher.datatype(column.of)
        if column.of is None or column.function == "count":
            yield column.variable, ast.XSD + "integer"
        elif column.function in ("min", "max") and datatype is not None:
            yield column.variable, datatype
