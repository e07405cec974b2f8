"""Recordings of a stream and of several remotes, and their right answers by a SPARQL engine."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyoxigraph as ox

from acquatop.lab.replay.trace import Trace, open_trace

NS = "http://example.org/"
PREFIX = f"PREFIX : <{NS}>\n"
SERVICE = re.compile(r"SERVICE :(\w+) \{ \?(\w+) ([^{}]*) \}")
END = 30

STREAM = """
[prefixes]
"" = "http://example.org/"
[streams.":stream"]
connector = "lines"
options = { path = "stream.ndjson", maxBytesPerBatch = 600 }
arrivals = "distinct"
start_ms = 0
lateness = "8ms"
[streams.":stream".mapping]
subject = "http://example.org/{id}"
time = "t"
[streams.":stream".mapping.properties]
":user" = { field = "user", datatype = "http://example.org/{}" }
":city" = { field = "city", datatype = "http://example.org/{}" }
":m" = { field = "m", datatype = "xsd:integer" }
"""
TABLE = """
[services.":{name}"]
remote = "table"
path = "{name}.jsonl"
time = "t"
solutions = "many"
{more}
[services.":{name}".mapping]
key = "http://example.org/{{id}}"
[services.":{name}".mapping.properties]
":f" = {{ field = "f", datatype = "xsd:integer" }}
":tool" = {{ field = "tool", datatype = "http://example.org/{{value}}" }}
":city" = {{ field = "city", datatype = "http://example.org/{{value}}" }}
":name" = {{ field = "name" }}
[services.":{name}".refresh]
items = 2
"""
SUBJECTS = [*(f"u{at}" for at in range(4)), *(f"t{at}" for at in range(3)), "c0", "c1"]
HEAD = "FROM NAMED WINDOW :w ON :stream [RANGE 12ms STEP 4ms] WHERE {"
TAIL = "} ORDER BY DESC(?score) LIMIT 3"
USERS = "WINDOW :w { ?e :user ?user ; :city ?city ; :m ?m }"
QUERIES = [
    f"SELECT ?e ?tool ?f (?f - ?m AS ?score) {HEAD} {USERS} "
    f"SERVICE :a {{ ?user :tool ?tool ; :f ?f }} {TAIL}",
    f"SELECT ?e ?f ?g (?f + ?g + ?m AS ?score) {HEAD} {USERS} "
    f"SERVICE :a {{ ?user :f ?f }} SERVICE :b {{ ?city :f ?g }} {TAIL}",
    f"SELECT ?e ?f ?tool (?f + ?m AS ?score) {HEAD} {USERS} "
    f"SERVICE :a {{ ?user :f ?f }} SERVICE :a {{ ?user :tool ?tool }} {TAIL}",
    f"SELECT ?e ?f (?f + ?m AS ?score) {HEAD} {USERS} "
    f"SERVICE :a {{ ?user :f ?f ; :city ?city }} {TAIL}",
    f"SELECT ?e ?tool ?f (?f - ?m AS ?score) {HEAD} {USERS} "
    f"SERVICE :a {{ ?user :tool ?tool }} SERVICE :b {{ ?tool :f ?f }} {TAIL}",
    f"SELECT ?e ?name (?m + COALESCE(STRLEN(?name), 9) AS ?score) {HEAD} {USERS} "
    f"OPTIONAL {{ SERVICE :a {{ ?user :name ?name }} FILTER(?name != 'Ann') }} {TAIL}",
    f"SELECT ?user ?n ?f (?n * ?f + STRLEN(?name) AS ?score) {HEAD} "
    f"{{ SELECT ?user (COUNT(*) AS ?n) WHERE {{ {USERS} }} GROUP BY ?user }} "
    f"SERVICE :a {{ ?user :f ?f }} SERVICE :b {{ ?user :name ?name }} {TAIL}",
]
Record = dict[str, Any]


class Recorded:
    """Stream and remotes that chance has made, in a folder, and a query on them."""

    def __init__(self, folder: Path, query: str, seed: int, more: str = "") -> None:
        chance = random.Random(seed)
        self.query = PREFIX + query
        self.stream = [
            {
                "t": chance.randint(1, END),
                "id": f"e{at}",
                "user": f"u{chance.randint(0, 4)}",
                "city": f"c{chance.randint(0, 1)}",
                "m": chance.randint(0, 5),
            }
            for at in range(chance.randint(1, 40))
        ]
        self.stream.append({"t": END + 12, "id": "last", "user": "u9", "city": "c9", "m": 0})
        self.names = list(dict.fromkeys(found[0] for found in SERVICE.findall(query)))
        self.tables = {name: _statements(chance) for name in self.names}
        for name, rows in self.tables.items():
            _write(folder / f"{name}.jsonl", rows)
        _write(folder / "stream.ndjson", self.stream)
        text = STREAM + "".join(TABLE.format(name=name, more=more) for name in self.names)
        (folder / "catalog.toml").write_text(text, "utf-8")
        self.trace: Trace = open_trace(folder, self.query)

    def right(self, opens_ms: int, closes_ms: int) -> list[tuple[str, float]]:
        """Return the subject and the score of each result of a window, the best score first."""
        graph, store = ox.NamedNode(f"{NS}w"), ox.Store()
        for record in self.stream:
            if opens_ms < record["t"] <= closes_ms:
                subject = ox.NamedNode(NS + record["id"])
                for name in ("user", "city"):
                    said = ox.NamedNode(NS + record[name])
                    store.add(ox.Quad(subject, ox.NamedNode(NS + name), said, graph))
                number = ox.Literal(record["m"])
                store.add(ox.Quad(subject, ox.NamedNode(f"{NS}m"), number, graph))
        text = SERVICE.sub(lambda found: self._values(*found.groups(), closes_ms), self.query)
        text = re.sub(r"FROM NAMED WINDOW :w ON :stream \[[^]]*\]", "", text)
        text = re.sub(r"ORDER BY .*", "", text).replace("WINDOW :w", "GRAPH :w")
        rows: Any = store.query(text)
        first = rows.variables[0].value
        found = [
            (str(row[first]), float(row["score"].value)) for row in rows if row["score"] is not None
        ]
        return sorted(found, key=lambda each: -each[1])

    def _values(self, name: str, key: str, pattern: str, at_ms: int) -> str:
        """Return the solutions of a pattern at a time as a VALUES block."""
        columns = dict(re.findall(r":(\w+) \?(\w+)", pattern))
        rows = (
            " ".join([f"<{NS}{row['id']}>", *(_term(each, row[each]) for each in columns)])
            for row in self._holding(name, at_ms)
            if columns.keys() <= row.keys()
        )
        variables = " ".join(f"?{each}" for each in (key, *columns.values()))
        return f"VALUES ({variables}) {{ {' '.join(f'({row})' for row in dict.fromkeys(rows))} }}"

    def _holding(self, name: str, at_ms: int) -> Iterator[Record]:
        for subject in SUBJECTS:
            rows = [row for row in self.tables[name] if row["id"] == subject and row["t"] <= at_ms]
            newest = max((row["t"] for row in rows), default=0)
            yield from (row for row in rows if row["t"] == newest)


def _statements(chance: random.Random) -> list[Record]:
    """Return what a remote says of its subjects over time, several rows at once among it."""
    rows: list[Record] = []
    for subject in SUBJECTS:
        for at in {0, *(chance.randint(1, END) for _ in range(chance.randint(0, 4)))}:
            several = [_row(chance) for _ in range(chance.choice([0, 1, 1, 2, 3]))]
            rows += ({"t": at, "id": subject, **row} for row in several or [{}])
    return sorted(rows, key=lambda row: row["t"])


def _row(chance: random.Random) -> Record:
    row: Record = {"f": chance.randint(0, 6), "name": chance.choice(["Ann", "Ben", "Carlo"])}
    if chance.random() < 0.9:
        row["tool"] = f"t{chance.randint(0, 3)}"
    if chance.random() < 0.9:
        row["city"] = f"c{chance.randint(0, 1)}"
    return row


def _term(name: str, value: Any) -> str:
    if name in ("tool", "city"):
        return f"<{NS}{value}>"
    return str(ox.Literal(value))


def _write(path: Path, rows: Sequence[Record]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
