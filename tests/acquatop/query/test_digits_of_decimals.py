"""Scores of a stream's decimals of any number of digits: right if they are called exact."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from acquatop.answer.answer import Answer, Status
from acquatop.catalog.catalog import Catalog
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundQuery
from acquatop.refresh.constant_join import ConstantJoin
from rspql.scoring.exact import text_of
from tests.support.single_query import ContinuousQuery

NS = "http://example.org/"
CATALOG = """
[streams."http://example.org/s"]
connector = "lines"
options = {{ path = "events" }}
arrivals = "{arrivals}"
[streams."http://example.org/s".mapping]
subject = "http://example.org/{{id}}"
time = "t"
[streams."http://example.org/s".mapping.properties]
"http://example.org/a" = {{ field = "a", datatype = "xsd:decimal" }}
"http://example.org/b" = {{ field = "b", datatype = "{second}" }}
"""
QUERY = """PREFIX : <http://example.org/>
SELECT ?e ({score} AS ?score) FROM NAMED WINDOW :w ON :s [RANGE 100ms]
WHERE {{ WINDOW :w {{ ?e :a ?a ; :b ?b }} }} ORDER BY DESC(?score) LIMIT 3"""
SCORES: Mapping[str, Callable[[Fraction, Fraction], Fraction]] = {
    "?a * ?b": lambda a, b: a * b,
    "?a - ?b + 0.1": lambda a, b: a - b + Fraction(1, 10),
    "ABS(?a - 2 * ?b)": lambda a, b: abs(a - 2 * b),
    "greatest(?a, ?b) + ?a": lambda a, b: max(a, b) + a,
}
Row = tuple[str, str]


def written(whole: int, rest: str) -> str:
    return f"{whole}.{rest}" if rest else str(whole)


FEW = st.builds(written, st.integers(-99, 99), st.sampled_from(["0", "1", "25", "30", "07"]))
MANY = st.builds(
    written, st.integers(-(10**9), 10**9), st.text("019", min_size=1, max_size=24)
) | st.sampled_from(["0.1", "0.10", "9007199254740993.0", "0.1000000000000000055"])
TENTHS = [("0.1", "3"), ("0.3", "1"), ("0.30", "1")]


def answered(rows: Sequence[Row], score: str, arrivals: str, second: str) -> Answer:
    text = CATALOG.format(arrivals=arrivals, second=second)
    catalog = Catalog.parse(text, file=Path("c.toml"), variables={})
    bound = bind_query(QUERY.format(score=score), catalog)
    assert isinstance(bound, BoundQuery)
    assert bound.plan.join is not None
    work = ContinuousQuery(bound, ConstantJoin(bound.plan.join, ()))
    kind = int if second == "xsd:integer" else str
    lines = [
        json.dumps({"id": f"e{at}", "t": at, "a": a, "b": kind(b)}).encode()
        for at, (a, b) in enumerate(rows, 1)
    ]
    values = pa.record_batch([pa.array(lines, pa.binary())], ["value"])
    (stream,) = bound.streams
    work.add(stream.iri, stream.mapping.records(values))
    (answer,) = work.advance(stream.iri, 100)
    return answer


def judge(answer: Answer, rows: Sequence[Row], score: str) -> None:
    scored = [(SCORES[score](Fraction(a), Fraction(b)), at) for at, (a, b) in enumerate(rows, 1)]
    best = sorted(scored, reverse=True)[:3]
    shown = [(str(row.bindings["score"]), str(row.bindings["e"])) for row in answer.rows]
    assert shown == [(text_of(value), f"{NS}e{at}") for value, at in best]


@pytest.mark.parametrize("arrivals", ["all", "distinct"])
@settings(max_examples=50, deadline=None)
@given(st.sampled_from(list(SCORES)), st.lists(st.tuples(FEW, FEW), min_size=1, max_size=7))
@example("?a * ?b", TENTHS)
def test_decimals_of_few_digits_are_exact(arrivals: str, score: str, rows: list[Row]) -> None:
    answer = answered(rows, score, arrivals, "xsd:decimal")
    assert answer.status is Status.EXACT
    judge(answer, rows, score)


@settings(max_examples=50, deadline=None)
@given(
    st.sampled_from(list(SCORES)),
    st.lists(st.tuples(FEW, st.integers(-(2**40), 2**40).map(str)), min_size=1, max_size=7),
)
def test_decimals_and_integers(score: str, rows: list[Row]) -> None:
    answer = answered(rows, score, "all", "xsd:integer")
    if answer.status is Status.EXACT:
        judge(answer, rows, score)


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(list(SCORES)), st.lists(st.tuples(MANY, MANY), min_size=1, max_size=7))
def test_decimals_of_many_digits_are_exact_or_say_that_they_are_not(
    score: str, rows: list[Row]
) -> None:
    answer = answered(rows, score, "all", "xsd:decimal")
    if answer.status is Status.EXACT:
        judge(answer, rows, score)
    else:
        assert answer.reason is not None
        assert "more digits than are computed" in answer.reason
