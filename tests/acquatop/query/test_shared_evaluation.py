"""Queries with windows and k of their own that are answered together, each as if alone."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from hypothesis import event, given, settings
from hypothesis import strategies as st
from pyspark import cloudpickle

from acquatop.answer.answer import Answer
from acquatop.catalog.catalog import Catalog
from acquatop.ingest.reduce.contract import Part
from acquatop.ingest.reduce.job import Job
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundQuery
from acquatop.query.contract import Tick
from acquatop.query.evaluation import TopKEvaluation
from acquatop.query.shared.evaluation import SharedEvaluation
from acquatop.topk.papers.mtops.mtop_band import MTopBand
from acquatop.topk.papers.mtops.mtop_list import MTopList
from acquatop.topk.shared.shared_skyline import SharedSkyline

CATALOG = Catalog.parse(
    """
[prefixes]
"" = "http://example.org/"
[streams.":stream"]
connector = "lines"
arrivals = "distinct"
options = { path = "events" }
[streams.":stream".mapping]
subject = "http://example.org/post/{id}"
time = "t"
[streams.":stream".mapping.properties]
":value" = { field = "value", datatype = "xsd:integer" }
":weight" = { field = "weight", datatype = "xsd:integer" }
""",
    file=Path("catalog.toml"),
    variables={},
)

TEXT = """REGISTER {output} :{name} AS SELECT ?post ?value (?value / ?weight AS ?score)
FROM NAMED WINDOW :w ON :stream [RANGE {width}ms STEP {slide}ms {start}]
WHERE {{ WINDOW :w {{ ?post :value ?value ; :weight ?weight FILTER(?value != 3) }} }}
ORDER BY DESC(?score) LIMIT {k} OFFSET {offset}"""


@dataclass(frozen=True)
class Query:
    """Parameters of one query, and the times of its coming and going."""

    width: int
    slide: int
    k: int
    offset: int
    output: str
    start: int | None
    comes: int
    stays: int

    def bind(self, number: int) -> BoundQuery:
        start = (
            ""
            if self.start is None
            else f"START "
            f'"1970-01-01T00:00:00.00{self.start}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
        )
        said = {**vars(self), "name": f"q{number}", "start": start}
        bound = bind_query(TEXT.format(**said), CATALOG, name=f"q{number}")
        assert isinstance(bound, BoundQuery), bound.reason
        return bound


@dataclass(frozen=True)
class Shape:
    """Parameters of a random stream and its queries; chance decides the rest."""

    seed: int
    queries: tuple[Query, ...]
    values: int
    late: float
    disorder: int
    gap: int
    steps: int
    spread: int
    kills: float


queries = st.builds(
    Query,
    width=st.integers(1, 30),
    slide=st.integers(1, 15),
    k=st.integers(1, 5),
    offset=st.sampled_from([0, 0, 2]),
    output=st.sampled_from(["RSTREAM", "RSTREAM", "ISTREAM", "DSTREAM"]),
    start=st.sampled_from([None, None, 0, 7]),
    comes=st.sampled_from([0, 0, 3, 8]),
    stays=st.sampled_from([99, 99, 4]),
)
shapes = st.builds(
    Shape,
    seed=st.integers(0, 2**32),
    queries=st.lists(queries, min_size=1, max_size=5).map(tuple),
    values=st.sampled_from([0, 4, 1000]),
    late=st.sampled_from([0, 0.1]),
    disorder=st.sampled_from([0, 3, 12]),
    gap=st.sampled_from([0, 90, 900]),
    steps=st.integers(1, 20),
    spread=st.sampled_from([0, 80]),
    kills=st.sampled_from([0, 0.3]),
)


@dataclass
class Played:
    """A group, and what it has been told and has said."""

    group: Any
    members: dict[str, BoundQuery] = field(default_factory=dict)
    said: list[Answer] = field(default_factory=list)

    def killed(self, anew: Any) -> None:
        """Go on in another group, from what this one keeps."""
        anew.resume(self.group.snapshot())
        for bound in self.members.values():
            assert anew.resume_query(bound)
        self.group = anew

    def add(self, cuts: Sequence[Sequence[bytes]]) -> None:
        """Hand in a batch as executors would: the job travels there, and its parts back."""
        job = Job(CATALOG.streams[STREAM].mapping, self.group.reducers(STREAM))
        if isinstance(self.group, SharedEvaluation):
            job = cloudpickle.loads(cloudpickle.dumps(job))
        for lines in cuts:
            parts = list(job([pa.record_batch([pa.array(lines, pa.binary())], ["value"])]))
            if parts:
                self.group.add(
                    STREAM, [Part.from_bytes(part.to_bytes()) for part in parts], list(self.members)
                )

    def of(self, name: str) -> list[str]:
        return [told(answer) for answer in self.said if answer.query == name]


STREAM = "http://example.org/stream"


def told(answer: Answer) -> str:
    """Return all that does not depend on the clock."""
    document = answer.to_json()
    del document["latency_ms"], document["emitted"]
    return json.dumps(document)


class Replay:
    """Queries that come and go on a stream that chance has made, together and each by itself."""

    def __init__(self, shape: Shape, structure: Callable[..., Any]) -> None:
        self.shape = shape
        self.structure = structure
        self.chance = random.Random(shape.seed)
        self.bound = [query.bind(number) for number, query in enumerate(shape.queries)]
        self.shared = Played(SharedEvaluation(self.bound[0], structure=structure))
        self.alone: dict[str, Played] = {}
        self.now = 0
        self.newest: int | None = None
        self.watermark = -99

    @property
    def played(self) -> list[Played]:
        return [each for each in (self.shared, *self.alone.values()) if each.members]

    def run(self) -> None:
        for step in range(self.shape.steps):
            self.come_and_go(step)
            self.take(self.batch(step))
            if self.chance.random() < self.shape.kills and self.shared.members:
                bound = next(iter(self.shared.members.values()))
                self.shared.killed(SharedEvaluation(bound, structure=self.structure))
            if step == self.shape.steps - 3:
                # A recording that has come to its end may go on later.
                for each in self.played:
                    each.said += each.group.finish(STREAM)

    def come_and_go(self, step: int) -> None:
        for number, query in enumerate(self.shape.queries):
            name = f"q{number}"
            if query.comes == step:
                self.alone[name] = Played(TopKEvaluation(self.bound[number], None))
                after = None if self.newest is None else max(self.newest, self.watermark)
                for played in (self.shared, self.alone[name]):
                    played.members[name] = self.bound[number]
                    played.group.join(self.bound[number], {} if after is None else {STREAM: after})
            if query.comes + query.stays == step:
                self.shared.group.leave(name)
                del self.shared.members[name], self.alone[name].members[name]

    def batch(self, step: int) -> list[tuple[int, bytes]]:
        shape, chance = self.shape, self.chance
        self.now += chance.choice([0, 5, 5, 20]) + (
            chance.randrange(shape.gap + 1) if chance.random() < 0.2 else 0
        )
        earliest, self.now = self.now, self.now + shape.spread
        size = chance.randrange(12 + shape.spread // 2)
        times = [
            chance.randint(earliest, self.now) - chance.randrange(shape.disorder + 1)
            for _ in range(size)
        ]
        times = [time - 40 if chance.random() < shape.late else time for time in times]
        return [(time, line(chance, shape, time, f"{step}-{at}")) for at, time in enumerate(times)]

    def take(self, batch: list[tuple[int, bytes]]) -> None:
        cut = self.chance.randrange(len(batch) + 1)
        for each in self.played:
            each.add([[said for _, said in part] for part in (batch[:cut], batch[cut:])])
        for time, _ in batch:
            self.newest = time if self.newest is None else max(time, self.newest)
        if self.newest is not None:
            self.watermark = max(self.newest - self.shape.disorder // 2, self.watermark)
            for each in self.played:
                each.said += each.group.advance(Tick(STREAM, self.watermark, 0.0))


def line(chance: random.Random, shape: Shape, time: int, number: str) -> bytes:
    if chance.random() < 0.05:
        return b"{"
    said = {"t": time, "id": number, "value": chance.randint(0, shape.values)}
    # A score may be an error, and a record no solution.
    weight = {"weight": chance.choice([0, 1, 1, 2])} if chance.random() < 0.9 else {}
    return json.dumps({**said, **weight}).encode()


def few_empty(run: int) -> Any:
    """Let time have jumped where so few windows are empty."""
    return patch("acquatop.query.schedule.cursor.MAX_EMPTY_WINDOWS", run)


STRUCTURES = (SharedSkyline, partial(SharedSkyline, stretch=1, room=4), MTopBand, MTopList)


@settings(max_examples=24, deadline=None)
@given(shape=shapes, structure=st.sampled_from(STRUCTURES))
def test_each_query_is_told_what_it_would_be_told_alone(
    shape: Shape, structure: Callable[..., Any]
) -> None:
    with few_empty(20):
        replay = Replay(shape, structure)
        replay.run()
    for name, played in replay.alone.items():
        assert replay.shared.of(name) == played.of(name)
    for answer in replay.shared.said:
        skipped = "some windows left out" if answer.counts.skipped else "none left out"
        event(f"{answer.status}, {'some' if answer.rows else 'no'} rows, {skipped}")
