"""Answers whose scores join a stream with decimals of a remote, against exact arithmetic."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from acquatop.answer.answer import Answer, Status
from acquatop.catalog.catalog import Catalog
from acquatop.engine.engine import Engine
from acquatop.query.exactness import REASON
from examples.oxigraph import OxigraphServer
from rspql.ast import XSD
from rspql.scoring.exact import text_of
from tests.support.json_server import Answer as Reply
from tests.support.json_server import serving

NS = "http://example.org/"
USERS = [f"u{at}" for at in range(12)]
CATALOG = """
[prefixes]
"" = "http://example.org/"
[streams.":s"]
connector = "lines"
options = {{ path = "events" }}
arrivals = "{arrivals}"
lateness = "60s"
[streams.":s".mapping]
subject = "http://example.org/{{id}}"
time = "t"
[streams.":s".mapping.properties]
":by" = {{ field = "by", datatype = "http://example.org/{{}}" }}
":a" = {{ field = "a", datatype = "xsd:integer" }}
[services.":p"]
{service}
[services.":p".refresh]
items = 20
{options}
"""
MAPPING = """
[services.":p".mapping]
key = "http://example.org/{{user}}"
[services.":p".mapping.properties]
":v" = {{ field = "v", datatype = "xsd:{datatype}" }}
":w" = {{ field = "w", datatype = "xsd:{datatype}" }}
"""


@dataclass(frozen=True)
class Event:
    """A record: its subject, its second, who it is by, and a number."""

    name: str
    second: int
    by: str
    a: int


Values = Mapping[str, tuple[str, str]]
"""The texts of a user's decimals."""
Exactly = Callable[[Event, Fraction, Fraction], Fraction]


@dataclass(frozen=True)
class Score:
    """A score, the pattern that it needs, and the same in exact arithmetic."""

    text: str
    pattern: str
    exactly: Exactly


SCORES = {
    # In doubles 0.1 + 0.2 is more than 0.3.
    "sum": Score("?v + ?w", "?e :by ?user", lambda _e, v, w: v + w),
    "weights": Score(
        "0.1 * ?a + 0.3 * ?v", "?e :by ?user ; :a ?a", lambda e, v, w: e.a * t(1) + v * t(3)
    ),
    "norms": Score(
        "0.7 * norm(?a, 0, 30) + 0.3 * norm(?v, 0, 0.7)",
        "?e :by ?user ; :a ?a",
        lambda e, v, w: t(7) * within(Fraction(e.a, 30)) + t(3) * within(v / t(7)),
    ),
    "quotient": Score("?a / (?v + 1)", "?e :by ?user ; :a ?a", lambda e, v, w: e.a / (v + 1)),
}


def t(tenths: int) -> Fraction:
    return Fraction(tenths, 10)


def within(share: Fraction) -> Fraction:
    return min(Fraction(1), max(Fraction(0), share))


def a_world(seed: int, arrivals: str) -> tuple[list[Event], Values]:
    """Return events and values with many equal scores; subjects recur unless they are distinct."""
    chance = random.Random(seed)
    names = 60 if arrivals == "distinct" else 25
    events = [
        Event(
            f"e{at if arrivals == 'distinct' else chance.randrange(names)}",
            at,
            chance.choice(USERS),
            chance.randrange(-3, 34),
        )
        for at in range(1, 60)
    ]
    return events, {
        user: (f"0.{chance.randrange(10)}", f"0.{chance.randrange(30):02}") for user in USERS
    }


