"""Measure windows that slide at every event: the paper's axes, one plot each, and the baselines."""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from acquatop.topk.contract import FloatArray
from acquatop.topk.papers.sliding.algorithms import FILTERED, UNFILTERED, algorithm
from acquatop.topk.papers.sliding.hybrid import Hybrid
from acquatop.topk.papers.sliding.limit import safe_limit
from acquatop.topk.sliding.block_skyline import BlockSkyline
from acquatop.topk.sliding.contract import NONE, Changes, SlidingTopK
from acquatop.topk.sliding.nearest import NearestQueries
from acquatop.topk.sliding.query_grid import squared_distances
from benchmarks.sliding_baselines import Baseline
from benchmarks.sliding_streams import moving, sensor, trades, uniform

# The paper's parameters (its Table IX).
EVENTS, QUERIES, K, WINDOW, BUFFER, RESOLUTION, SIGMA = 1_000_000, 400, 9, 40_000, 2_000, 10, 1e-3
KS = (1, 9, 81)
FLOOR, ARRAYS, GRID = "floor: scores > t", "block skyline (arrays)", "grid (arrays)"
BATCH = 10_000
SECONDS = 0.1
"""Processor time after which a way is stopped before the end of the stream."""

Add = Callable[[FloatArray], object]
Made = Callable[[], Add]


@dataclass(frozen=True)
class Point:
    """One way of doing the job at one point of an axis, and its cost."""

    plot: str
    axis: str
    at: float
    way: str
    value: float
    unit: str = "ns/event"


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench sliding", description=__doc__)
    parser.add_argument(
        "--only", choices=SECTIONS, action="append", help="one of the plots; may be given again"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--out", type=Path, help="a folder to draw the plots into, as SVG")
    options = parser.parse_args()
    points: list[Point] = []
    console = Console(stderr=options.json)
    for name in options.only or SECTIONS:
        with console.status(name):
            found = list(SECTIONS[name]())
        points += found
        if not options.json:
            for plot in dict.fromkeys(point.plot for point in found):
                console.print(table([point for point in found if point.plot == plot]))
        if options.out is not None:
            draw(found).savefig(options.out / f"sliding-{name}.svg", metadata={"Date": None})
    machine = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        **{package: version(package) for package in ("numpy", "sortedcontainers")},
    }
    if options.json:
        print(json.dumps({"machine": machine, "points": [asdict(point) for point in points]}))
    else:
        console.print(", ".join(f"{key} {value}" for key, value in machine.items()), style="dim")


# One query ----------------------------------------------------------------------------------------

STREAMS: dict[str, Callable[[int], FloatArray]] = {
    "in random order": lambda size: uniform(size, 1)[:, 0],
    "trades of shares": trades,
    "moving objects": lambda size: -squared_distances(np.full((1, 2), 0.5), moving(size, 2)),
    "a sensor": sensor,
}


def by_k() -> Iterator[Point]:
    """Compare all ways for several k, in random order."""
    merits = STREAMS["in random order"](EVENTS)
    for k in KS:
        yield from _timed("k, in random order", "k", k, merits, WINDOW, _ways(k, WINDOW))


def by_stream() -> Iterator[Point]:
    """Compare representative ways for several k, on streams whose merits depend on time."""
    for stream in ("trades of shares", "moving objects", "a sensor"):
        merits = STREAMS[stream](EVENTS)
        for k in KS:
            ways = _ways(k, WINDOW)
            # Falling values are not dominated: on the sensor's evenings the strict ways take
            # minutes.
            names = (
                ("RA", "PA", "RAPF") if stream == "a sensor" else ("SA", "RA", "PA", "SASF", "RAPF")
            )
            chosen = {way: ways[way] for way in (FLOOR, ARRAYS, "hybrid", *names)}
            yield from _timed(f"k, {stream}", "k", k, merits, WINDOW, chosen)


def by_window() -> Iterator[Point]:
    """Compare the ways for several windows."""
    merits = STREAMS["in random order"](EVENTS)
    for n in (1_000, 4_000, 10_000, 40_000):
        yield from _timed("window, in random order", "events per window", n, merits, n, _ways(K, n))


def by_buffer() -> Iterator[Point]:
    """Compare the filters for several buffers."""
    merits = STREAMS["in random order"](EVENTS)
    for buffer in (200, 2_000, 20_000):
        ways = {name: partial(_paper, name, 27, WINDOW, buffer=buffer) for name in FILTERED}
        yield from _timed(
            "buffer, in random order, k 27", "events in the buffer", buffer, merits, WINDOW, ways
        )


