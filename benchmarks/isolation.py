"""Measure whole windows evaluated in a worker process beside the same ones in this process."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from acquatop.catalog.catalog import Catalog
from acquatop.ingest.reduce.contract import Part
from acquatop.ingest.reduce.job import Job
from acquatop.plan.bind import bind_windowed
from acquatop.plan.bound import BoundWindowed
from acquatop.query.contract import Tick
from acquatop.query.sparql.engine import LocalEngine
from acquatop.query.sparql.evaluation import SparqlEvaluation
from acquatop.query.sparql.quad_store import OpenEngine
from acquatop.query.sparql.worker_engine import WorkerEngine
from benchmarks.table import Figure, report
from rspql.compiler import compile_query
from rspql.plan import TopKPlan

STREAM = "http://example.org/posts"
CATALOG = f"""
[streams."{STREAM}"]
connector = "lines"
options = {{ path = "posts" }}
[streams."{STREAM}".mapping]
subject = "http://example.org/post/{{id}}"
time = "t"
[streams."{STREAM}".mapping.properties]
"http://example.org/by" = {{ field = "by", datatype = "xsd:integer" }}
"http://example.org/likes" = {{ field = "likes", datatype = "xsd:integer" }}
"""
FROM = "FROM NAMED WINDOW :w ON :posts [RANGE 10s STEP 1s]"
WINDOW = "WINDOW :w { ?post :by ?user ; :likes ?likes }"
QUERIES = {
    "ten sums": f"SELECT ?user (SUM(?likes) AS ?all) {FROM} WHERE {{ {WINDOW} }}"
    " GROUP BY ?user ORDER BY DESC(?all) LIMIT 10",
    "a tenth of the rows": f"SELECT ?post ?likes {FROM} WHERE {{ {WINDOW} FILTER(?likes > 900) }}",
    "every row": f"SELECT ?post ?user ?likes {FROM} WHERE {{ {WINDOW} }}",
}
EVENTS_PER_SLIDE = 1_000
WINDOWS = 30


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench isolation", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    catalog = Catalog.parse(CATALOG, file=Path("catalog.toml"), variables={})
    for title, text in QUERIES.items():
        text = f"PREFIX : <http://example.org/> {text}"
        plan = compile_query(text)
        whole = plan.windowed if isinstance(plan, TopKPlan) else plan
        bound = bind_windowed(whole, catalog, text=text)
        batches = list(_batches(bound))
        runs = {
            name: [closes_of(bound, batches, engine) for _ in range(3)]
            for name, engine in (("in this process", LocalEngine), ("in a worker", WorkerEngine))
        }
        events = 10 * EVENTS_PER_SLIDE
        figures = [
            Figure(name, min(map(statistics.median, each)), events) for name, each in runs.items()
        ]
        report(f"{title}: a window of {events:,} events", figures, [], as_json=options.json)
        if options.json:
            continue
        print(json.dumps({"cost of isolation": figures[1].seconds / figures[0].seconds - 1}))


def closes_of(
    bound: BoundWindowed, batches: Sequence[Sequence[Part]], open_engine: OpenEngine
) -> list[float]:
    """Return the seconds of each full window, from decoded records to its answer."""
    query = SparqlEvaluation(bound, open_engine=open_engine)
    query.join(bound, {})
    taken = []
    for at, parts in enumerate(batches):
        started = time.perf_counter()
        query.add(STREAM, parts, query.names)
        answers = list(query.advance(Tick(STREAM, 1_000 * (at + 1), 0.0)))
        taken.append(time.perf_counter() - started)
        assert at == 0 or len(answers) == 1
    query.close()
    return taken[10:]


def _batches(bound: BoundWindowed) -> Iterator[Sequence[Part]]:
    """Yield the records of each slide, as a runtime delivers them."""
    job = Job(bound.streams[0].mapping, SparqlEvaluation(bound).reducers(STREAM))
    for slide in range(WINDOWS):
        numbers = range(slide * EVENTS_PER_SLIDE + 1, (slide + 1) * EVENTS_PER_SLIDE + 1)
        records = (
            {"t": at, "id": at, "by": at * 7919 % 1_000, "likes": at * 31 % 1_000} for at in numbers
        )
        lines = pa.array([json.dumps(record).encode() for record in records], pa.binary())
        yield list(job([pa.record_batch([lines], ["value"])]))


if __name__ == "__main__":
    main()
