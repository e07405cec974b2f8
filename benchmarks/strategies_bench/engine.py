"""The same queries through the whole engine, in process: together and singly."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from acquatop import Answer, Engine
from acquatop.catalog.catalog import Catalog
from acquatop.catalog.vocabulary import Strategy
from acquatop.engine.observer import AnswerSeen, BatchSeen, Silent
from acquatop.topk.shared.contract import TopKRequest
from acquatop.windows import Windows
from benchmarks.strategies_bench.figures import Point
from benchmarks.strategies_bench.many import asked
from benchmarks.strategies_bench.streams import trades

AXIS = "window, slide and k"
EVENTS = 100_000
EVENTS_OF_MANY = 20_000
"""Smaller, as a thousand single queries would take too long."""

_ROWS = 10_000
_CATALOG = """
[prefixes]
"" = "http://example.org/"
[streams.":trades"]
connector = "parquet"
arrivals = "distinct"
strategy = "{strategy}"
options = {{ path = "{folder}/trades", maxRowsPerBatch = {rows} }}
[streams.":trades".mapping]
subject = "http://example.org/trade/{{id}}"
time = "t"
properties = {{ ":price" = {{ field = "price", datatype = "xsd:double" }} }}
"""
_TEXT = """SELECT ?trade (?price * 2 AS ?score)
FROM NAMED WINDOW :w ON :trades [RANGE {width}ms STEP {slide}ms]
WHERE {{ WINDOW :w {{ ?trade :price ?price }} }} ORDER BY DESC(?score) LIMIT {k}"""


class _Seen(Silent):
    """Observer of the most candidates per query; signals the arrival of all events."""

    def __init__(self, events: int) -> None:
        self.candidates: dict[str, int] = {}
        self.are_here = threading.Event()
        self._left = events

    def answer(self, seen: AnswerSeen) -> None:
        """Note the candidates held for a query."""
        name = seen.answer.query
        self.candidates[name] = max(seen.candidates, self.candidates.get(name, 0))

    def batch(self, seen: BatchSeen) -> None:
        """Count a batch's events."""
        self._left -= seen.events
        if self._left <= 0:
            self.are_here.set()


class _Nowhere:
    """A sink that keeps nothing."""

    def write(self, answers: Sequence[Answer]) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def points(quick: bool) -> Iterator[Point]:
    """Yield the CPU time per event, for 1 to 1 000 queries; one event comes in each millisecond."""
    for count in (1, 10) if quick else (1, 10, 100, 1_000):
        yield from _both(AXIS, asked(AXIS, count, 1), EVENTS if count < 1_000 else EVENTS_OF_MANY)
    for count in (1,) if quick else (1, 5, 20):
        for k in (10, 100):
            yield from _both(
                f"equal windows, k = {k}", [TopKRequest(Windows(9_000, 3_000), k)] * count, EVENTS
            )


def _both(axis: str, queries: Sequence[TopKRequest], events: int) -> Iterator[Point]:
    for strategy in (Strategy.EACH, Strategy.SHARED):
        with tempfile.TemporaryDirectory() as folder:
            yield _point(Path(folder), strategy, axis, queries, events)


def _point(
    folder: Path, strategy: Strategy, axis: str, queries: Sequence[TopKRequest], events: int
) -> Point:
    (folder / "trades").mkdir()
    times = np.arange(1, events + 1)
    pq.write_table(
        pa.table({"t": times, "id": times, "price": trades(events)}),
        folder / "trades" / "0.parquet",
    )
    text = _CATALOG.format(strategy=strategy, folder=folder, rows=_ROWS)
    catalog = Catalog.parse(text, file=folder / "catalog.toml", variables={})
    seen = _Seen(events)
    with Engine(catalog, runtime="local", autostart=False, observer=seen) as engine:
        for number, each in enumerate(queries):
            said = _TEXT.format(width=each.windows.width_ms, slide=each.windows.slide_ms, k=each.k)
            engine.register(said, name=f"q{number}", sinks=[_Nowhere()], backlog=0)
        started = time.process_time()
        engine.start()
        seen.are_here.wait()
        took = time.process_time() - started
    held = (
        sum(seen.candidates.values())
        if strategy is Strategy.EACH
        else max(seen.candidates.values(), default=0)
    )
    return Point("the whole engine", axis, len(queries), strategy.value, 1e9 * took / events, held)