def oracle(
    events: Sequence[Event], values: Values, score: Score, arrivals: str, k: int
) -> list[list[tuple[str, str]]]:
    """Return the best k of each window of ten seconds, each with its score."""
    found = []
    for _, window in groupby(events, key=lambda each: (each.second - 1) // 10):
        newest = {
            (each.name, each.by if arrivals == "all" else ""): each for each in window
        }.values()
        scored = [(score.exactly(each, *map(Fraction, values[each.by])), each) for each in newest]
        scored.sort(key=lambda pair: (pair[0], pair[1].second), reverse=True)
        found.append([(each.name, text_of(value)) for value, each in scored[:k]])
    return found


# Remotes --------------------------------------------------------------------------------------


Remote = Callable[[Path, Values, OxigraphServer], AbstractContextManager[str]]
"""A remote with values, as the lines of a catalog."""


def a_table(folder: Path, values: Values, datatype: str) -> str:
    lines = [f"{user},{v},{w}" for user, (v, w) in values.items()]
    (folder / "p.csv").write_text("\n".join(["user,v,w", *lines, ""]), "utf-8")
    return 'remote = "table"\npath = "p.csv"' + MAPPING.format(datatype=datatype)


@contextmanager
def table(folder: Path, values: Values, _: OxigraphServer) -> Iterator[str]:
    yield a_table(folder, values, "decimal")


@contextmanager
def rest(folder: Path, values: Values, _: OxigraphServer) -> Iterator[str]:
    def reply(asked: object) -> Reply:
        # Numbers as they are written: a double would have lost none of these digits.
        rows = (f'{{"user": "{user}", "v": {v}, "w": {w}}}' for user, (v, w) in values.items())
        return Reply(f"[{', '.join(rows)}]".encode())

    with serving(reply) as remote:
        yield f'remote = "rest"\nendpoint = "{remote.url}/?ids={{keys}}"' + MAPPING.format(
            datatype="decimal"
        )


@contextmanager
def sparql(folder: Path, values: Values, server: OxigraphServer) -> Iterator[str]:
    rows = (f"<{NS}{user}> <{NS}v> {v} ; <{NS}w> {w} ." for user, (v, w) in values.items())
    server.update(f"INSERT DATA {{ {' '.join(rows)} }}")
    yield f'remote = "sparql"\nendpoint = "{server.query_url}"'


def answers(
    folder: Path,
    service: str,
    arrivals: str,
    score: Score,
    events: Sequence[Event],
    *,
    options: str = "",
    spark: SparkSession | None = None,
) -> list[Answer]:
    """Return the answers in a world whose events are in two partitions."""
    (folder / "events").mkdir()
    for part in range(2):
        lines = (
            json.dumps({"id": each.name, "t": 1000 * each.second, "by": each.by, "a": each.a})
            for each in events[part::2]
        )
        (folder / "events" / f"{part}.ndjson").write_text("\n".join([*lines, ""]), "utf-8")
    catalog = CATALOG.format(arrivals=arrivals, service=service, options=options)
    (folder / "catalog.toml").write_text(catalog, "utf-8")
    query = (
        f"SELECT ?e ({score.text} AS ?score) FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 10s] WHERE "
        f"{{ WINDOW :w {{ {score.pattern} }} SERVICE :p {{ ?user :v ?v ; :w ?w }} }} "
        "ORDER BY DESC(?score) LIMIT 3"
    )
    with Engine(
        Catalog.load(folder / "catalog.toml"),
        runtime="local" if spark is None else "spark",
        spark=spark,
        until_end=True,
        autostart=False,
        clock=lambda: 0.0,
    ) as engine:
        handle = engine.register(query)
        engine.start()
        return list(handle)


def shown(answer: Answer) -> list[tuple[str, str]]:
    return [
        (str(row.bindings["e"]).removeprefix(NS), str(row.bindings["score"])) for row in answer.rows
    ]


@pytest.mark.parametrize("remote", [table, rest, sparql])
@pytest.mark.parametrize(
    ("arrivals", "score"),
    [
        ("all", "sum"),
        *((arrivals, score) for arrivals in ("latest", "distinct") for score in SCORES),
    ],
)
def test_the_best_are_those_of_exact_arithmetic(
    tmp_path: Path, remote: Remote, arrivals: str, score: str, server: OxigraphServer
) -> None:
    events, values = a_world(7, arrivals)
    with remote(tmp_path, values, server) as service:
        found = answers(tmp_path, service, arrivals, SCORES[score], events)
    expected = oracle(events, values, SCORES[score], arrivals, 3)
    assert [shown(answer) for answer in found] == expected
    assert {answer.status for answer in found} == {Status.EXACT}


def test_the_best_are_those_of_exact_arithmetic_when_windows_are_refilled(tmp_path: Path) -> None:
    events, values = a_world(8, "latest")
    found = answers(
        tmp_path,
        a_table(tmp_path, values, "decimal"),
        "latest",
        SCORES["weights"],
        events,
        options='n = "auto"',
    )
    expected = oracle(events, values, SCORES["weights"], "latest", 3)
    assert [shown(answer) for answer in found] == expected


def test_the_best_are_those_of_exact_arithmetic_on_spark(
    tmp_path: Path, spark: SparkSession
) -> None:
    events, values = a_world(9, "distinct")
    service = a_table(tmp_path, values, "decimal")
    found = answers(tmp_path, service, "distinct", SCORES["norms"], events, spark=spark)
    expected = oracle(events, values, SCORES["norms"], "distinct", 3)
    assert [shown(answer) for answer in found] == expected


def test_scores_of_doubles_are_exact(tmp_path: Path) -> None:
    events, values = a_world(10, "distinct")
    service = a_table(tmp_path, values, "double")
    found = answers(tmp_path, service, "distinct", SCORES["weights"], events)
    assert {answer.status for answer in found} == {Status.EXACT}


def test_scores_of_floats_are_approximate(tmp_path: Path, server: OxigraphServer) -> None:
    events, values = a_world(10, "distinct")
    floats = {
        user: (f'"{v}"^^<{XSD}float>', f'"{w}"^^<{XSD}float>') for user, (v, w) in values.items()
    }
    with sparql(tmp_path, floats, server) as service:
        found = answers(tmp_path, service, "distinct", SCORES["weights"], events)
    assert {answer.reason for answer in found} == {REASON}
