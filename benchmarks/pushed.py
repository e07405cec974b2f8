"""Measure the cost of a pushed remote's changes, by the number of candidates held beyond k."""

from __future__ import annotations

import argparse
import itertools
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from acquatop.catalog.catalog import Catalog
from acquatop.ingest.scoring import ReplicaScoring
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundQuery
from acquatop.query.topk.ranking import TopKN
from acquatop.topk.order import best
from acquatop.topk.refill.controller import Controller, Tuning
from acquatop.topk.refill.refilled import Refilled
from replica.budget import NOTHING
from replica.feeds.contract import ChangeSink
from replica.feeds.subscription import Subscription
from replica.maintainer import Maintainer
from replica.remotes.silent import SilentRemote
from replica.store import ReplicaStore, Solution
from tests.support.single_query import ContinuousQuery

NS = "http://example.org/"
CATALOG = f"""
[streams."{NS}stream"]
connector = "lines"
arrivals = "latest"
options = {{ path = "events" }}
[streams."{NS}stream".mapping]
subject = "{NS}user/{{user}}"
time = "t"
properties = {{ "{NS}mentions" = {{ field = "mentions", datatype = "xsd:integer" }} }}
[services."{NS}people"]
remote = "push"
mapping.key = "{NS}user/{{id}}"
mapping.properties = {{ "{NS}followers" = {{ field = "n", datatype = "xsd:integer" }} }}
feed = {{ kind = "lines", path = "changes" }}
refresh = {{ n = N, refill = true, items = 0, requests = 0 }}
"""
QUERY = """PREFIX : <http://example.org/>
SELECT ?user (0 + ?followers AS ?score) FROM NAMED WINDOW :w ON :stream [RANGE 1d STEP 1s]
WHERE { WINDOW :w { ?user :mentions ?mentions } SERVICE :people { ?user :followers ?followers } }
ORDER BY DESC(?score) LIMIT 10"""
T = TypeVar("T")
Place = tuple[int, int, str]
"""Number of keys in the window, number that change before each close, and way to hold them."""
USERS, CHANGES, WARM, CLOSES = (20_000, 200_000), (100, 2_000), 10, 30
K = 10


@dataclass(frozen=True)
class Took:
    """Mean cost of a close, for the list and in total, and the number of refills of the list."""

    of_list: float
    of_all: float | None
    rows_scored: float
    refills: int
    kmax: int


class Told:
    """Feed that passes on given changes."""

    failure: str | None = None

    def start(self, sink: ChangeSink) -> None:
        """Start."""
        self.sink = sink

    def stop(self) -> None:
        """Do nothing: there is no thread."""


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench pushed", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    console = Console(stderr=options.json)
    found: dict[Place, Took] = {}
    for users, changes in itertools.product(USERS, CHANGES):
        for way in WAYS:
            with console.status(f"{users} keys, {changes} changes, {way}"):
                found[users, changes, way] = took(users, changes, way)
        found[users, changes, "nothing"] = by_scan(users, changes)
    if options.json:
        print(
            json.dumps(
                [
                    dict(zip(("keys", "changes", "way"), at, strict=True)) | asdict(each)
                    for at, each in found.items()
                ]
            )
        )
    else:
        console.print(table(found))


PINNED, GUESSED, CHOSEN = "k", "N^0.6", "auto"
WAYS = (PINNED, GUESSED, CHOSEN)
"""Candidates held: k only, the paper's initial guess, or the engine's choice starting from k."""


class Stopwatch:
    """Sum of the processor time of some methods of an operator."""

    def __init__(self, operator: TopKN[Any]) -> None:
        self.nanoseconds = 0
        for name in ("apply_changes", "settle", "top"):
            setattr(operator, name, self._timed(getattr(operator, name)))

    def _timed(self, method: Callable[..., T]) -> Callable[..., T]:
        def call(*arguments: object) -> T:
            started = time.process_time_ns()
            result = method(*arguments)
            self.nanoseconds += time.process_time_ns() - started
            return result

        return call


