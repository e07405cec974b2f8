"""Small worlds for queries evaluated per window: a catalog, records, answers by brute force."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyoxigraph as ox

from acquatop.catalog.catalog import Catalog
from acquatop.plan.bind import bind_windowed
from acquatop.plan.bound import BoundWindowed
from acquatop.query.sparql.evaluation import SparqlEvaluation
from acquatop.query.sparql.terms import text_of
from replica.maintainer import Maintainer
from replica.remotes import RemoteError
from replica.spending.account import Account
from replica.spending.quota import Quota
from replica.store import WHOLE, Solution, SolutionStore
from replica.terms import blank_iri
from rspql import ast
from rspql.ast import rewritten
from rspql.compiler import compile_query
from rspql.plan import RemotePart, TopKPlan, WindowedPlan
from rspql.printer import inside_text, query_text
from tests.support.fed import Fed
from tests.support.worlds import NOBODY, NS, with_optional

PREFIX = f"PREFIX : <{NS}>\n"

CATALOG = """
[streams."http://example.org/a"]
connector = "lines"
arrivals = "{arrivals}"
{start}
options = {{ path = "{folder}/a" }}
mapping = {{ subject = "http://example.org/{{s}}", time = "t", properties = {properties} }}
[streams."http://example.org/b"]
connector = "lines"
options = {{ path = "{folder}/b" }}
mapping = {{ subject = "http://example.org/{{s}}", time = "t", properties = {properties} }}
[services."http://example.org/people"]
endpoint = "{endpoint}"
solutions = "many"
{load}
[services."http://example.org/people".refresh]
{policy}
items = {items}
{requests}
{deadline}
{graphs}
"""
_PROPERTIES = (
    '{ "http://example.org/p" = { field = "p", datatype = "xsd:integer" },'
    ' "http://example.org/q" = { field = "q", datatype = "xsd:double" },'
    ' "http://example.org/r" = { field = "r" } }'
)


def catalog(**changes: object) -> Catalog:
    """Return a catalog with two streams and a service, some of its values set."""
    values: dict[str, object] = {
        "arrivals": "all",
        "start": "",
        "folder": "events",
        "endpoint": NOBODY,
        "items": 99,
        "load": "",
        "graphs": "",
        "properties": _PROPERTIES,
    }
    text = CATALOG.format(**with_optional({**values, **changes}))
    return Catalog.parse(text, file=Path("catalog.toml"), variables={})


def plan(text: str) -> WindowedPlan:
    """Return the plan of a query for its evaluation window by window,
    be there a faster one or not.
    """
    found = compile_query(PREFIX + text)
    return found.windowed if isinstance(found, TopKPlan) else found


def bound(text: str, **changes: object) -> BoundWindowed:
    """Return a query bound to a catalog with some of its values set."""
    return bind_windowed(plan(text), catalog(**changes), text=PREFIX + text)


@dataclass(frozen=True)
class Record:
    """Record of a stream, with any of three properties."""

    t: int
    s: str
    p: int | None = None
    q: float | None = None
    r: str | None = None

    def line(self) -> bytes:
        values = {"t": self.t, "s": self.s, "p": self.p, "q": self.q, "r": self.r}
        return json.dumps(
            {name: value for name, value in values.items() if value is not None}
        ).encode()

    def triples(self) -> list[ox.Triple]:
        """Return what the record says."""
        subject = ox.NamedNode(NS + self.s)
        objects = [("p", self.p), ("q", self.q), ("r", self.r)]
        return [
            ox.Triple(subject, ox.NamedNode(NS + name), ox.Literal(each))
            for name, each in objects
            if each is not None
        ]


def batch(bound_query: BoundWindowed, stream: str, records: Iterable[Record]) -> pa.RecordBatch:
    """Return records as the decoder hands them on."""
    mapping = next(each for each in bound_query.streams if each.iri == stream).mapping
    return mapping.decode(pa.array([record.line() for record in records], pa.binary()))


@dataclass
class GraphRemote:
    """In-memory remote over a graph that the test changes; it can be told to fail."""

    part: RemotePart
    data: ox.Store = field(default_factory=ox.Store)
    block_size: int = 2
    failing: bool = False
    asked: list[list[str]] = field(default_factory=list)

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        self.asked.append(list(keys))
        if self.failing:
            raise RemoteError("the graph is out of order")
        found = self._all()
        return (
            found
            if list(keys) == [WHOLE]
            else [each for each in found if each.get(str(self.part.key)) in keys]
        )

    def load(self, timeout: float, may_ask: object = None) -> Iterator[list[Solution]]:
        yield self._all()

    def _all(self) -> list[Solution]:
        results: Any = self.data.query(
            f"SELECT * WHERE {{ {inside_text(self.part.pattern.group)} }}"
        )
        names = [variable.value for variable in results.variables]
        return [
            {name: self._text(row, row[name]) for name in names if row[name] is not None}
            for row in results
        ]

    def _text(self, row: Any, term: Any) -> str:
        owner = text_of(row[self.part.key]) if self.part.key else ""
        return (
            f"<{blank_iri(owner, term.value)}>" if isinstance(term, ox.BlankNode) else text_of(term)
        )


def at_work(
    bound_query: BoundWindowed, data: ox.Store | None = None, *, load: bool = False, **options: Any
) -> tuple[Fed, list[GraphRemote]]:
    """Return a query at work on remotes in memory, which share their data."""
    data = ox.Store() if data is None else data
    remotes = [GraphRemote(remote.part, data) for remote in bound_query.remotes]
    services = {each.service.iri: each.service for each in bound_query.remotes}
    accounts = {
        iri: Account(service.refresh.budget, quota=Quota()) for iri, service in services.items()
    }
    maintainers = [
        Maintainer(
            SolutionStore(each.part.key, each.part.variables), remote, accounts[each.service.iri]
        )
        for each, remote in zip(bound_query.remotes, remotes, strict=True)
    ]
    for maintainer in maintainers if load else ():
        maintainer.load()
    return Fed(SparqlEvaluation(bound_query, maintainers, **options), bound_query), remotes


def content(records: Iterable[Record], opens: int, closes: int, *, latest: bool) -> list[ox.Triple]:
    """Return what the records of a window say,
    of each subject only the newest where that counts.
    """
    inside = [record for record in records if opens < record.t <= closes]
    if latest:
        inside = list({record.s: record for record in sorted(inside, key=_newness)}.values())
    return [triple for record in inside for triple in record.triples()]


def _newness(record: Record) -> tuple[Any, ...]:
    """Order the records of one subject:
    of two of one time the greater terms, any more than none.
    """
    objects = [
        str(ox.Literal(each)) if each is not None else "" for each in (record.p, record.q, record.r)
    ]
    return record.t, objects


def brute_force(
    bound_query: BoundWindowed, contents: Mapping[str, list[ox.Triple]], data: ox.Store
) -> Any:
    """Return the answer over windows built anew, SERVICE answered by all that the remote has."""
    store = ox.Store()
    for window, triples in contents.items():
        graph = ox.NamedNode(window)
        store.add_graph(graph)
        store.extend(
            ox.Quad(triple.subject, triple.predicate, triple.object, graph) for triple in triples
        )
    remote = ox.NamedNode("urn:remote")
    store.extend(ox.Quad(quad.subject, quad.predicate, quad.object, remote) for quad in data)

    def change(node: ast.Node) -> ast.Node:
        return (
            ast.GraphPattern(ast.Iri("urn:remote"), node.group)
            if isinstance(node, ast.ServicePattern)
            else node
        )

    bare = replace(bound_query.plan.query, windows=(), registration=None)
    return store.query(query_text(rewritten(bare, change)))
