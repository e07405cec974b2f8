"""Small worlds for tests: catalog texts, events, an in-memory remote, answers by brute force."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from acquatop.catalog.catalog import Catalog
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundQuery
from replica.budget import Budget
from replica.maintainer import Maintainer
from replica.remotes import RemoteError
from replica.store import ReplicaStore, Solution
from tests.support.single_query import ContinuousQuery

NS = "http://example.org/"
STREAM = NS + "stream"
XSD = "http://www.w3.org/2001/XMLSchema#"

QUERY = """
PREFIX : <http://example.org/>
SELECT ?user ?mentions ?followers ({score} AS ?score)
FROM NAMED WINDOW :w ON :stream [RANGE {width}ms STEP {slide}ms]
WHERE {{ WINDOW :w {{ ?user :mentions ?mentions }}
        SERVICE :people {{ ?user :followers ?followers }} }}
ORDER BY {direction}(?score) LIMIT {k}
"""

CATALOG = """
[streams."http://example.org/stream"]
connector = "lines"
arrivals = "{arrivals}"
{start}
[streams."http://example.org/stream".options]
path = "{path}"{options}
[streams."http://example.org/stream".mapping]
subject = "http://example.org/user/{{user}}"
time = "t"
[streams."http://example.org/stream".mapping.properties]
"http://example.org/mentions" = {{ field = "mentions", datatype = "xsd:integer" }}
[services."http://example.org/people"]
endpoint = "{endpoint}"
{service}
[services."http://example.org/people".refresh]
{policy}
n = {n}
{refill}
items = {items}
{requests}
{deadline}
"""
_OPTIONAL = ("policy", "refill", "requests", "deadline")
"""Keys that a catalog has only if a test sets them."""
NOBODY = "http://127.0.0.1:9/query"
"""Endpoint of tests whose remote is in memory."""
_OF_A_SERVER = """
deadline = "5s"
"""


def catalog_text(**changes: object) -> str:
    """Return a catalog's text, with some of its values set."""
    values: dict[str, object] = {
        "arrivals": "latest",
        "start": "",
        "path": "events",
        "options": "",
        "endpoint": NOBODY,
        "service": "",
        "n": 2,
        "items": 3,
    }
    return CATALOG.format(**with_optional({**values, **changes}))


def with_optional(values: Mapping[str, object]) -> dict[str, object]:
    """Return a catalog's values with a line for each of the keys that may be left out."""
    lines = {name: _line(name, values.get(name)) for name in _OPTIONAL}
    if values.get("endpoint", NOBODY) != NOBODY and not lines["deadline"]:
        lines["deadline"] = _OF_A_SERVER
    return {**values, **lines}


def _line(name: str, value: object) -> str:
    """Return a line of a catalog; none for None, which is the default."""
    if value is None:
        return ""
    quoted = isinstance(value, str) and value not in ("true", "false")
    return f'{name} = "{value}"' if quoted else f"{name} = {value}"


def query_text(**changes: object) -> str:
    """Return a query's text, with some of its values set."""
    values: dict[str, object] = {
        "score": "2 * ?mentions + ?followers",
        "width": 9,
        "slide": 3,
        "direction": "DESC",
        "k": 2,
    }
    return QUERY.format(**{**values, **changes})


def bound(query: str, catalog: str) -> BoundQuery:
    """Return a query bound to a catalog, both given as text."""
    found = bind_query(query, Catalog.parse(catalog, file=Path("catalog.toml"), variables={}))
    assert isinstance(found, BoundQuery), "a top-k query is evaluated incrementally"
    return found


@dataclass(frozen=True)
class Event:
    """Event of a stream; without mentions it says that the user has none any more."""

    t: int
    user: str
    mentions: int | None

    def line(self) -> bytes:
        record = {"t": self.t, "user": self.user, "mentions": self.mentions}
        return json.dumps(
            {name: value for name, value in record.items() if value is not None}
        ).encode()


def user_term(user: str) -> str:
    return f"<{NS}user/{user}>"


def integer(value: int) -> str:
    return f'"{value}"^^<{XSD}integer>'


@dataclass
class TableRemote:
    """In-memory remote with a table that the test changes; it can be told to fail."""

    followers: dict[str, int] = field(default_factory=dict)
    block_size: int = 2
    failing: bool = False
    asked: list[list[str]] = field(default_factory=list)

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        self.asked.append(list(keys))
        if self.failing:
            raise RemoteError("the table is out of order")
        rows = {user_term(user): count for user, count in self.followers.items()}
        return [{"user": key, "followers": integer(rows[key])} for key in keys if key in rows]

    def load(self, timeout: float, may_ask: object = None) -> Iterator[list[Solution]]:
        yield [
            {"user": user_term(user), "followers": integer(count)}
            for user, count in self.followers.items()
        ]


def continuous(
    bound_query: BoundQuery, remote: TableRemote, budget: Budget | None = None
) -> ContinuousQuery:
    """Return a query at work on a remote in memory, its replica still empty."""
    assert bound_query.service is not None
    store = ReplicaStore("user", ["user", "followers"])
    return ContinuousQuery(
        bound_query, Maintainer(store, remote, budget or bound_query.service.refresh.budget)
    )


def records(bound_query: BoundQuery, events: Iterable[Event]) -> pa.RecordBatch:
    """Return events as the decoder hands them on."""
    return bound_query.stream.mapping.records(
        pa.record_batch([pa.array([event.line() for event in events], pa.binary())], ["value"])
    )


def solutions_in(
    events: Iterable[Event], opens: int, closes: int, *, latest: bool
) -> dict[tuple[str, int], int]:
    """Return a window's solutions of the stream's pattern,
    with the time of the newest event behind each.
    """
    inside = sorted(
        (event for event in events if opens < event.t <= closes), key=lambda each: each.t
    )
    if latest:
        # Of two events of one time, the one whose term is the greater text counts.
        # and one with mentions counts more than one without.
        newest = {
            event.user: event
            for event in sorted(inside, key=lambda each: (each.t, _greatness(each)))
        }
        inside = list(newest.values())
    return {(event.user, event.mentions): event.t for event in inside if event.mentions is not None}


def _greatness(event: Event) -> str:
    return "" if event.mentions is None else integer(event.mentions)


def brute_force(
    events: Iterable[Event],
    opens: int,
    closes: int,
    followers: dict[str, int],
    *,
    k: int,
    latest: bool,
    sign: int,
) -> list[tuple[str, int, int]]:
    """Return the right answer by sorting everything:
    (user, mentions, score) by the one total order.
    """
    rows = [
        (-(2 * mentions + sign * followers[user]), -time, user, mentions)
        for (user, mentions), time in solutions_in(events, opens, closes, latest=latest).items()
        if user in followers
    ]

    def identity(user: str, mentions: int) -> str:
        return user_term(user) if latest else f"{user_term(user)} {integer(mentions)}"

    rows.sort(key=lambda row: (row[0], row[1], identity(row[2], row[3])))
    return [(user, mentions, -sign * rank) for rank, _, user, mentions in rows[:k]]
