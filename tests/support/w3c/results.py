"""Comparison of an answer with the result that a test expects.

Solutions are compared as bags, with blank nodes that may have other labels, and in their order as
far as ORDER BY decides; REDUCED may leave out duplicates. Triples are compared as graphs. Numbers
are equal if datatype and value are: ``2.0`` and ``2.00`` are one decimal, but ``2`` is an integer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any

import pyoxigraph as ox
from rdflib import BNode, Graph, Literal, Namespace, URIRef
from rdflib.compare import isomorphic
from rdflib.term import Node

from acquatop.answer.answer import Answer
from rspql import ast
from tests.support.w3c.manifests import Case

RS = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/result-set#")
Solution = Mapping[str, Node]
_STRING, _DECIMAL = URIRef(f"{ast.XSD}string"), URIRef(f"{ast.XSD}decimal")
_NUMBERS = {_DECIMAL, *(URIRef(f"{ast.XSD}{name}") for name in ("double", "float", "integer"))}


@dataclass(frozen=True)
class Solutions:
    """Solutions in their order, and the variables that they may bind."""

    variables: frozenset[str]
    rows: Sequence[Solution]


Found = bool | Graph | Solutions


def differs(answer: Answer, case: Case, query: ast.Query, base: str) -> str | None:
    """Return how an answer differs from the expected result, in a few words; None if it is equal.

    The kind of result must be the same, too. ``base`` is that of the expected result's file.
    """
    assert case.result is not None
    found, expected = found_in(answer), expected_in(case.result, base)
    if isinstance(found, Solutions) and isinstance(expected, Solutions):
        if case.allows_fewer:
            found = with_the_duplicates(found, expected)
        return solutions_differ(found, expected, query)
    if isinstance(found, Graph) and isinstance(expected, Graph):
        return None if isomorphic(found, expected) else "other triples"
    return None if found is expected else "another result"


def found_in(answer: Answer) -> Found:
    """Return the result that an answer holds."""
    match answer.form:
        case "ask":
            return bool(answer.boolean)
        case "select":
            rows = [_comparable(row.bindings) for row in answer.rows]
            return Solutions(frozenset(answer.variables), rows)
        case _:
            return _graph(ox.parse("\n".join(answer.triples).encode(), ox.RdfFormat.N_TRIPLES))


def expected_in(file: Path, base: str) -> Found:
    """Return the result in a file: of SPARQL's formats, or a graph, which may describe one."""
    form = ox.QueryResultsFormat.from_extension(file.suffix[1:])
    if form is None:
        graph = _graph(ox.parse(path=file, base_iri=base))
        sets = list(graph.subjects(URIRef(f"{ast.RDF}type"), RS.ResultSet))
        return _result_set(graph, sets[0]) if sets else graph
    found = ox.parse_query_results(path=file, format=form)
    if isinstance(found, ox.QueryBoolean):
        return bool(found)
    names = [each.value for each in found.variables]
    rows = [
        {name: _node(term) for name in names if (term := row[name]) is not None} for row in found
    ]
    return Solutions(frozenset(names), [_comparable(row) for row in rows])


def _result_set(graph: Graph, node: Node) -> Found:
    """Return the result that a graph describes, in the vocabulary of SPARQL 1.0's tests."""
    boolean = graph.value(node, RS.boolean)
    if boolean is not None:
        return str(boolean) == "true"
    nodes = sorted(graph.objects(node, RS.solution), key=lambda each: _index(graph, each))
    names = frozenset(map(str, graph.objects(node, RS.resultVariable)))
    return Solutions(names, [_described(graph, each) for each in nodes])


def _index(graph: Graph, solution: Node) -> int:
    return int(str(graph.value(solution, RS["index"]) or 0))


def _described(graph: Graph, solution: Node) -> Solution:
    bindings = graph.objects(solution, RS.binding)
    pairs = ((graph.value(each, RS.variable), graph.value(each, RS.value)) for each in bindings)
    return {str(name): value for name, value in pairs if value is not None}


# Terms ----------------------------------------------------------------------------------------


def _graph(triples: Iterable[ox.Quad]) -> Graph:
    graph = Graph()
    for each in triples:
        found = (each.subject, each.predicate, each.object)
        graph.add(tuple(_value(_node(term)) for term in found))  # type: ignore[arg-type]
    return graph


def _node(term: Any) -> Node:
    if isinstance(term, ox.NamedNode):
        return URIRef(term.value)
    if isinstance(term, ox.BlankNode):
        return BNode(term.value)
    datatype = None if term.language else URIRef(term.datatype.value)
    return Literal(term.value, lang=term.language, datatype=datatype, normalize=False)


