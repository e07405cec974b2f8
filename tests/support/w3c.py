"""The W3C's tests of SPARQL evaluation as RSP-QL queries over a window and static graphs.

The tests come with the source distribution of rdflib, which is fetched from pip's package index by
version and hash (``locks/w3c.lock``). A test's data are static graphs. Its query gets a window that
holds one record, so it has as many solutions as without.
"""

from __future__ import annotations

import csv
import hashlib
import os
import re
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urljoin
from urllib.request import urlopen

import pyoxigraph as ox
from rdflib import BNode, Graph, Literal, Namespace, URIRef
from rdflib.collection import Collection
from rdflib.compare import isomorphic
from rdflib.namespace import RDF, XSD
from rdflib.term import Node

from acquatop.answer.answer import Answer
from acquatop.catalog.catalog import Catalog
from acquatop.engine.engine import Engine
from rspql import ast
from rspql.diagnostics import QueryError
from rspql.parser import parse
from rspql.printer import query_text

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "locks" / "w3c.lock"
ARCHIVE = "rdflib-7.1.1.tar.gz"
_TIMEOUT = 60
MF = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
QT = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-query#")
RS = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/result-set#")
DAWGT = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-dawg#")
SPARQL_1_1 = (
    "aggregates bind bindings construct csv-tsv-res exists functions grouping json-res negation "
    "project-expression property-path subquery"
).split()
BASE = "http://w3c.test/"
WINDOW, STREAM, TICK = (ast.Iri(f"urn:w3c:{name}") for name in ("window", "stream", "tick"))
HIDDEN = ("w3c_record", "w3c_tick")
_NUMBERS = {XSD.decimal, XSD.double, XSD.float, XSD.integer}


class UnreachableError(Exception):
    """Raised if the tests cannot be fetched."""


class UnmappedError(Exception):
    """Raised for a test that has no form in RSP-QL."""


@dataclass(frozen=True)
class Case:
    """A test: its folder and name, its query, its graphs by IRI, and the expected result."""

    name: str
    query: Path
    default: tuple[Path, ...]
    named: tuple[Path, ...]
    result: Path


def fetch(folder: Path) -> Path:
    """Return the folder of the tests, after fetching them if they are not there yet."""
    suites = folder / "w3c"
    if suites.is_dir():
        return suites
    archive = folder / ARCHIVE
    try:
        archive.write_bytes(_downloaded(_index()))
    except OSError as error:
        raise UnreachableError(str(error)) from error
    inside = "/test/data/suites/w3c/"
    with tarfile.open(archive) as packed:
        members = [each for each in packed if inside in each.name]
        for each in members:
            each.name = each.name.partition(inside)[2]
        packed.extractall(suites, members, filter="data")
    return suites


def _index() -> str:
    """Return the address of the package index that pip uses."""
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    told = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return os.environ.get("PIP_INDEX_URL") or told or "https://pypi.org/simple"


def _downloaded(index: str) -> bytes:
    """Return the archive, as the index has it; it must have the hash of the lock file."""
    page = f"{index.rstrip('/')}/rdflib/"
    with urlopen(page, timeout=_TIMEOUT) as reply:
        links = re.findall(r'href="([^"]+)"', reply.read().decode())
    (link,) = {each.partition("#")[0] for each in links if f"/{ARCHIVE}" in each}
    with urlopen(urljoin(page, link), timeout=_TIMEOUT) as reply:
        data: bytes = reply.read()
    assert hashlib.sha256(data).hexdigest() in LOCK.read_text("utf-8"), "another archive"
    return data


def cases(suites: Path) -> list[Case]:
    """Return the approved tests of SPARQL 1.0 and 1.1 that evaluate queries on given data."""
    first = Graph().parse(suites / "dawg-data-r2" / "manifest-evaluation.ttl")
    ((_, _, included),) = first.triples((None, MF.include, None))
    folders = [Path(str(each).removeprefix("file://")) for each in Collection(first, included)]
    later = [suites / "sparql11" / name / "manifest.ttl" for name in SPARQL_1_1]
    return [case for manifest in (*folders, *later) for case in _cases_of(manifest)]


def _cases_of(manifest: Path) -> Iterator[Case]:
    graph = Graph().parse(manifest)
    ((_, _, entries),) = graph.triples((None, MF.entries, None))
    for entry in Collection(graph, entries):
        kinds = set(graph.objects(entry, RDF.type))
        if not kinds & {MF.QueryEvaluationTest, MF.CSVResultFormatTest}:
            continue
        if graph.value(entry, DAWGT.approval) != DAWGT.Approved:
            continue
        action, result = graph.value(entry, MF.action), graph.value(entry, MF.result)
        assert action is not None
        name = f"{manifest.parent.name}/{str(entry).partition('#')[2]}"
        yield Case(
            name,
            _path(graph.value(action, QT.query)),
            tuple(map(_path, graph.objects(action, QT.data))),
            tuple(map(_path, graph.objects(action, QT.graphData))),
            _path(result),
        )


