"""Queries of many shapes over small worlds, and the answers of a SPARQL engine to each window."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyoxigraph as ox
from rdflib import BNode, Literal, URIRef

from acquatop import Engine, Status
from acquatop.answer.answer import Answer
from acquatop.catalog.catalog import Catalog
from acquatop.engine.handle import RegisteredQuery
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundCounted, BoundQuery

_Row = Mapping[str, Any]
NS = "http://example.org/"
_XSD = "http://www.w3.org/2001/XMLSchema#"
TYPED = {"at": "dateTime", "day": "date", "price": "decimal", "took": "dayTimeDuration"}
"""Datatypes of what records have as texts."""
CATALOG = """[prefixes]
"" = "http://example.org/"

[streams.":posts"]
connector = "lines"
options = {{ path = "posts.ndjson" }}
{arrivals}
{keys}
[streams.":posts".mapping]
subject = "http://example.org/post/{{id}}"
time = "t"
[streams.":posts".mapping.properties]
":by" = {{ field = "by", datatype = "http://example.org/user/{{}}" }}
":city" = {{ field = "city" }}
":n" = {{ field = "n", datatype = "xsd:integer" }}
":x" = {{ field = "x", datatype = "xsd:double" }}
":at" = {{ field = "at", datatype = "xsd:dateTime" }}
":day" = {{ field = "day", datatype = "xsd:date" }}
":price" = {{ field = "price", datatype = "xsd:decimal" }}
":took" = {{ field = "took", datatype = "xsd:dayTimeDuration" }}
":link" = {{ field = "link", datatype = "iri" }}
":any" = {{ field = "any", datatype = ["term"] }}

[graphs.":teams"]
path = "teams.nt"

