"""Strategies that a catalog names, for queries that join a remote."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from acquatop import Engine
from acquatop.catalog.catalog import Catalog
from acquatop.plan.bind import bind_query
from acquatop.plan.check import check_query, structure_of
from rspql.diagnostics import QueryError

CATALOG = """
[prefixes]
"" = "http://example.org/"
[streams.":s"]
connector = "lines"
options = {{ path = "events" }}
arrivals = "distinct"
lateness = "300ms"
strategy = "{strategy}"
[streams.":s".mapping]
subject = "http://example.org/e/{{id}}"
time = "t"
properties = {{ ":by" = {{ field = "user", datatype = "http://example.org/user/{{}}" }}, \
":n" = {{ field = "n", datatype = "xsd:integer" }} }}
[services.":people"]
remote = "table"
path = "people.jsonl"
time = "since"
[services.":people".mapping]
key = "http://example.org/user/{{id}}"
properties = {{ ":followers" = {{ field = "followers", datatype = "xsd:integer" }} }}
[services.":people".refresh]
policy = "ALL-LRU"
items = {items}
n = {n}
deadline = "1h"
refill = {refill}
"""
QUERY = """PREFIX : <http://example.org/>
SELECT ?e (?n + ?followers AS ?score)
FROM NAMED WINDOW :w ON :s [RANGE 3s STEP 1s]
WHERE { WINDOW :w { ?e :by ?user ; :n ?n } SERVICE :people { ?user :followers ?followers } }
ORDER BY DESC(?score) LIMIT 4"""


def catalog(
    folder: Path, strategy: str, *, items: int = 3, n: int = 1, refill: str = "false"
) -> Catalog:
    text = CATALOG.format(strategy=strategy, items=items, n=n, refill=refill)
    return Catalog.parse(text, file=folder / "catalog.toml", variables={})


@pytest.fixture
def world(tmp_path: Path) -> Path:
    random = Random(5)
    events = [
        {
            "id": at,
            "t": max(1, at * 25 - random.choice([0, 0, 100])),
            "user": random.randrange(8),
            "n": random.randrange(60),
        }
        for at in range(400)
    ]
    people = [
        {"id": user, "since": since, "followers": random.randrange(50)}
        for user in range(7)
        for since in (0, *random.sample(range(1, 10_000), 3 if user < 2 else 0))
    ]
    for name, rows in (("events", events), ("people.jsonl", people)):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def answered(found: Catalog) -> list[dict[str, Any]]:
    with Engine(found, runtime="local", until_end=True) as engine:
        return [answer.canonical() for answer in engine.register(QUERY)]


@pytest.mark.parametrize("n", [0, 20])
def test_the_sorted_list_is_right_wherever_it_says_so(world: Path, n: int) -> None:
    right = answered(catalog(world, "pane-dominance", items=100, refill="true"))
    found = answered(catalog(world, "super-mtkn-list", items=100, n=n))
    assert len(found) == len(right)
    sure = [at for at, each in enumerate(found) if each["status"] != "approximate"]
    assert len(sure) >= n / 4
    assert [found[at]["results"] for at in sure] == [right[at]["results"] for at in sure]


def test_a_refilled_query_and_a_fixed_list_are_refused_for_a_remote(world: Path) -> None:
    with pytest.raises(QueryError, match="refill = true, which pane-dominance alone can do"):
        bind_query(QUERY, catalog(world, "super-mtkn-list", refill="true"))
    with pytest.raises(QueryError, match="mintopk-list is for scores that never change"):
        bind_query(QUERY, catalog(world, "mintopk-list"))
    found = catalog(world, "super-mtkn-list")
    structure = structure_of(check_query(QUERY, catalog=found), found)
    assert structure is not None
    assert structure["name"] == "super-mtkn-list"
