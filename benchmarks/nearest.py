"""Measure queries for what is nearest to a point of each, through the engine: one grid, or alone.

Each row is an engine of its own that reads a recording to its end: its CPU per event, from the
start to the last answer. Queries with another structure are alone in the same engine, which reads
the stream once for all of them. The last column compares with as many engines with one query each.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from acquatop import Engine
from acquatop.catalog.catalog import Catalog

_AXES = "xyzu"
_ALONE = {"elements": "block-skyline", "changes": "block-skyline", "time": "pane-dominance"}
_WINDOWS = {
    "elements": ("RSTREAM", "[ELEMENTS {width} STEP {step}]"),
    "changes": ("ISTREAM", "[ELEMENTS {width} STEP 1]"),
    "time": ("RSTREAM", "[RANGE {width}ms STEP {step}ms]"),
}
"""Windows of a run: every so many elements, every change after each element, or time."""


@dataclass(frozen=True)
class Asked:
    """Queries of a run, and its stream of one event per millisecond."""

    windows: str
    queries: int
    axes: int
    k: int
    width: int
    step: int
    events: int


@dataclass(frozen=True)
class Took:
    """CPU of a run, in microseconds per event, and its answers."""

    asked: Asked
    strategy: str
    us_per_event: float
    answers: int


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench nearest", description=__doc__)
    parser.add_argument("--events", type=int, default=100_000, help="how many (%(default)s)")
    parser.add_argument("--queries", type=int, nargs="+", default=[1, 10, 40, 400])
    parser.add_argument("--windows", choices=sorted(_WINDOWS), nargs="+", default=sorted(_WINDOWS))
    parser.add_argument("--axes", type=int, nargs="+", default=[2, 3, 4])
    parser.add_argument(
        "--alone", type=int, default=40, help="most queries that run alone (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    took(Asked("time", 2, 2, 1, 100, 100, 1_000), "nearest-grid")  # what is loaded once
    found = []
    for windows in options.windows:
        for axes in options.axes:
            for queries in options.queries:
                asked = Asked(windows, queries, axes, 9, 40_000, 20_000, options.events)
                found.append(took(asked, "nearest-grid"))
                if queries <= options.alone:
                    found.append(took(asked, _ALONE[windows]))
                print("." * len(found), end="\r", flush=True)
    if options.json:
        print(json.dumps([asdict(each) for each in found], indent=1))
    else:
        Console().print(_table(found))


def took(asked: Asked, strategy: str) -> Took:
    """Run the queries by a strategy."""
    chance = np.random.default_rng(1)
    centres = chance.random((asked.queries, asked.axes)).round(4)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "events").write_text("".join(_lines(asked)))
        text = _catalog(folder, strategy, asked.axes)
        catalog = Catalog.parse(text, file=Path(folder) / "catalog.toml")
        with Engine(catalog, runtime="local", until_end=True, autostart=False) as engine:
            asking = [
                engine.register(_text(asked, centre), name=f"q{at}")
                for at, centre in enumerate(centres.tolist())
            ]
            before = time.process_time()
            engine.start()
            answers = sum(sum(1 for _ in query) for query in asking)
            seconds = time.process_time() - before
    return Took(asked, strategy, 1e6 * seconds / asked.events, answers)


def _lines(asked: Asked) -> Iterator[str]:
    points = np.random.default_rng(2).random((asked.events, asked.axes)).round(6)
    for at, point in enumerate(points.tolist(), start=1):
        places = dict(zip(_AXES, point, strict=False))
        yield json.dumps({"t": at, "id": at, **places}) + "\n"


def _catalog(folder: str, strategy: str, axes: int) -> str:
    properties = ", ".join(
        f'":{name}" = {{ field = "{name}", datatype = "xsd:double" }}' for name in _AXES[:axes]
    )
    return f"""
        [prefixes]
        "" = "http://example.org/"
        [streams.":s"]
        connector = "lines"
        arrivals = "distinct"
        strategy = "{strategy}"
        options = {{ path = "{folder}/events" }}
        [streams.":s".mapping]
        subject = "http://example.org/e/{{id}}"
        time = "t"
        properties = {{ {properties} }}
    """


def _text(asked: Asked, centre: list[float]) -> str:
    output, window = _WINDOWS[asked.windows]
    axes = _AXES[: asked.axes]
    apart = [f"(?{name} - {value})" for name, value in zip(axes, centre, strict=True)]
    pattern = " ; ".join(f":{name} ?{name}" for name in axes)
    return f"""REGISTER {output} :q AS SELECT ?e ?d
        FROM NAMED WINDOW :w ON :s {window.format(width=asked.width, step=asked.step)}
        WHERE {{ WINDOW :w {{ ?e {pattern} }}
                 BIND({" + ".join(f"{each} * {each}" for each in apart)} AS ?d) }}
        ORDER BY ?d LIMIT {asked.k}"""


def _table(found: list[Took]) -> Table:
    table = Table(
        "windows", "axes", "queries", "strategy", "µs/event", "answers", "× less than one alone"
    )
    alone = {
        (each.asked.windows, each.asked.axes): each.us_per_event
        for each in found
        if each.asked.queries == 1 and each.strategy != "nearest-grid"
    }
    for each in found:
        one = alone.get((each.asked.windows, each.asked.axes), 0.0)
        ratio = f"{one * each.asked.queries / each.us_per_event:.1f}" if one else ""
        table.add_row(
            each.asked.windows,
            str(each.asked.axes),
            str(each.asked.queries),
            each.strategy,
            f"{each.us_per_event:.2f}",
            str(each.answers),
            ratio,
        )
    return table


if __name__ == "__main__":
    main()
