"""Top-k queries that ask no remote: incrementally, window by window, and by sorting everything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.answer.answer import Status
from acquatop.catalog.catalog import Catalog
from acquatop.plan.bind import bind_windowed
from acquatop.plan.bound import BoundQuery
from acquatop.query.sparql.evaluation import SparqlEvaluation
from tests.support.fed import Fed
from tests.support.markers import THOROUGH
from tests.support.queries.both import Both
from tests.support.queries.joined import Replay, Shape, shapes
from tests.support.single_query import ContinuousQuery
from tests.support.worlds import (
    STREAM,
    Event,
    bound,
    catalog_text,
    integer,
    records,
    solutions_in,
    user_term,
)

TEXT = """PREFIX : <http://example.org/>
SELECT ?user ?mentions {selected}
FROM NAMED WINDOW :w ON :stream [RANGE {width}ms STEP {slide}ms]
WHERE {{ WINDOW :w {{ ?user :mentions ?mentions }} {filtered} }}
ORDER BY {direction}({score}) LIMIT {k}"""


def bind(shape: Shape, **changes: str) -> BoundQuery:
    values = {"selected": "(2 * ?mentions AS ?score)", "score": "?score", "filtered": "", **changes}
    direction = "DESC" if shape.descending else "ASC"
    text = TEXT.format(
        width=shape.width, slide=shape.slide, k=shape.k, direction=direction, **values
    )
    return bound(text, catalog(shape))


def catalog(shape: Shape) -> str:
    return catalog_text(
        arrivals=shape.arrivals, start="" if shape.start is None else f"start_ms = {shape.start}"
    )


@THOROUGH
@settings(max_examples=70)
@given(shapes)
def test_every_answer_is_exact_and_the_one_that_sorting_everything_gives(shape: Shape) -> None:
    replay = Replay(shape)
    replay.bound = bind(shape)
    replay.query = ContinuousQuery(replay.bound, None)
    for answer in replay.answers():
        replay.query.operator.list._check()
        inside = solutions_in(
            replay.events, answer.opens_ms, answer.closes_ms, latest=shape.arrivals == "latest"
        )

        def place(
            pair: tuple[str, int], times: dict[tuple[str, int], int] = inside
        ) -> tuple[int, int, str]:
            user, mentions = pair
            identity = (
                user_term(user)
                if shape.arrivals == "latest"
                else f"{user_term(user)} {integer(mentions)}"
            )
            return -shape.sign * mentions, -times[pair], identity

        right = sorted(inside, key=place)[: shape.k]
        shown = [(str(row.bindings["user"]), int(row.bindings["mentions"])) for row in answer.rows]
        expected = [(user_term(user)[1:-1], mentions) for user, mentions in right]
        assert answer.status is Status.EXACT
        assert shown == expected
        assert [row.score for row in answer.rows] == [2 * mentions for _, mentions in right]
        assert answer.spending.items == answer.budget.items == 0


@settings(max_examples=30)
@given(
    shapes,
    st.sampled_from(["", "FILTER(?mentions > 2)", "FILTER(10 / ?mentions > 2)"]),
    st.booleans(),
)
def test_both_evaluations_give_the_same_scores(shape: Shape, filtered: str, bare: bool) -> None:
    shape = replace(shape, start=0)
    replay = Replay(shape)
    changes = {"selected": "", "score": "?mentions"} if bare else {}
    replay.bound = bind(shape, filtered=filtered, **changes)
    parsed = Catalog.parse(catalog(shape), file=Path("c.toml"), variables={})
    windowed = bind_windowed(replay.bound.plan.windowed, parsed, text="")
    other_way = Fed(SparqlEvaluation(windowed), windowed)
    replay.query = Both(ContinuousQuery(replay.bound, None), other_way)  # type: ignore[assignment]
    for one, other in replay.answers():  # type: ignore[misc]
        assert (one.window, one.closes_ms, one.status) == (
            other.window,
            other.closes_ms,
            other.status,
        )
        values = [[int(row.bindings["mentions"]) for row in each.rows] for each in (one, other)]
        assert values[0] == values[1]
        assert [set(row.bindings) for row in one.rows] == [set(row.bindings) for row in other.rows]


def test_rows_say_nothing_of_freshness() -> None:
    shape = Shape(0, 0, 1, 1, 0, 9, 3, 2, 0, 0, "latest", True, "AT-TSM", 0, False, False)
    query = ContinuousQuery(bind(shape), None)
    query.add(STREAM, records(query._bound, [Event(1, "a", 3), Event(2, "b", 4)]))
    (answer,) = query.advance(STREAM, 9)
    assert [(row.score, row.refreshed, row.age_seconds) for row in answer.rows] == [
        (8.0, None, None),
        (6.0, None, None),
    ]
    assert answer.to_json()["allowed"] == {"items": 0, "requests": 0, "seconds": 0.0}
    assert answer.status is Status.EXACT


@pytest.mark.parametrize("arrivals", ["all", "latest"])
def test_what_came_too_late_is_told(arrivals: str) -> None:
    shape = Shape(0, 0, 1, 1, 0, 9, 3, 1, 0, 0, arrivals, True, "AT-TSM", 0, False, False)
    query = ContinuousQuery(bind(shape), None)
    query.add(STREAM, records(query._bound, [Event(8, "a", 3)]))
    list(query.advance(STREAM, 9))
    query.add(STREAM, records(query._bound, [Event(7, "b", 9)]))
    statuses = [answer.status for answer in query.advance(STREAM, 18)]
    assert statuses == [Status.APPROXIMATE, Status.APPROXIMATE, Status.EXACT]
