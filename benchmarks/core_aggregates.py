"""The top k keys by an aggregate joined with a changing remote value: milliseconds per slide.

All ways get the same panes and the same changes of the remote, one pane and one answer per slide,
and must give the same answers. The recomputations show the work that the incremental ways save.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from rich.console import Console
from rich.table import Table

from acquatop.topk.aggregates.keyed_aggregate import KeyedAggregate
from acquatop.topk.aggregates.windowed_aggregate import WindowedAggregate
from acquatop.topk.contract import AnyArray, FloatArray, IntArray, Rows
from tests.support.dense_aggregate import DenseAggregate
from tests.support.threshold_view import ThresholdView

PANES = 10
K = 100
PANE_MS = 1_000
CHOSEN = "chosen at run time"
INCREMENTAL: dict[str, type[KeyedAggregate]] = {
    "dense": DenseAggregate,
    "threshold view": ThresholdView,
    CHOSEN: WindowedAggregate,
}
NUMPY, DUCKDB = "numpy recompute", "DuckDB recompute"


@dataclass(frozen=True)
class Case:
    """Workload: number of keys, and events and remote changes per slide."""

    name: str
    keys: int
    events: int
    changes: int
    whole: bool = True
    """True if the values are whole numbers."""


CASES = (
    Case("100K keys, 100K events/slide", 100_000, 100_000, 1_000),
    Case("the same, values with fractions", 100_000, 100_000, 1_000, whole=False),
    Case("1M keys, 1K events/slide", 1_000_000, 1_000, 10),
)
AGGREGATES = ("count", "sum", "avg", "max")


@dataclass(frozen=True)
class Cost:
    """Time of a slide in one way, also as a multiple of the way chosen at run time."""

    case: str
    aggregate: str
    way: str
    ms_per_slide: float
    worst_ms: float
    times_the_chosen: float


class Remote:
    """A weight per key."""

    def __init__(self, weights: FloatArray) -> None:
        self.weights = weights

    def merits(self, keys: AnyArray, parts: tuple[FloatArray, ...]) -> FloatArray:
        """Return the aggregate times the weight."""
        merits: FloatArray = parts[0] * self.weights[keys]
        return merits

    def reach(
        self, lows: tuple[float, ...], highs: tuple[float, ...], keys: AnyArray | None = None
    ) -> float:
        """Return infinity: it is not used here."""
        return float("inf")


Slide: TypeAlias = tuple[int, Rows, IntArray, FloatArray]
"""A window, the pane that it adds, the keys whose remote values change, and the new values."""


class Way(Protocol):
    """One way of doing the job."""

    def slide(self, window: int, pane: Rows, changed: IntArray) -> list[float]:
        """Take in a pane and the remote's changes; return the merits of the window's best."""


class Incremental:
    """One of the incremental structures."""

    def __init__(self, of: type[KeyedAggregate], aggregate: str, remote: Remote) -> None:
        self._structure = of(K, aggregate, remote)

    def slide(self, window: int, pane: Rows, changed: IntArray) -> list[float]:
        """Take in only the new pane and changes."""
        self._structure.add(window, window + PANES - 1, pane)
        self._structure.change(changed)
        merits: list[float] = self._structure.top(window).merits.tolist()
        return merits


class NumpyRecompute:
    """Recomputation over all events of the window, without newest times and tie-breaking."""

    def __init__(self, aggregate: str, remote: Remote) -> None:
        self._aggregate, self._remote = aggregate, remote
        self._panes: deque[Rows] = deque(maxlen=PANES)

    def slide(self, window: int, pane: Rows, changed: IntArray) -> list[float]:
        """Aggregate, score and select."""
        self._panes.append(pane)
        size = len(self._remote.weights)
        keys = np.concatenate([each.keys for each in self._panes])
        values = np.concatenate([each.parts[0] for each in self._panes])
        counts = np.bincount(keys, minlength=size)
        alive = np.flatnonzero(counts > 0)
        merits = self._remote.merits(alive, (self._totals(keys, values, counts, size)[alive],))
        best = np.argpartition(merits, -K)[-K:]
        top: list[float] = np.sort(merits[best])[::-1].tolist()
        return top

    def _totals(
        self, keys: IntArray, values: FloatArray, counts: IntArray, size: int
    ) -> FloatArray:
        if self._aggregate == "count":
            return counts.astype(np.float64)
        if self._aggregate == "max":
            greatest = np.full(size, -np.inf)
            np.maximum.at(greatest, keys, values)
            return greatest
        sums: FloatArray = np.bincount(keys, weights=values, minlength=size).astype(
            np.float64, copy=False
        )
        return sums / np.maximum(counts, 1) if self._aggregate == "avg" else sums


class DuckRecompute:
    """The same in SQL, over a table with inserts and deletes."""

    def __init__(self, aggregate: str, remote: Remote, duckdb: Any) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("CREATE TABLE event (time BIGINT, key BIGINT, value DOUBLE)")
        self._connection.execute("CREATE TABLE remote (key BIGINT, weight DOUBLE)")
        self._remote = remote
        self._insert("remote", {"key": np.arange(len(remote.weights)), "weight": remote.weights})
        self._query = f"""
            SELECT key, aggregate * weight AS merit FROM (
                SELECT key, {aggregate}(value) AS aggregate, max(time) AS newest
                FROM event WHERE time > ? GROUP BY key
            ) JOIN remote USING (key) ORDER BY merit DESC, newest DESC, key LIMIT {K}
        """

    def slide(self, window: int, pane: Rows, changed: IntArray) -> list[float]:
        """Insert, delete, select."""
        self._insert("event", {"time": pane.times, "key": pane.keys, "value": pane.parts[0]})
        oldest = (window - PANES + 1) * PANE_MS
        self._connection.execute("DELETE FROM event WHERE time <= ?", [oldest])
        fresh = {"key": changed, "weight": self._remote.weights[changed]}
        self._connection.register("fresh", _arrow(fresh))
        self._connection.execute(
            "UPDATE remote SET weight = fresh.weight FROM fresh WHERE remote.key = fresh.key"
        )
        return [merit for _, merit in self._connection.execute(self._query, [oldest]).fetchall()]

    def _insert(self, table: str, columns: dict[str, AnyArray]) -> None:
        self._connection.register("incoming", _arrow(columns))
        self._connection.execute(f"INSERT INTO {table} SELECT * FROM incoming")


def _arrow(columns: dict[str, AnyArray]) -> Any:
    return importlib.import_module("pyarrow").table(columns)


def figures(slides: int = 60, cases: tuple[Case, ...] = CASES) -> list[Cost]:
    """Return the cost of each way, for each case and aggregate."""
    return [
        cost
        for case in cases
        for aggregate in AGGREGATES
        for cost in _costs(case, aggregate, slides)
    ]


def _costs(case: Case, aggregate: str, slides: int) -> Iterator[Cost]:
    stream = list(_stream(case, slides + PANES))
    taken: dict[str, list[float]] = {}
    expected: list[list[float]] = []
    for name, (way, remote) in _ways(aggregate, np.random.default_rng(1).random(case.keys)).items():
        answers, seconds = _run(way, remote, stream)
        expected = expected or answers
        for window, pair in enumerate(zip(answers, expected, strict=True)):
            assert np.allclose(*pair, rtol=1e-9), f"{name}: another answer in window {window}"
        taken[name] = seconds[PANES:]
    middle = {name: statistics.median(each) * 1000 for name, each in taken.items()}
    for name, ms in middle.items():
        times_the_chosen = round(ms / middle[CHOSEN], 2)
        yield Cost(
            case.name,
            aggregate,
            name,
            round(ms, 3),
            round(max(taken[name]) * 1000, 3),
            times_the_chosen,
        )


def _run(way: Way, remote: Remote, stream: list[Slide]) -> tuple[list[list[float]], list[float]]:
    answers, seconds = [], []
    for window, pane, changed, values in stream:
        remote.weights[changed] = values
        started = time.perf_counter()
        answers.append(way.slide(window, pane, changed))
        seconds.append(time.perf_counter() - started)
    return answers, seconds


def _ways(aggregate: str, weights: FloatArray) -> dict[str, tuple[Way, Remote]]:
    """Return each way with a remote of its own."""
    remotes = iter([Remote(weights.copy()) for _ in range(len(INCREMENTAL) + 2)])
    ways: dict[str, tuple[Way, Remote]] = {}
    for name, of in INCREMENTAL.items():
        remote = next(remotes)
        ways[name] = Incremental(of, aggregate, remote), remote
    remote = next(remotes)
    ways[NUMPY] = NumpyRecompute(aggregate, remote), remote
    duckdb = _duckdb()
    if duckdb is not None:
        remote = next(remotes)
        ways[DUCKDB] = DuckRecompute(aggregate, remote, duckdb), remote
    return ways


def _duckdb() -> Any:
    try:
        return importlib.import_module("duckdb")
    except ImportError:
        return None


def _stream(case: Case, slides: int) -> Iterator[Slide]:
    """Yield panes, with the keys whose remote values change, and the new values."""
    chance = np.random.default_rng(2)
    for window in range(slides):
        times = np.sort(chance.integers(window * PANE_MS + 1, (window + 1) * PANE_MS, case.events))
        keys = chance.integers(0, case.keys, case.events)
        values = chance.integers(0, 1_000, case.events).astype(np.float64)
        if not case.whole:
            values = values * 0.01
        changed = chance.choice(case.keys, case.changes, replace=False)
        yield window, Rows(times, keys, keys, (values,)), changed, chance.random(case.changes)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench core_aggregates", description=__doc__)
    parser.add_argument("--slides", type=int, default=60, help="how many to measure (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    costs = figures(options.slides)
    note = "" if _duckdb() else "DuckDB is not installed: left out"
    if options.json:
        print(
            json.dumps(
                {"title": __doc__, "note": note, "figures": [asdict(cost) for cost in costs]}
            )
        )
        return
    Console().print(table(costs, note))


def table(costs: list[Cost], note: str = "") -> Table:
    """Return the figures as a table."""
    ways = list(dict.fromkeys(cost.way for cost in costs))
    shown = Table(
        title=f"top {K} by aggregate × remote value, {PANES} panes per window: ms per slide",
        caption=note,
    )
    for heading in ("case", "", *ways):
        shown.add_column(heading, justify="right" if heading in ways else "left")
    for at in range(0, len(costs), len(ways)):
        each = costs[at : at + len(ways)]
        cells = (f"{cost.ms_per_slide:.2f} ({cost.times_the_chosen:.1f}×)" for cost in each)
        shown.add_row(each[0].case, each[0].aggregate, *cells)
    return shown


if __name__ == "__main__":
    main()
