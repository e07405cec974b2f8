"""What the top-k core costs: against one comparison per event, and against doing the same job otherwise."""

from __future__ import annotations

import argparse
import heapq
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from acquatop.topk.contract import AnyArray, FloatArray, Rows, Top, TopK
from acquatop.topk.mintopk import MinTopk
from acquatop.topk.pane_dominance import PaneDominance
from benchmarks import core_aggregates

WINDOW = 1_000_000
KEYS = 100_000
ROUNDS = 3

Step = Callable[[int], object]
"""Does what one slide of the window asks for."""
Way = Callable[["Stream"], Step]
"""Returns the step of one way of doing the job, ready for the slides after the first whole window."""


@dataclass(frozen=True)
class Line:
    """One way of doing one job, and what it took."""

    job: str
    way: str
    ns_per_event: float
    times_the_floor: float | None = None
    note: str = ""


class Stream:
    """Scores in random order, and a window of some events that slides by some events."""

    def __init__(self, window: int, slide: int, slides: int, seed: int = 1) -> None:
        self.window, self.slide, self.slides = window, slide, slides
        self.panes = window // slide
        chance = np.random.default_rng(seed)
        self.scores = chance.random(window + slides * slide)
        self.positions = np.arange(len(self.scores))
        self.keys = chance.integers(0, KEYS, len(self.scores))

    def pane(self, number: int) -> slice:
        """Return where a pane's events stand."""
        return slice(number * self.slide, (number + 1) * self.slide)

    def content(self, close: int) -> slice:
        """Return where the events of the window stand that closes after so many slides."""
        return slice(close * self.slide, close * self.slide + self.window)

    def rows(self, number: int) -> Rows:
        """Return a pane's arrivals: what identifies each is its position."""
        at = self.pane(number)
        return Rows(self.positions[at], self.positions[at], self.keys[at], (self.scores[at],))


@dataclass
class Joined:
    """Scores that need a value of the remote's for their key, which may change."""

    values: FloatArray

    def merits(self, keys: AnyArray, parts: tuple[FloatArray, ...]) -> FloatArray:
        """Return the sum of the stream's and the remote's part."""
        return parts[0] + self.values[keys]

    def reach(self, lows: tuple[float, ...], highs: tuple[float, ...], keys: AnyArray | None = None) -> float:
        """Return the best that a sum can be."""
        return highs[0] + (1.0 if keys is None else float(self.values[keys].max()))


def structure(stream: Stream, made: Callable[[], TopK], before_close: Callable[[TopK], None] | None = None) -> Step:
    """Return the step of a structure that has seen a whole window."""
    held = made()

    def step(number: int) -> object:
        pane = number + stream.panes - 1
        held.add(number, pane, stream.rows(pane))
        if before_close is not None:
            before_close(held)
        top = held.top(number)
        held.close_before(number + 1)
        return top

    for pane in range(stream.panes - 1):
        held.add(0, pane, stream.rows(pane))
    step(0)
    return step


def floor(stream: Stream, k: int) -> Step:
    """Return the step of only comparing each event with the score that a pane's best have."""
    bar = 1 - k / stream.slide

    def step(number: int) -> object:
        return stream.scores[stream.pane(number + stream.panes - 1)] > bar

    return step


def partition(stream: Stream, k: int) -> Step:
    """Return the step of finding a pane's best, and nothing else."""
    return lambda number: np.partition(stream.scores[stream.pane(number + stream.panes - 1)], stream.slide - k)


def heap(stream: Stream, k: int) -> Step:
    """Return the step of a heap over the whole window."""
    scores = stream.scores.tolist()

    def step(number: int) -> object:
        at = stream.content(number)
        return heapq.nlargest(k, scores[at])

    return step


def in_duckdb(stream: Stream, k: int) -> Step:
    """Return the step of DuckDB's ORDER BY and LIMIT over the whole window."""
    database = duckdb.connect()
    database.register("given", pa.table({"position": stream.positions, "score": stream.scores}))
    database.execute("CREATE TABLE events AS FROM given")
    text = """SELECT position, score FROM events WHERE position >= ? AND position < ?
              ORDER BY score DESC, position DESC LIMIT ?"""

    def step(number: int) -> object:
        at = stream.content(number)
        return database.execute(text, [at.start, at.stop, k]).fetchnumpy()

    return step


