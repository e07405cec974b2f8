"""Measure an evaluation's requests and time, with a budget, and fetching everything each time."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import asdict, dataclass, replace
from http.client import HTTPConnection
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from acquatop.answer.answer import Answer
from acquatop.catalog.catalog import Catalog
from acquatop.lab.replay.metrics import precision_at, relevancies
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundQuery
from acquatop.refresh.open_replicas import Replicas
from examples.oxigraph import OxigraphServer
from examples.social_media.world import NS, USER, store_followers
from tests.support.faults.delays import Latency
from tests.support.faults.fault import Healthy
from tests.support.faults.proxy import FaultProxy
from tests.support.single_query import ContinuousQuery

QUERY = Path(__file__).parents[1] / "examples" / "social_media" / "contacts.rspql"
CATALOG = """
[prefixes]
"" = "{ns}"
[streams.":S"]
connector = "lines"
arrivals = "latest"
[streams.":S".options]
path = "unused"
[streams.":S".mapping]
subject = "{user}{{user}}"
time = "time_ms"
[streams.":S".mapping.properties]
":hasMentions" = {{ field = "mentions", datatype = "xsd:integer" }}
[services.":BKG"]
endpoint = "{endpoint}"
[services.":BKG".refresh]
policy = "AT-TSM"
items = {items}
requests = {requests}
deadline = "5s"
"""
SLIDE_MS, SLIDES_PER_WINDOW, K = 2_000, 3, 5
MOST_MENTIONS, MOST_FOLLOWERS = 40, 100_000
CHANGED = 0.02
"""Share of users whose followers change between two windows."""
CONNECTIONS = 4
"""Concurrent requests of each way of fetching."""
LONGEST_SAMPLE = 80
"""Most requests sent per way of fetching; larger numbers are extrapolated."""
PEER_SAMPLE = 1_000
"""Most users that Comunica joins; larger numbers are extrapolated."""
COMUNICA = ("@comunica/query-sparql@4.5.0", "n3@1")

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Slide = tuple[IntArray, IntArray, IntArray]
"""Users, mentions and times, event by event."""


@dataclass(frozen=True)
class Line:
    """One way of doing the job: requests, keys and seconds per evaluation, and its correctness.

    If ``sampled`` is set, only a part was measured and the figures are extrapolated.
    """

    events: int
    latency_ms: int
    way: str
    requests: float
    keys: float
    seconds: float
    right: float | None = None
    sampled: bool = False


class World:
    """Users, some mentioned often; their followers at the remote change between windows."""

    def __init__(self, events: int, server: OxigraphServer, seed: int = 1) -> None:
        self.events = events
        self.users = events
        self._server = server
        self._chance = np.random.default_rng(seed)
        popularity = 1 / (np.arange(self.users) + 50)
        self._popularity = popularity / popularity.sum()
        self.followers = self._capped(1000 * np.exp(self._chance.normal(2, 0.8, self.users)))
        self._store(np.arange(self.users))

    @staticmethod
    def _capped(values: FloatArray | IntArray) -> IntArray:
        capped: IntArray = np.minimum(MOST_FOLLOWERS, values).astype(np.int64)
        return capped

    def _store(self, users: IntArray) -> None:
        for start in range(0, len(users), 5_000):
            some = users[start : start + 5_000]
            store_followers(
                self._server, ((f"u{user}", int(self.followers[user])) for user in some)
            )

    def change(self) -> None:
        """Change the followers of some users."""
        users = self._chance.choice(self.users, round(CHANGED * self.users), replace=False)
        factors = np.exp(self._chance.normal(0, 0.3, len(users)))
        self.followers[users] = self._capped(self.followers[users] * factors)
        self._store(users)

    def slide(self, number: int) -> Slide:
        """Return the mentioned users of a slide, their recent number of mentions, and the times."""
        count = self.events // SLIDES_PER_WINDOW
        users = self._chance.choice(self.users, count, p=self._popularity)
        times = number * SLIDE_MS + 1 + np.arange(count) * (SLIDE_MS - 1) // count
        return users, self._chance.integers(0, MOST_MENTIONS, count), times


def records(bound: BoundQuery, slide: Slide) -> pa.RecordBatch:
    """Return the events of a slide as the decoder returns them."""
    rows = zip(*(column.tolist() for column in slide), strict=True)
    lines = [b'{"user":"u%d","mentions":%d,"time_ms":%d}' % row for row in rows]
    return bound.stream.mapping.records(pa.record_batch([pa.array(lines, pa.binary())], ["value"]))


def right_answer(slides: Sequence[Slide], followers: IntArray) -> list[str]:
    """Return the best users of a window, by the remote's present values."""
    users, mentions, times = (np.concatenate(columns) for columns in zip(*slides, strict=True))
    # Of two events with one time, the one with the greater text counts.
    latest_first = np.lexsort((mentions.astype(str), times))[::-1]
    found, at = np.unique(users[latest_first], return_index=True)
    newest = latest_first[at]
    scores = 0.7 * mentions[newest] / MOST_MENTIONS + 0.3 * followers[found] / MOST_FOLLOWERS
    return [f"{USER}u{user}" for user in found[np.lexsort((-times[newest], -scores))][:K]]


