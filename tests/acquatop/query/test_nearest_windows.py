"""Queries that share a grid over windows of time: each answers as it does without one."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop import Answer
from acquatop.catalog.catalog import Catalog
from acquatop.ingest.reduce.job import Job
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundQuery
from acquatop.query.contract import Tick
from acquatop.query.evaluation import TopKEvaluation
from acquatop.query.topk.nearest import NearestRanking
from acquatop.topk.contract import Rows
from acquatop.topk.shared.pane_tops import PaneTops
from acquatop.topk.snapshot import SnapshotError

STREAM = "http://example.org/pings"
CATALOG = """
[prefixes]
"" = "http://example.org/"
[streams.":pings"]
connector = "lines"
arrivals = "distinct"
options = {{ path = "pings" }}
[streams.":pings".mapping]
subject = "http://example.org/ping/{{id}}"
time = "t"
[streams.":pings".mapping.properties]
":x" = {{ field = "x", datatype = "xsd:{datatype}" }}
":y" = {{ field = "y", datatype = "xsd:{datatype}" }}
"""
TEXT = """PREFIX math: <http://www.w3.org/2005/xpath-functions/math#>
SELECT ?ping ?d FROM NAMED WINDOW :w ON :pings [RANGE {width}ms STEP {step}ms]
WHERE {{ WINDOW :w {{ ?ping :x ?x ; :y ?y }} {filter} BIND({score} AS ?d) }}
ORDER BY ?d LIMIT {k} OFFSET {offset}"""


@dataclass(frozen=True)
class Shape:
    """Queries with the same windows, the batches of a stream, and a seed for the rest."""

    queries: int
    datatype: str
    is_root: bool
    filter: str
    width: int
    step: int
    levels: int
    batches: int
    seed: int

    def bind(self, at: int) -> BoundQuery:
        chance = Random(f"{self.seed} {at}")
        x, y = (chance.randrange(self.levels) for _ in "xy")
        squares = f"(?x - {x}) * (?x - {x}) + (?y - {y}) * (?y - {y})"
        if self.datatype == "double":
            squares = squares.replace(f"?x - {x}", f"?x - {x}.25")
        text = TEXT.format(
            width=self.width,
            step=self.step,
            filter=self.filter,
            score=f"math:sqrt({squares})" if self.is_root else squares,
            k=chance.randint(1, 4),
            offset=chance.choice([0, 0, 1]),
        )
        found = Catalog.parse(
            CATALOG.format(datatype=self.datatype), file=Path("c.toml"), variables={}
        )
        bound = bind_query(text, found, name=f"q{at}")
        assert isinstance(bound, BoundQuery)
        return bound

    def lines(self) -> list[list[bytes]]:
        chance, at, batches = Random(self.seed), 0, []
        for _ in range(self.batches):
            batch = []
            for _ in range(chance.randint(1, 30)):
                at += 1
                late = chance.choice([0, 0, 0, 2, 9])
                event: dict[str, Any] = {"t": max(1, at // 2 - late), "id": chance.random()}
                event |= {name: chance.randrange(self.levels) for name in "xy"}
                if chance.random() < 0.1:
                    del event["x"]
                batch.append(json.dumps(event).encode())
            batches.append(batch)
        return batches


def answers(shape: Shape, *, on_grid: bool, kept: bool = False) -> list[str]:
    """Return all answers; the last query joins late, and one leaves before the end."""
    bounds = [replace(shape.bind(at), may_use_grid=on_grid) for at in range(shape.queries)]
    evaluation, newest = opened(bounds[0]), 0
    given: list[Answer] = []
    for bound in bounds[:-1] or bounds:
        evaluation.join(bound, {})
    assert isinstance(evaluation.members["q0"].operator, NearestRanking) == on_grid
    for number, batch in enumerate(shape.lines()):
        if number == 2 and len(bounds) > 1:
            evaluation.join(bounds[-1], {STREAM: newest})
        if number == 4 and len(bounds) > 3:
            evaluation.leave("q1")
        lines = pa.record_batch([pa.array(batch, pa.binary())], ["value"])
        # A part is reduced in two partitions, as on Spark.
        for half in (lines.slice(0, len(batch) // 2), lines.slice(len(batch) // 2)):
            parts = list(Job(bounds[0].stream.mapping, evaluation.reducers(STREAM))([half]))
            if parts:
                evaluation.add(STREAM, parts, evaluation.names)
        newest = max([newest, *(json.loads(line)["t"] for line in batch)])
        given += evaluation.advance(Tick(STREAM, newest - 3, 0.0))
        if kept:
            names, snapshot = evaluation.names, evaluation.snapshot()
            evaluation = opened(bounds[0])
            evaluation.resume(snapshot)
            for bound in bounds:
                assert evaluation.resume_query(bound) == (bound.name in names)
    given += evaluation.finish(STREAM)
    return sorted(json.dumps(answer.canonical()) for answer in given if isinstance(answer, Answer))


def opened(bound: BoundQuery) -> TopKEvaluation:
    return TopKEvaluation(bound, None, clock=lambda: 0.0, wall_clock=lambda: 0.0)


@settings(max_examples=40, deadline=None)
@given(
    st.builds(
        Shape,
        queries=st.sampled_from([1, 3, 5, 20]),
        datatype=st.sampled_from(["double", "integer"]),
        is_root=st.booleans(),
        filter=st.sampled_from(["", "FILTER(?x > 1)"]),
        width=st.sampled_from([4, 10, 25]),
        step=st.sampled_from([2, 4, 7, 30]),
        levels=st.sampled_from([2, 6, 1_000]),
        batches=st.integers(1, 7),
        seed=st.integers(0, 10**6),
    ),
    st.booleans(),
)
def test_a_grid_changes_no_answer(shape: Shape, kept: bool) -> None:
    right = answers(shape, on_grid=False)
    with patch("acquatop.topk.shared.pane_tops._ROOM", 16):
        assert answers(shape, on_grid=True, kept=kept) == right


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, 3, 100]))
def test_what_is_dropped_is_in_no_answer(seed: int, levels: int) -> None:
    with patch("acquatop.topk.shared.pane_tops._ROOM", 8):
        drop_and_compare(seed, levels)


def drop_and_compare(seed: int, levels: int) -> None:
    chance = np.random.default_rng(seed)
    held, every = PaneTops(), PaneTops()
    ks = {query: int(chance.integers(1, 4)) for query in (0, 2, 5)}
    for window in range(12):
        for first in (window, window + 1):
            rows = int(chance.integers(0, 8))
            at = np.arange(rows)
            pane = Rows(chance.integers(0, levels, rows), at + 100 * window + 10 * first, at, ())
            queries = np.repeat(np.array([*ks]), rows)
            merits = chance.integers(0, levels, len(queries)).astype(np.float64)
            for each in (held, every):
                each.add(first, first + 2, pane, queries, np.tile(at, 3), merits)
        for query, k in ks.items():
            found, right = (each.inside(window).top(query, k) for each in (held, every))
            assert found.merits.tolist() == right.merits.tolist()
            assert found.rows.identities.tolist() == right.rows.identities.tolist()
        held.close_before(window + 1, ks)
        if chance.random() < 0.3:
            other = PaneTops()
            other.resume(held.snapshot())
            held = other
    assert len(held) <= len(every)
    with pytest.raises(SnapshotError):
        held.resume(b"other")
