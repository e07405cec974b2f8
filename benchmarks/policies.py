"""Compare refresh policies, a clairvoyant one included, by their errors on generated traces."""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from acquatop.catalog.catalog import Catalog
from acquatop.ingest.reduce.job import reduced
from acquatop.lab.generate import KINDS, GeneratedTrace, Redrawn, generate
from acquatop.lab.generate.contract import KindOfChange
from acquatop.lab.generate.texts import CATALOG
from acquatop.lab.generate.trace import SLIDE, WIDTH
from acquatop.lab.replay.metrics import ndcg_at, precision_at, relevancies
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundQuery
from acquatop.query.contract import Tick
from acquatop.query.evaluation import TopKEvaluation
from benchmarks.clairvoyant import clairvoyant
from connectors.mapping import SUBJECT, TIME
from replica.budget import Budget
from replica.clocks import EventTime
from replica.maintainer import Maintainer
from replica.rankers import DEFAULT_RANKERS, Candidates, RankerRegistry
from replica.rankers.battery import sample_candidates
from replica.rankers.imp import ExpectedImpact
from replica.store import ReplicaStore, Solution
from rspql.scoring import vectorise

K, N = 5, 10
PAPERS = ("WSJ-RND", "WSJ-LRU", "WSJ-WBM", "AT-TSM", "AT-BSM")
OURS, LIMITED, KNOWING = "ANY-IMP", "AT-CLAIRVOYANT", "ANY-CLAIRVOYANT"
"""The default, the best among the candidates that K + N keep, and the best among all keys."""
POLICIES = (*PAPERS, OURS, LIMITED, KNOWING)
ITEMS = (1, 3, 7, 15)
"""Items per evaluation, asked for with one request or several."""
REQUESTS = ((1, 1), (3, 1), (1, 10), (3, 10), (1, 100))
"""Requests per evaluation, and items per request: one of 100 holds a whole window."""
CHANGES: dict[str, KindOfChange] = {**KINDS, "redrawn 60": Redrawn(60.0)}
FIRST_SEED = 20_190
_OF, _COUNT = "http://example.org/social#of", "http://example.org/social#count"
_NOTHING, _WIDTH = 1e-6, 160
_USER = "http://example.org/user/"
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Case:
    """One run: trace, policy, and the budget of each close in items and requests."""

    kind: str
    seed: int
    windows: int
    policy: str
    items: int
    requests: int = 1


class Recording:
    """A trace in memory, and the right answers of its windows."""

    def __init__(self, trace: GeneratedTrace) -> None:
        self.trace = trace
        mentions, changes = trace.mentions, trace.changes
        self.closes = [1000 * (SLIDE * window + WIDTH) for window in range(trace.windows)]
        self.bound = _bound(trace.query)
        mapping = self.bound.stream.mapping
        known = {
            TIME: pa.array(mentions.times_ms),
            SUBJECT: pa.array(
                [f"<http://example.org/mention/{row}>" for row in range(len(mentions))]
            ),
            mapping.column(_OF): pa.array(
                [f"<{_USER}{user}>" for user in mentions.users.tolist()]
            ).dictionary_encode(),
            mapping.column(_COUNT): pa.array(np.ones(len(mentions), dtype=np.int64)),
        }
        columns = [
            known.get(each.name, pa.nulls(len(mentions), each.type)) for each in mapping.schema
        ]
        self.records = pa.record_batch(columns, schema=mapping.schema)
        self._score = vectorise(self.bound.plan.score.expression, self.bound.plan.score.functions)
        self.values = np.empty((trace.windows + 1, trace.users))
        values, begin = np.empty(trace.users), 0
        # The last row holds the initial values.
        for at, time_ms in enumerate([0, *self.closes], start=-1):
            end = int(np.searchsorted(changes.times_ms, time_ms, side="right"))
            values[changes.users[begin:end]] = changes.values[begin:end]
            begin, self.values[at] = end, values

    def batch(self, window: int) -> pa.RecordBatch:
        """Return the events between the previous close and a window's own."""
        after = self.closes[window] - 1000 * (SLIDE if window else WIDTH)
        begin, end = np.searchsorted(
            self.trace.mentions.times_ms, [after, self.closes[window]], side="right"
        ).tolist()
        return self.records.slice(begin, end - begin)

    def merits(self, window: int) -> FloatArray:
        """Return every user's true merit at a window's close; minus infinity if not in it."""
        times, close = self.trace.mentions.times_ms, self.closes[window]
        begin, end = np.searchsorted(times, [close - 1000 * WIDTH, close], side="right").tolist()
        counts = np.bincount(
            self.trace.mentions.users[begin:end], minlength=self.trace.users
        ).astype(np.float64)
        score = self.bound.plan.score
        columns = {
            score.stream_variables[0]: counts,
            score.remote_variables[0]: self.values[window],
        }
        return np.where(counts > 0, self._score(columns), -np.inf)

    def window_at(self, now: float) -> int:
        """Return the window that closes at a time; the last index stands for the start."""
        return self.closes.index(round(1000 * now)) if now else len(self.closes)


