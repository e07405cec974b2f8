"""Measure the top-k core: against one comparison per event, and against other algorithms."""

from __future__ import annotations

import argparse
import heapq
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
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
from acquatop.topk.pane_dominance import PaneDominance
from acquatop.topk.papers.mintopk.mintopk import MinTopk
from acquatop.topk.refill.controller import Controller
from acquatop.topk.refill.refilled import Refilled
from benchmarks import core_aggregates

WINDOW = 1_000_000
KEYS = 100_000
FLOOR = "floor: scores > t"
ARRAYS = "pane dominance (arrays)"

Step = Callable[[int], object]
"""Function that performs one slide of the window."""
Way = Callable[["Stream"], Step]
"""Factory of the step of one way, which then starts after the first whole window."""


@dataclass(frozen=True)
class Line:
    """One way of doing one job, and its cost."""

    job: str
    way: str
    ns_per_event: float
    times_the_floor: float | None = None
    note: str = ""


class Stream:
    """Random scores, and a window of some events that slides by some events."""

    def __init__(self, window: int, slide: int, slides: int, seed: int = 1) -> None:
        self.window, self.slide, self.slides = window, slide, slides
        self.panes = window // slide
        chance = np.random.default_rng(seed)
        self.scores = chance.random(window + slides * slide)
        self.positions = np.arange(len(self.scores))
        self.keys = chance.integers(0, KEYS, len(self.scores))

    def pane(self, number: int) -> slice:
        """Return the range of a pane's events."""
        return slice(number * self.slide, (number + 1) * self.slide)

    def content(self, close: int) -> slice:
        """Return the range of the window that closes after a number of slides."""
        return slice(close * self.slide, close * self.slide + self.window)

    def rows(self, number: int) -> Rows:
        """Return a pane's arrivals, identified by their positions."""
        at = self.pane(number)
        return Rows(self.positions[at], self.positions[at], self.keys[at], (self.scores[at],))


@dataclass
class Joined:
    """Scores that depend on the remote's value of their key, which may change."""

    values: FloatArray

    def merits(self, keys: AnyArray, parts: tuple[FloatArray, ...]) -> FloatArray:
        """Return the sum of the stream's and the remote's part."""
        return parts[0] + self.values[keys]

    def reach(
        self, lows: tuple[float, ...], highs: tuple[float, ...], keys: AnyArray | None = None
    ) -> float:
        """Return an upper bound of the sums."""
        return highs[0] + (1.0 if keys is None else float(self.values[keys].max()))


def structure(
    stream: Stream, made: Callable[[], TopK], before_close: Callable[[TopK], None] | None = None
) -> Step:
    """Return the step of a structure that has processed a whole window."""
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
    """Return the step that only compares each event with a pane's k-th best score."""
    bar = 1 - k / stream.slide

    def step(number: int) -> object:
        return stream.scores[stream.pane(number + stream.panes - 1)] > bar

    return step


def partition(stream: Stream, k: int) -> Step:
    """Return the step that only finds a pane's best."""
    return lambda number: np.partition(
        stream.scores[stream.pane(number + stream.panes - 1)], stream.slide - k
    )


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


def timed(stream: Stream, ways: Mapping[str, Way], slides: int) -> dict[str, float]:
    """Return the nanoseconds per event of each way, the median of its slides.

    The ways take turns slide by slide, so that other load on the machine affects all alike.
    """
    steps = {name: way(stream) for name, way in ways.items()}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(1, slides + 1):
        for name, step in steps.items():
            started = time.perf_counter()
            step(number)
            seconds[name].append(time.perf_counter() - started)
    return {name: 1e9 * statistics.median(each) / stream.slide for name, each in seconds.items()}


def changing(
    stream: Stream, k: int, n: int, certainties: list[str], *, refill: bool = False
) -> Step:
    """Return the step of Topk+N with 1 % of the remote's values changing before each close."""
    chance = np.random.default_rng(2)
    scoring = Joined(chance.random(KEYS))
    size = KEYS // 100
    changes = [
        (chance.choice(KEYS, size, replace=False), chance.random(size))
        for _ in range(stream.slides + 1)
    ]

    def change(held: TopK) -> None:
        keys, values = changes.pop()
        scoring.values[keys] = values
        held.change(keys)

    plain = partial(PaneDominance, k, scoring=scoring, distinct=True)

    def made() -> TopK:
        controller = Controller(k, k + n)
        return (
            Refilled(plain, scoring, controller, distinct=True, in_order=False)
            if refill
            else plain(n)
        )

    inner = structure(stream, made, change)

    def step(number: int) -> object:
        top = inner(number)
        assert isinstance(top, Top)
        certainties.append(top.certainty)
        return top

    return step


def array(k: int) -> Callable[[], TopK]:
    """Return a factory of the array structure for scores that never change."""
    return partial(PaneDominance, k, distinct=True, fixed=True)


