"""A top-k query evaluated incrementally and window by window: the same scores, close by close."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.answer.answer import Answer, Status, term_json
from replica.budget import Budget
from replica.maintainer import Maintainer
from replica.store import ReplicaStore, Solution
from rspql import ast
from rspql.printer import inside_text
from tests.support.markers import THOROUGH
from tests.support.queries.both import Both, windowed
from tests.support.queries.joined import Replay, Shape, shapes
from tests.support.single_query import ContinuousQuery
from tests.support.worlds import (
    NS,
    STREAM,
    XSD,
    Event,
    TableRemote,
    bound,
    catalog_text,
    continuous,
    records,
    user_term,
)

SCORES = (
    "2 * ?mentions + ?followers",
    "?followers - ?mentions / 3",
    "norm(?mentions, 0, 20) * 3 - norm(?followers, 0, 10)",
    "least(?mentions, ?followers) + 0.5",
    "IF(?mentions > ?followers, ?mentions, 10 / (?followers - 2))",
    "ABS(?mentions - ?followers)",
    "COALESCE(1 / ?mentions, ?followers)",
    "sqrt(?followers) + exp(?mentions / 10)",
)
CONDITIONS = (
    "?mentions > 3",
    "?followers > 2",
    "?mentions + ?followers != 7",
    "?mentions < ?followers || ?mentions = 4",
    "!(?mentions IN (1, 2, 7))",
    "?mentions = ?followers || 10 / ?mentions > 2",
    "IF(?mentions > ?followers, ?mentions > 4, ?mentions < 3)",
    "10 / ?mentions > 2",
    "BOUND(?mentions) && ?mentions NOT IN (0, 3)",
    "greatest(?mentions, 5) > 4 && ?followers <= 6",
    "?mentions",
)
TEXT = """PREFIX : <http://example.org/>
SELECT ?user ?mentions ?followers ({score} AS ?score)
FROM NAMED WINDOW :w ON :stream [RANGE {width}ms STEP {slide}ms]
WHERE {{
  WINDOW :w {{ ?user :mentions ?mentions {inner} }}
  SERVICE :people {{ ?user :followers ?followers }}
  {outer}
}}
ORDER BY {direction}(?score) LIMIT {k} OFFSET {offset}"""


@THOROUGH
@settings(max_examples=45)
@given(
    shapes,
    st.sampled_from(SCORES),
    st.lists(st.sampled_from(CONDITIONS), max_size=2),
    st.booleans(),
    st.integers(0, 2),
    st.booleans(),
)
def test_filters_offsets_and_functions_mean_the_same_to_both(
    shape: Shape, score: str, conditions: list[str], inside: bool, offset: int, odd: bool
) -> None:
    shape = replace(shape, items=1000, n=1000, policy=None, start=0, changes=0)
    filters = [f"FILTER({each})" for each in conditions]
    inner = [each for each in filters if "followers" not in each] if inside else []
    text = TEXT.format(
        score=score,
        width=shape.width,
        slide=shape.slide,
        inner=" ".join(inner),
        outer=" ".join(each for each in filters if each not in inner),
        direction="DESC" if shape.descending else "ASC",
        k=shape.k,
        offset=offset,
    )
    replay = Replay(shape)
    replay.remote = OddTable(replay.remote.followers) if odd else replay.remote
    replay.bound = bound(text, catalog_text(arrivals=shape.arrivals, start="start_ms = 0", n=1000))
    budget = Budget(1000, 1000, 5.0)
    remote = FilteringRemote(replay.remote, replay.bound.plan.service.group)
    incremental = ContinuousQuery(
        replay.bound, Maintainer(ReplicaStore("user", ["user", "followers"]), remote, budget)
    )
    replay.query = Both(incremental, windowed(replay))  # type: ignore[assignment]
    for one, other in replay.answers():  # type: ignore[misc]
        assert [row.score for row in other.rows] == pytest.approx([row.score for row in one.rows])
        assert one.status is other.status is Status.EXACT
        types = [
            [term_json(row.bindings["score"])["datatype"] for row in each.rows]
            for each in (one, other)
        ]
        if (
            "IF" not in score and "COALESCE" not in score and "least" not in score
        ):  # whose type is that of the choice
            assert all(
                ours == theirs or theirs.endswith("#double")
                for ours, theirs in zip(*types, strict=True)
            )


class OddTable(TableRemote):
    """A remote some of whose values are no numbers."""

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        odd = {
            user_term("a"): '"many"',
            user_term("b"): f"<{NS}many>",
            user_term("d"): f'"NaN"^^<{XSD}double>',
        }
        return [
            {**row, "followers": odd.get(row["user"], row["followers"])}
            for row in super().fetch(keys, timeout)
        ]


class FilteringRemote:
    """A remote in memory that keeps to the filters it is sent."""

    block_size = 2

    def __init__(self, table: TableRemote, group: ast.Group) -> None:
        self._table = table
        self._pattern = inside_text(group)

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        data = ox.Store()
        for row in self._table.fetch(keys, timeout):
            data.update(f"INSERT DATA {{ {row['user']} <{NS}followers> {row['followers']} }}")
        rows: Any = data.query(f"SELECT ?user ?followers {{ {self._pattern} }}")
        return [{"user": str(row["user"]), "followers": str(row["followers"])} for row in rows]

    def load(self, timeout: float, may_ask: object = None) -> Iterator[list[Solution]]:
        yield []


@settings(max_examples=45)
@given(shapes, st.none() | st.integers(0, 10), st.sampled_from(["?mentions > 3", "?mentions > 99"]))
def test_both_answer_the_same_windows_whatever_a_filter_leaves(
    shape: Shape, start: int | None, kept: str
) -> None:
    shape = replace(shape, items=1000, n=1000, policy=None, start=start, changes=0)
    text = TEXT.format(
        score="?mentions + ?followers",
        width=shape.width,
        slide=shape.slide,
        inner=f"FILTER({kept})",
        outer="",
        direction="DESC",
        k=shape.k,
        offset=0,
    )
    replay = Replay(shape)
    begin = "" if start is None else f"start_ms = {start}"
    replay.bound = bound(
        text, catalog_text(arrivals=shape.arrivals, start=begin, n=1000, items=1000)
    )
    ways: list[list[int]] = []
    cut = len(replay.events) // 2
    for query in (continuous(replay.bound, replay.remote), windowed(replay)):
        answers: list[Answer] = []
        for events in (replay.events[:cut], replay.events[cut:]):
            query.add(STREAM, records(replay.bound, events))
            answers += query.advance(STREAM, max((each.t for each in events), default=0))
        ways.append([answer.closes_ms for answer in [*answers, *query.finish(STREAM)]])
    assert ways[0] == ways[1]


def test_both_skip_the_same_windows() -> None:
    replay = Replay(Shape(0, 0, 1, 1, 0, 1, 1, 2, 9, 9, "all", True, None, None, False, False))
    text = TEXT.format(
        score="?mentions + ?followers",
        width=3,
        slide=1,
        inner="FILTER(?mentions > 3)",
        outer="",
        direction="DESC",
        k=2,
        offset=0,
    )
    replay.bound = bound(text, catalog_text(arrivals="all"))
    shown = []
    for query in (continuous(replay.bound, replay.remote), windowed(replay)):
        events = [
            Event(5, "a", 1),
            Event(70_000, "a", 9),
            Event(90_000, "a", 0),
            Event(90_200, "a", 1),
        ]
        query.add(STREAM, records(replay.bound, events))
        answers = [
            *query.advance(STREAM, 40_000),
            *query.advance(STREAM, 90_100),
            *query.finish(STREAM),
        ]
        shown.append([(answer.closes_ms, answer.counts.skipped) for answer in answers])
    assert shown[0] == shown[1]
    assert [closes for closes, _ in shown[0]][:5] == [5, 6, 7, 8, 70_000]


@THOROUGH
@settings(max_examples=40)
@given(shapes, st.integers(0, 10))
def test_both_give_the_same_scores(shape: Shape, start: int) -> None:
    replay = Replay(replace(shape, items=1000, n=1000, policy=None, start=start))
    replay.query = Both(replay.query, windowed(replay))  # type: ignore[assignment]
    for one, other in replay.answers():  # type: ignore[misc]
        assert (one.window, one.opens_ms, one.closes_ms) == (
            other.window,
            other.opens_ms,
            other.closes_ms,
        )
        assert [row.score for row in other.rows] == pytest.approx([row.score for row in one.rows])
        assert [set(row.bindings) for row in other.rows] == [set(row.bindings) for row in one.rows]
        assert one.status is other.status is Status.EXACT
        assert one.score_variable == other.score_variable
