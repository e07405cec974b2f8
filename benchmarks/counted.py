"""Measure queries over count-based windows, from decoded records to answers."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from acquatop.catalog.catalog import Catalog
from acquatop.catalog.vocabulary import Strategy
from acquatop.ingest.reduce.contract import Part
from acquatop.ingest.reduce.job import Job
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundCounted
from acquatop.query.contract import Tick
from acquatop.query.count_windows import CountedEvaluation

STREAM = "http://example.org/trades"
CATALOG = f"""
[streams."{STREAM}"]
connector = "lines"
arrivals = "distinct"
options = {{ path = "trades" }}
[streams."{STREAM}".mapping]
subject = "http://example.org/trade/{{id}}"
time = "t"
properties = {{ "http://example.org/price" = {{ field = "price", datatype = "xsd:integer" }} }}
"""
QUERY = """PREFIX : <http://example.org/>
REGISTER {output} :best AS SELECT ?trade ?price
FROM NAMED WINDOW :w ON :trades [ELEMENTS {n} STEP {step}]
WHERE {{ WINDOW :w {{ ?trade :price ?price }} }} ORDER BY DESC(?price) LIMIT {k}"""
BATCH = 50_000
Batch = tuple[Sequence[Part], int]


@dataclass(frozen=True)
class Asked:
    """Query, strategy and stream of a run."""

    output: str
    n: int
    step: int
    k: int
    events: int
    strategy: Strategy = Strategy.BLOCKS
    stream: str = "random"


@dataclass(frozen=True)
class Took:
    """Cost per element, and number of answers."""

    microseconds: float
    answers: int


ALL = (
    Asked("RSTREAM", 40_000, 1, 10, 200_000),
    Asked("ISTREAM", 40_000, 1, 10, 200_000),
    Asked("ISTREAM", 40_000, 1, 10, 50_000, stream="rising"),
    Asked("RSTREAM", 40_000, 1_000, 10, 400_000),
    Asked("RSTREAM", 40_000, 1_000, 10, 400_000, Strategy.EACH),
    Asked("RSTREAM", 40_000, 40_000, 1_000, 400_000),
    Asked("RSTREAM", 40_000, 40_000, 1_000, 400_000, Strategy.EACH),
)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench counted", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    console = Console(stderr=options.json)
    found = {}
    for asked in ALL:
        with console.status(str(asked)):
            found[asked] = took(asked)
    if options.json:
        print(json.dumps([{**asdict(asked), **asdict(each)} for asked, each in found.items()]))
    else:
        console.print(table(found))


def took(asked: Asked) -> Took:
    """Return the processor time of a query, from decoded records on."""
    catalog = Catalog.parse(CATALOG, file=Path("catalog.toml"), variables={})
    bound = bind_query(
        QUERY.format(output=asked.output, n=asked.n, step=asked.step, k=asked.k), catalog
    )
    assert isinstance(bound, BoundCounted)
    query = CountedEvaluation(replace(bound, hint=asked.strategy.value))
    query.join(bound, {})
    answers, nanoseconds = 0, 0
    for parts, newest_ms in _batches(asked, bound, query):
        started = time.process_time_ns()
        query.add(STREAM, parts, query.names)
        answers += sum(1 for _ in query.advance(Tick(STREAM, newest_ms, 0.0)))
        nanoseconds += time.process_time_ns() - started
    return Took(nanoseconds / 1_000 / asked.events, answers)


def _batches(asked: Asked, bound: BoundCounted, query: CountedEvaluation) -> Iterator[Batch]:
    """Yield batches as a runtime delivers them, and the newest time: ten trades per millisecond."""
    prices = (
        np.arange(asked.events)
        if asked.stream == "rising"
        else np.random.default_rng(1).permutation(asked.events)
    )
    job = Job(bound.stream.mapping, query.reducers(STREAM))
    for start in range(0, asked.events, BATCH):
        stop = min(start + BATCH, asked.events)
        records = (
            {"t": at // 10, "id": at, "price": price}
            for at, price in enumerate(prices[start:stop].tolist(), start=start)
        )
        lines = pa.array([json.dumps(record).encode() for record in records], pa.binary())
        yield list(job([pa.record_batch([lines], ["value"])])), (stop - 1) // 10


def table(found: Mapping[Asked, Took]) -> Table:
    """Return the measurements as a table."""
    names = ("output", "window", "STEP", "LIMIT", "stream", "structure", "µs each", "answers")
    shown = Table(*names, title="queries over the last elements")
    for asked, each in found.items():
        counts = (f"{count:,}" for count in (asked.n, asked.step, asked.k))
        shown.add_row(
            asked.output,
            *counts,
            asked.stream,
            asked.strategy,
            f"{each.microseconds:.2f}",
            f"{each.answers:,}",
        )
    return shown


if __name__ == "__main__":
    main()
