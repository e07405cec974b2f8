"""Measure every shape of queries in docs/language.md, answered incrementally and window by window.

Processor time of each full window, from decoded records to the answer; windows slide by a tenth.
What remotes take to answer is not counted.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyoxigraph as ox
from rich.console import Console
from rich.table import Table

from acquatop.catalog.catalog import Catalog
from acquatop.catalog.evaluation_limits import EvaluationLimits
from acquatop.catalog.services import Service
from acquatop.ingest.reduce.job import reduced
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import Bound, BoundCounted, BoundQuery
from acquatop.plan.remote_query import RemoteQuery
from acquatop.plan.whole_windows import whole_windows_of
from acquatop.query.contract import Tick
from acquatop.query.kinds import Resources, open_evaluation
from acquatop.query.sparql.engine import LocalEngine
from acquatop.refresh.open_replicas import Replicas
from replica.key_tuples import key_text, terms_in
from replica.rankers import DEFAULT_RANKERS
from replica.remotes import MayAsk, always
from replica.store import Solution
from tests.support.shapes import FOLDER, QueryShape, shapes

NS = "http://example.org/"
FULL, MINUTE = 10, 60_000
"""Slides of a window, and milliseconds of a slide."""
WORDS = ("rain", "no rain today", "Rhine in sun", "snow", "rayon")
SHARED = QueryShape(
    "stream",
    "documents that all share their subjects",
    "SELECT ?o ?n $w { WINDOW :w { ?o :result ?r . ?r :value ?n } } ORDER BY DESC(?n) LIMIT 3",
    "documents.toml",
)
"""Worst of all for what makes solutions of linked documents."""


@dataclass(frozen=True)
class Bench:
    """Streams and remotes, large enough for windows of so many events."""

    events: int
    closes: int
    folder: Path

    @property
    def slide(self) -> int:
        """Events of a slide."""
        return self.events // FULL

    def posts(self, slide: int) -> Iterator[Mapping[str, Any]]:
        """Yield the posts of one minute: a tenth is about posts of the minute before."""
        chance = Random(slide)
        for at in range(self.slide):
            number = slide * self.slide + at
            yield {
                "id": max(0, number - self.slide) if at % 10 == 0 else number,
                "t": MINUTE * slide + 1 + (MINUTE - 1) * at // self.slide,
                "user": chance.randrange(self.events // 5),
                "topic": chance.randrange(50),
                "mentions": chance.randrange(1_000),
                "length": chance.randrange(200),
                "text": f"{chance.choice(WORDS)} {chance.randrange(1000)}",
                "city": f"city {chance.randrange(20)}",
                "day": f"2026-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}Z",
                "price": f"{chance.randrange(100)}.{chance.randrange(100):02}",
                "likes": chance.randrange(100),
            }

    def documents(self, slide: int, *, share: bool) -> Iterator[bytes]:
        """Yield the documents of one minute; some are about what others are, or all if they do."""
        for at in range(self.slide):
            number = slide * self.slide + at
            t = MINUTE * slide + 1 + (MINUTE - 1) * at // self.slide
            result = f":r{number % 50}" if share else f"_:r{number}"
            lines = [
                f"@prefix : <{NS}> . :o{number} :at {t} ; :result {result} .",
                f"{result} :value {number * 31 % 1009} .",
            ]
            if at % 2:
                lines.append(f'{result} :unit "{("m", "km")[at % 3 % 2]}" .')
            if at % 10 == 4:
                lines.append(f":x{number} :broader :o{number - at % 2} .")
            if at % 4 == 3:
                lines.append(f"{result} :broader :s{number} . :s{number} :value {at % 997} .")
            yield " ".join(lines).encode()

    @cached_property
    def remote(self) -> ox.Store:
        """Triples that all services have."""
        store, chance = ox.Store(), Random(1)

        def say(subject: str, name: str, value: ox.NamedNode | ox.Literal) -> None:
            made = ox.NamedNode(NS + subject), ox.NamedNode(NS + name), value
            store.add(ox.Quad(*made, ox.DefaultGraph()))

        posts = (FULL + self.closes) * self.slide
        people = [f"post/{at}" for at in range(posts)]
        for at, one in enumerate([*people, *map(str, range(self.events // 5))]):
            for name, most in (("followers", 1_000), ("weight", 9)):
                say(one, name, ox.Literal(chance.randrange(most)))
            say(one, "name", ox.Literal(f"{'ABCX'[at % 4]}{at}"))
            say(one, "city", ox.Literal(f"city {at % 20}"))
            say(one, "expert", ox.NamedNode(f"{NS}topic/{at % 50}"))
            say(one, "likes", ox.NamedNode(f"{NS}topic/{at % 49}"))
            if at % 4 == 0:
                say(one, "followers", ox.Literal(chance.randrange(1_000)))
        for at in range(50):
            say(f"topic/{at}", "heat", ox.Literal(chance.randrange(100)))
        return store

    def write_graph(self) -> None:
        """Write the static graph beside the catalogs: every second subject has a friend."""
        friends = (
            f"<{NS}{one}> <{NS}friend> <{NS}{('ann', 'bob')[at % 2]}> ."
            for at in range(0, (FULL + self.closes) * self.slide, 2)
            for one in (f"post/{at}", at)
        )
        weight = f'<{NS}ann> <{NS}weight> "3"^^<http://www.w3.org/2001/XMLSchema#integer> .'
        (self.folder / "friends.ttl").write_text("\n".join([weight, *friends]), "utf-8")

    def catalog(self, shape: QueryShape) -> Catalog:
        """Return the shape's catalog, its windows beginning with the first record."""
        text = (FOLDER / shape.catalog).read_text("utf-8")
        text = text.replace("connector =", "start_ms = 0\nconnector =")
        text = text.replace('format = "rdf"', 'format = "rdf"\nsyntax = "turtle"')
        return Catalog.parse(text, file=self.folder / shape.catalog, variables={})

    def text(self, shape: QueryShape) -> str:
        """Return a shape's query over windows that slide by a tenth."""
        counted = f"ELEMENTS {self.events} STEP {self.slide}"
        text = shape.text().replace("ELEMENTS 100 STEP 10", counted)
        text = text.replace("RANGE 9m STEP 3m", f"RANGE {FULL}m STEP 1m")
        return text.replace("RANGE 18m STEP 3m", f"RANGE {2 * FULL}m STEP 1m")

    def batches(self, shape: QueryShape, slide: int) -> pa.RecordBatch:
        """Return what one minute brings, before it is decoded."""
        if shape.catalog == "documents.toml":
            lines = list(self.documents(slide, share=shape is SHARED))
        else:
            lines = [json.dumps(each).encode() for each in self.posts(slide)]
        return pa.record_batch([pa.array(lines, pa.binary())], ["value"])


