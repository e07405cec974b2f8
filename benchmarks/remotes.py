"""Measure joins with remotes and aggregates of every shape, and the same window by window."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from acquatop.catalog.catalog import Catalog
from acquatop.catalog.services import Service
from acquatop.ingest.reduce.job import reduced
from acquatop.plan.bind import bind_query, bind_windowed
from acquatop.plan.bound import BoundQuery
from acquatop.plan.remote_query import RemoteQuery
from acquatop.query.contract import Evaluation, Tick
from acquatop.query.evaluation import TopKEvaluation
from acquatop.query.sparql.evaluation import SparqlEvaluation
from acquatop.refresh.open_remote import Connection
from acquatop.refresh.open_replicas import Replicas
from replica.clocks import Clock
from replica.remotes import MayAsk, Remote, always
from replica.store import Solution

NS = "http://example.org/"
STREAM = NS + "stream"
INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"
CATALOG = """
[prefixes]
"" = "http://example.org/"
[streams.":stream"]
connector = "lines"
arrivals = "distinct"
start_ms = 0
options = { path = "events" }
[streams.":stream".mapping]
subject = "http://example.org/post/{id}"
time = "t"
[streams.":stream".mapping.properties]
":user" = { field = "user", datatype = "http://example.org/user/{}" }
":city" = { field = "city", datatype = "http://example.org/city/{}" }
":m" = { field = "m", datatype = "xsd:integer" }
"""
SERVICE = """
[services.":{name}"]
endpoint = "http://127.0.0.1:9/query"
solutions = "{solutions}"
[services.":{name}".refresh]
items = 30
"""
USERS = "WINDOW :w { ?post :user ?user ; :m ?m }"
BOTH = "WINDOW :w { ?post :user ?user ; :city ?city ; :m ?m }"
GROUPED = "(SUM(?m * ?m) AS ?score)"
GROUPS = {
    "sums of an expression": (USERS, f"?user {GROUPED}", "GROUP BY ?user"),
    "distinct texts": (
        BOTH,
        "?city (COUNT(DISTINCT STRAFTER(STR(?user), '/user/')) AS ?score)",
        "GROUP BY ?city",
    ),
    "groups by an expression": (
        USERS,
        f"?last {GROUPED}",
        "GROUP BY (STRAFTER(STR(?user), '/user/') AS ?last)",
    ),
    "a whole window": (USERS, GROUPED, ""),
    "groups of the join": (
        f"{USERS} SERVICE :a {{ ?user :city ?city }}",
        f"?city {GROUPED}",
        "GROUP BY ?city",
    ),
    "groups of the join, three solutions a key": (
        f"{USERS} SERVICE :three {{ ?user :f ?f }}",
        f"?f {GROUPED}",
        "GROUP BY ?f",
    ),
    "several keys, joined on one": (
        f"{{ SELECT ?user ?city (SUM(?m * ?m) AS ?n) {{ {BOTH} }} GROUP BY ?user ?city }} "
        "SERVICE :a { ?user :f ?f }",
        "?user ?city (?n + ?f AS ?score)",
        "",
    ),
}
"""Queries that aggregate: what they match, select and group by."""
SHAPES = {
    "one solution a key (one)": (USERS, "SERVICE :one { ?user :f ?f }", "?m + ?f"),
    "one solution a key (many)": (USERS, "SERVICE :a { ?user :f ?f }", "?m + ?f"),
    "three solutions a key": (USERS, "SERVICE :three { ?user :f ?f }", "?m + ?f"),
    "two services": (
        USERS,
        "SERVICE :a { ?user :f ?f } SERVICE :b { ?user :g ?g }",
        "?m + ?f + ?g",
    ),
    "two services, different keys": (
        BOTH,
        "SERVICE :a { ?user :f ?f } SERVICE :b { ?city :g ?g }",
        "?m + ?f + ?g",
    ),
    "an optional service": (
        USERS,
        "OPTIONAL { SERVICE :a { ?user :f ?f } }",
        "?m + COALESCE(?f, 0)",
    ),
    "two variables": (BOTH, "SERVICE :a { ?user :f ?f ; :city ?city }", "?m + ?f"),
    "a filter on a text": (
        USERS,
        "SERVICE :a { ?user :f ?f } SERVICE :b { ?user :name ?n } FILTER(REGEX(?n, '7$'))",
        "?m + ?f",
    ),
}
QUERY = """PREFIX : <http://example.org/>
SELECT {select}
FROM NAMED WINDOW :w ON :stream [RANGE {width}ms STEP {slide}ms]
WHERE {{ {where} }} {group}
ORDER BY DESC(?score) LIMIT 10"""
CITIES = 20


class NumberedRemote:
    """Remote in memory whose subjects have numbers; ``each`` is how many values they have."""

    def __init__(self, question: RemoteQuery, each: int, size: int) -> None:
        self.block_size = 1000
        self._question = question
        self._each = each
        self._size = size

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        """Return the values of some subjects, others each time."""
        return [found for key in keys for found in self._of(key)]

    def load(self, timeout: float, may_ask: MayAsk = always) -> Iterator[list[Solution]]:
        """Yield the values of all subjects."""
        kind = self._question.key
        for number in range(self._size if kind == "user" else CITIES):
            yield list(self._of(f"<{NS}{kind}/{number}>"))

    def _of(self, key: str) -> Iterator[Solution]:
        number = int(key.rpartition("/")[2][:-1])
        assert self._question.key is not None
        for at in range(self._each):
            said = {
                "f": f'"{(number * 7919 + at * 101) % 1000}"{INTEGER}',
                "g": f'"{number * 31 % 1000}"{INTEGER}',
                "n": f'"name {number}"',
                "city": f"<{NS}city/{number % CITIES}>",
            }
            names = [name for name in self._question.variables if name in said]
            yield {
                self._question.key: key,
                **{name: said[name] for name in names if name != self._question.key},
            }


@dataclass(frozen=True)
class Took:
    """CPU milliseconds for each window: its slide's events, its refresh and its answer."""

    shape: str
    events: int
    incremental: float
    windowed: float


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench remotes", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--events", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--only", help="shapes with this in their name")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="processor time after which no window is begun"
    )
    options = parser.parse_args()
    console = Console(stderr=options.json)
    found = []
    for events in options.events:
        for shape in (*SHAPES, *GROUPS):
            if options.only is None or options.only in shape:
                with console.status(f"{shape}, {events:,}"):
                    found.append(took(shape, events, options.seconds))
    if options.json:
        print(json.dumps([asdict(each) for each in found]))
    else:
        console.print(table(found))


