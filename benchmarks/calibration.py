"""Compare the expected with the actual quality of answers, on recordings like the paper's."""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from acquatop.catalog.catalog import Catalog
from acquatop.lab.replay.metrics import ndcg_at, precision_at, relevancies
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundQuery
from replica.clocks import EventTime
from replica.maintainer import Maintainer
from replica.store import ReplicaStore, Solution
from tests.support.single_query import ContinuousQuery
from tests.support.worlds import catalog_text

K, USERS, WINDOWS = 5, 400, 150
SLIDE_MS, WIDTH_MS = 60_000, 100_000
MOST_MENTIONS = 16
MENTIONS_PER_SECOND = 0.38
DATA = ("DS-CH-20", "DS-CH-80", "raw counts")
KEPT = ("0", "10", "refill")
BUDGETS = (1, 3, 7, 15)
POLICIES = ("AT-TSM", "AT-BSM", "AT-LRU")
MEASURES = ("precision", "nDCG")
BINS, FILLED, TOLERANCE = 10, 100, 0.05
STREAM = "http://example.org/stream"
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

QUERY = """
PREFIX : <http://example.org/>
SELECT ?user (0.7 * norm(?mentions, 0, {most}) + 0.3 * norm(?followers, {low}, {high}) AS ?score)
FROM NAMED WINDOW :w ON :stream [RANGE {width}ms STEP {slide}ms]
WHERE {{
  WINDOW :w {{ ?user :mentions ?mentions }}
  SERVICE :people {{ ?user :followers ?followers }}
}}
ORDER BY DESC(?score) LIMIT {k}
"""


@dataclass(frozen=True)
class Case:
    """One run: the recording, the number of candidates kept, and the refresh of the replica."""

    data: str
    kept: str
    items: int
    policy: str
    seed: tuple[int, ...]
    cold: bool = False

    def bind(self, recording: Recording) -> BoundQuery:
        """Return the query, bound to the stream and the remote."""
        low, high = recording.range
        query = QUERY.format(
            most=MOST_MENTIONS, low=low, high=high, width=WIDTH_MS, slide=SLIDE_MS, k=K
        )
        refill = self.kept == "refill"
        n = 0 if refill else int(self.kept)
        catalog = catalog_text(
            arrivals="all",
            start="start_ms = 0",
            policy=self.policy,
            n=n,
            refill=str(refill).lower(),
            items=self.items,
            requests=1,
        )
        bound = bind_query(query, Catalog.parse(catalog, file=Path("catalog.toml"), variables={}))
        assert isinstance(bound, BoundQuery)
        return bound


