"""Scores and filters of large integers, on each road: right if they are called exact."""

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
from acquatop.query.sparql.evaluation import SparqlEvaluation
from rspql.scoring import DEFAULT_FUNCTIONS, scoring_function
from rspql.scoring.exact import text_of
from tests.support.fed import Fed
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
"http://example.org/a" = {{ field = "a", datatype = "xsd:integer" }}
"http://example.org/b" = {{ field = "b", datatype = "xsd:integer" }}
"""
QUERY = """PREFIX : <http://example.org/>
SELECT ?e ({score} AS ?score) FROM NAMED WINDOW :w ON :s [RANGE 100ms]
WHERE {{ WINDOW :w {{ ?e :a ?a ; :b ?b }} FILTER({kept}) }}
ORDER BY {direction}(?score) LIMIT 4"""
FUNCTIONS = DEFAULT_FUNCTIONS.with_function("same", scoring_function(lambda x: x, directions=(1,)))
Exactly = Callable[[int, int], Fraction | None]
SCORES: Mapping[str, Exactly] = {
    "?a": lambda a, b: Fraction(a),
    "?a - ?b": lambda a, b: Fraction(a - b),
    "2 * ?a - 2 * ?b": lambda a, b: Fraction(2 * a - 2 * b),
    "0.1 * ?a + 0.3 * ?b": lambda a, b: Fraction(a + 3 * b, 10),
    "?a / 3 - ?b / 7": lambda a, b: Fraction(a, 3) - Fraction(b, 7),
    "?a / (?a - ?b)": lambda a, b: Fraction(a, a - b) if a != b else None,
    "0.7 * norm(?a - ?b, 0, 3) + 0.3 * norm(?b, 0, 7)": lambda a, b: (
        Fraction(7, 10) * within(Fraction(a - b, 3)) + Fraction(3, 10) * within(Fraction(b, 7))
    ),
    "least(?a, ?b) + 0.1": lambda a, b: min(a, b) + Fraction(1, 10),
}
FILTERS: Mapping[str, Callable[[int, int], bool]] = {
    "?a = ?a": lambda a, b: True,
    "?a > ?b": lambda a, b: a > b,
    "0.1 * ?a - 0.1 * ?b != 0.3": lambda a, b: a - b != 3,
    "same(?a - ?b) >= 2 || ?a / 3 < ?b / 3": lambda a, b: a - b >= 2 or a < b,
}
ROADS = {"latest": True, "distinct": True, "all": False}
"""Arrivals, and True if the query is incremental with them."""
INT64 = -(2**63), 2**63 - 1


def within(share: Fraction) -> Fraction:
    return min(Fraction(1), max(Fraction(0), share))


def clamped(number: int) -> int:
    return max(INT64[0], min(INT64[1], number))


LARGE = st.builds(
    lambda exponent, more: clamped(2**exponent + more), st.integers(50, 63), st.integers(-4, 4)
)
NUMBERS = LARGE | st.integers(-9, 9) | st.integers(*INT64)
NEAR = st.builds(lambda a, more: (a, clamped(a - more)), NUMBERS, st.integers(-4, 4))
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS) | NEAR, min_size=1, max_size=7)


def answered(arrivals: str, query: str, rows: Sequence[tuple[int, int | None]]) -> Answer:
    catalog = Catalog.parse(CATALOG.format(arrivals=arrivals), file=Path("c.toml"), variables={})
    if not ROADS[arrivals]:
        query = query.replace(" AS ?score)", " AS ?score) (UUID() AS ?id)", 1)
    bound = bind_query(query, catalog, functions=FUNCTIONS)
    assert isinstance(bound, BoundQuery) is ROADS[arrivals]
    work: Fed = (
        ContinuousQuery(bound, None)
        if isinstance(bound, BoundQuery)
        else Fed(SparqlEvaluation(bound), bound)  # type: ignore[arg-type]
    )
    lines = [
        json.dumps({"id": f"e{at}", "t": at, "a": a, "b": b}).encode()
        for at, (a, b) in enumerate(rows, 1)
    ]
    (stream,) = bound.streams
    records = stream.mapping.records(pa.record_batch([pa.array(lines, pa.binary())], ["value"]))
    work.add(stream.iri, records)
    (answer,) = work.advance(stream.iri, 100)
    return answer


def right(
    arrivals: str, score: Exactly, kept: Callable[[int, int], bool], rows: list[tuple[int, int]]
) -> list[tuple[Fraction, str]]:
    """Return all results, best first: equal scores by their age, or by the events' IRIs."""
    scored = [
        (value, f"e{at}", at)
        for at, (a, b) in enumerate(rows, 1)
        if kept(a, b) and (value := score(a, b)) is not None
    ]
    scored.sort(key=lambda row: -row[2] if ROADS[arrivals] else row[1])
    return [(value, name) for value, name, _ in sorted(scored, key=lambda row: -row[0])]


@pytest.mark.parametrize("arrivals", ROADS)
@settings(max_examples=60, deadline=None)
@given(st.sampled_from(list(SCORES)), st.sampled_from(list(FILTERS)), ROWS)
@example("0.1 * ?a + 0.3 * ?b", "?a = ?a", [(3, 0), (0, 1)])
@example("?a / 3 - ?b / 7", "?a = ?a", [(3, 7), (2**62, 2**62 + 1)])
@example("2 * ?a - 2 * ?b", "?a = ?a", [(2**63 - 1, 2**63 - 2), (5, 3)])
def test_scores_are_right_if_they_are_called_exact(
    arrivals: str, score: str, kept: str, rows: list[tuple[int, int]]
) -> None:
    answer = answered(arrivals, QUERY.format(score=score, kept=kept, direction="DESC"), rows)
    if not ROADS[arrivals] or all(abs(number) < 2**20 for row in rows for number in row):
        assert answer.status is Status.EXACT
    if answer.status is Status.EXACT:
        expected = right(arrivals, SCORES[score], FILTERS[kept], rows)[:4]
        assert [
            (str(row.bindings["score"]), str(row.bindings["e"]).removeprefix(NS))
            for row in answer.rows
        ] == [(text_of(value), name) for value, name in expected]
        if ROADS[arrivals]:
            assert [row.score for row in answer.rows] == [float(value) for value, _ in expected]


@pytest.mark.parametrize("arrivals", ["latest", "distinct"])
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-9, 9), NUMBERS | st.none()), min_size=1, max_size=7))
@example([(-1, 2**53), (1, None)])
def test_a_value_that_is_unbound_hides_no_large_one(
    arrivals: str, rows: list[tuple[int, int | None]]
) -> None:
    """An answer is exact only if the scores beside the unbound ones have all their digits."""
    query = QUERY.format(score="COALESCE(?b, 0) - ?a", kept="?a = ?a", direction="DESC")
    answer = answered(arrivals, query.replace("; :b ?b", "OPTIONAL { ?e :b ?b }"), rows)
    if answer.status is Status.EXACT:
        scored = [((b or 0) - a, at) for at, (a, b) in enumerate(rows, 1)]
        assert [
            (str(row.bindings["score"]), str(row.bindings["e"]).removeprefix(NS))
            for row in answer.rows
        ] == [(str(value), f"e{at}") for value, at in sorted(scored, reverse=True)[:4]]