def took(users: int, changes: int, way: str) -> Took:
    """Return the cost of closes for a query that holds as many candidates as the way says."""
    feed, store = Told(), _store(users)
    query = ContinuousQuery(
        _bound(_n(way, users)),
        Maintainer(store, SilentRemote(), NOTHING, feed=Subscription.open(feed)),
    )
    operator = query.operator
    assert isinstance(operator, TopKN)
    held = operator.list
    assert isinstance(held, Refilled)
    if way == PINNED:
        held.controller = Controller(K, K, Tuning(limit=K))
    stopwatch = Stopwatch(operator)
    query.add("", _records(users))
    refills = scored = spent = 0
    for at, said in enumerate(_changes(users, changes)):
        if at == WARM:
            refills, scored, spent, stopwatch.nanoseconds = (
                held.refills,
                operator.scoring.scored,
                0,
                0,
            )
        feed.sink(said, float(at))
        started = time.process_time_ns()
        for answer in query.advance("", 1_000 * (at + 1)):
            assert len(answer.rows) == K
        spent += time.process_time_ns() - started
    rows = (operator.scoring.scored - scored) / CLOSES
    of_list, of_all = (each / 1e6 / CLOSES for each in (stopwatch.nanoseconds, spent))
    return Took(of_list, of_all, rows, held.refills - refills, held.controller.kmax)


def _n(way: str, users: int) -> str:
    """Return the catalog's setting of n."""
    return {PINNED: "0", GUESSED: str(math.ceil(users**0.6) - K), CHOSEN: '"auto"'}[way]


def by_scan(users: int, changes: int) -> Took:
    """Return the cost of scoring the whole window at each close."""
    store, plan = _store(users), _bound("0").plan
    scoring = ReplicaScoring(plan.score, store)
    keys = np.array([_term(at) for at in range(users)], dtype=object)
    rows, nothing = store.rows(keys.tolist()), np.zeros(users, dtype=np.int64)
    spent = 0
    for at, said in enumerate(_changes(users, changes)):
        store.put(
            list(said),
            [solution for solutions in said.values() for solution in solutions],
            float(at),
        )
        started = time.process_time_ns()
        chosen = best(K, scoring.merits_at(rows, ()), nothing, keys)
        spent += (time.process_time_ns() - started) * (at >= WARM)
        assert len(chosen) == K
    return Took(spent / 1e6 / CLOSES, None, users, 0, K)


def _bound(n: str) -> BoundQuery:
    bound = bind_query(
        QUERY,
        Catalog.parse(CATALOG.replace("N,", f"{n},"), file=Path("catalog.toml"), variables={}),
    )
    assert isinstance(bound, BoundQuery)
    return bound


def _term(user: int) -> str:
    return f"<{NS}user/{user}>"


def _solution(user: int, count: int) -> Solution:
    return {
        "user": _term(user),
        "followers": f'"{count}"^^<http://www.w3.org/2001/XMLSchema#integer>',
    }


def _store(users: int) -> ReplicaStore:
    """Return a replica that has all keys."""
    store = ReplicaStore("user", ["user", "followers"])
    store.put(
        [_term(at) for at in range(users)],
        [_solution(at, 1_000_000 + at) for at in range(users)],
        0.0,
    )
    return store


def _records(users: int) -> pa.RecordBatch:
    """Return a record of each user, in the first window and so in all."""
    lines = [json.dumps({"t": 1, "user": str(at), "mentions": 1}).encode() for at in range(users)]
    records: pa.RecordBatch = _bound("0").stream.mapping.records(
        pa.record_batch([pa.array(lines, pa.binary())], ["value"])
    )
    return records


def _changes(users: int, count: int) -> Iterator[Mapping[str, Sequence[Solution]]]:
    """Yield the changes pushed before each close: random users, with more or fewer followers."""
    random = np.random.default_rng(1)
    counts = 1_000_000 + np.arange(users)
    for _ in range(WARM + CLOSES):
        chosen = random.choice(users, count, replace=False)
        counts[chosen] += random.integers(-200, 201, count)
        yield {_term(at): [_solution(at, int(counts[at]))] for at in chosen.tolist()}


def table(found: Mapping[Place, Took]) -> Table:
    """Return the measurements as a table."""
    shown = Table(title=f"the best {K} at each close")
    for heading in ("keys", "changes", "held", "ms", "ms in all", "scored", "refills", "kmax"):
        shown.add_column(heading, justify="left" if heading == "held" else "right")
    for (users, changes, way), each in found.items():
        of_all = "" if each.of_all is None else f"{each.of_all:.1f}"
        figures = (of_all, f"{each.rows_scored:,.0f}", str(each.refills), f"{each.kmax:,}")
        shown.add_row(f"{users:,}", f"{changes:,}", way, f"{each.of_list:.2f}", *figures)
    return shown


if __name__ == "__main__":
    main()