def in_polars(stream: Stream, k: int) -> Step:
    """Return the step of polars' top_k over the whole window."""
    events = pl.DataFrame({"position": stream.positions, "score": stream.scores})

    def step(number: int) -> object:
        at = stream.content(number)
        return events.slice(at.start, stream.window).top_k(k, by=["score", "position"])

    return step


def timed(stream: Stream, made: Way, slides: int, rounds: int = ROUNDS) -> float:
    """Return the nanoseconds per event of the fastest round."""
    best = float("inf")
    for _ in range(rounds):
        step = made(stream)
        started = time.perf_counter()
        for number in range(1, slides + 1):
            step(number)
        best = min(best, time.perf_counter() - started)
    return 1e9 * best / (slides * stream.slide)


def changing(stream: Stream, k: int, n: int, share: float, certainties: list[str]) -> Step:
    """Return the step of Topk+N with a share of the remote's values changing before each close."""
    chance = np.random.default_rng(2)
    scoring = Joined(chance.random(KEYS))
    size = round(share * KEYS)
    changes = [(chance.choice(KEYS, size, replace=False), chance.random(size)) for _ in range(stream.slides + 1)]

    def change(held: TopK) -> None:
        keys, values = changes.pop()
        scoring.values[keys] = values
        held.change(keys)

    inner = structure(stream, partial(PaneDominance, k, n, scoring, distinct=True), change if share else None)

    def step(number: int) -> object:
        top = inner(number)
        assert isinstance(top, Top)
        certainties.append(top.certainty)
        return top

    return step


def array(k: int) -> Callable[[], TopK]:
    """Return what makes the array form for scores that never change."""
    return partial(PaneDominance, k, distinct=True, fixed=True)