@dataclass
class Untimed:
    """Remote over triples in memory, and how long it has taken to answer."""

    graph: ox.Store
    question: RemoteQuery
    taken: list[int]
    block_size: int = 1000

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        """Return the solutions of some keys."""
        assert self.question.key is not None
        names = terms_in(self.question.key)
        rows = " ".join(f"({' '.join(terms_in(key))})" for key in keys)
        return self._found(f"VALUES ({' '.join(f'?{name}' for name in names)}) {{ {rows} }}", names)

    def load(self, timeout: float, may_ask: MayAsk = always) -> Iterator[list[Solution]]:
        """Yield all solutions."""
        yield self._found("", terms_in(self.question.key or ""))

    def _found(self, values: str, names: Sequence[str]) -> list[Solution]:
        started = time.thread_time_ns()
        found: Any = self.graph.query(f"SELECT * {{ {values} {{ {self.question.text} }} }}")
        shown = [each.value for each in found.variables]
        rows: list[Solution] = [
            {name: str(each[name]) for name in shown if each[name] is not None} for each in found
        ]
        if len(names) > 1:
            key = key_text(names)
            rows = [{**each, key: key_text(each[name] for name in names)} for each in rows]
        self.taken.append(time.thread_time_ns() - started)
        return rows


@dataclass
class Took:
    """CPU milliseconds of each close on both roads; None if a shape has no incremental road."""

    shape: str
    events: int
    incremental: float | None
    windowed: float = field(default=0.0)

    @property
    def times(self) -> float:
        """Number of times that the incremental road is as fast."""
        return self.windowed / self.incremental if self.incremental else 1.0


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench shapes", description=__doc__)
    parser.add_argument("--events", type=int, default=10_000, help="of each window")
    parser.add_argument("--closes", type=int, default=6, help="of each road")
    parser.add_argument("--only", default="", help="shapes with this in their name")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    console, found = Console(stderr=options.json), []
    with TemporaryDirectory() as folder:
        bench = Bench(options.events, options.closes, Path(folder))
        bench.write_graph()
        for shape in (*shapes(), SHARED):
            if options.only in shape.name:
                with console.status(shape.name):
                    found.append(took(bench, shape))
    if options.json:
        print(json.dumps([{**vars(each), "times": round(each.times, 1)} for each in found]))
    else:
        console.print(table(found))


