"""Small world with catalogs that name only required keys: streams, remotes of each kind, queries.

Queries are data: ``fixtures/defaults/*.rspql``, each after a line ``# name: what it shows``.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from examples.oxigraph import OxigraphServer
from tests.support.json_server import Answer, Asked, serving

FOLDER = Path(__file__).parent.parent / "fixtures" / "defaults"
NS = "http://example.org/"
PREFIX = f"PREFIX : <{NS}>\n"
STREAM = """
[streams.":{name}"]
connector = "{connector}"
options = {options}
[streams.":{name}".mapping]
{format}subject = "http://example.org/user/{{user}}"
time = "t"
[streams.":{name}".mapping.properties]
":mentions" = {{ field = "mentions", datatype = "xsd:integer" }}
":likes" = {{ field = "likes", datatype = "xsd:double" }}
":points" = {{ field = "points", datatype = "xsd:integer" }}
":lang" = {{ field = "lang" }}
":follows" = {{ field = "follows", datatype = "http://example.org/user/{{}}" }}
"""
"""Table of a stream; ``format`` is empty for the connector's first format."""
SERVICE = """
[services.":people"]
{keys}
{mapping}
[services.":people".refresh]
items = {items}
"""
MAPPING = """[services.":people".mapping]
key = "http://example.org/user/{id}"
[services.":people".mapping.properties]
":followers" = { field = "followers", datatype = "xsd:integer" }
":name" = { field = "name" }"""
ITEMS = 50
"""The one number that a catalog must name: more than the users that there are."""
STREAMS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "stream": [
        {"t": 1000, "user": "ann", "mentions": 3, "likes": 0.5, "lang": "en", "follows": "bob"},
        {"t": 2000, "user": "bob", "mentions": 9, "lang": "de", "follows": "cid"},
        {"t": 3000, "user": "cid", "mentions": 1, "likes": 2.5, "lang": "en"},
        {"t": 4500, "user": "ann", "mentions": 8, "likes": 1.5, "follows": "dan"},
        {"t": 5000, "user": "gus", "mentions": 7, "lang": "fr", "follows": "ann"},
        {"t": 5500, "user": "dan", "mentions": 5, "likes": 4.0, "lang": "en", "follows": "eve"},
        {"t": 7000, "user": "bob", "mentions": 2, "likes": 0.25, "follows": "ann"},
        {"t": 8000, "user": "eve", "mentions": 6, "lang": "es"},
        {"t": 9999, "user": "ann", "mentions": 4, "lang": "en", "follows": "bob"},
        {"t": 10000, "user": "cid", "mentions": 10, "likes": 3.5, "follows": "dan"},
        {"t": 11000, "user": "fay", "mentions": 11, "lang": "it", "follows": "ann"},
        {"t": 12500, "user": "dan", "likes": 1.0, "lang": "en", "follows": "gus"},
        {"t": 14000, "user": "bob", "mentions": 12, "lang": "de", "follows": "cid"},
        {"t": 16000, "user": "eve", "mentions": 13, "likes": 6.0, "follows": "bob"},
    ],
    "other": [
        {"t": 1500, "user": "ann", "points": 30},
        {"t": 4000, "user": "cid", "points": 20},
        {"t": 6500, "user": "bob", "points": 40},
        {"t": 8500, "user": "dan", "points": 10},
        {"t": 11500, "user": "fay", "points": 60},
        {"t": 13500, "user": "bob", "points": 5},
        {"t": 15500, "user": "eve", "points": 25},
    ],
}
PEOPLE: Sequence[Mapping[str, Any]] = [
    {"id": "ann", "followers": 100, "name": "Ann"},
    {"id": "bob", "followers": 40, "name": "Bob"},
    {"id": "cid", "followers": 7},
    {"id": "dan", "followers": 55, "name": "Dan"},
    {"id": "eve", "followers": 90, "name": "Eve"},
    {"id": "gus", "name": "Gus"},
    {"id": "zoe", "followers": 1000, "name": "Zoe"},
]
"""Records of the remote: nobody is called fay, cid has no name, gus no followers."""
FRIENDS = [("ann", "bob"), ("ann", "dan"), ("cid", "ann"), ("dan", "eve"), ("gus", "zoe")]
"""What only the SPARQL endpoint has, with several for one user."""


@dataclass(frozen=True)
class Query:
    """A query of the fixtures."""

    name: str
    text: str


def queries(file: str) -> list[Query]:
    """Return the queries of a file, in its order."""
    found = re.findall(
        r"^# (\w+): .+\n((?:(?!# ).*\n?)+)", (FOLDER / f"{file}.rspql").read_text("utf-8"), re.M
    )
    return [Query(name, PREFIX + text) for name, text in found]


