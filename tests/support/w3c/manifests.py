"""The W3C's manifests: which tests there are, of which kind, on which data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from rdflib import Graph, Namespace, URIRef
from rdflib.collection import Collection
from rdflib.term import Node

MF = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
QT = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-query#")
DAWGT = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-dawg#")
RDF_TYPE = URIRef("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
VERSIONS = {"1.0": "dawg-data-r2", "1.1": "sparql11"}
"""Folders of the tests, by versions of SPARQL."""


@dataclass(frozen=True)
class Case:
    """A test: its kind, its query, its default and named graphs, and the expected result.

    Its ``group`` is the version of SPARQL and a folder. If a test ``allows_fewer``, each solution
    may come fewer times than expected, but once.
    """

    group: str
    name: str
    kind: str
    is_approved: bool
    allows_fewer: bool = False
    query: Path | None = None
    default: tuple[Path, ...] = ()
    named: tuple[Path, ...] = ()
    result: Path | None = None


REASONS = {
    "QueryEvaluationTest": "",
    "CSVResultFormatTest": "it tests the writing of CSV",
    "NegativeSyntaxTest": "it tests the syntax alone",
    "NegativeSyntaxTest11": "it tests the syntax alone",
    "NegativeUpdateSyntaxTest11": "it is about updates",
    "PositiveSyntaxTest": "it tests the syntax alone",
    "PositiveSyntaxTest11": "it tests the syntax alone",
    "PositiveUpdateSyntaxTest11": "it is about updates",
    "ProtocolTest": "it tests a server",
    "ServiceDescriptionTest": "it tests a server",
    "UpdateEvaluationTest": "it is about updates",
}
"""Why tests of a kind cannot be mapped; nothing if they can."""


def why_not_mapped(case: Case) -> str:
    """Return why a test has no form as a query over a window and static graphs; nothing if it has.

    Services of SPARQL 1.1's tests are at addresses that only the tests' authors could serve.
    """
    if reason := REASONS[case.kind]:
        return reason
    if case.group == "1.1 entailment":
        return "it needs an entailment regime"
    if case.group == "1.1 service":
        return "it asks services"
    return "" if case.is_approved else "it was not approved"


def cases(suites: Path) -> Iterator[Case]:
    """Yield all tests of SPARQL 1.0 and 1.1, version by version and folder by folder."""
    for version, folder in VERSIONS.items():
        for manifest in sorted((suites / folder).glob("*/manifest.ttl")):
            yield from _cases_of(f"{version} {manifest.parent.name}", manifest)


def _cases_of(group: str, manifest: Path) -> Iterator[Case]:
    graph = Graph().parse(manifest)
    for entries in graph.objects(None, MF.entries):
        for entry in Collection(graph, entries):
            yield _case(group, graph, entry)


def _case(group: str, graph: Graph, entry: Node) -> Case:
    (kind,) = (str(each).removeprefix(MF) for each in graph.objects(entry, RDF_TYPE))
    # Some tests of updates have no action.
    action = graph.value(entry, MF.action) or entry
    return Case(
        group,
        str(entry).partition("#")[2],
        kind,
        graph.value(entry, DAWGT.approval) == DAWGT.Approved,
        graph.value(entry, MF.resultCardinality) == MF.LaxCardinality,
        _path(graph.value(action, QT.query)),
        tuple(filter(None, map(_path, graph.objects(action, QT.data)))),
        tuple(filter(None, map(_path, graph.objects(action, QT.graphData)))),
        _path(graph.value(entry, MF.result)),
    )


def _path(iri: Node | None) -> Path | None:
    return None if iri is None else Path(unquote(urlsplit(str(iri)).path))
