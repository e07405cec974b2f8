"""Run a live query while its remote fails in several ways: answers, spending and recovery."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table

from acquatop.answer.answer import Answer, Status
from acquatop.catalog.catalog import Catalog
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundQuery
from acquatop.refresh.open_replicas import Replicas
from examples.oxigraph import OxigraphServer
from tests.support.faults.fault import Fault, Healthy
from tests.support.faults.proxy import FaultProxy
from tests.support.faults.registry import FAULTS
from tests.support.single_query import ContinuousQuery
from tests.support.worlds import catalog_text

NS = "http://example.org/"
STREAM = NS + "stream"
QUERY = """
PREFIX : <http://example.org/>
SELECT ?user ?mentions ?followers (2 * ?mentions + ?followers AS ?score)
FROM NAMED WINDOW :w ON :stream [RANGE {width}ms STEP {slide}ms]
WHERE {{
  WINDOW :w {{ ?user :mentions ?mentions }}
  SERVICE :people {{ ?user :followers ?followers }}
}}
ORDER BY DESC(?score) LIMIT 5
"""
SLIDE, DEADLINE, SLACK = 0.3, 0.1, 0.05
"""Seconds between two closes, the remote's deadline, and the tolerance of an answer's delay."""
WINDOWS, BEGINS, ENDS = 20, 5, 12
"""Windows per fault, and the first and the last one with the fault active."""
USERS, K = 30, 5
QUICK = (
    "none",
    "hang",
    "refused",
    "500",
    "429, in seconds",
    "body byte by byte",
    "100 MB of whitespace",
    "redirect",
)


@dataclass(frozen=True)
class Outcome:
    """Result of a run; ``recovered`` counts windows from the fault's end to fresh values."""

    fault: str
    lost: int
    on_time: int
    latest_ms: float
    median_ms: float
    failed: int
    """Answers during the fault that name a failure."""
    stale: int
    """Answers during the fault that show outdated values."""
    wrong: int
    """Answers wrongly called exact, or with outdated values shown as fresh."""
    requests: int
    spent: int
    keys: int
    keys_spent: int
    redirected: int
    megabytes: float
    recovered: int | None
    said: str | None


class Remote:
    """Followers of the users at the server; ``change`` changes all of them."""

    def __init__(self, server: OxigraphServer) -> None:
        self._server = server
        self._times = 0
        self.followers: dict[str, str] = {}
        self.change()

    def change(self) -> None:
        """Increase the followers of every user."""
        self._times += 1
        self.followers = {f"{NS}user/u{user}": str(7 * user + self._times) for user in range(USERS)}
        rows = " . ".join(
            f"<{user}> <{NS}followers> {value}" for user, value in self.followers.items()
        )
        self._server.update(f"CLEAR ALL ; INSERT DATA {{ {rows} }}")

    def is_right(self, answer: Answer) -> bool:
        """Return True if an answer shows the right users with their present values."""
        shown = {str(row.bindings["user"]): str(row.bindings["followers"]) for row in answer.rows}
        scores = {user: 2 * _mentions(user) + int(value) for user, value in self.followers.items()}
        best = sorted(scores, key=lambda user: -scores[user])[:K]
        return shown == {user: self.followers[user] for user in best}

    def is_belied(self, answer: Answer) -> bool:
        """Return True if an answer makes a false claim: to be exact, or that a value is fresh."""
        claimed = {
            str(row.bindings["user"]): str(row.bindings["followers"])
            for row in answer.rows
            if row.refreshed
        }
        is_fresh = all(self.followers.get(user) == value for user, value in claimed.items())
        return not is_fresh or (answer.status is Status.EXACT and not self.is_right(answer))


def _mentions(user: str) -> int:
    return int(user.rpartition("u")[2]) * 11 % USERS


class Memory:
    """Peak memory of this process above its initial memory, in bytes."""

    def __init__(self) -> None:
        self._first = self.most = resident()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    @property
    def growth(self) -> int:
        """Growth of the memory up to its peak."""
        return self.most - self._first

    def _watch(self) -> None:
        while not self._ended.wait(0.005):
            self.most = max(self.most, resident())

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


