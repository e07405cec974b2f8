"""Queries with windows and k of their own that are answered together: each is told what it would be told alone."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from hypothesis import event, given, settings
from hypothesis import strategies as st
from pyspark import cloudpickle

from acquatop.answer import Answer, Status
from acquatop.binding import BoundQuery, bind_query
from acquatop.catalog import Catalog
from acquatop.group import Group
from acquatop.operators.reduce.contract import Part
from acquatop.operators.reduce.job import Job
from acquatop.query_group import QueryGroup
from acquatop.shared_group import SharedGroup, shared_key
from acquatop.topk.many.shared_skyline import SharedSkyline

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
    """What one query asks for, and when it comes and goes."""

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
            else f'START "1970-01-01T00:00:00.00{self.start}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
        )
        said = {**vars(self), "name": f"q{number}", "start": start}
        bound = bind_query(TEXT.format(**said), CATALOG, name=f"q{number}")
        assert isinstance(bound, BoundQuery), bound.reason
        return bound


@dataclass(frozen=True)
class Shape:
    """What a random stream and its queries are like: chance fills in the rest."""

    seed: int
    queries: tuple[Query, ...]
    values: int
    late: float
    disorder: int
    gap: int
    steps: int
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
            assert anew.rejoin(bound) is not None
        self.group = anew

    def add(self, cuts: Sequence[Sequence[bytes]]) -> None:
        """Hand in a batch as executors would: the job travels there, and its parts back."""
        job = cloudpickle.loads(cloudpickle.dumps(Job(CATALOG.streams[STREAM].mapping, self.group.reducers())))
        for lines in cuts:
            parts = list(job([pa.record_batch([pa.array(lines, pa.binary())], ["value"])]))
            if parts:
                self.group.add([Part.from_bytes(part.to_bytes()) for part in parts], list(self.members))

    def of(self, name: str) -> list[str]:
        return [told(answer) for answer in self.said if answer.query == name]


STREAM = "http://example.org/stream"


def told(answer: Answer) -> str:
    """Return all that does not depend on the clock."""
    document = answer.to_json()
    del document["latency_ms"], document["emitted"]
    return json.dumps(document)


def play(shape: Shape, shared: Played, alone: dict[str, Played]) -> None:
    """Let queries come and go, records come, and time go on, here and there alike."""
    chance, now, newest, watermark = random.Random(shape.seed), 0, None, None
    for step in range(shape.steps):
        for number, query in enumerate(shape.queries):
            name = f"q{number}"
            if query.comes == step:
                bound, after = query.bind(number), None if newest is None else max(newest, watermark)
                alone[name] = Played(QueryGroup(bound, None))
                for played in (shared, alone[name]):
                    played.group.join(bound, after)
                    played.members[name] = bound
            if query.comes + query.stays == step and name in shared.members:
                shared.group.leave(name)
                del shared.members[name], alone[name].members[name]
        played = [each for each in (shared, *alone.values()) if each.members]
        now += chance.choice([0, 5, 5, 20]) + (chance.randrange(shape.gap + 1) if chance.random() < 0.2 else 0)
        times = [now - chance.randrange(shape.disorder + 1) for _ in range(chance.randrange(12))]
        times = [time - 40 if chance.random() < shape.late else time for time in times]
        cuts = [[line(chance, shape, time, (step, at)) for at, time in enumerate(times)]]
        cut = chance.randrange(len(times) + 1)
        cuts = [cuts[0][:cut], cuts[0][cut:]]
        newest = max([*times, *([] if newest is None else [newest])], default=None)
        for each in played:
            each.add(cuts)
        if newest is not None:
            watermark = max(newest - shape.disorder // 2, watermark or -99)
            for each in played:
                each.said += each.group.advance(watermark)
        if chance.random() < shape.kills:
            if shared.members:
                shared.killed(SharedGroup(next(iter(shared.members.values()))))
        if step == shape.steps - 3:
            for each in played:
                each.said += each.group.finish()


def line(chance: random.Random, shape: Shape, time: int, number: tuple[int, int]) -> bytes:
    if chance.random() < 0.05:
        return b"{"
    said = {"t": time, "id": "-".join(map(str, number)), "value": chance.randint(0, shape.values)}
    return json.dumps({**said, "weight": chance.choice([0, 1, 1, 2])} if chance.random() < 0.9 else said).encode()


def few_empty(run: int) -> ExitStack:
    """Let time have jumped where so few windows are empty."""
    with ExitStack() as stack:
        for module in ("query_group", "shared_group", "shared_member"):
            stack.enter_context(patch(f"acquatop.{module}.EMPTY_RUN", run))
        return stack.pop_all()


@settings(max_examples=100, deadline=None)
@given(shape=shapes, in_small_steps=st.booleans())
def test_each_query_is_told_what_it_would_be_told_alone(shape: Shape, in_small_steps: bool) -> None:
    alone: dict[str, Played] = {}
    structure = partial(SharedSkyline, stretch=1, room=4) if in_small_steps else SharedSkyline
    with few_empty(20), patch("acquatop.shared_group.SharedSkyline", structure):
        shared = Played(SharedGroup(shape.queries[0].bind(0)))
        play(shape, shared, alone)
    for name, played in alone.items():
        assert shared.of(name) == played.of(name)
    for answer in shared.said:
        skipped = "some windows left out" if answer.counts.skipped else "none left out"
        event(f"{answer.status}, {'some' if answer.rows else 'no'} rows, {skipped}")