[services.":people"]
remote = "table"
path = "people.csv"
{time}
[services.":people".mapping]
key = "http://example.org/user/{{user}}"
[services.":people".mapping.properties]
":followers" = {{ field = "followers", datatype = "xsd:integer" }}
":home" = {{ field = "home" }}
[services.":people".refresh]
items = {items}
"""


@dataclass(frozen=True)
class ShapedQuery:
    """Query in pieces: one text for the engine, and another in plain SPARQL.

    ``groups`` are the SELECT and the key of the plain text, if it needs a sub-query for its groups.
    With ``may_lack``, solutions without the first key are results, too.
    """

    select: str
    where: str
    keys: tuple[str, ...]
    k: int = 3
    offset: int = 0
    window: str = "RANGE 10ms STEP 4ms"
    group: str = ""
    groups: tuple[str, str] | None = None
    per: tuple[str, ...] = ()
    ties: bool = False
    may_lack: bool = False

    @property
    def text(self) -> str:
        """The query, with a window."""
        return (
            f"SELECT {self.select} FROM NAMED WINDOW :w ON :posts [{self.window}] {self._graphs} "
            f"WHERE {{ {self.where} }} {self.group} ORDER BY {' '.join(self.keys)} "
            f"LIMIT {self.k} {self.cut} OFFSET {self.offset}"
        )

    @property
    def _graphs(self) -> str:
        return "FROM NAMED :teams" if "GRAPH :teams" in self.where else ""

    @property
    def cut(self) -> str:
        """Part of the query behind the LIMIT."""
        per = f"PER {' '.join(f'?{each}' for each in self.per)} " if self.per else ""
        return per + ("WITH TIES" if self.ties else "")

    def cut_of(self, rows: Sequence[_Row], keys: Sequence[str]) -> list[_Row]:
        """Return those of all rows, in order, that are within the limit of their group."""
        right = []
        for at, row in enumerate(rows):
            before = [each for each in rows[:at] if self.group_of(each) == self.group_of(row)]
            better = [each for each in before if _keys(each, keys) != _keys(row, keys)]
            first = len(better) if self.ties else len(before)
            if self.offset <= len(before) and first < self.offset + self.k:
                right.append(row)
        return right

    def group_of(self, row: _Row) -> object:
        """Return what is equal in the rows of a group."""
        return tuple(value_of(row[name]) if name in row else None for name in self.per)

    @property
    def plain(self) -> str:
        """All results in their order, and what they are ordered by."""
        where = self.where.replace("WINDOW :w", "GRAPH :w").replace("SERVICE", "GRAPH")
        if self.groups is not None:
            select, key = self.groups
            inner = f"SELECT {select} ({key} AS ?key0) WHERE {{ {where} }} {self.group}"
            (order,) = self.keys
            order = f"{'DESC' if order.startswith('DESC') else 'ASC'}(?key0)"
            return (
                f"PREFIX : <{NS}> SELECT * WHERE {{ {{ {inner} }} BIND(?a * 2 AS ?b) }} "
                f"ORDER BY {order}"
            )
        is_named = "DISTINCT" in self.select or self.group
        further = "" if is_named else " ".join(self._keys())
        return (
            f"PREFIX : <{NS}> SELECT {self.select} {further} WHERE {{ {where} }} {self.group} "
            f"ORDER BY {' '.join(self.keys)}"
        )

    @property
    def names(self) -> list[str]:
        """Variables that the keys name; results are compared by them if there are no others."""
        return re.findall(r"\?(\w+)", " ".join(self.keys))

    def _keys(self) -> Iterator[str]:
        for number, key in enumerate(self.keys):
            yield f"({key.removeprefix('DESC').removeprefix('ASC')} AS ?key{number})"


@dataclass(frozen=True)
class World:
    """Content of a stream and a remote. Values of the remote never change.

    ``teams`` are in a static graph.
    """

    posts: Sequence[Mapping[str, Any]]
    people: Sequence[Mapping[str, Any]] = ()
    arrivals: str | None = None
    items: int = 1000
    keys: str | None = None
    teams: Sequence[Mapping[str, Any]] = ()

    def write(self, folder: Path) -> Catalog:
        """Write the files, and return the catalog that names them."""
        lines = "".join(json.dumps(each) + "\n" for each in self.posts)
        (folder / "posts.ndjson").write_text(lines, "utf-8")
        with (folder / "people.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, ["since", "user", "followers", "home"])
            writer.writeheader()
            writer.writerows({"since": 0, **each} for each in self.people)
        teams = ox.Store()
        for each in self.teams:
            _say(teams, "teams", f"user/{each['user']}", each)
        teams.dump(
            folder / "teams.nt", ox.RdfFormat.N_TRIPLES, from_graph=ox.NamedNode(NS + "teams")
        )
        text = CATALOG.format(
            arrivals="" if self.arrivals is None else f'arrivals = "{self.arrivals}"',
            keys="" if self.keys is None else f'keys = "{self.keys}"',
            time='time = "since"' if self.items < len(self.people) else "",
            items=self.items,
        )
        return Catalog.parse(text, file=folder / "catalog.toml", variables={})

    def store(self, records: Sequence[Mapping[str, Any]]) -> ox.Store:
        """Return the graph of a window with some records, beside that of the remote."""
        if self.arrivals == "latest":
            ordered = sorted(records, key=lambda each: each["t"])
            records = list({each["id"]: each for each in ordered}.values())
        store = ox.Store()
        for record in records:
            _say(store, "w", f"post/{record['id']}", record)
        for each in self.people:
            _say(store, "people", f"user/{each['user']}", each)
        for each in self.teams:
            _say(store, "teams", f"user/{each['user']}", each)
        return store

    def inside(self, query: ShapedQuery, answer: Answer) -> Sequence[Mapping[str, Any]]:
        """Return the records of the window that an answer is of."""
        kind, width, _, step = query.window.replace("ms", "").split()
        if kind == "RANGE":
            opens, closes = answer.opens_ms, answer.closes_ms
            return [each for each in self.posts if opens < each["t"] <= closes]
        last = (answer.window + 1) * int(step)
        ordered = sorted(self.posts, key=lambda each: each["t"])
        return ordered[max(0, last - int(width)) : last]


def _say(store: ox.Store, graph: str, subject: str, record: Mapping[str, Any]) -> None:
    for name, value in record.items():
        if value is None or name in ("t", "id", "user", "since"):
            continue
        said: ox.NamedNode | ox.Literal = ox.Literal(value)
        if name == "by":
            said = ox.NamedNode(f"{NS}user/{value}")
        elif name == "link":
            said = ox.NamedNode(value)
        elif name == "any":
            said = _read(value)
        elif name in TYPED:
            said = ox.Literal(value, datatype=ox.NamedNode(_XSD + TYPED[name]))
        place = ox.NamedNode(NS + graph)
        store.add(ox.Quad(ox.NamedNode(NS + subject), ox.NamedNode(NS + name), said, place))


def _read(term: str) -> ox.NamedNode | ox.Literal:
    """Return the term of an N-Triples text."""
    (triple,) = ox.parse(f"<urn:s> <urn:p> {term} .", format=ox.RdfFormat.N_TRIPLES)
    said = triple.object
    assert isinstance(said, ox.NamedNode | ox.Literal)
    return said


@dataclass
class Judged:
    """Answers of queries that ran together, and what is wrong with them."""

    problems: list[str] = field(default_factory=list)
    incremental: list[bool] = field(default_factory=list)
    statuses: Counter[Status] = field(default_factory=Counter)


def run(world: World, queries: Sequence[ShapedQuery], folder: Path, **options: Any) -> Judged:
    """Run queries together with the defaults of all else, and judge each answer."""
    catalog = world.write(folder)
    judged = Judged()
    with Engine(
        catalog,
        **{"runtime": "local", **options},
        until_end=True,
        autostart=False,
        clock=lambda: 0.0,
    ) as engine:
        running = [
            engine.register(query.text, name=f"q{number}") for number, query in enumerate(queries)
        ]
        engine.start()
        for query, handle in zip(queries, running, strict=True):
            _judge(world, query, handle, judged)
    for query in queries:
        bound = bind_query(query.text, catalog)
        inner = bound.query if isinstance(bound, BoundCounted) else bound
        judged.incremental.append(isinstance(inner, BoundQuery))
    return judged


def _judge(world: World, query: ShapedQuery, handle: RegisteredQuery, judged: Judged) -> None:
    for answer in handle:
        judged.statuses[answer.status] += 1
        if answer.status is not Status.APPROXIMATE:
            problem = wrong_with(world, query, answer)
            if problem:
                judged.problems.append(f"{query.text}\nat {answer.closes_ms}: {problem}")


def wrong_with(world: World, query: ShapedQuery, answer: Answer) -> str:
    """Return what is wrong with an answer that is said to be right; nothing if it is."""
    results: Any = world.store(world.inside(query, answer)).query(query.plain)
    names = [variable.value for variable in results.variables]
    rows = [{name: row[name] for name in names if row[name] is not None} for row in results]
    # Solutions without a score are no results.
    everything = [
        row
        for row in rows
        if "key0" not in names
        or (query.may_lack if "key0" not in row else getattr(row["key0"], "value", "") != "NaN")
    ]
    keys = [name for name in names if name.startswith("key")] or query.names
    right = query.cut_of(everything, keys)
    shown = [{name: value_of(term) for name, term in row.bindings.items()} for row in answer.rows]
    possible = [_without(row, keys if "key0" in names else ()) for row in everything]
    if len(shown) != len(right):
        return f"{len(shown)} rows, not {len(right)}: {shown}, not {right}"
    if Counter(map(_frozen, shown)) - Counter(map(_frozen, possible)):
        return f"{shown} are not among {possible}"
    by_row: dict[frozenset[tuple[str, object]], list[object]] = {}
    for row, plain in zip(everything, possible, strict=True):
        by_row.setdefault(_frozen(plain), []).append(_keys(row, keys))
    for at, row in enumerate(shown):
        if _keys(right[at], keys) not in by_row[_frozen(row)]:
            return f"{row} is not at its place {at}: {shown}, not {right}"
    if Counter(map(query.group_of, right)) != Counter(
        query.group_of(row.bindings) for row in answer.rows
    ):
        return f"{shown} are of other groups than {right}"
    return ""


def _keys(row: Mapping[str, Any], names: Sequence[str]) -> object:
    return tuple(value_of(row[name]) if name in row else None for name in names)


def _without(row: Mapping[str, Any], names: Sequence[str]) -> dict[str, object]:
    return {name: value_of(term) for name, term in row.items() if name not in names}


def _frozen(row: Mapping[str, object]) -> frozenset[tuple[str, object]]:
    return frozenset(row.items())


def value_of(term: Any) -> object:
    """Return a term of rdflib or of pyoxigraph as what can be compared."""
    if isinstance(term, URIRef | ox.NamedNode):
        return "iri", str(term).strip("<>")
    if isinstance(term, BNode | ox.BlankNode):
        return "blank"
    text = str(term) if isinstance(term, Literal) else term.value
    datatype = str(term.datatype or "").strip("<>").removeprefix(_XSD) or "string"
    if datatype in ("integer", "decimal"):
        return Decimal(text), datatype
    if datatype == "double":
        return float(text), datatype
    return text, "string" if term.language else datatype, term.language