def took(bench: Bench, shape: QueryShape) -> Took:
    """Return what a shape takes on both roads."""
    catalog = bench.catalog(shape)
    bound = bind_query(bench.text(shape), catalog)
    inner = bound.query if isinstance(bound, BoundCounted) else bound
    windowed = whole_windows_of(inner, catalog) if isinstance(inner, BoundQuery) else inner
    whole = replace(bound, query=windowed) if isinstance(bound, BoundCounted) else windowed
    incremental = _per_close(bench, shape, bound) if isinstance(inner, BoundQuery) else None
    return Took(shape.name, bench.events, incremental, _per_close(bench, shape, whole))


def _per_close(bench: Bench, shape: QueryShape, bound: Bound) -> float:
    """Return the CPU milliseconds of a full window, but the first, from its slide's records."""
    taken: list[int] = []

    def open_remote(
        service: Service, question: RemoteQuery, client: object, now: object, uses_one: bool
    ) -> Untimed:
        return Untimed(bench.remote, question, taken)

    ticks = iter(range(1 << 60))
    replicas = Replicas(open_remote=open_remote, now=lambda: float(next(ticks)))
    resources = Resources(
        replicas,
        time.monotonic,
        DEFAULT_RANKERS,
        lambda task, some: [],
        lambda key: bench.folder,
        durable=False,
        open_sparql=_local,
    )
    evaluation = open_evaluation(bound, "key", resources, load=True, shared=False)
    evaluation.join(bound, {})
    spent: list[int] = []
    for slide in range(FULL + bench.closes):
        batch = bench.batches(shape, slide)
        given = [(each.iri, each.mapping.records(batch)) for each in bound.streams]
        taken.clear()
        started = time.process_time_ns()
        for iri, records in given:
            parts = list(reduced(records, evaluation.reducers(iri)))
            evaluation.add(iri, parts, evaluation.names)
        for iri, _ in given:
            list(evaluation.advance(Tick(iri, MINUTE * (slide + 1), 0.0)))
        spent.append(time.process_time_ns() - started - sum(taken))
    evaluation.close()
    return sum(spent[FULL:]) / 1e6 / bench.closes


def _local(content: Any, functions: Any, limits: EvaluationLimits) -> LocalEngine:
    """Return an engine in this process, whose time is counted."""
    return LocalEngine(content, functions)


def table(found: Sequence[Took]) -> Table:
    """Return the measurements as a table, the least gain first."""
    shown = Table(
        "shape", "incremental, ms", "window by window, ms", "times", title="CPU of a close"
    )
    for each in sorted(found, key=lambda each: each.times):
        incremental = "–" if each.incremental is None else f"{each.incremental:.1f}"
        shown.add_row(each.shape, incremental, f"{each.windowed:.1f}", f"{each.times:.1f}")
    return shown


if __name__ == "__main__":
    main()