def _comparable(row: Mapping[str, Any]) -> Solution:
    return {name: _value(term) for name, term in row.items()}


def _value(term: Any) -> Node:
    """Return a term with one text per value of a number; a plain literal is a string."""
    assert isinstance(term, Node)
    if not isinstance(term, Literal):
        return term
    if term.datatype == _STRING:
        return Literal(str(term))
    if term.datatype not in _NUMBERS:
        return term
    try:
        number = Decimal(str(term))
    except ArithmeticError:
        return term
    text = f"{number.normalize():f}" if number.is_finite() else str(term)
    return Literal(text, datatype=term.datatype, normalize=False)


# Solutions ------------------------------------------------------------------------------------


def solutions_differ(found: Solutions, expected: Solutions, query: ast.Query) -> str | None:
    """Return how solutions differ, in a few words; None if they do not."""
    if found.variables != expected.variables:
        return f"other variables: {sorted(found.variables)}, not {sorted(expected.variables)}"
    if len(found.rows) != len(expected.rows):
        return f"{len(found.rows)} solutions, not {len(expected.rows)}"
    if not _are_one_bag(found.rows, expected.rows):
        return "other solutions"
    if not _are_in_order(found.rows, expected.rows, query):
        return "another order"
    return None


def with_the_duplicates(found: Solutions, expected: Solutions) -> Solutions:
    """Return solutions with the duplicates that REDUCED has left out."""
    counts = Counter(map(_items, found.rows))
    missing = Counter(map(_items, expected.rows)) - counts
    added = [dict(items) for items in missing.elements() if items in counts]
    return Solutions(found.variables, [*found.rows, *added])


def _are_one_bag(found: Sequence[Solution], expected: Sequence[Solution]) -> bool:
    if not any(isinstance(term, BNode) for row in expected for term in row.values()):
        return Counter(map(_items, found)) == Counter(map(_items, expected))
    return isomorphic(_as_graph(found), _as_graph(expected))


def _items(row: Solution) -> frozenset[tuple[str, Node]]:
    return frozenset(row.items())


def _as_graph(rows: Sequence[Solution]) -> Graph:
    """Return solutions as a graph: a node for equal ones, with their number."""
    graph = Graph()
    for items, count in Counter(map(_items, rows)).items():
        node = BNode()
        graph.add((node, RS.size, Literal(count)))
        for name, term in items:
            graph.add((node, RS[f"variable-{name}"], term))
    return graph


# Order ----------------------------------------------------------------------------------------

Keys = tuple[Node | None, ...]


def _are_in_order(
    found: Sequence[Solution], expected: Sequence[Solution], query: ast.Query
) -> bool:
    """Return True if no two solutions stand the other way round that ORDER BY puts in order.

    An expression in ORDER BY is taken to put all solutions in order.
    """
    keys = [each.expression for each in query.order]
    names = [each.name for each in keys if isinstance(each, ast.Variable)]
    if len(names) < len(keys):
        names = sorted({name for row in expected for name in row})
        return _keys_of(found, names) == _keys_of(expected, names)
    places: dict[Keys, int] = {}
    for place, each in enumerate(_keys_of(expected, names)):
        places.setdefault(each, place)
    return all(
        places[first] <= places[second]
        for first, second in combinations(_keys_of(found, names), 2)
        if _is_decided(first, second)
    )


def _keys_of(rows: Sequence[Solution], names: Sequence[str]) -> list[Keys]:
    """Return the values of variables in the solutions' order."""
    return [tuple(_in_order(row.get(name)) for name in names) for row in rows]


def _in_order(term: Node | None) -> Node | None:
    """Return one term for all that have one place in the order: blank nodes, and equal numbers."""
    if isinstance(term, BNode):
        return BNode("any")
    if isinstance(term, Literal) and term.datatype in _NUMBERS:
        return Literal(str(term), datatype=_DECIMAL, normalize=False)
    return term


def _is_decided(first: Keys, second: Keys) -> bool:
    """Return True if SPARQL says which of two solutions is the first.

    It puts unbound variables before blank nodes, IRIs and literals, and in order literals of one
    datatype.
    """
    for one, other in zip(first, second, strict=True):
        if one != other:
            return type(one) is not type(other) or _datatype(one) == _datatype(other)
    return False


def _datatype(term: Node | None) -> object:
    return (term.datatype, term.language) if isinstance(term, Literal) else None