def resident() -> int:
    """Return this process's resident memory in bytes, 0 if the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def at_work(endpoint: str, *, load: bool) -> Iterator[tuple[ContinuousQuery, BoundQuery]]:
    """Yield a query on a remote, with its replica filled if ``load``."""
    text = QUERY.format(width=round(2000 * SLIDE), slide=round(1000 * SLIDE))
    catalog = catalog_text(
        endpoint=endpoint,
        service=f'load = {str(load).lower()}\ntimeout = "1s"',
        policy="AT-LRU",
        n=10,
        items=10,
        requests=2,
        deadline=f"{round(1000 * DEADLINE)}ms",
    )
    bound = bind_query(text, Catalog.parse(catalog, file=Path("catalog.toml"), variables={}))
    assert isinstance(bound, BoundQuery)
    replicas = Replicas()
    try:
        yield ContinuousQuery(bound, replicas.open(bound)), bound
    finally:
        replicas.close()


@dataclass(frozen=True)
class Given:
    """An answer, its delay, and its correctness at that time."""

    answer: Answer
    seconds: float
    right: bool
    boasts: bool
    """True if it makes a false claim."""


def live(
    query: ContinuousQuery, bound: BoundQuery, remote: Remote, proxy: FaultProxy, fault: Fault
) -> list[Given]:
    """Let windows close in real time, with the fault active in some; return the answers."""
    given = []
    started = time.monotonic()
    for window in range(1, WINDOWS + 1):
        remote.change()
        if window in (BEGINS, ENDS + 1):
            proxy.fault = fault if window == BEGINS else Healthy()
        closes_ms, due_at = round(1000 * SLIDE) * window, started + SLIDE * window
        query.add(
            STREAM,
            bound.stream.mapping.records(
                pa.record_batch([pa.array(_lines(closes_ms), pa.binary())], ["value"])
            ),
        )
        time.sleep(max(0.0, due_at - time.monotonic()))
        answers = query.advance(STREAM, closes_ms, due_at)
        given += [
            Given(
                answer, time.monotonic() - due_at, remote.is_right(answer), remote.is_belied(answer)
            )
            for answer in answers
        ]
    return given


def _lines(time_ms: int) -> list[bytes]:
    rows = ((time_ms, user, _mentions(f"u{user}")) for user in range(USERS))
    return [b'{"t":%d,"user":"u%d","mentions":%d}' % row for row in rows]


def outcome(name: str, server: OxigraphServer) -> Outcome:
    """Return the outcome of a fault."""
    fault, remote = FAULTS[name](), Remote(server)
    is_curable = fault.scheme == "http"
    with FaultProxy("127.0.0.1", server.port, None if is_curable else fault) as proxy:
        with at_work(proxy.url, load=is_curable) as (query, bound), Memory() as memory:
            proxy.take()
            given = live(query, bound, remote, proxy, fault if is_curable else FAULTS[name]())
        counts = proxy.counts()
    answers = [each.answer for each in given]
    during = given[BEGINS - 1 : ENDS]
    said = [each.answer.failure for each in during if each.answer.failure]
    seconds = [each.seconds for each in given]
    return Outcome(
        fault=name,
        lost=WINDOWS - len(given),
        on_time=sum(each <= DEADLINE + SLACK for each in seconds),
        latest_ms=1000 * max(seconds),
        median_ms=1000 * statistics.median(seconds[BEGINS - 1 : ENDS]),
        failed=len(said),
        stale=sum(not each.right for each in during),
        wrong=sum(each.boasts for each in given),
        requests=counts.requests,
        spent=sum(answer.spending.requests for answer in answers),
        keys=counts.keys,
        keys_spent=sum(answer.spending.items for answer in answers),
        redirected=counts.redirected,
        megabytes=memory.growth / 2**20,
        recovered=_recovered(given[ENDS:]) if is_curable else None,
        said=said[0] if said else None,
    )


def _recovered(later: list[Given]) -> int | None:
    fresh = (
        at
        for at, each in enumerate(later, 1)
        if each.answer.failure is None and each.answer.refreshed
    )
    return next(fresh, None)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench faults", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--quick", action="store_true", help=f"{len(QUICK)} faults of {len(FAULTS)}"
    )
    parser.add_argument("--fault", choices=FAULTS, metavar="NAME", help="this one only")
    options = parser.parse_args()
    names = [options.fault] if options.fault else QUICK if options.quick else list(FAULTS)
    console = Console(stderr=options.json)
    outcomes = []
    with OxigraphServer() as server:
        outcome("none", server)  # one-time loading must not count
        for name in names:
            with console.status(name):
                outcomes.append(outcome(name, server))
    machine = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        **{package: version(package) for package in ("requests", "urllib3", "oxigraph")},
    }
    if options.json:
        print(json.dumps({"machine": machine, "outcomes": [asdict(each) for each in outcomes]}))
        return
    console.print(_table(outcomes))
    for each in outcomes:
        if each.said:
            console.print(
                f"{each.fault}: {each.said}",
                style="dim",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )
    console.print(NOTE, _totals(outcomes), sep="\n", style="dim", highlight=False)
    console.print(", ".join(f"{key} {value}" for key, value in machine.items()), style="dim")


NOTE = f"""{WINDOWS} windows each, one every {1000 * SLIDE:.0f} ms, of which the remote has \
{1000 * DEADLINE:.0f} ms; the fault in windows {BEGINS} to {ENDS}. On time: within \
{1000 * (DEADLINE + SLACK):.0f} ms of the close; latest: in ms. Failed, stale: of the \
{ENDS - BEGINS + 1} answers during the fault. Requests, keys: as the server counts, of those \
reported as spent. MB: the memory's growth at most. Back: which window after the fault was the \
first with fresh values."""


def _table(outcomes: list[Outcome]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for heading in (
        "fault",
        "on time",
        "latest",
        "failed",
        "stale",
        "requests",
        "keys",
        "MB",
        "back",
    ):
        table.add_column(heading, justify="left" if heading == "fault" else "right", no_wrap=True)
    for each in outcomes:
        table.add_row(
            each.fault,
            f"{each.on_time}/{WINDOWS}",
            f"{each.latest_ms:.0f}",
            str(each.failed),
            str(each.stale),
            f"{each.requests}/{each.spent}",
            f"{each.keys}/{each.keys_spent}",
            f"{each.megabytes:.1f}",
            "–" if each.recovered is None else str(each.recovered),
        )
    return table


def _totals(outcomes: list[Outcome]) -> str:
    lost, wrong = sum(each.lost for each in outcomes), sum(each.wrong for each in outcomes)
    redirected = sum(each.redirected for each in outcomes)
    return (
        f"answers lost: {lost}; answers that claim what is not so: {wrong}; redirects followed: "
        f"{redirected}"
    )


if __name__ == "__main__":
    main()