def by_pruning() -> Iterator[Point]:
    """Compare how lazily the relaxed skyband is pruned."""
    merits = STREAMS["in random order"](EVENTS)
    for gamma in (0.05, 0.2, 1.0):
        ways = {
            name: partial(_paper, name, 27, WINDOW, gamma=gamma, buffer=BUFFER)
            for name in ("RA", "RARF", "RAPF")
        }
        yield from _timed(
            "pruning coefficient, in random order, k 27", "γ", gamma, merits, WINDOW, ways
        )


def by_error() -> Iterator[Point]:
    """Count PA's missed and wrong reports on a million events, against the bounds of Lemma 4.6."""
    for stream, made in STREAMS.items():
        merits = made(EVENTS)
        for k in KS:
            right = _reported(BlockSkyline(k, WINDOW).add(merits))
            given = _reported(algorithm("PA", k, WINDOW, sigma=SIGMA).add(merits))
            counts = {
                "missed": len(right - given),
                "bound for missed": SIGMA * EVENTS / WINDOW,
                "wrongly reported": len(given - right),
                "bound for wrongly reported": 1.5 * SIGMA * EVENTS / WINDOW,
                "right": len(right),
            }
            for what, count in counts.items():
                yield Point(f"errors of PA, {stream}", "k", k, what, count, "events")


def by_memory() -> Iterator[Point]:
    """Count the events that each way holds at the end."""
    merits = STREAMS["in random order"](3 * WINDOW)
    for k in KS:
        for name in (*UNFILTERED, *FILTERED):
            held = algorithm(name, k, WINDOW, buffer=BUFFER)
            held.add(merits)
            yield Point("events held, in random order", "k", k, name, len(held), "events")
        arrays = BlockSkyline(k, WINDOW)
        arrays.add(merits)
        yield Point(
            "events held, in random order", "k", k, "block skyline: merits", len(arrays), "events"
        )
        yield Point(
            "events held, in random order",
            "k",
            k,
            "block skyline: rows needed",
            len(arrays.held()),
            "events",
        )


