"""Sums and averages of large integers, some of which cancel: right if they are called exact."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from acquatop.answer.answer import Answer, Status
from acquatop.catalog.catalog import Catalog
from acquatop.engine.engine import Engine
from acquatop.ingest.reduce.contract import Part
from acquatop.ingest.reduce.job import reduced
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundQuery
from acquatop.query.aggregates.on_executors import scattered_content
from acquatop.query.contract import Tick
from acquatop.query.evaluation import TopKEvaluation
from rspql.scoring.exact import text_of
from tests.support.queries.twins import in_process

NS = "http://example.org/"
STREAM = NS + "s"
CATALOG = """
[streams."http://example.org/s"]
connector = "lines"
options = {{ path = "events" }}
arrivals = "{arrivals}"
keys = "{keys}"
lateness = "60s"
[streams."http://example.org/s".mapping]
subject = "http://example.org/{{id}}"
time = "t"
[streams."http://example.org/s".mapping.properties]
"http://example.org/u" = {{ field = "u", datatype = "xsd:string" }}
"http://example.org/a" = {{ field = "a", datatype = "xsd:integer" }}
"""
QUERY = """PREFIX : <http://example.org/>
SELECT ?u (SUM(?a) AS ?s) ({score} AS ?score)
FROM NAMED WINDOW :w ON :s [RANGE 10ms STEP 5ms]
WHERE {{ WINDOW :w {{ {pattern} }} }} GROUP BY ?u ORDER BY DESC(?score) LIMIT 2"""
SCORES: Mapping[str, Callable[[int, int], Fraction]] = {
    "SUM(?a)": lambda total, size: Fraction(total),
    "AVG(?a)": Fraction,
    "3 * AVG(?a)": lambda total, size: Fraction(3 * total, size),
    "0 - 2 * SUM(?a) + COUNT(?a)": lambda total, size: Fraction(size - 2 * total),
    "0.1 * AVG(?a) + 0.3 * SUM(?a)": lambda total, size: (
        Fraction(total, 10 * size) + Fraction(3 * total, 10)
    ),
}
SMALL = 2**40
"""Sums up to here have all digits in each of the scores."""


@dataclass(frozen=True)
class Event:
    """A record: its time, its subject, its key and a number."""

    t: int
    id: str
    u: str
    a: int

    @property
    def line(self) -> str:
        return json.dumps(vars(self))


@dataclass(frozen=True)
class Road:
    """One of the ways on which numbers come to their sums."""

    arrivals: str
    keys: str = "driver"

    def catalog(self) -> Catalog:
        text = CATALOG.format(arrivals=self.arrivals, keys=self.keys)
        return Catalog.parse(text, file=Path("c.toml"), variables={})

    def query(self, score: str) -> str:
        pattern = "?u :a ?a" if self.arrivals == "all" else "?e :u ?u ; :a ?a"
        return QUERY.format(score=score, pattern=pattern)

    def evaluation(self, bound: BoundQuery, folder: Path) -> TopKEvaluation:
        if self.keys == "driver":
            return TopKEvaluation(bound, None)
        content = scattered_content(bound, None, folder, in_process, durable=True)
        return TopKEvaluation(bound, None, scattered=content)

    def told(self, events: Sequence[Event]) -> list[Event]:
        """Return the events as this road needs them: with subjects that recur, or do not."""
        if self.arrivals == "all":
            return [replace(each, id=each.u) for each in events]
        if self.arrivals == "distinct":
            return [replace(each, id=f"e{at}") for at, each in enumerate(events)]
        return list(events)

    def groups(self, events: Sequence[Event]) -> dict[str, list[Event]]:
        """Return the events that count, by the text of their keys."""
        if self.arrivals == "latest":
            # Of two of one time the one with the greater terms replaces the other.
            newest = sorted(events, key=lambda each: (each.t, f'"{each.u}"', f'"{each.a}"'))
            events = list({each.id: each for each in newest}.values())
        found: dict[str, dict[object, Event]] = {}
        for each in sorted(events, key=lambda each: each.t):
            key = f"<{NS}{each.u}>" if self.arrivals == "all" else f'"{each.u}"'
            own = each.a if self.arrivals == "all" else each.id
            found.setdefault(key, {})[own] = each
        return {key: list(each.values()) for key, each in found.items()}


ROADS = {
    "all": Road("all"),
    "latest": Road("latest"),
    "distinct": Road("distinct"),
    "executors": Road("distinct", "executors"),
}


def right(
    road: Road, score: str, events: Sequence[Event], answer: Answer
) -> list[tuple[str, str, str]]:
    """Return the best two of a window: key, sum and score."""
    inside = [each for each in events if answer.opens_ms < each.t <= answer.closes_ms]
    rows = []
    for key, group in road.groups(inside).items():
        total = sum(each.a for each in group)
        value = SCORES[score](total, len(group))
        newest = max(each.t for each in group)
        rows.append((-value, -newest, key, str(total), text_of(value)))
    return [(key, total, text) for _, _, key, total, text in sorted(rows)[:2]]


def shown(answer: Answer) -> list[tuple[str, str, str]]:
    return [
        (row.bindings["u"].n3(), str(row.bindings["s"]), str(row.bindings["score"]))
        for row in answer.rows
    ]


def assert_right(road: Road, score: str, events: Sequence[Event], answer: Answer) -> None:
    """Say that an answer is right if it is called exact, as it is if its sums are small."""
    inside = [each for each in events if answer.opens_ms < each.t <= answer.closes_ms]
    totals = [sum(each.a for each in group) for group in road.groups(inside).values()]
    if all(abs(total) <= SMALL for total in totals):
        assert answer.status is Status.EXACT
    if answer.status is Status.EXACT:
        assert shown(answer) == right(road, score, events, answer)


INT64 = -(2**63), 2**63 - 1
NEAR_POWERS = st.builds(
    lambda sign, exponent, more: max(INT64[0], min(INT64[1], sign * 2**exponent + more)),
    st.sampled_from([1, -1]),
    st.integers(50, 63),
    st.integers(-3, 3),
)
NUMBERS = NEAR_POWERS | st.integers(-9, 9) | st.integers(*INT64)


@st.composite
def cancelling(draw: st.DrawFn) -> list[Event]:
    """Return events of which many cancel each other but for a few units."""
    found: list[tuple[str, int]] = []
    for key in draw(st.lists(st.sampled_from("xyz"), min_size=1, max_size=6)):
        number = draw(NUMBERS)
        found.append((key, number))
        if draw(st.booleans()):
            rest = draw(st.integers(-3, 3)) - number
            found.append((key, max(INT64[0], min(INT64[1], rest))))
    names = count()
    return [
        Event(draw(st.integers(1, 18)), f"e{draw(st.integers(0, 9)) or next(names)}", key, number)
        for key, number in draw(st.permutations(found))
    ]


class Fed:
    """A query that is fed on one road, and that may stop and go on."""

    def __init__(self, road: Road, score: str, folder: Path) -> None:
        found = bind_query(road.query(score), road.catalog())
        assert isinstance(found, BoundQuery), found.reason
        self._road, self._bound, self._folder = road, found, folder
        self._evaluation = road.evaluation(found, folder)
        self._evaluation.join(found, {})

    def take(self, events: Sequence[Event]) -> None:
        """Take a partition, as bytes."""
        lines = pa.array([each.line.encode() for each in events], pa.binary())
        records = self._bound.stream.mapping.records(pa.record_batch([lines], ["value"]))
        parts = [
            Part.from_bytes(each.to_bytes())
            for each in reduced(records, self._evaluation.reducers(STREAM))
        ]
        self._evaluation.add(STREAM, parts, self._evaluation.names)

    def go_on(self) -> None:
        """Stop, and continue from a snapshot."""
        snapshot = self._evaluation.snapshot()
        self._evaluation = self._road.evaluation(self._bound, self._folder)
        self._evaluation.resume(snapshot)
        assert self._evaluation.resume_query(self._bound)

    def answers(self, watermark_ms: int) -> list[Answer]:
        return list(self._evaluation.advance(Tick(STREAM, watermark_ms, 0.0)))


@pytest.mark.parametrize("road", ROADS)
@settings(max_examples=40, deadline=None)
@given(cancelling(), st.sampled_from(list(SCORES)), st.integers(0, 12))
def test_sums_are_right_if_they_are_called_exact(
    road: str, events: list[Event], score: str, cut: int
) -> None:
    way = ROADS[road]
    events = way.told(events)
    with TemporaryDirectory() as folder:
        query = Fed(way, score, Path(folder))
        found = []
        for watermark_ms in (8, 40):
            here = [each for each in events if (each.t <= 8) is (watermark_ms == 8)]
            for some in (here[:cut], here[cut:]):
                if some:
                    query.take(some)
            found += query.answers(watermark_ms)
            query.go_on()
    assert len(found) >= 2
    for answer in found:
        assert_right(way, score, events, answer)


@pytest.mark.parametrize("road", ["distinct", "executors"])
def test_sums_on_spark_have_all_digits(tmp_path: Path, road: str, spark: SparkSession) -> None:
    way, large = ROADS[road], 2**62
    numbers = [large + 1, -large, 2**53 + 1, -(2**53), -(2**63), 2**63 - 1]
    events = [Event(at, f"e{at}", "xxyyzz"[at - 1], each) for at, each in enumerate(numbers, 1)]
    (tmp_path / "events").mkdir()
    for part in range(2):
        text = "".join(f"{each.line}\n" for each in events[part::2])
        (tmp_path / "events" / f"{part}.ndjson").write_text(text, "utf-8")
    text = CATALOG.format(arrivals=way.arrivals, keys=way.keys)
    (tmp_path / "catalog.toml").write_text(text, "utf-8")
    with Engine(
        Catalog.load(tmp_path / "catalog.toml"),
        runtime="spark",
        spark=spark,
        until_end=True,
        autostart=False,
        clock=lambda: 0.0,
    ) as engine:
        handle = engine.register(way.query("SUM(?a)"))
        engine.start()
        found = list(handle)
    whole = [each for each in found if each.opens_ms < 1 and each.closes_ms >= len(events)]
    assert [shown(each) for each in whole] == [[('"y"', "1", "1"), ('"x"', "1", "1")]]
    for answer in found:
        assert_right(way, "SUM(?a)", events, answer)