def _path(iri: Node | None) -> Path:
    return Path(str(iri).removeprefix("file://"))


# Queries --------------------------------------------------------------------------------------


def rspql_text(case: Case) -> tuple[str, tuple[str, ...]]:
    """Return a test's query in RSP-QL, and the IRIs of the graphs that it names."""
    base = iri_of(case.query)
    text = f"BASE <{base}>\n{case.query.read_text('utf-8')}"
    query = parse(text)
    if query.where is None:
        raise UnmappedError("the query has no WHERE")
    own = query.default_graphs or query.named_graphs
    default = query.default_graphs if own else tuple(ast.Iri(iri_of(each)) for each in case.default)
    named = query.named_graphs if own else tuple(ast.Iri(iri_of(each)) for each in case.named)
    record, tick = map(ast.Variable, HIDDEN)
    window = ast.WindowPattern(WINDOW, ast.Group((ast.TriplePattern(record, TICK, tick),)))
    query = replace(
        query,
        where=ast.Group((window, *query.where.elements)),
        windows=(ast.WindowClause(WINDOW, STREAM, 10_000, 10_000),),
        default_graphs=default,
        named_graphs=named,
        output="RSTREAM" if isinstance(query.form, ast.Select | ast.Construct) else None,
    )
    return f"BASE <{base}>\n{query_text(query)}", tuple(each.value for each in (*default, *named))


def iri_of(path: Path) -> str:
    """Return the IRI of a file of the tests."""
    return f"{BASE}{path.parent.name}/{path.name}"


def outcomes(suites: Path, folder: Path) -> dict[str, str]:
    """Return what became of each test: ``passes``, or why it does not, in a few words.

    All queries run in one engine, in ``folder``.
    """
    found, texts, graphs = {}, {}, dict[str, Path]()
    every = {case.name: case for case in cases(suites)}
    for name, case in every.items():
        try:
            texts[name], named = rspql_text(case)
        except (QueryError, UnmappedError) as error:
            found[name] = f"not mapped: {_first_line(error)}"
            continue
        near = {iri_of(each): each for each in case.query.parent.iterdir()}
        graphs |= {iri: near[iri] for iri in named if iri in near}
    catalog = _catalog(folder, graphs)
    with Engine(
        catalog, runtime="local", until_end=True, autostart=False, clock=lambda: 0.0
    ) as engine:
        running = {}
        for name, text in texts.items():
            try:
                running[name] = engine.register(text, name=name)
            except QueryError as error:
                found[name] = f"refused: {_first_line(error)}"
        engine.start()
        for name, handle in running.items():
            found[name] = _outcome(every[name], list(handle))
    return {name: found[name] for name in every}


def _first_line(error: Exception) -> str:
    if isinstance(error, QueryError):
        return error.diagnostics[0].message
    return str(error).splitlines()[0]


def _catalog(folder: Path, graphs: dict[str, Path]) -> Catalog:
    """Return a catalog of a stream with one record and of static graphs."""
    (folder / "records.ndjson").write_text('{"t": 1000, "at": "a", "tick": 1}\n', "utf-8")
    lines = [
        f'[streams."{STREAM.value}"]',
        'connector = "lines"',
        'options = { path = "records.ndjson" }',
        f'[streams."{STREAM.value}".mapping]',
        'subject = "urn:w3c:record:{at}"',
        'time = "t"',
        f'properties = {{ "{TICK.value}" = {{ field = "tick", datatype = "xsd:integer" }} }}',
    ]
    for number, (iri, path) in enumerate(graphs.items()):
        kind = ox.RdfFormat.RDF_XML if path.suffix == ".rdf" else ox.RdfFormat.TURTLE
        triples = ox.parse(path.read_bytes(), kind, base_iri=iri)
        ox.serialize(triples, str(folder / f"{number}.nt"), ox.RdfFormat.N_TRIPLES)
        lines += [f'[graphs."{iri}"]', f'path = "{number}.nt"']
    (folder / "catalog.toml").write_text("\n".join(lines), "utf-8")
    return Catalog.load(folder / "catalog.toml")


# Results --------------------------------------------------------------------------------------

Found = bool | Graph | list[dict[str, Any]]