class Remote:
    """Remote with the trace's values at the time that a clock shows."""

    def __init__(self, recording: Recording, now: EventTime, most: int) -> None:
        self.block_size = most
        self._recording = recording
        self._now = now

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        """Return the present values of some users."""
        return [self._solution(int(key[1:-1].removeprefix(_USER))) for key in keys]

    def load(self, timeout: float, may_ask: object = None) -> Iterator[list[Solution]]:
        """Yield the present values of all users."""
        yield [self._solution(user) for user in range(self._recording.trace.users)]

    def _solution(self, user: int) -> Solution:
        value = self._recording.values[self._recording.window_at(self._now()), user]
        return {
            "user": f"<{_USER}{user}>",
            "gain": f'"{float(value)!r}"^^<http://www.w3.org/2001/XMLSchema#double>',
        }


def run(case: Case) -> FloatArray:
    """Return each answer's shortfall from an nDCG and a precision of 1."""
    recording = recorded(case.kind, case.seed, case.windows)
    service, now = recording.bound.service, EventTime()
    assert service is not None
    budget = Budget(case.items, case.requests, 60.0)
    service = replace(
        service, refresh=replace(service.refresh, policy=case.policy, n=N, budget=budget)
    )
    bound = replace(recording.bound, service=service)
    store = ReplicaStore("user", ["gain"])
    maintainer = Maintainer(
        store, Remote(recording, now, case.items // case.requests), budget, now=now
    )
    maintainer.load()
    rankers = _rankers(recording, store, now)
    random = np.random.default_rng(case.seed)
    evaluation = TopKEvaluation(
        bound, maintainer, clock=lambda: 0.0, rankers=rankers, random=random, expects=False
    )
    evaluation.join(bound, {})
    stream = bound.stream.iri
    errors = []
    for window, close in enumerate(recording.closes):
        parts = list(reduced(recording.batch(window), evaluation.reducers(stream)))
        evaluation.add(stream, parts, evaluation.names)
        merits = recording.merits(window)
        right = [
            user
            for user in np.argsort(-merits, kind="stable")[:K].tolist()
            if merits[user] > -np.inf
        ]
        relevance = relevancies(right)
        for answer in evaluation.advance(Tick(stream, close, 0.0)):
            users = [int(str(row.bindings["user"]).removeprefix(_USER)) for row in answer.rows]
            errors.append((1 - ndcg_at(K, users, relevance), 1 - precision_at(K, users, relevance)))
    assert len(errors) == case.windows
    return np.array(errors)


def _rankers(recording: Recording, store: ReplicaStore, now: EventTime) -> RankerRegistry:
    def truth(candidates: Candidates) -> FloatArray:
        users = [int(key[1:-1].removeprefix(_USER)) for key in store.keys(candidates.rows)]
        return recording.merits(recording.window_at(now()))[users]

    return DEFAULT_RANKERS.with_ranker("CLAIRVOYANT", clairvoyant(truth))


@lru_cache(maxsize=2)
def recorded(kind: str, seed: int, windows: int) -> Recording:
    """Return a generated trace; the last two are cached."""
    return Recording(generate(CHANGES[kind], seed=seed, windows=windows))


def _bound(query: str) -> BoundQuery:
    bound = bind_query(query, Catalog.parse(CATALOG, file=Path("catalog.toml"), variables={}))
    assert isinstance(bound, BoundQuery)
    return bound


# Results ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Errors:
    """Errors over all windows of each trace, of nDCG and of precision."""

    of_traces: FloatArray

    @property
    def means(self) -> FloatArray:
        """Means over the traces."""
        return np.asarray(self.of_traces.mean(axis=0))

    @property
    def margins(self) -> FloatArray:
        """Margins of the means (95 %, by bootstrap over the traces)."""
        random = np.random.default_rng(1)
        again = random.integers(0, len(self.of_traces), (1000, len(self.of_traces)))
        low, high = np.quantile(self.of_traces[again].mean(axis=1), [0.025, 0.975], axis=0)
        return np.asarray((high - low) / 2)


Found = dict[tuple[str, str, tuple[int, int]], Errors]
"""By kind of change, policy, and budget: number of requests, and items per request."""


def measure(
    kinds: Sequence[str],
    budgets: Sequence[tuple[int, int]],
    seeds: Sequence[int],
    windows: int,
    processes: int,
) -> Found:
    """Run all policies with all budgets over all traces."""
    cases = [
        Case(kind, seed, windows, policy, requests * items, requests)
        for kind, seed, (requests, items), policy in itertools.product(
            kinds, seeds, budgets, POLICIES
        )
    ]
    with ProcessPoolExecutor(processes) as pool:
        sums = [errors.sum(axis=0) for errors in pool.map(run, cases, chunksize=len(POLICIES))]
    found: dict[tuple[str, str, tuple[int, int]], list[FloatArray]] = {}
    for case, errors in zip(cases, sums, strict=True):
        found.setdefault(
            (case.kind, case.policy, (case.requests, case.items // case.requests)), []
        ).append(errors)
    return {key: Errors(np.array(several)) for key, several in found.items()}


def report(found: Found, windows: int) -> None:
    """Print tables: one per kind of change, one over all, one of requests with several items."""
    kinds = list(dict.fromkeys(kind for kind, _, _ in found))
    budgets = [
        budget for budget in dict.fromkeys(budget for _, _, budget in found) if budget[0] == 1
    ]
    for kind in kinds:
        table = _table(
            f"{kind}: error of nDCG / precision, summed up over {windows} windows",
            budgets,
            "policy",
        )
        for policy in POLICIES:
            table.add_row(policy, *(_cell(found[kind, policy, budget]) for budget in budgets))
        Console(width=_WIDTH).print(table)
    title = (
        f"{OURS}'s error, by how much it differs from that of the papers' best (share of the gap "
        f"to {KNOWING} closed)"
    )
    table = _table(title, budgets)
    for metric, name in enumerate(("nDCG", "precision")):
        shares = np.array(
            [[_compared(found, kind, budget, metric) for budget in budgets] for kind in kinds]
        )
        for kind, of_kind in zip(kinds, shares, strict=True):
            table.add_row(f"{name}, {kind}", *map(_shares, of_kind))
        table.add_row(f"{name}, on average", *map(_shares, shares.mean(axis=0)))
    Console(width=_WIDTH).print(table)
    Console(width=_WIDTH).print(_by_requests(found, kinds, windows))


def _by_requests(found: Found, kinds: Sequence[str], windows: int) -> Table:
    """Return the mean errors over all kinds, by requests; the policy groups items into requests."""
    table = Table(
        "requests of items",
        title=f"error of nDCG / precision over {windows} windows, mean of all kinds",
    )
    for policy in POLICIES:
        table.add_column(policy, justify="right")
    for budget in (each for each in REQUESTS if (kinds[0], OURS, each) in found):
        means = [
            np.mean([found[kind, policy, budget].means for kind in kinds], axis=0)
            for policy in POLICIES
        ]
        table.add_row(
            f"{budget[0]} of {budget[1]}",
            *(f"{ndcg:.1f} / {precision:.1f}" for ndcg, precision in means),
        )
    return table


def _table(title: str, budgets: Sequence[tuple[int, int]], first: str = "") -> Table:
    table = Table(first, title=title)
    for _, items in budgets:
        table.add_column(f"{items} item{'s' * (items > 1)}", justify="right")
    return table


def _cell(errors: Errors) -> str:
    (ndcg, precision), (ndcg_by, precision_by) = errors.means, errors.margins
    return f"{ndcg:.1f}±{ndcg_by:.1f} / {precision:.1f}±{precision_by:.1f}"


def _shares(shares: FloatArray) -> str:
    change, gap = shares.tolist()
    return f"{change:+.0%} ({gap:.0%})"


def _compared(found: Found, kind: str, budget: tuple[int, int], metric: int) -> tuple[float, float]:
    """Return the relative difference to the papers' best error, and the share of the gap closed."""
    papers = min(float(found[kind, policy, budget].means[metric]) for policy in PAPERS)
    ours, knowing = (float(found[kind, policy, budget].means[metric]) for policy in (OURS, KNOWING))
    if papers - knowing < _NOTHING:
        return ours - papers, 1.0  # no errors at all
    return ours / papers - 1, (papers - ours) / (papers - knowing)


def milliseconds(candidates: int, times: int = 20) -> float:
    """Return the median milliseconds to rank candidates, sampling of their merits included."""
    random = np.random.default_rng(1)
    merits = -np.sort(-random.normal(size=candidates))

    def outlook(at: IntArray, count: int) -> FloatArray:
        return merits[at] + random.standard_normal((count, len(at)))

    given = replace(sample_candidates(candidates), merits=merits, outlook=outlook)
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        ExpectedImpact()(given)
        taken.append(time.perf_counter() - started)
    return 1000 * float(np.median(taken))


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench policies", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer traces and windows")
    parser.add_argument(
        "--kinds", nargs="+", choices=CHANGES, default=list(CHANGES), help="how values change (all)"
    )
    parser.add_argument(
        "--items", nargs="+", type=int, default=ITEMS, help="budgets per evaluation (%(default)s)"
    )
    parser.add_argument(
        "--requests", action="store_true", help="requests that carry several items each, too"
    )
    parser.add_argument("--traces", type=int, help="how many traces of each kind (3, quick 2)")
    parser.add_argument("--windows", type=int, help="how many windows of each (150, quick 60)")
    parser.add_argument(
        "--seed", type=int, default=FIRST_SEED, help="of the first trace (%(default)s)"
    )
    parser.add_argument(
        "--processes", type=int, default=2, help="how many runs at once (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    windows = options.windows or (60 if options.quick else 150)
    seeds = range(options.seed, options.seed + (options.traces or (2 if options.quick else 3)))
    budgets = dict.fromkeys(
        [*((1, items) for items in options.items), *(REQUESTS if options.requests else ())]
    )
    found = measure(options.kinds, [*budgets], seeds, windows, options.processes)
    ranking = milliseconds(10_000)
    if options.json:
        rows = [
            (*key[:2], *key[2], *errors.means.tolist(), *errors.margins.tolist())
            for key, errors in found.items()
        ]
        print(json.dumps({"errors": rows, "milliseconds to rank 10 000": ranking}))
        return
    report(found, windows)
    print(f"to rank 10 000 candidates takes {ranking:.1f} ms")


if __name__ == "__main__":
    main()