def by_k(ks: Iterable[int]) -> Iterator[Line]:
    """Compare the ways for several k, on windows of a million events and slides of 100 000."""
    for k in ks:
        stream = Stream(WINDOW, WINDOW // 10, 40)
        light: dict[str, Way] = {
            FLOOR: partial(floor, k=k),
            "numpy partition of each pane": partial(partition, k=k),
            ARRAYS: partial(structure, made=array(k)),
        }
        heavy: dict[str, Way] = {
            "polars, each window anew": partial(in_polars, k=k),
            "DuckDB, each window anew": partial(in_duckdb, k=k),
            "heapq.nlargest, each window anew": partial(heap, k=k),
            "MinTopk on a sorted list": partial(structure, made=partial(MinTopk, k)),
        }
        costs = timed(stream, light, 40) | timed(stream, heavy, 5)
        yield from _lines(f"window 1M, slide 100K, k {k}", costs)


def by_slide(k: int) -> Iterator[Line]:
    """Compare slides from a tenth to a ten-thousandth of the window."""
    for share, slides in ((10, 40), (100, 300), (1_000, 1_000), (10_000, 1_000)):
        stream = Stream(WINDOW, WINDOW // share, slides)
        costs = timed(
            stream, {FLOOR: partial(floor, k=k), ARRAYS: partial(structure, made=array(k))}, slides
        )
        costs |= timed(stream, {"DuckDB, each window anew": partial(in_duckdb, k=k)}, 5)
        yield from _lines(f"window 1M, slide {stream.slide:,}, k {k}", costs)


def by_window(k: int) -> Iterator[Line]:
    """Measure growing windows: the cost per event should not grow."""
    for slide in (1_000, 10_000, 100_000):
        for window in (10_000, 100_000, 1_000_000, 10_000_000):
            if window >= 10 * slide:
                stream = Stream(window, slide, 60)
                costs = timed(stream, {ARRAYS: partial(structure, made=array(k))}, 60)
                yield Line(f"window {window:,}, slide {slide:,}, k {k}", ARRAYS, costs[ARRAYS])


def with_changes(ks: Iterable[int]) -> Iterator[Line]:
    """Compare Topk+N on changing remote values, 1 % per close, with MinTopk on the same join."""
    for k in ks:
        stream = Stream(WINDOW, WINDOW // 10, 30)
        frozen = Joined(np.random.default_rng(2).random(KEYS))
        fixed = "MinTopk's job (arrays), values that never change"
        certainties: dict[str, list[str]] = {
            f"Topk+N (arrays), N {n}, 1 % changed": [] for n in (0, k)
        }
        refilled = f"Topk+N (arrays), N {k} at first, 1 % changed, refilled"
        certainties[refilled] = []
        ways: dict[str, Way] = {
            FLOOR: partial(floor, k=k),
            fixed: partial(
                structure, made=partial(PaneDominance, k, 0, frozen, distinct=True, fixed=True)
            ),
            **{
                name: partial(changing, k=k, n=n, certainties=certainties[name])
                for name, n in zip(certainties, (0, k, k), strict=True)
            },
            refilled: partial(changing, k=k, n=k, certainties=certainties[refilled], refill=True),
        }
        costs = timed(stream, ways, 30)
        notes = {
            name: (
                f"{costs[name] / costs[fixed]:.1f} × MinTopk; "
                f"{each.count('exact') / len(each):.0%} of answers exact"
            )
            for name, each in certainties.items()
        }
        yield from _lines(f"joined with {KEYS:,} remote values, k {k}", costs, notes)


def _lines(
    job: str, costs: Mapping[str, float], notes: Mapping[str, str] | None = None
) -> Iterator[Line]:
    for way, cost in costs.items():
        yield Line(job, way, cost, cost / costs[FLOOR], (notes or {}).get(way, ""))


def memory(ks: Iterable[int]) -> Iterator[Line]:
    """Measure the events held and their bytes, over ten thousand windows."""
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
            f"{early:.0f} held early, {late:.0f} after 10,000 windows (law {law:.0f}), "
            f"{held.nbytes / late:.0f} B each"
        )
        yield Line(f"memory, 10 panes, k {k}", ARRAYS, 1e9 * seconds / (10_000 * slide), None, note)


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
        **{
            package: version(package)
            for package in ("numpy", "duckdb", "polars", "sortedcontainers")
        },
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
        print(
            json.dumps(
                {
                    "machine": machine,
                    "figures": figures,
                    "aggregates": [asdict(each) for each in aggregates],
                }
            )
        )
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
        table.add_row(
            "" if line.job == job else line.job,
            line.way,
            f"{line.ns_per_event:,.2f}",
            times,
            line.note,
        )
        job = line.job
    return table


if __name__ == "__main__":
    main()
