"""Parts about live streams: the latency alone, and latency and rate beside other engines."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks.spark_bench import child, rspjs, rsprs
from benchmarks.spark_bench.feed import SLIDE_MS, WIDTH_MS, Feed
from benchmarks.spark_bench.lines import Line, Part, checked, relative
from benchmarks.spark_bench.shapes import KEYED, PAIRS, READINGS, Shape

Run = Callable[[str, Callable[[child.Told], Line]], Line]
"""Function that does a named piece of work."""
Measure = Callable[[Feed, child.Told], dict[str, Any]]
PEERS: dict[str, Measure] = {"RSP-JS": rspjs.measure, "rsp-rs": rsprs.measure}
"""Functions that measure the other engines, by name."""
_KEYS, _WARM = 1_000, 5
_PANES = WIDTH_MS // SLIDE_MS


# The latency alone --------------------------------------------------------------------------------


def live_part(run: Run, *, is_quick: bool) -> Part:
    """Measure the time from the event that closes a window to its answer."""
    slides = {"RSP-JS": 20, "rsp-rs": 20, "local": 50, "spark": 20} if is_quick else _SLIDES
    lines = []
    for joined in (True, False):
        what = "SUM per key × weight" if joined else "SUM per key"
        for engine, count in slides.items():
            feed = Feed(count, _EVENTS, _KEYS, joined=joined)
            measure = PEERS[engine] if engine in PEERS else _ours(engine, "all")
            name = f"{engine if engine in PEERS else f'AcquaTop, {engine}'}, {what}"
            lines.append(run(name, _measured(name, feed, measure)))
    title = (
        f"from the event that closes a window to its answer, {_EVENTS:,} events a slide, {_PANES} "
        "slides a window"
    )
    wanted = "AcquaTop, median: local < 10 ms, spark < 150 ms"
    return Part("e", title, wanted, ("windows", "median ms", "p99 ms", "events/s"), lines)


_SLIDES = {"RSP-JS": 60, "rsp-rs": 60, "local": 300, "spark": 120}
_EVENTS = 1_000


# Beside other engines -----------------------------------------------------------------------------


def peers_part(run: Run, sizes: Sequence[int]) -> Part:
    """Measure latency and rate beside other engines, by the size of windows and the shape."""
    lines: list[Line] = []
    for size, shape in itertools.product(sizes, (KEYED, READINGS, PAIRS)):
        group = []
        for engine, measure in _engines(shape):
            if size > _MOST.get(engine, size):
                continue
            slides = _FEW if engine in _MOST else _ENOUGH // size
            feed = Feed(slides, -(-size // _PANES), _KEYS, joined=False, shape=shape)
            name = f"{engine}: {size:,}, {shape.title}"
            group.append(run(name, _measured(name, feed, measure)))
        lines += _beside(group)
    wanted = "AcquaTop: ≥ 10 × the rate of rsp-rs, ≤ 0.33 × its latency"
    title = f"events in a window of {_PANES} slides, beside other engines for RSP-QL"
    return Part("f", title, wanted, _COLUMNS, lines)


_ENOUGH = 600_000
"""Events of a window times the number of slides."""
_MOST, _FEW = {"RSP-JS": 10_000}, 8
"""Events of a window with which an engine is measured, as it takes seconds; and its slides."""
_REFERENCE = "rsp-rs"
_COLUMNS = (
    "median ms",
    "p99 ms",
    "CPU ms",
    "events/s",
    "events/CPU s",
    "× latency",
    "× rate",
    "× CPU rate",
)


def _engines(shape: Shape) -> Iterator[tuple[str, Measure]]:
    yield from PEERS.items()
    # Records about keys do not have a subject of their own each, as distinct arrivals promise.
    for arrivals in ("all",) if shape is KEYED else ("all", "distinct"):
        yield f"AcquaTop, {arrivals}", _ours("local", arrivals)


def _beside(group: Sequence[Line]) -> Sequence[Line]:
    (reference,) = (at for at, each in enumerate(group) if each.way.startswith(_REFERENCE))
    for figure, column in (
        ("median ms", "× latency"),
        ("events/s", "× rate"),
        ("events/CPU s", "× CPU rate"),
    ):
        group = relative(group, reference, figure, column)
    return group


# Both ---------------------------------------------------------------------------------------------


def _measured(name: str, feed: Feed, measure: Measure) -> Callable[[child.Told], Line]:
    def work(tell: child.Told) -> Line:
        result = measure(feed, tell)
        line = Line(name, figures(feed, result), _note(feed, result))
        return checked(line, feed.answers(), result)

    return work


def figures(feed: Feed, result: dict[str, Any]) -> dict[str, float]:
    """Return the figures of an engine's result by column; its first windows do not count."""
    found = sorted(result["latencies"][_WARM:])
    shown = {
        "windows": float(len(found)),
        "median ms": statistics.median(found),
        "p99 ms": found[min(len(found) - 1, int(0.99 * len(found)))],
        "CPU ms": statistics.median(result["cpu"][_WARM:]),
    }
    events = feed.slides * feed.events
    if "seconds" in result:
        shown["events/s"] = events / result["seconds"]
        shown["events/CPU s"] = events / result["cpu_seconds"]
    return shown


def _note(feed: Feed, result: dict[str, Any]) -> str:
    if "version" not in result:
        return "reads lines of JSON"
    weights = "; weights as static data: it asks no SERVICE" if feed.joined else ""
    return f"{result['version']}, given triples in memory{weights}"


def _ours(runtime: str, arrivals: str) -> Measure:
    def measure(feed: Feed, tell: child.Told) -> dict[str, Any]:
        arguments = {
            "runtime": runtime,
            "arrivals": arrivals,
            "shape": feed.shape.name,
            "slides": feed.slides,
            "events": feed.events,
            "keys": feed.keys,
        }
        given = [f"--{key}={value}" for key, value in arguments.items()]
        return child.python("live", [*given, *([] if feed.joined else ["--plain"])], tell)

    return measure
