"""Measure the top k of a table that changes: a view kept by a feed, and asking each time.

A real endpoint (Oxigraph, on loopback) has the table. Before each look some rows change, and the
feed says so. Rows walk at random; in the harder half of the run only the best fall.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from acquatop.catalog.catalog import Catalog
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundTable
from acquatop.query.table.opened import OpenTables
from acquatop.refresh.open_replicas import Replicas
from examples.oxigraph import OxigraphServer
from replica.feeds.contract import ChangeSink

NS = "http://example.org/"
CATALOG = """
[services."http://example.org/market"]
endpoint = "ENDPOINT"
mapping.key = "http://example.org/{id}"
mapping.properties = { "http://example.org/price" = { field = "price", datatype = "xsd:integer" } }
feed = { kind = "lines", path = "changes" }
refresh = { items = 2000, n = N, deadline = "60s" }
"""
QUERY = """PREFIX : <http://example.org/>
REGISTER STREAM :dearest COMPUTED EVERY 1s AS
SELECT ?s ?price WHERE { SERVICE :market { ?s :price ?price } } ORDER BY DESC(?price) LIMIT 10"""
K = 10
ROWS, CHANGES, LOOKS, BLOCK = (2_000, 20_000), (10, 300), 20, 5_000
RECOMPUTE, PINNED, ADAPTIVE = "recompute", "view of k", "view, adaptive"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


@dataclass(frozen=True)
class Took:
    """Milliseconds of a look, requests and rows asked for, and the size of the view at the end."""

    milliseconds: float
    requests: int
    rows: int
    exact: int
    kmax: int


class Told:
    """Feed that passes on given changes."""

    failure: str | None = None

    def start(self, sink: ChangeSink) -> None:
        """Start."""
        self.sink = sink

    def stop(self) -> None:
        """Do nothing: there is no thread."""


class Market:
    """Table at an endpoint."""

    def __init__(self, server: OxigraphServer, rows: int, seed: int = 7) -> None:
        self._server = server
        self._chance = np.random.default_rng(seed)
        self.prices = self._chance.integers(0, 1_000_000, rows)
        server.update("CLEAR ALL")
        for block in np.array_split(np.arange(rows), max(1, rows // BLOCK)):
            server.update(f"INSERT DATA {{ {self._triples(block.tolist())} }}")

    def change(self, count: int, *, falls: bool) -> Mapping[str, int]:
        """Let some rows walk, or the best of them fall; return what they have now."""
        some = self._chance.choice(len(self.prices), count, replace=False)
        if falls:
            some[: count // 10] = np.argsort(-self.prices)[: count // 10]
            some = np.unique(some)
        steps = self._chance.normal(0, 20_000, len(some)).astype(int)
        self.prices[some] = np.maximum(0, self.prices[some] + (-abs(steps) if falls else steps))
        for block in np.array_split(some, max(1, len(some) // BLOCK)):
            places = block.tolist()
            names = " ".join(f"<{NS}s{each}>" for each in places)
            self._server.update(
                f"DELETE {{ ?s <{NS}price> ?old }} INSERT {{ {self._triples(places)} }} "
                f"WHERE {{ VALUES ?s {{ {names} }} ?s <{NS}price> ?old }}"
            )
        return {f"<{NS}s{each}>": int(self.prices[each]) for each in some.tolist()}

    def _triples(self, places: list[int]) -> str:
        return " ".join(f"<{NS}s{each}> <{NS}price> {self.prices[each]} ." for each in places)


def took(server: OxigraphServer, rows: int, changes: int, way: str) -> Took:
    """Return what the looks of one way have cost."""
    feed, market = Told(), Market(server, rows)
    text = CATALOG.replace("ENDPOINT", server.query_url).replace(
        "N,", f"{0 if way == PINNED else 10},"
    )
    strategy = 'strategy = "recompute"\n' if way == RECOMPUTE else ""
    text = text.replace("endpoint =", f"{strategy}endpoint =")
    bound = bind_query(QUERY, Catalog.parse(text, file=Path("catalog.toml"), variables={}))
    assert isinstance(bound, BoundTable)
    replicas = Replicas(open_feed=lambda *_: feed)
    table, leave = OpenTables(replicas, time.perf_counter).join(bound)
    seconds, requests, asked, exact = 0.0, 0, 0, 0
    for look in range(LOOKS):
        news = market.change(changes, falls=look >= LOOKS // 2)
        if way != RECOMPUTE:
            said = {
                each: [{"s": each, "price": f'"{now}"^^<{INTEGER}>'}] for each, now in news.items()
            }
            feed.sink(said, float(look))
        if way == PINNED:
            table.view.controller.kmax = K
        begun = time.perf_counter()
        spent = table.look(look, 60.0).spending
        best, certificate = table.best(K)
        seconds += time.perf_counter() - begun
        requests, asked = requests + spent.requests, asked + spent.items
        right = np.sort(market.prices)[::-1][:K].tolist()
        shown = [int(each["price"].split('"')[1]) for each in best]
        exact += certificate.status == "exact"
        assert certificate.status != "exact" or shown == right, "an exact answer is right"
    leave()
    replicas.close()
    return Took(1_000 * seconds / LOOKS, requests, asked, exact, table.view.controller.kmax)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench tables", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    console = Console(stderr=options.json)
    found: dict[tuple[int, int, str], Took] = {}
    with OxigraphServer() as server:
        for rows, changes in itertools.product(ROWS, CHANGES):
            for way in (RECOMPUTE, PINNED, ADAPTIVE):
                with console.status(f"{rows} rows, {changes} changes, {way}"):
                    found[rows, changes, way] = took(server, rows, changes, way)
    if options.json:
        names = ("table", "changes", "way")
        print(
            json.dumps(
                [dict(zip(names, at, strict=True)) | asdict(each) for at, each in found.items()]
            )
        )
        return
    shown = Table(title=f"top {K}, {LOOKS} looks")
    for name in (
        "rows",
        "changes a look",
        "way",
        "ms a look",
        "requests",
        "rows sent",
        "exact",
        "kmax",
    ):
        shown.add_column(name, justify="left" if name == "way" else "right")
    for (rows, changes, way), each in found.items():
        shown.add_row(
            *(str(rows), str(changes), way, f"{each.milliseconds:.1f}", str(each.requests)),
            *(str(each.rows), f"{each.exact} of {LOOKS}", str(each.kmax)),
        )
    console.print(shown)


if __name__ == "__main__":
    main()