def _ways(k: int, n: int) -> dict[str, Made]:
    """Return the ways of answering one query."""
    return {
        FLOOR: lambda: lambda merits: merits > 0.999,
        ARRAYS: lambda: BlockSkyline(k, n).add,
        "hybrid": lambda: Hybrid(k, n, safe_limit(n, k, SIGMA)).add,
        **{
            name: partial(_paper, name, k, n, buffer=min(BUFFER, n // 2))
            for name in (*UNFILTERED, *FILTERED)
        },
    }


def _paper(name: str, k: int, n: int, **settings: float) -> Add:
    held: SlidingTopK = algorithm(name, k, n, **settings)  # type: ignore[arg-type]
    return held.add


def _reported(changes: Changes) -> set[int]:
    return set(changes.entered[changes.entered != NONE].tolist())


# Many queries -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """Queries for the nearest points."""

    k: int = K
    queries: int = QUERIES
    dimensions: int = 2
    resolution: int = RESOLUTION

    @property
    def centres(self) -> FloatArray:
        """Points of the queries."""
        return uniform(self.queries, self.dimensions, seed=2)

    def grid(self) -> Add:
        """Answer all on one grid."""
        held = NearestQueries(self.dimensions, WINDOW, resolution=self.resolution)
        for centre in self.centres.tolist():
            held.join(tuple(centre), self.k)
        return held.add

    def alone(self) -> Add:
        """Answer each by itself, with all distances."""
        each = [(centre[None, :], BlockSkyline(self.k, WINDOW)) for centre in self.centres]
        return lambda points: [
            held.add(-squared_distances(centre, points)) for centre, held in each
        ]

    def baseline(self, first: FloatArray, *, skyband: bool, sums: bool) -> Add:
        """Answer as TMA, SMA, CPM/w or SNN, from the first window on."""
        held = Baseline(self.k, WINDOW, self.resolution, self.dimensions, skyband=skyband)
        held.add(first)
        for centre in self.centres.tolist():
            if sums:
                held.greatest_sum(centre)
            else:
                held.nearest_to(centre)
        return held.add

    def ways(self, first: FloatArray) -> dict[str, Add]:
        """Return the ways, after the first window."""
        ways = {
            GRID: self.grid(),
            "block skyline for each (arrays)": self.alone(),
            "CPM/w": self.baseline(first, skyband=False, sums=False),
            "SNN": self.baseline(first, skyband=True, sums=False),
            "TMA (sums)": self.baseline(first, skyband=False, sums=True),
            "SMA (sums)": self.baseline(first, skyband=True, sums=True),
        }
        for name in (GRID, "block skyline for each (arrays)"):
            ways[name](first)
        return ways


def nearest_by_k() -> Iterator[Point]:
    """Compare the ways of answering 400 queries for several k."""
    for stream, made in (("in random order", uniform), ("moving objects", moving)):
        points = made(4 * WINDOW, 2)
        for k in KS:
            yield from _timed_queries(f"{QUERIES} queries by k, {stream}", "k", k, points, Job(k=k))


def nearest_by_queries() -> Iterator[Point]:
    """Compare them for several numbers of queries."""
    points = uniform(4 * WINDOW, 2)
    for queries in (100, 400, 1_600):
        yield from _timed_queries(
            "number of queries", "queries", queries, points, Job(queries=queries)
        )


def nearest_by_dimensions() -> Iterator[Point]:
    """Compare them for points of 2 to 4 dimensions."""
    for dimensions in (2, 3, 4):
        points = uniform(4 * WINDOW, dimensions)
        job = Job(dimensions=dimensions)
        yield from _timed_queries(
            f"dimensions, {QUERIES} queries", "dimensions", dimensions, points, job
        )


def nearest_by_resolution() -> Iterator[Point]:
    """Compare grids from coarse to fine."""
    points = uniform(4 * WINDOW, 2)
    for resolution in (3, 10, 40):
        job = Job(resolution=resolution)
        yield from _timed_queries(
            f"grid, {QUERIES} queries", "cells along each axis", resolution, points, job
        )


# Timing and showing -------------------------------------------------------------------------------


def _timed(
    plot: str, axis: str, at: float, merits: FloatArray, n: int, ways: Mapping[str, Made]
) -> Iterator[Point]:
    """Time each way from the first whole window on."""
    for way, made in ways.items():
        add = made()
        add(merits[:n])
        yield Point(plot, axis, at, way, 1e9 * _seconds_per_event(add, merits[n:], BATCH))


def _timed_queries(
    plot: str, axis: str, at: float, points: FloatArray, job: Job
) -> Iterator[Point]:
    for way, add in job.ways(points[:WINDOW]).items():
        batch = BATCH if "arrays" in way else 100
        microseconds = 1e6 * _seconds_per_event(add, points[WINDOW:], batch)
        yield Point(plot, axis, at, way, microseconds, "µs/event")


def _seconds_per_event(add: Add, events: FloatArray, batch: int) -> float:
    """Return the processor seconds per event over the stream, or its beginning if time is up."""
    started = time.process_time()
    done = 0
    while done < len(events):
        add(events[done : done + batch])
        done = min(len(events), done + batch)
        if time.process_time() - started > SECONDS and done >= 2 * batch:
            break
    return (time.process_time() - started) / done


SECTIONS: dict[str, Callable[[], Iterable[Point]]] = {
    "k": by_k,
    "streams": by_stream,
    "window": by_window,
    "buffer": by_buffer,
    "pruning": by_pruning,
    "errors": by_error,
    "memory": by_memory,
    "nearest-k": nearest_by_k,
    "nearest-queries": nearest_by_queries,
    "nearest-dimensions": nearest_by_dimensions,
    "nearest-resolution": nearest_by_resolution,
}


def table(points: Sequence[Point]) -> Table:
    """Return one plot's points as a table: the ways down, the axis across."""
    places = list(dict.fromkeys(point.at for point in points))
    shown = Table(title=f"{points[0].plot} ({points[0].unit})", title_justify="left")
    shown.add_column(points[0].axis)
    for place in places:
        shown.add_column(f"{place:,g}", justify="right")
    for way in dict.fromkeys(point.way for point in points):
        values = {point.at: point.value for point in points if point.way == way}
        shown.add_row(
            way, *(_rounded(values[place]) if place in values else "" for place in places)
        )
    return shown


def _rounded(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def draw(points: Sequence[Point]) -> Figure:
    """Return the plots of one section side by side."""
    mpl.rcParams["svg.hashsalt"] = "sliding"
    plots = list(dict.fromkeys(point.plot for point in points))
    ways = list(dict.fromkeys(point.way for point in points))
    colours = mpl.colormaps["turbo"](np.linspace(0.05, 0.95, len(ways)))
    figure = Figure(figsize=(1 + 4 * len(plots) + 2, 4), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(plots), sharey=True))
    for plot, axes in zip(plots, panels, strict=True):
        for way, colour in zip(ways, colours, strict=True):
            line = [
                (point.at, point.value)
                for point in points
                if point.plot == plot and point.way == way
            ]
            array = "array" in way or way == FLOOR
            axes.plot(
                *zip(*line, strict=True) if line else ((), ()),
                "o-" if array else ".--",
                color=colour,
                label=way,
            )
        of_plot = next(point for point in points if point.plot == plot)
        axes.set(
            title=plot,
            xlabel=of_plot.axis,
            xscale="log",
            yscale="symlog" if of_plot.unit == "events" else "log",
        )
        axes.set_xticks(sorted({point.at for point in points if point.plot == plot}))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
        axes.tick_params(axis="x", labelsize=7)
        axes.title.set_fontsize(10)
    panels[0].set_ylabel(points[0].unit)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize=7)
    return figure


if __name__ == "__main__":
    main()