# Ways ---------------------------------------------------------------------------------------------


def acquatop(world: World, proxy: FaultProxy, budget: int, evaluations: int) -> Line:
    """Return the engine's requests and time, with a replica filled before."""
    catalog = CATALOG.format(ns=NS, user=USER, endpoint=proxy.url, items=budget, requests=1)
    bound = bind_query(
        QUERY.read_text("utf-8"), Catalog.parse(catalog, file=Path("catalog.toml"), variables={})
    )
    assert isinstance(bound, BoundQuery)
    replicas = Replicas()
    try:
        query = ContinuousQuery(bound, replicas.open(bound))
        seconds, rights = zip(*evaluated(query, bound, world, proxy, evaluations), strict=True)
    finally:
        replicas.close()
    counts = proxy.take()
    return Line(
        events=world.events,
        latency_ms=0,
        way=f"AcquaTop, {budget} {'key' if budget == 1 else 'keys'}",
        requests=counts.requests / evaluations,
        keys=counts.keys / evaluations,
        seconds=statistics.median(seconds),
        right=statistics.mean(rights),
    )


def evaluated(
    query: ContinuousQuery, bound: BoundQuery, world: World, proxy: FaultProxy, evaluations: int
) -> Iterator[tuple[float, float]]:
    """Yield per evaluation of a whole window the seconds to the answer, and its correctness."""
    slides: list[Slide] = []
    for number in range(evaluations + SLIDES_PER_WINDOW):
        slides = [*slides[-SLIDES_PER_WINDOW + 1 :], world.slide(number)]
        query.add(bound.stream.iri, records(bound, slides[-1]))
        world.change()
        if number == SLIDES_PER_WINDOW:
            proxy.take()
        started = time.perf_counter()
        answers = list(query.advance(bound.stream.iri, (number + 1) * SLIDE_MS))
        seconds = time.perf_counter() - started
        if number >= SLIDES_PER_WINDOW and answers:
            yield seconds, rightness(answers[-1], right_answer(slides, world.followers))


def rightness(answer: Answer, right: Sequence[str]) -> float:
    """Return the share of an answer's users that belong in it."""
    return precision_at(K, [str(row.bindings["user"]) for row in answer.rows], relevancies(right))


def everything(proxy: FaultProxy, users: Sequence[str], block: int) -> tuple[float, float]:
    """Fetch users' values in concurrent blocks over kept connections; return requests, seconds."""
    blocks = [users[start : start + block] for start in range(0, len(users), block)]
    lots = [blocks[:LONGEST_SAMPLE][start::CONNECTIONS] for start in range(CONNECTIONS)]
    sent = sum(map(len, lots))
    started = time.perf_counter()
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        found = sum(pool.map(lambda lot: fetched(proxy.port, lot), lots))
    seconds = time.perf_counter() - started
    assert found == sum(map(len, blocks[:LONGEST_SAMPLE])), "the remote knows every user"
    return len(blocks), seconds * len(blocks) / sent


def fetched(port: int, blocks: Sequence[Sequence[str]]) -> int:
    """Fetch blocks one after the other over one connection; return the number of solutions."""
    connection = HTTPConnection("127.0.0.1", port)
    headers = {
        "Content-Type": "application/sparql-query",
        "Accept": "application/sparql-results+json",
    }
    found = 0
    for block in blocks:
        values = " ".join(f"<{user}>" for user in block)
        query = f"SELECT ?user ?n {{ VALUES ?user {{ {values} }} ?user <{NS}hasFollowers> ?n }}"
        connection.request("POST", "/query", query, headers)
        found += len(json.loads(connection.getresponse().read())["results"]["bindings"])
    connection.close()
    return found