def _outcome(case: Case, answers: Sequence[Answer]) -> str:
    if len(answers) != 1:
        return f"fails: {len(answers)} answers"
    (answer,) = answers
    found, expected = _found(answer), _expected(case.result)
    if _same(found, expected):
        return "passes"
    return f"fails: {answer.reason}" if answer.reason else "fails"


def _found(answer: Answer) -> Found:
    match answer.form:
        case "ask":
            return bool(answer.boolean)
        case "select":
            return [
                {name: term for name, term in row.bindings.items() if name not in HIDDEN}
                for row in answer.rows
            ]
        case _:
            return Graph().parse(data="\n".join(answer.triples), format="nt")


def _expected(path: Path) -> Found:
    match path.suffix:
        case ".srx" | ".srj" | ".tsv" | ".csv":
            return _solutions(path)
        case _:
            graph = Graph().parse(path)
            sets = list(graph.subjects(RDF.type, RS.ResultSet))
            return _result_set(graph, sets[0]) if sets else graph


def _solutions(path: Path) -> Found:
    if path.suffix == ".csv":
        return list(csv.DictReader(path.read_text("utf-8").splitlines()))
    found = ox.parse_query_results(path.read_bytes(), _format(path))
    if isinstance(found, ox.QueryBoolean):
        return bool(found)
    names = [each.value for each in found.variables]
    return [{name: _rdflib(row[name]) for name in names if row[name] is not None} for row in found]


def _format(path: Path) -> ox.QueryResultsFormat:
    found = ox.QueryResultsFormat.from_extension(path.suffix[1:])
    assert found is not None
    return found


def _rdflib(term: Any) -> Node:
    if isinstance(term, ox.NamedNode):
        return URIRef(term.value)
    if isinstance(term, ox.BlankNode):
        return BNode(term.value)
    datatype = None if term.language else URIRef(term.datatype.value)
    if datatype == XSD.string:
        datatype = None
    return Literal(term.value, lang=term.language, datatype=datatype, normalize=False)


def _result_set(graph: Graph, node: Node) -> Found:
    boolean = graph.value(node, RS.boolean)
    if boolean is not None:
        return str(boolean) == "true"
    solutions = sorted(
        graph.objects(node, RS.solution), key=lambda each: int(graph.value(each, RS["index"]) or 0)
    )
    return [
        {
            str(graph.value(each, RS.variable)): graph.value(each, RS.value)
            for each in graph.objects(solution, RS.binding)
        }
        for solution in solutions
    ]


def _same(found: Found, expected: Found) -> bool:
    if isinstance(found, Graph) and isinstance(expected, Graph):
        return isomorphic(_plain(found), _plain(expected))
    if isinstance(found, list) and isinstance(expected, list):
        if any(
            isinstance(term, str) and not isinstance(term, Node)
            for row in expected
            for term in row.values()
        ):
            # CSV has no types.
            found = [{name: str(term) for name, term in row.items()} for row in found]
            return Counter(map(_items, found)) == Counter(map(_items, expected))
        if not any(isinstance(term, BNode) for row in expected for term in row.values()):
            return Counter(map(_terms, found)) == Counter(map(_terms, expected))
        return len(found) == len(expected) and isomorphic(_as_graph(found), _as_graph(expected))
    return type(found) is type(expected) and found == expected


def _items(row: dict[str, Any]) -> frozenset[tuple[str, str]]:
    return frozenset((name, str(term)) for name, term in row.items() if str(term))


def _terms(row: dict[str, Any]) -> frozenset[tuple[str, Node]]:
    return frozenset((name, _value(term)) for name, term in row.items())


def _as_graph(rows: list[dict[str, Any]]) -> Graph:
    """Return solutions as a graph: equal ones are told apart by their nodes."""
    graph = Graph()
    for row in rows:
        node = BNode()
        graph.add((node, RDF.type, RS.ResultSet))
        for name, term in row.items():
            graph.add((node, URIRef(f"{BASE}{name}"), _value(term)))
    return graph


def _plain(graph: Graph) -> Graph:
    plain = Graph()
    for subject, predicate, value in graph:
        plain.add((subject, predicate, _value(value)))
    return plain


def _value(term: Any) -> Node:
    """Return a term with the usual text of its number."""
    if isinstance(term, Literal) and term.datatype in _NUMBERS:
        try:
            number = Decimal(str(term))
        except ArithmeticError:
            return term
        text = format(number.normalize(), "f") if number.is_finite() else str(number)
        return Literal(text, datatype=term.datatype, normalize=False)
    if isinstance(term, Literal) and term.datatype == XSD.string:
        return Literal(str(term))
    assert isinstance(term, Node)
    return term