def by_k(ks: Iterable[int]) -> Iterator[Line]:
    """Compare the ways for several k: windows of a million events that slide by a hundred thousand."""
    for k in ks:
        job = f"window 1M, slide 100K, k {k}"
        stream = Stream(WINDOW, WINDOW // 10, 30)
        base = timed(stream, partial(floor, k=k), 30)
        yield Line(job, "floor: scores > t", base, 1.0)
        ways: list[tuple[str, Way, int]] = [
            ("numpy partition of each pane", partial(partition, k=k), 30),
            ("pane dominance (arrays)", partial(structure, made=array(k)), 30),
            ("polars, each window anew", partial(in_polars, k=k), 5),
            ("DuckDB, each window anew", partial(in_duckdb, k=k), 5),
            ("heapq.nlargest, each window anew", partial(heap, k=k), 3),
            ("MinTopk on a sorted list", partial(structure, made=partial(MinTopk, k)), 2),
        ]
        for way, made, slides in ways:
            cost = timed(stream, made, slides, ROUNDS if slides > 5 else 1)
            yield Line(job, way, cost, cost / base)


def by_slide(k: int) -> Iterator[Line]:
    """Compare slides from a tenth to a ten-thousandth of the window."""
    for share, slides in ((10, 30), (100, 300), (1_000, 1_000), (10_000, 1_000)):
        stream = Stream(WINDOW, WINDOW // share, slides)
        job = f"window 1M, slide 1/{share} of it, k {k}"
        base = timed(stream, partial(floor, k=k), slides)
        for way, made, steps in (
            ("pane dominance (arrays)", partial(structure, made=array(k)), slides),
            ("polars, each window anew", partial(in_polars, k=k), 5),
        ):
            cost = timed(stream, made, steps, ROUNDS if steps > 5 else 1)
            yield Line(job, way, cost, cost / base)


def by_window(k: int) -> Iterator[Line]:
    """Let the window grow: the cost per event should not."""
    for window in (10_000, 100_000, 1_000_000, 10_000_000):
        slide = max(1_000, window // 10)
        stream = Stream(window, slide, 10)
        cost = timed(stream, partial(structure, made=array(k)), 10)
        yield Line(f"window {window:,}, slide a tenth, k {k}", "pane dominance (arrays)", cost)
    for window in (100_000, 1_000_000, 10_000_000):
        stream = Stream(window, 10_000, 100)
        cost = timed(stream, partial(structure, made=array(k)), 100)
        yield Line(f"window {window:,}, slide 10,000, k {k}", "pane dominance (arrays)", cost)


def with_changes(ks: Iterable[int]) -> Iterator[Line]:
    """Compare Topk+N, with 1 % of the remote's values changing before each close, with MinTopk on the same join."""
    for k in ks:
        job = f"joined with {KEYS:,} remote values, k {k}"
        stream = Stream(WINDOW, WINDOW // 10, 20)
        frozen = Joined(np.random.default_rng(2).random(KEYS))
        base = timed(stream, partial(floor, k=k), 20)
        fixed = timed(
            stream, partial(structure, made=partial(PaneDominance, k, 0, frozen, distinct=True, fixed=True)), 20
        )
        yield Line(job, "MinTopk's job (arrays), values that never change", fixed, fixed / base, "1.0 × MinTopk")
        for n in (0, k):
            certainties: list[str] = []
            cost = timed(stream, partial(changing, k=k, n=n, share=0.01, certainties=certainties), 20)
            exact = certainties.count("exact") / len(certainties)
            note = f"{cost / fixed:.1f} × MinTopk; {exact:.0%} of answers exact"
            yield Line(job, f"Topk+N (arrays), N {n}, 1 % changed", cost, cost / base, note)


def memory(ks: Iterable[int]) -> Iterator[Line]:
    """Count what is held, and how many bytes that takes, over ten thousand windows."""
    for k in ks:
        panes, slide = 10, 2_000
        held = PaneDominance(k, distinct=True, fixed=True)
        stream = Stream(panes * slide, slide, 100)
        sizes = []
        total = len(stream.scores) // slide
        started = time.perf_counter()
        for number in range(10_000):
            at = number % total
            held.add(max(0, number - panes + 1), number, stream.rows(at))
            if number >= panes - 1:
                held.top(number - panes + 1)
                sizes.append(len(held))
                held.close_before(number - panes + 2)
        seconds = time.perf_counter() - started
        law = k * sum(1 / each for each in range(1, panes + 1))
        early, late = statistics.mean(sizes[:1_000]), statistics.mean(sizes[-1_000:])
        note = (
            f"{early:.0f} held early, {late:.0f} after 10,000 windows (law {law:.0f}), {held.nbytes / late:.0f} B each"
        )
        yield Line(f"memory, 10 panes, k {k}", "pane dominance (arrays)", 1e9 * seconds / (10_000 * slide), None, note)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench core", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--quick", action="store_true", help="k 100 only, and no aggregates")
    options = parser.parse_args()
    ks = (100,) if options.quick else (10, 100, 1_000, 10_000)
    machine = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        **{package: version(package) for package in ("numpy", "duckdb", "polars", "sortedcontainers")},
    }
    console = Console(stderr=options.json)
    lines: list[Line] = []
    sections = (by_k(ks), by_slide(100), by_window(100), with_changes(ks[:3]), memory(ks[:3]))
    for title, section in zip(_TITLES, sections, strict=True):
        with console.status(title):
            found = list(section)
        lines += found
        if not options.json:
            console.print(_table(title, found))
    aggregates = [] if options.quick else core_aggregates.figures()
    if options.json:
        figures = [asdict(line) for line in lines]
        print(json.dumps({"machine": machine, "figures": figures, "aggregates": [asdict(each) for each in aggregates]}))
        return
    if aggregates:
        console.print(core_aggregates.table(aggregates))
    console.print(", ".join(f"{key} {value}" for key, value in machine.items()), style="dim")


_TITLES = (
    "k from 10 to 10,000",
    "the slide, from a tenth of the window to a ten-thousandth",
    "the window, from 10 thousand events to 10 million",
    "scores with a remote's values, which change",
    "what is held",
)


def _table(title: str, lines: Iterable[Line]) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in ("job", "way", "ns/event", "× floor", ""):
        table.add_column(heading, justify="right" if heading in ("ns/event", "× floor") else "left")
    job = ""
    for line in lines:
        times = "" if line.times_the_floor is None else f"{line.times_the_floor:,.1f}"
        table.add_row("" if line.job == job else line.job, line.way, f"{line.ns_per_event:,.2f}", times, line.note)
        job = line.job
    return table


if __name__ == "__main__":
    main()