def round_trip(proxy: FaultProxy) -> float:
    """Return the seconds of an empty request on a kept connection."""
    connection = HTTPConnection("127.0.0.1", proxy.port)
    seconds = []
    for _ in range(9):
        started = time.perf_counter()
        connection.request("POST", "/query", "ASK {}", {"Content-Type": "application/sparql-query"})
        connection.getresponse().read()
        seconds.append(time.perf_counter() - started)
    connection.close()
    return statistics.median(seconds[1:])


class Comunica:
    """Linked Data query engine on Node.js: joins users in memory with the remote by bind joins."""

    SCRIPT = """
import { createInterface } from 'node:readline';
import { QueryEngine } from '@comunica/query-sparql';
import { DataFactory, Store } from 'n3';
const { literal, namedNode, quad } = DataFactory;
const engine = new QueryEngine();
for await (const line of createInterface({ input: process.stdin })) {
  const { users, url, query, both } = JSON.parse(line);
  const mentioned = namedNode('urn:mentioned');
  const store = new Store(users.map(user => quad(namedNode(user), mentioned, literal('1'))));
  const local = { type: 'rdfjs', value: store };
  const started = performance.now();
  let rows = 0;
  const sources = both ? [local, { type: 'sparql', value: url }] : [local];
  const found = await engine.queryBindings(query, { sources });
  for await (const _ of found) rows++;
  console.log(JSON.stringify({ rows, seconds: (performance.now() - started) / 1000 }));
}
"""

    def __init__(self, folder: Path) -> None:
        (folder / "peer.mjs").write_text(self.SCRIPT)
        self._process = subprocess.Popen(
            ["node", "peer.mjs"],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    @staticmethod
    def install(folder: Path) -> str | None:
        """Install it into a folder, if missing; return the reason if this fails, else None."""
        if shutil.which("npm") is None or shutil.which("node") is None:
            return "there is no npm and node here"
        if (folder / "node_modules" / "@comunica" / "query-sparql").is_dir():
            return None
        command = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", *COMUNICA]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=240, check=False
            )
        except subprocess.TimeoutExpired:
            return "npm took more than four minutes"
        return (
            None if done.returncode == 0 else f"npm failed: {(done.stderr.splitlines() or [''])[0]}"
        )

    def join(self, users: Sequence[str], url: str, *, service: bool) -> float:
        """Return the seconds to fetch some users' values."""
        followers = f"?user <{NS}hasFollowers> ?n"
        remote = f"SERVICE <{url}> {{ {followers} }}" if service else followers
        query = f"SELECT * {{ ?user <urn:mentioned> ?m . {remote} }}"
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(
            json.dumps({"users": users, "url": url, "query": query, "both": not service}),
            file=self._process.stdin,
        )
        self._process.stdin.flush()
        said = json.loads(self._process.stdout.readline())
        assert said["rows"] == len(users), "the remote knows every user"
        return float(said["seconds"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


# Runs ---------------------------------------------------------------------------------------------


def lines(
    proxy: FaultProxy, world: World, latency_ms: int, budgets: Sequence[int], peer: Comunica | None
) -> Iterator[Line]:
    """Yield the cost of each way, for one window size and one distance of the remote."""
    proxy.fault = Healthy() if latency_ms == 0 else Latency(latency_ms / 1000)
    events = world.events
    users = window_users(world)
    yield Line(events, latency_ms, "one empty request", 1, 0, round_trip(proxy))
    evaluations = max(4, min(12, 100_000 // events))
    for budget in budgets:
        yield replace(acquatop(world, proxy, budget, evaluations), latency_ms=latency_ms)
    for way, block in (("one by one", 1), ("blocks of 16", 16), ("blocks of 100", 100)):
        requests, seconds = everything(proxy, users, block)
        sampled = requests > LONGEST_SAMPLE
        yield Line(
            events, latency_ms, f"all, {way}", requests, len(users), seconds, sampled=sampled
        )
    if peer is not None:
        yield from peer_lines(proxy, users, Line(events, latency_ms, "", 0, 0, 0), peer)


def peer_lines(
    proxy: FaultProxy, users: Sequence[str], blank: Line, peer: Comunica
) -> Iterator[Line]:
    """Yield Comunica's requests and time, for each way to write the query."""
    some = users[:PEER_SAMPLE]
    times = len(users) / len(some)
    for way, service in (("Comunica, two sources", False), ("Comunica, SERVICE", True)):
        peer.join(users[:20], proxy.url, service=service)  # it caches its knowledge of a source
        proxy.take()
        seconds = peer.join(some, proxy.url, service=service)
        counts = proxy.take()
        yield replace(
            blank,
            way=way,
            requests=counts.requests * times,
            keys=counts.keys * times,
            seconds=seconds * times,
            sampled=times > 1,
        )


def window_users(world: World) -> list[str]:
    """Return the distinct users of a window's events."""
    found = np.unique(
        np.concatenate([world.slide(number)[0] for number in range(SLIDES_PER_WINDOW)])
    )
    return [f"{USER}u{user}" for user in found]


def run(options: argparse.Namespace, peer: Comunica | None, console: Console) -> Iterator[Line]:
    """Yield the cost of each way, for all window sizes and distances."""
    for events in (540, 5_400) if options.quick else (540, 5_400, 54_000):
        # A new server for each size, without the previous data.
        with OxigraphServer() as server, FaultProxy("127.0.0.1", server.port) as proxy:
            world = World(events, server)
            for latency_ms in (0, 100) if options.quick else (0, 10, 100):
                with console.status(f"{events:,} events per window, a remote {latency_ms} ms away"):
                    yield from lines(
                        proxy, world, latency_ms, (3,) if options.quick else (1, 3, 10, 30), peer
                    )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench replica", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--quick", action="store_true", help="few windows, distances and budgets")
    help_ = (
        "where Comunica is, or is to be installed by npm (a folder that is removed afterwards; "
        "none if --quick)"
    )
    parser.add_argument("--comunica", type=Path, metavar="FOLDER", help=help_)
    options = parser.parse_args()
    console = Console(stderr=options.json)
    with ExitStack() as stack:
        found = list(run(options, stack.enter_context(_peer(options, stack, console)), console))
    machine = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        **{package: version(package) for package in ("numpy", "oxigraph", "requests")},
        "comunica": COMUNICA[0].rpartition("@")[2],
    }
    if options.json:
        print(json.dumps({"machine": machine, "figures": [asdict(line) for line in found]}))
        return
    for (events, latency_ms), job in groupby(
        found, key=lambda line: (line.events, line.latency_ms)
    ):
        console.print(
            _table(f"{events:,} events per window, a remote {latency_ms} ms away", list(job))
        )
    console.print(NOTE, style="dim")
    console.print(", ".join(f"{key} {value}" for key, value in machine.items()), style="dim")


def _peer(
    options: argparse.Namespace, stack: ExitStack, console: Console
) -> AbstractContextManager[Comunica | None]:
    if options.comunica is None and options.quick:
        console.print("Comunica is left out (--quick)", style="dim")
        return nullcontext()
    folder = options.comunica or Path(
        stack.enter_context(tempfile.TemporaryDirectory(prefix="comunica-"))
    )
    folder.mkdir(parents=True, exist_ok=True)
    with console.status("installing Comunica"):
        problem = Comunica.install(folder)
    if problem is not None:
        console.print(f"Comunica is left out: {problem}", style="dim")
        return nullcontext()
    return Comunica(folder)


NOTE = f"""Per evaluation of a 6 s window every 2 s, of which the top {K} are wanted; \
{CHANGED:.0%} of the values change in between. AcquaTop: from the close to the answer; right is \
the share of the top {K} at the close. All: the fetching alone, {CONNECTIONS} requests at once; \
~ is reckoned from a part."""


def _table(title: str, job: Sequence[Line]) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in ("", "requests", "keys", "ms", "× least", "right"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for line in job:
        table.add_row(
            line.way,
            f"{line.requests:,.1f}".removesuffix(".0"),
            f"{line.keys:,.1f}".removesuffix(".0"),
            f"{'~' if line.sampled else ''}{1000 * line.seconds:,.1f}",
            f"{line.seconds / job[0].seconds:,.1f}",
            "" if line.right is None else f"{line.right:.0%}",
        )
    return table


if __name__ == "__main__":
    main()