def lines(name: str, until_ms: int | None = None) -> bytes:
    """Return a stream's records as lines of JSON, all or those up to a time."""
    records = [each for each in STREAMS[name] if until_ms is None or each["t"] <= until_ms]
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def stream_table(name: str, connector: str, format_: str = "", **options: object) -> str:
    """Return the table of a stream, with a connector's required options."""
    written = ", ".join(f"{key} = {json.dumps(value)}" for key, value in options.items())
    return STREAM.format(name=name, connector=connector, options=f"{{ {written} }}", format=format_)


def service_table(keys: str, *, mapping: str = MAPPING) -> str:
    """Return the table of the service, with the required keys of a kind of remote."""
    return SERVICE.format(keys=keys, mapping=mapping, items=ITEMS)


def catalog_of(*tables: str) -> str:
    """Return a catalog's text."""
    return "".join(['[prefixes]\n"" = "http://example.org/"\n', *tables])


def file_streams(folder: Path) -> str:
    """Write both streams as files of lines, and return their tables."""
    for name in STREAMS:
        (folder / name).write_bytes(lines(name))
    return "".join(stream_table(name, "lines", path=str(folder / name)) for name in STREAMS)


# Remotes ------------------------------------------------------------------------------------------


@dataclass
class Remotes:
    """Tables of the service, one for each kind of remote."""

    folder: Path
    server: OxigraphServer
    url: str

    def table(self, kind: str) -> str:
        """Return the table of one of the ``KINDS``."""
        makers = {
            "sparql": self._sparql,
            "rest": self._rest,
            "rest_by_one": self._rest_by_one,
            "table": self._table,
            "python": self._python,
            "sql": self._sql,
            "push": self._push,
        }
        return makers[kind]()

    def _sparql(self) -> str:
        self.server.update(f"INSERT DATA {{ {people_triples()} }}")
        return service_table(f'endpoint = "{self.server.query_url}"', mapping="")

    def _rest(self) -> str:
        return service_table(f'remote = "rest"\nendpoint = "{self.url}/?ids={{keys}}"')

    def _rest_by_one(self) -> str:
        return service_table(f'remote = "rest"\nendpoint = "{self.url}/?ids={{key}}"')

    def _table(self) -> str:
        file = self.folder / "people.jsonl"
        file.write_text("".join(json.dumps(each) + "\n" for each in PEOPLE), "utf-8")
        return service_table(f'remote = "table"\npath = "{file}"')

    def _python(self) -> str:
        return service_table(f'remote = "python"\nfunction = "{__name__}:looked_up"')

    def _sql(self) -> str:
        file = self.folder / "people.sqlite"
        with closing(sqlite3.connect(file)) as database, database:
            database.execute("CREATE TABLE people (id TEXT, followers INTEGER, name TEXT)")
            rows = [(each["id"], each.get("followers"), each.get("name")) for each in PEOPLE]
            database.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
        return service_table(
            f'remote = "sql"\ndriver = "sqlite3"\nconnection = "{file}"\ntable = "people"'
        )

    def _push(self) -> str:
        file = self.folder / "changes.jsonl"
        file.write_text("".join(json.dumps(each) + "\n" for each in PEOPLE), "utf-8")
        feed = f'[services.":people".feed]\nkind = "lines"\npath = "{file}"\n'
        return service_table('remote = "push"') + feed


CORE = (
    *("all", "top", "limit_no_order", "limit_zero", "offset", "optional", "minus"),
    *("count", "twice", "aggregate_top", "aggregate_all", "construct", "istream_top", "distinct"),
    *("two_windows", "sub_select", "top_sum", "counted_top", "path_plus", "aggregates"),
)
"""Names of queries of different shapes, for what is too slow to run them all."""
KINDS = ("sparql", "rest", "rest_by_one", "table", "python", "sql", "push")


@contextmanager
def remotes(folder: Path, server: OxigraphServer) -> Iterator[Remotes]:
    """Serve the people over HTTP."""
    with serving(_found) as http:
        yield Remotes(folder, server, http.url)


def looked_up(ids: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the people with these ids: the remote that is a Python function."""
    return [each for each in PEOPLE if each["id"] in ids]


def _found(asked: Asked) -> Answer:
    return Answer.json(looked_up(parse_qs(urlsplit(asked.path).query)["ids"][0].split(",")))


def people_triples() -> str:
    """Return the remote's content as N-Triples."""
    said = []
    for each in PEOPLE:
        user = f"<{NS}user/{each['id']}>"
        if "followers" in each:
            said.append(f"{user} <{NS}followers> {each['followers']} .")
        if "name" in each:
            said.append(f'{user} <{NS}name> "{each["name"]}" .')
    for one, other in FRIENDS:
        said.append(f"<{NS}user/{one}> <{NS}friend> <{NS}user/{other}> .")
    return "\n".join(said)
