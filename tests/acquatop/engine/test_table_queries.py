"""Queries without a window, on real servers: at a pace, on change, shared, killed and gone on."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest

from acquatop import Answer, Engine, Status
from acquatop.app.cli import main
from acquatop.app.serve.service import QueryService
from acquatop.catalog.catalog import Catalog
from acquatop.errors import UserError
from acquatop.lab.record.recording import Recording
from examples.oxigraph import OxigraphServer
from tests.support import waiting

NS = "http://e/"
SPARQL = 'endpoint = "{endpoint}"\n'
FEED = '[services.":market".feed]\nkind = "lines"\npath = "feed.jsonl"\n'
CATALOG = """
[prefixes]
"" = "http://e/"
[services.":market"]
SOURCE
[services.":market".mapping]
key = "http://e/{id}"
properties = { ":price" = { field = "price", datatype = "xsd:integer" } }
[services.":market".refresh]
items = 50
"""
MOST = 600
"""Answers within which a change has to show: a minute at least."""


def query(name: str, k: int, every: str = "COMPUTED EVERY 100ms") -> str:
    return (
        f"PREFIX : <http://e/> REGISTER STREAM :{name} {every} AS SELECT ?s ?p "
        f"WHERE {{ SERVICE :market {{ ?s :price ?p }} }} ORDER BY DESC(?p) LIMIT {k}"
    )


class Market:
    """Prices at an endpoint, and a feed of their changes beside a catalog."""

    def __init__(self, server: OxigraphServer, folder: Path) -> None:
        self.server, self.prices = server, dict[str, int]()
        self.feed, self.catalog = folder / "feed.jsonl", folder / "catalog.toml"
        self.feed.write_text("")
        self.describe(SPARQL.format(endpoint=server.query_url), FEED)

    def describe(self, source: str, more: str = "") -> None:
        self.catalog.write_text(CATALOG.replace("SOURCE", source) + more)

    def change(self, prices: Mapping[str, int], *, silently: bool = False) -> None:
        self.prices.update(prices)
        subjects = " ".join(f"<{NS}{each}>" for each in prices)
        now = " ".join(f"<{NS}{each}> <{NS}price> {price} ." for each, price in prices.items())
        self.server.update(
            f"DELETE {{ ?s <{NS}price> ?old }} INSERT {{ {now} }} "
            f"WHERE {{ VALUES ?s {{ {subjects} }} OPTIONAL {{ ?s <{NS}price> ?old }} }}"
        )
        lines = (json.dumps({"id": each, "price": price}) for each, price in prices.items())
        if not silently:
            with self.feed.open("a") as feed:
                feed.write("".join(f"{line}\n" for line in lines))

    def best(self, k: int) -> list[str]:
        ranked = sorted(self.prices, key=lambda each: (-self.prices[each], each))
        return [f"{NS}{each}" for each in ranked[:k]]


@pytest.fixture
def market(server: OxigraphServer, tmp_path: Path) -> Market:
    market = Market(server, tmp_path)
    market.change({f"s{at:02}": at for at in range(40)}, silently=True)
    return market


def subjects(answer: Answer) -> list[str]:
    return [str(row.bindings["s"]) for row in answer.rows]


def until(answers: Iterator[Answer], right: list[str]) -> list[Answer]:
    """Return the answers up to the first that is right; there must be one."""
    found: list[Answer] = []
    for answer in islice(answers, MOST):
        found.append(answer)
        if subjects(answer) == right:
            return found
    raise AssertionError(f"none of {len(found)} answers is {right}: {found[-1:]}")


def test_a_feed_keeps_the_best_of_an_endpoint(market: Market) -> None:
    with Engine.from_catalog(market.catalog, runtime="local") as engine:
        every = engine.register(query("every", 3))
        changed = engine.register(query("changed", 5, ""))
        answers, changes = every.answers(), changed.answers()
        seen = until(answers, market.best(3))
        news = until(changes, market.best(5))
        market.change({"s39": -1, "s07": 100})
        seen += until(answers, market.best(3))
        news += until(changes, market.best(5))
        assert {each.status for each in seen} == {Status.EXACT}
        assert all(after.closes_ms > before.closes_ms for before, after in pairwise(seen))
        assert [subjects(each) for each in news[:1] + news[-1:]] == [
            [f"{NS}s{at}" for at in (39, 38, 37, 36, 35)],
            market.best(5),
        ]
        # One request has filled the view of both; both look at what the feed says.
        spent = [each.spending for each in (*seen, *news)]
        assert sum(each.requests for each in spent) == 1
        changed.stop()
        market.change({"s00": 200})
        seen = until(answers, market.best(3))
        assert seen[-1].status is Status.EXACT


def test_without_a_feed_the_best_are_asked_for_each_time(market: Market) -> None:
    market.describe(SPARQL.format(endpoint=market.server.query_url))
    with Engine.from_catalog(market.catalog, runtime="local") as engine:
        answers = engine.register(query("every", 3)).answers()
        until(answers, market.best(3))
        market.change({"s00": 100})
        seen = until(answers, market.best(3))
        assert all(each.spending.requests == 1 for each in seen)
        assert seen[-1].status is Status.EXACT


def test_a_database_is_asked_in_its_own_order(market: Market, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "market.sqlite") as database:
        database.execute("CREATE TABLE market (id TEXT, price INTEGER)")
        rows = [*market.prices.items(), ("none", None)]
        database.executemany("INSERT INTO market VALUES (?, ?)", rows)
    market.describe(
        'remote = "sql"\ndriver = "sqlite3"\nconnection = "market.sqlite"\ntable = "market"\n'
    )
    text = query("every", 3).replace("?s :price ?p }", "?s :price ?p FILTER(2 * ?p < 70) }")
    market.prices = {key: price for key, price in market.prices.items() if price < 35}
    with Engine.from_catalog(market.catalog, runtime="local", until_end=True) as engine:
        (answer,) = engine.register(text)
    assert (subjects(answer), answer.status) == (market.best(3), Status.EXACT)


def test_an_endpoint_that_is_gone_leaves_what_was_known(market: Market) -> None:
    market.describe('endpoint = "http://127.0.0.1:9/query"\n', FEED)
    with Engine.from_catalog(market.catalog, runtime="local") as engine:
        answer = next(iter(engine.register(query("every", 3)).answers()))
    assert (answer.status, answer.rows) == (Status.APPROXIMATE, ())
    assert answer.failure is not None


def test_the_service_explains_it_and_shows_its_view(market: Market) -> None:
    catalog = Catalog.load(market.catalog, variables={})
    service = QueryService(
        lambda observer: Engine(catalog, runtime="local", observer=observer, autostart=False)
    )
    service.start()
    try:
        explained = service.explain(query("every", 3))
        assert explained["structure"]["name"] == "materialised-view"
        assert (explained["table"]["k"], explained["table"]["kmax"]) == (3, 13)
        served = service.register(query("every", 3))
        name = served.registration.id
        waiting.until(lambda: bool(service.lists(name)))
        (shown,) = service.lists(name)
        held = [each.terms["s"] for each in (*shown.k_list, *shown.n_list)]
        assert held[:3] == [f"<{each}>" for each in market.best(3)]
        assert (len(shown.k_list), len(held)) == (3, 13)
        service.remove(name)
        assert service.queries() == []
    finally:
        service.stop()


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        ("check", "ok"),
        ("explain", "k = 3, kmax = 13"),
        ("run", "K-list e/s39 39, e/s38 38, e/s37 37; N-list e/s36 36"),
    ],
)
def test_the_command_line_takes_it(
    market: Market, tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str, said: str
) -> None:
    text = tmp_path / "query.rspql"
    text.write_text(query("every", 3))
    more = ["--until-end", "--show-list", "--runtime", "local"] if verb == "run" else []
    assert main([verb, str(text), "--catalog", str(market.catalog), *more]) == 0
    assert said in " ".join(capsys.readouterr().out.split())


def test_a_recording_refuses_it_by_name(market: Market, tmp_path: Path) -> None:
    catalog = Catalog.load(market.catalog, variables={})
    with pytest.raises(UserError, match="the query has no stream"):
        Recording.open(tmp_path / "kept", catalog, query("every", 3), file="table.rspql")


class Program:
    """``acquatop run`` with a state directory."""

    def __init__(self, market: Market, folder: Path) -> None:
        text = folder / "query.rspql"
        text.write_text(query("every", 3))
        command = "from acquatop.app.cli import main; import sys; sys.exit(main(sys.argv[1:]))"
        self._child = subprocess.Popen(
            [
                *(sys.executable, "-c", command, "run", str(text), "--json", "--runtime", "local"),
                *("--catalog", str(market.catalog), "--state", str(folder / "state")),
            ],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ},
        )

    def until(self, right: list[str]) -> list[dict[str, Any]]:
        """Return the answers up to the first that is right."""
        assert self._child.stdout is not None
        found: list[dict[str, Any]] = []
        for line in islice(self._child.stdout, MOST):
            found.append(json.loads(line))
            if [row["bindings"]["s"]["value"] for row in found[-1]["results"]] == right:
                return found
        raise AssertionError(f"none of {len(found)} answers is {right}: {found[-1:]}")

    def kill(self) -> None:
        self._child.send_signal(signal.SIGKILL)
        self._child.communicate()


@pytest.mark.slow
def test_what_is_killed_goes_on_and_asks_for_what_it_has_missed(
    market: Market, tmp_path: Path
) -> None:
    first = Program(market, tmp_path)
    before = first.until(market.best(3))
    first.kill()
    market.change({"s39": -1, "s38": -1, "s05": 77}, silently=True)
    second = Program(market, tmp_path)
    try:
        after = second.until(market.best(3))
    finally:
        second.kill()
    windows = [each["window"]["index"] for each in after]
    assert windows == sorted(set(windows))
    assert after[-1]["window"]["index"] > before[-1]["window"]["index"]
    assert after[-1]["status"] == "exact"
    # A new answer rests on a request of its own: what the feed said meanwhile was not heard.
    assert sum(each["spent"]["requests"] for each in after) >= 1