def took(shape: str, events: int, seconds: float) -> Took:
    """Return what a shape takes in both ways, with windows of so many events.

    Neither way begins another window once it has taken so many seconds.
    """
    if shape in GROUPS:
        where, select, group = GROUPS[shape]
    else:
        window, services, score = SHAPES[shape]
        where, select, group = f"{window} {services}", f"?post ({score} AS ?score)", ""
    text = QUERY.format(where=where, select=select, group=group, width=events, slide=events // 10)
    names = [name for name in ("one", "a", "b", "three") if f"SERVICE :{name} " in where]
    entries = (
        SERVICE.format(name=each, solutions="one" if each == "one" else "many") for each in names
    )
    catalog = Catalog.parse(CATALOG + "".join(entries), file=Path("c.toml"), variables={})
    bound = bind_query(text, catalog)
    assert isinstance(bound, BoundQuery), bound.reason
    whole = bind_windowed(bound.plan.in_digits, catalog, text=text)

    def incremental() -> Evaluation:
        evaluation = TopKEvaluation(bound, _replicas(events).open(bound))
        evaluation.join(bound, {})
        return evaluation

    def windowed() -> Evaluation:
        evaluation = SparqlEvaluation(whole, _replicas(events).open_all(whole))
        evaluation.join(whole, {})
        return evaluation

    closes = (20, 3) if events <= 10_000 else (10, 1)
    return Took(
        shape,
        events,
        _per_close(bound, incremental, events, closes[0], seconds),
        _per_close(bound, windowed, events, closes[1], seconds),
    )


def _replicas(events: int) -> Replicas:
    ticks = iter(range(1 << 60))
    return Replicas(
        open_remote=lambda service, question, client, now, uses_one: _remote(
            service, question, client, now, events
        ),
        now=lambda: float(next(ticks)),
    )


def _remote(
    service: Service, question: RemoteQuery, client: Connection, now: Clock, events: int
) -> Remote:
    each = 3 if service.iri == NS + "three" else 1
    return NumberedRemote(question, each, events // 5)


def _per_close(
    bound: BoundQuery, opened: Callable[[], Evaluation], events: int, closes: int, seconds: float
) -> float:
    """Return the CPU milliseconds of a close, with what comes in before it, of full windows.

    The first full window, whose keys are all new, counts only if it takes all the time there is.
    """
    evaluation, slide = opened(), events // 10
    chance = np.random.default_rng(1)
    spent: list[int] = []
    for number in range(10 + closes):
        if len(spent) >= 10 and sum(spent) > seconds * 1e9:
            break
        records = _records(bound, chance, number * slide, slide, events // 5)
        started = time.process_time_ns()
        parts = list(reduced(records, evaluation.reducers(STREAM)))
        evaluation.add(STREAM, parts, evaluation.names)
        if number >= 9:
            list(evaluation.advance(Tick(STREAM, (number + 1) * slide, 0.0)))
        spent.append(time.process_time_ns() - started)
    evaluation.close()
    measured = spent[10:] or spent[9:]
    return sum(measured) / 1e6 / len(measured)


def _records(
    bound: BoundQuery, chance: np.random.Generator, first: int, count: int, users: int
) -> pa.RecordBatch:
    lines = [
        json.dumps(
            {
                "t": first + at + 1,
                "id": first + at,
                "user": user,
                "city": user % CITIES if user % 2 else (user + 1) % CITIES,
                "m": m,
            }
        ).encode()
        for at, (user, m) in enumerate(
            zip(
                chance.integers(0, users, count).tolist(),
                chance.integers(0, 1000, count).tolist(),
                strict=True,
            )
        )
    ]
    return bound.stream.mapping.records(pa.record_batch([pa.array(lines, pa.binary())], ["value"]))


def table(found: Sequence[Took]) -> Table:
    """Return the measurements as a table."""
    names = ("shape", "events a window", "incremental, ms", "window by window, ms", "times")
    shown = Table(*names, title="CPU of a close, slide/width 1/10")
    for each in found:
        shown.add_row(
            each.shape,
            f"{each.events:,}",
            f"{each.incremental:.1f}",
            f"{each.windowed:.0f}",
            f"{each.windowed / each.incremental:.0f}",
        )
    return shown


if __name__ == "__main__":
    main()
