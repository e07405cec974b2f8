"""Queries that share a grid over the last elements: each answers as it does alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop import Answer
from acquatop.catalog.catalog import Catalog
from acquatop.catalog.vocabulary import Strategy
from acquatop.ingest.reduce.job import Job
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundCounted
from acquatop.query.contract import Evaluation, Tick
from acquatop.query.count_windows import CountedEvaluation
from acquatop.query.nearest_elements import NearestElements

STREAM = "http://example.org/pings"
CATALOG = """
[prefixes]
"" = "http://example.org/"
[streams.":pings"]
connector = "lines"
arrivals = "distinct"
{more}
options = {{ path = "pings" }}
[streams.":pings".mapping]
subject = "http://example.org/ping/{{id}}"
time = "t"
[streams.":pings".mapping.properties]
":x" = {{ field = "x", datatype = "xsd:{datatype}" }}
":y" = {{ field = "y", datatype = "xsd:{datatype}" }}
":z" = {{ field = "z", datatype = "xsd:double" }}
"""
TEXT = """PREFIX math: <http://www.w3.org/2005/xpath-functions/math#>
REGISTER {output} :q AS SELECT ?ping ?d
FROM NAMED WINDOW :w ON :pings [ELEMENTS {n} STEP {step}]
WHERE {{ WINDOW :w {{ ?ping :x ?x ; :y ?y {z} }} {filter} BIND({score} AS ?d) }}
ORDER BY ?d LIMIT {k} OFFSET {offset}"""


class Ping(NamedTuple):
    """An element; without an x it is no solution."""

    t: int
    id: int
    x: float | None
    y: float
    z: float

    def line(self) -> bytes:
        fields = {name: value for name, value in self._asdict().items() if value is not None}
        return json.dumps(fields).encode()


class Asked(NamedTuple):
    """Query: its point, k, offset, and output, and the batches before which it joins and leaves."""

    point: tuple[Any, Any, Any]
    k: int
    offset: int
    output: str
    joins: int
    leaves: int


@dataclass(frozen=True)
class Shape:
    """Queries over the same elements, and the batches of these."""

    asked: tuple[Asked, ...]
    batches: tuple[tuple[Ping, ...], ...]
    n: int
    step: int
    datatype: str
    axes: int
    is_root: bool
    filter: str
    lateness: int

    def bind(self, at: int, more: str = "") -> BoundCounted:
        asked = self.asked[at]
        apart = [f"(?{name} - {value})" for name, value in zip("xyz", asked.point, strict=True)]
        squares = " + ".join(f"{each} * {each}" for each in apart[: self.axes])
        text = TEXT.format(
            output=asked.output,
            n=self.n,
            step=self.step,
            z="; :z ?z" if self.axes == 3 else "",
            filter=self.filter,
            score=f"math:sqrt({squares})" if self.is_root else squares,
            k=asked.k,
            offset=asked.offset,
        )
        source = CATALOG.format(more=more, datatype=self.datatype)
        found = Catalog.parse(source, file=Path("c.toml"), variables={})
        bound = bind_query(text, found, name=f"q{at}")
        assert isinstance(bound, BoundCounted)
        return bound


def hand_in(evaluation: Evaluation, bound: BoundCounted, pings: Sequence[Ping]) -> None:
    lines = pa.record_batch([pa.array([each.line() for each in pings], pa.binary())], ["value"])
    parts = list(Job(bound.stream.mapping, evaluation.reducers(STREAM))([lines]))
    if parts:
        evaluation.add(STREAM, parts, evaluation.names)


def run(
    shape: Shape, members: Sequence[int], *, together: bool, kept: bool = False
) -> list[Answer]:
    """Return the answers of some of the queries, which come and go, to one evaluation."""
    bounds = {at: shape.bind(at) for at in members}
    (first, *_) = bounds.values()
    evaluation = opened(first, together=together)
    given: list[Answer] = []
    newest: int | None = None
    for number, batch in enumerate(shape.batches):
        for at, bound in bounds.items():
            if shape.asked[at].joins == number:
                evaluation.join(bound, {} if newest is None else {STREAM: newest})
            if shape.asked[at].leaves == number and together:
                evaluation.leave(bound.name)
        hand_in(evaluation, first, batch)
        newest = max([each.t for each in batch] + ([] if newest is None else [newest]))
        given += made(evaluation.advance(Tick(STREAM, newest - shape.lateness, 0.0)))
        if kept:
            snapshot, evaluation = evaluation.snapshot(), opened(first, together=together)
            evaluation.resume(snapshot)
            for at, bound in bounds.items():
                is_there = shape.asked[at].joins <= number < shape.asked[at].leaves
                assert evaluation.resume_query(bound) == is_there
    return [*given, *made(evaluation.finish(STREAM))]


def opened(bound: BoundCounted, *, together: bool) -> Evaluation:
    if together:
        return NearestElements(bound, clock=lambda: 0.0, wall_clock=lambda: 0.0)
    return CountedEvaluation(replace(bound, hint=str(Strategy.BLOCKS)), clock=lambda: 0.0)


def made(answers: Iterator[Any]) -> list[Answer]:
    return [each for each in answers if isinstance(each, Answer)]


def alone(shape: Shape, at: int) -> list[Answer]:
    """Return the answers of one query that is asked alone, until it leaves."""
    asked, bound = shape.asked[at], shape.bind(at)
    evaluation, given = opened(bound, together=False), []
    newest: int | None = None
    for number, batch in enumerate(shape.batches[: asked.leaves]):
        if number == asked.joins:
            evaluation.join(bound, {} if newest is None else {STREAM: newest})
        if number >= asked.joins:
            hand_in(evaluation, bound, batch)
        newest = max([each.t for each in batch] + ([] if newest is None else [newest]))
        if number >= asked.joins:
            given += made(evaluation.advance(Tick(STREAM, newest - shape.lateness, 0.0)))
    # What a stream gives at its end is not for those that have left.
    has_left = asked.leaves < len(shape.batches)
    return given if has_left else [*given, *made(evaluation.finish(STREAM))]


def canonical(found: Sequence[Answer], name: str) -> list[str]:
    return [json.dumps(each.canonical()) for each in found if each.query == name]


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    datatype = draw(st.sampled_from(["double", "integer"]))
    numbers: st.SearchStrategy[Any] = st.integers(-4, 4)
    if datatype == "double":
        numbers = st.one_of(numbers, st.floats(-5, 5).map(lambda each: round(each, 2)))
    sizes = draw(st.lists(st.integers(1, 15), min_size=1, max_size=6))
    pings, late = [], draw(st.integers(0, 3))
    for number in range(sum(sizes)):
        at = max(1, number // 2 - draw(st.integers(0, late)))
        x = draw(st.one_of(st.none(), numbers, numbers))
        pings.append(Ping(at, number, x, draw(numbers), draw(numbers)))
    batches = []
    for size in sizes:
        batches.append(tuple(pings[:size]))
        del pings[:size]
    asked = []
    for at in range(draw(st.integers(1, 4))):
        joins = 0 if at == 0 else draw(st.integers(0, len(batches) - 1))
        leaves = 99 if at == 0 else draw(st.sampled_from([99, 99, joins + 1, joins + 2]))
        point = tuple(draw(st.tuples(*[numbers] * 3)))
        if datatype == "integer":
            point = tuple(int(each) for each in point)
        asked.append(
            Asked(
                point,
                draw(st.integers(1, 4)),
                draw(st.sampled_from([0, 0, 2])),
                draw(st.sampled_from(["RSTREAM", "ISTREAM", "DSTREAM"])),
                joins,
                leaves,
            )
        )
    return Shape(
        tuple(asked),
        tuple(batches),
        draw(st.integers(1, 12)),
        draw(st.sampled_from([1, 1, 2, 5])),
        datatype,
        draw(st.sampled_from([2, 3])),
        draw(st.booleans()),
        draw(st.sampled_from(["", "FILTER(?x > -2)"])),
        draw(st.integers(0, 3)),
    )


@settings(max_examples=60, deadline=None)
@given(shapes(), st.booleans())
def test_each_query_answers_as_it_does_alone(shape: Shape, kept: bool) -> None:
    members = range(len(shape.asked))
    found = run(shape, members, together=True, kept=kept)
    for at in members:
        assert canonical(found, f"q{at}") == canonical(alone(shape, at), f"q{at}")
