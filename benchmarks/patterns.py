"""Measure patterns over a stream, answered incrementally, beside the same window by window.

Processor time of each full window, from lines of JSON to its answer; windows slide by a tenth.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from acquatop.catalog.catalog import Catalog
from acquatop.ingest.reduce.job import Job
from acquatop.plan.bind import bind_plan, bind_windowed
from acquatop.plan.bound import Bound, BoundQuery
from acquatop.query.contract import Evaluation, Tick
from acquatop.query.evaluation import TopKEvaluation
from acquatop.query.joined_windows.evaluation import JoinedWindowsEvaluation
from acquatop.query.sparql.engine import LocalEngine
from acquatop.query.sparql.evaluation import SparqlEvaluation
from acquatop.refresh.open_replicas import Replicas
from benchmarks.table import Figure, report
from rspql.compiler import compile_query
from rspql.plan import TopKPlan

STREAM = "http://example.org/posts"
CATALOG = f"""
[prefixes]
"" = "http://example.org/"
[streams."{STREAM}"]
connector = "lines"
options = {{ path = "posts" }}
[streams."{STREAM}".mapping]
subject = "http://example.org/post/{{id}}"
time = "t"
[streams."{STREAM}".mapping.properties]
":by" = {{ field = "by", datatype = "http://example.org/user/{{}}" }}
":likes" = {{ field = "likes", datatype = "xsd:integer" }}
":at" = {{ field = "t", datatype = "xsd:integer" }}
":text" = {{ field = "text", datatype = "xsd:string" }}
":price" = {{ field = "price", datatype = "xsd:decimal" }}
"""
QUERY = """SELECT ?post ?likes FROM NAMED WINDOW :w ON :posts [RANGE 10s STEP 1s]
WHERE {{ WINDOW :w {{ {} }} }} ORDER BY DESC(?likes) LIMIT 10"""
PATTERNS = {
    "one pattern": "?post :likes ?likes",
    "two patterns": "?post :by ?user ; :likes ?likes",
    "a filter on a text": '?post :text ?text ; :likes ?likes FILTER(CONTAINS(?text, "spark"))',
    "a filter on an IRI": "?post :by ?user ; :likes ?likes FILTER(?user != :user\\/7)",
    "OPTIONAL": "?post :likes ?likes OPTIONAL { ?post :text ?text }",
    "UNION": "{ ?post :by :user\\/7 } UNION { ?post :by :user\\/8 } ?post :likes ?likes",
    "NOT EXISTS": "?post :likes ?likes FILTER NOT EXISTS { ?post :by :user\\/7 }",
}
DECIMALS = {
    "decimals": """SELECT ?post (?price * ?likes AS ?score)
FROM NAMED WINDOW :w ON :posts [RANGE 10s STEP 1s]
WHERE { WINDOW :w { ?post :likes ?likes ; :price ?price } } ORDER BY DESC(?score) LIMIT 10""",
}
OF_A_CLOSE = {
    "decay by age": """SELECT ?post (?likes * change:decay(?at, "5s") AS ?score)
FROM NAMED WINDOW :w ON :posts [RANGE 10s STEP 1s]
WHERE { WINDOW :w { ?post :likes ?likes ; :at ?at } } ORDER BY DESC(?score) LIMIT 10""",
    "change of a count": """SELECT ?user (change:difference(?n, "5s") AS ?more)
FROM NAMED WINDOW :w ON :posts [RANGE 10s STEP 1s]
WHERE { WINDOW :w { SELECT ?user (COUNT(*) AS ?n) { ?post :by ?user } GROUP BY ?user } }
ORDER BY DESC(?more) LIMIT 10""",
    "change of each value": """SELECT ?post (change:difference(?likes, "5s") AS ?more)
FROM NAMED WINDOW :w ON :posts [RANGE 10s STEP 1s]
WHERE { WINDOW :w { ?post :likes ?likes } } ORDER BY DESC(?more) LIMIT 10""",
}
"""Queries whose scores change with each close."""
SLIDES = 16
FULL = 10


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench patterns", description=__doc__)
    parser.add_argument("--events", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--only", help="patterns with this in their name")
    parser.add_argument("--again", type=int, default=0, help="of 100 records, so many recur")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    catalog = Catalog.parse(CATALOG, file=Path("catalog.toml"), variables={})
    for events in options.events:
        slides = [
            pa.record_batch([pa.array(_lines(at, events // FULL, options.again))], ["value"])
            for at in range(SLIDES)
        ]
        texts = {title: QUERY.format(pattern) for title, pattern in PATTERNS.items()}
        for title, text in {**texts, **DECIMALS, **OF_A_CLOSE}.items():
            if options.only is not None and options.only not in title:
                continue
            plan = compile_query(text, prefixes=catalog.prefixes)
            assert isinstance(plan, TopKPlan)
            bound = bind_plan(plan, catalog, text=text)
            assert isinstance(bound, BoundQuery)
            whole = bind_windowed(plan.in_digits, catalog, text=text)
            taken = {
                "incremental": seconds_of(_incremental(bound), bound, slides),
                "window by window": seconds_of(
                    SparqlEvaluation(whole, open_engine=LocalEngine), whole, slides
                ),
            }
            figures = [Figure(name, seconds, events) for name, seconds in taken.items()]
            report(f"{title}: a window of {events:,} events", figures, [], as_json=options.json)
            times = figures[1].seconds / figures[0].seconds
            print(json.dumps({"times as fast": round(times, 1)}))


def _incremental(bound: BoundQuery) -> Evaluation:
    kind = JoinedWindowsEvaluation if bound.parts else TopKEvaluation
    return kind(bound, Replicas().open(bound) if bound.plan.join else None)


def seconds_of(query: Evaluation, bound: Bound, slides: list[pa.RecordBatch]) -> float:
    """Return the median processor time of a full window."""
    query.join(bound, {})
    (stream,) = bound.streams
    taken = []
    for at, slide in enumerate(slides, start=1):
        started = time.process_time()
        parts = list(Job(stream.mapping, query.reducers(STREAM))([slide]))
        query.add(STREAM, parts, query.names)
        list(query.advance(Tick(STREAM, 1_000 * at, 0.0)))
        taken.append(time.process_time() - started)
    query.close()
    return statistics.median(taken[FULL:])


def _lines(slide: int, count: int, again: int) -> Iterator[bytes]:
    """Yield the records of one second; some are about a subject of the second before."""
    for at in range(count):
        number = slide * count + at
        record = {
            "t": 1_000 * slide + 1 + 999 * at // count,
            "id": number - count if at % 100 < again else number,
            "by": number * 7919 % 1_000,
            "likes": number * 31 % 1_009,
            "price": f"{number * 37 % 5_000}.{number * 13 % 100:02}",
            "text": f"post {number} on {('spark', 'rain', 'wind')[number % 3]}",
        }
        yield json.dumps(record).encode()


if __name__ == "__main__":
    main()