@dataclass(frozen=True)
class Recording:
    """Mentions of users over time, and each user's followers per minute, or their increase.

    ``range`` are the remote's numbers that the score maps to 0 and 1.
    """

    times: IntArray
    users: IntArray
    mentions: IntArray
    followers: FloatArray
    range: tuple[int, int]

    def lines(self, after: int, until: int) -> pa.Array:
        """Return the events of a period as lines of JSON."""
        here = (self.times > after) & (self.times <= until)
        rows = zip(
            self.times[here].tolist(),
            self.users[here].tolist(),
            self.mentions[here].tolist(),
            strict=True,
        )
        return pa.array(
            [
                json.dumps({"t": t, "user": f"u{user}", "mentions": count}).encode()
                for t, user, count in rows
            ],
            pa.binary(),
        )

    def at(self, seconds: float) -> FloatArray:
        """Return the remote's value of each user at a time."""
        minute: FloatArray = self.followers[int(seconds // 60)]
        return minute

    def truth(self, opens: int, closes: int) -> list[int]:
        """Return a window's best users, best first, by brute force."""
        here = (self.times > opens) & (self.times <= closes)
        rows = zip(
            self.users[here].tolist(),
            self.times[here].tolist(),
            self.mentions[here].tolist(),
            strict=True,
        )
        newest = {user: (t, count) for user, t, count in rows}
        low, high = self.range
        normed = np.clip((self.at(closes / 1000) - low) / (high - low), 0, 1)
        scored = [
            (-(0.7 * min(1.0, count / MOST_MENTIONS) + 0.3 * float(normed[user])), -t, user)
            for user, (t, count) in newest.items()
        ]
        return [user for _, _, user in sorted(scored)[:K]]


def record(data: str, seed: tuple[int, ...], windows: int) -> Recording:
    """Return a random recording."""
    chance = np.random.default_rng(seed)
    end = windows * SLIDE_MS + WIDTH_MS
    popularity = chance.permutation(1 / np.arange(1, USERS + 1) ** 0.9)
    count = chance.poisson(MENTIONS_PER_SECOND * end / 1000)
    times = np.sort(chance.choice(end, count, replace=False)) + 1
    users = chance.choice(USERS, count, p=popularity / popularity.sum())
    minutes = end // 60_000 + 2
    followers = (
        _counts(chance, minutes)
        if data == "raw counts"
        else _gains(chance, minutes, int(data.split("-")[2]))
    )
    bounds = (0, 1_000_000) if data == "raw counts" else (-150, 150)
    return Recording(times, users, _mentions(times, users), followers, bounds)


def _mentions(times: IntArray, users: IntArray) -> IntArray:
    """Return each event's number of mentions of its user, within the window's width before it."""
    counts = np.empty(len(times), dtype=np.int64)
    for user in range(USERS):
        at = np.flatnonzero(users == user)
        counts[at] = np.arange(1, len(at) + 1) - np.searchsorted(
            times[at], times[at] - WIDTH_MS, side="right"
        )
    return counts


def _gains(chance: np.random.Generator, minutes: int, changes: int) -> FloatArray:
    """Return each user's gain of followers per minute, or that of the minute before (DS-CH-x)."""
    level, spread = chance.normal(0, 20, USERS), 30 * chance.lognormal(0, 0.5, USERS)
    rows: list[FloatArray] = []
    for _ in range(minutes):
        drawn = np.round(level + spread * chance.standard_t(4, USERS), 3)
        is_new = chance.random(USERS) < changes / 84
        rows.append(np.where(is_new, drawn, rows[-1]) if rows else drawn)
    return np.array(rows)


def _counts(chance: np.random.Generator, minutes: int) -> FloatArray:
    """Return each user's followers: per minute about six in a hundred grow, some more often."""
    rates = np.minimum(1.0, 0.06 * chance.gamma(0.7, 1 / 0.7, USERS))
    rows = [np.round(10 ** chance.normal(5, 0.8, USERS))]
    for _ in range(minutes - 1):
        grown = np.ceil(rows[-1] * chance.exponential(0.02, USERS))
        rows.append(rows[-1] + np.where(chance.random(USERS) < rates, grown, 0.0))
    return np.array(rows)


class Remote:
    """Recorded followers, in memory, at the time that a clock shows."""

    block_size = 100

    def __init__(self, recording: Recording, now: EventTime) -> None:
        self._recording = recording
        self._now = now

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        """Return the present values of some users."""
        followers = self._recording.at(self._now())
        return [_solution(int(key[1:-1].rpartition("/u")[2]), followers) for key in keys]

    def load(self, timeout: float, may_ask: object = None) -> Iterator[list[Solution]]:
        """Yield the present values of all users."""
        yield [_solution(user, self._recording.at(self._now())) for user in range(USERS)]


def _solution(user: int, followers: FloatArray) -> Solution:
    number = f'"{followers[user]:.3f}"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    return {"user": f"<http://example.org/user/u{user}>", "followers": number}


def run(case: Case, windows: int = WINDOWS) -> FloatArray:
    """Return per answer: expected and actual precision, expected and actual nDCG."""
    recording = record(case.data, case.seed, windows)
    bound, now = case.bind(recording), EventTime()
    store = ReplicaStore("user", ["followers"])
    assert bound.service is not None
    maintainer = Maintainer(store, Remote(recording, now), bound.service.refresh.budget, now=now)
    if not case.cold:
        maintainer.load()
    query = ContinuousQuery(
        bound, maintainer, clock=lambda: 0.0, random=np.random.default_rng(case.seed)
    )
    found, until = [], 0
    for window in range(windows):
        after, until = until, window * SLIDE_MS + WIDTH_MS
        query.add(
            STREAM,
            bound.stream.mapping.records(
                pa.record_batch([recording.lines(after, until)], ["value"])
            ),
        )
        for answer in query.advance(STREAM, until):
            relevance = relevancies(recording.truth(answer.opens_ms, answer.closes_ms))
            users = [int(str(row.bindings["user"]).rpartition("/u")[2]) for row in answer.rows]
            assert answer.expected is not None
            precision, ndcg = precision_at(K, users, relevance), ndcg_at(K, users, relevance)
            found.append((answer.expected.precision, precision, answer.expected.ndcg, ndcg))
    return np.array(found)


@dataclass(frozen=True)
class Bin:
    """Answers of about the same expected quality."""

    expected: float
    actual: float
    count: int

    @property
    def deviation(self) -> float:
        """Actual less expected quality."""
        return self.actual - self.expected


def reliability(expected: FloatArray, actual: FloatArray) -> list[Bin]:
    """Return the non-empty bins, the lowest first."""
    at = np.minimum((expected * BINS).astype(np.int64), BINS - 1)
    return [
        Bin(
            float(expected[at == each].mean()),
            float(actual[at == each].mean()),
            int((at == each).sum()),
        )
        for each in np.unique(at).tolist()
    ]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench calibration", description=__doc__)
    default = Path(__file__).parents[1] / "docs" / "calibration.svg"
    parser.add_argument(
        "--out", type=Path, default=default, help="where to write the picture (%(default)s)"
    )
    parser.add_argument(
        "--windows", type=int, default=WINDOWS, help="how many windows per run (%(default)s)"
    )
    parser.add_argument(
        "--repeats", type=int, default=2, help="how many recordings for each case (%(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=2019, help="what the recordings are made from (%(default)s)"
    )
    parser.add_argument(
        "--processes", type=int, default=2, help="how many runs at once (%(default)s)"
    )
    parser.add_argument("--cold", action="store_true", help="start with an empty replica")
    options = parser.parse_args()
    # Each run has a recording of its own: runs over the same one would have correlated errors.
    cases = [
        Case(*each, seed=(options.seed, repeat, number), cold=options.cold)
        for repeat in range(options.repeats)
        for number, each in enumerate(itertools.product(DATA, KEPT, BUDGETS, POLICIES))
    ]
    started = time.perf_counter()
    with ProcessPoolExecutor(options.processes) as processes:
        runs = list(processes.map(run, cases, itertools.repeat(options.windows), chunksize=2))
    of_data = {
        data: np.concatenate(
            [each for case, each in zip(cases, runs, strict=True) if case.data == data]
        )
        for data in DATA
    }
    print_tables({"all": np.concatenate(runs), **of_data})
    print_cases(cases, runs)
    draw(of_data, np.concatenate(runs)).savefig(options.out, metadata={"Date": None})
    print(f"{sum(map(len, runs)):,} answers in {time.perf_counter() - started:.0f} s")


def print_tables(answers: dict[str, FloatArray]) -> None:
    """Print expected and actual quality, by bins."""
    for at, measure in enumerate(MEASURES):
        table = Table(title=f"{measure}: expected → actual (answers)")
        for heading in ("bin", *answers):
            table.add_column(heading, justify="right")
        bins = {
            name: reliability(*each[:, 2 * at : 2 * at + 2].T) for name, each in answers.items()
        }
        for number in range(BINS):
            cells = [
                [each for each in of if min(int(each.expected * BINS), BINS - 1) == number]
                for of in bins.values()
            ]
            texts = [
                f"{of[0].expected:.3f} → {of[0].actual:.3f} ({of[0].count:,})" if of else ""
                for of in cells
            ]
            if any(texts):
                table.add_row(f"{number / BINS:.1f}", *texts)
        largest = [
            max((abs(each.deviation) for each in of if each.count >= FILLED), default=0.0)
            for of in bins.values()
        ]
        table.add_row(
            f"largest, of bins with {FILLED} or more", *(f"{each:.3f}" for each in largest)
        )
        Console(width=150).print(table)


def print_cases(cases: Sequence[Case], runs: Sequence[FloatArray]) -> None:
    """Print the mean qualities, by each parameter of the runs."""
    table = Table(title="on average: expected → actual")
    for heading in ("", *MEASURES):
        table.add_column(heading)
    for name in ("data", "kept", "items", "policy"):
        for value in dict.fromkeys(getattr(case, name) for case in cases):
            found = np.concatenate(
                [run for case, run in zip(cases, runs, strict=True) if getattr(case, name) == value]
            )
            means = found.mean(axis=0)
            table.add_row(
                f"{name} {value}",
                f"{means[0]:.3f} → {means[1]:.3f}",
                f"{means[2]:.3f} → {means[3]:.3f}",
            )
    Console(width=150).print(table)


def draw(of_data: dict[str, FloatArray], together: FloatArray) -> Figure:
    """Return the picture: actual over expected quality."""
    mpl.rcParams["svg.hashsalt"] = "calibration"
    figure = Figure(figsize=(9, 4.6), layout="constrained")
    for at, (axes, measure) in enumerate(zip(figure.subplots(1, 2), MEASURES, strict=True)):
        axes.fill_between(
            [0, 1],
            [-TOLERANCE, 1 - TOLERANCE],
            [TOLERANCE, 1 + TOLERANCE],
            color="0.9",
            linewidth=0,
        )
        axes.plot([0, 1], [0, 1], color="0.6", linewidth=0.8)
        for name, answers in of_data.items():
            bins = [
                each
                for each in reliability(*answers[:, 2 * at : 2 * at + 2].T)
                if each.count >= FILLED
            ]
            axes.plot(
                [each.expected for each in bins],
                [each.actual for each in bins],
                "o",
                markersize=3,
                label=name,
            )
        bins = [
            each
            for each in reliability(*together[:, 2 * at : 2 * at + 2].T)
            if each.count >= FILLED
        ]
        axes.plot(
            [each.expected for each in bins],
            [each.actual for each in bins],
            "k-",
            linewidth=1,
            label="all",
        )
        for each in bins:
            axes.annotate(
                f"{each.count:,}", (each.expected, 0.02), fontsize=6, ha="center", rotation=90
            )
        axes.set(
            xlabel=f"expected {measure}",
            ylabel=f"actual {measure}",
            xlim=(0, 1),
            ylim=(0, 1),
            aspect="equal",
        )
        axes.legend(loc="upper left", fontsize=8, frameon=False)
    figure.suptitle(
        f"What answers are worth: {len(together):,} of them, in bins with {FILLED} or more "
        "(counted below)"
    )
    return figure


if __name__ == "__main__":
    main()
