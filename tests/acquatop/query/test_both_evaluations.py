"""A top-k query evaluated incrementally and window by window: the same scores, close by close."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import hypothesis
import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.answer.answer import Answer, Status, term_json
from acquatop.catalog.catalog import Catalog
from acquatop.ingest.terms import to_ast
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundQuery
from acquatop.query.exactness import REASON
from replica.budget import Budget
from replica.maintainer import Maintainer
from replica.store import ReplicaStore, Solution
from rspql import ast
from rspql.plan import TopKPlan
from rspql.printer import inside_text
from rspql.scoring import to_sparql
from rspql.scoring.exact import Number, evaluate, holds, number_of
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
        # Where the engine's decimals fail, its score is a double.
        assert all(
            ours == theirs or theirs.endswith("#double")
            for ours, theirs in zip(*types, strict=True)
        )


# Any expression over any numbers -----------------------------------------------------------------

NUMBERS = st.one_of(
    st.integers(-3, 12).map(lambda value: f'"{value}"^^<{XSD}integer>'),
    st.integers(-12, 48).map(lambda value: f'"{value / 4}"^^<{XSD}decimal>'),
    st.sampled_from(["0.1", "0.3", "-0.7", "0.0"]).map(lambda text: f'"{text}"^^<{XSD}decimal>'),
    st.sampled_from(
        ["0", "-0.0", "INF", "-INF", "NaN", "1E300", "-1E300", "5E-324", "2.5", "-3", "7"]
    ).map(lambda text: f'"{text}"^^<{XSD}double>'),
    st.sampled_from(["0", "-0.0", "INF", "NaN", "2.5"]).map(lambda text: f'"{text}"^^<{XSD}float>'),
    st.sampled_from(['"many"', f"<{NS}many>", f'"NaN"^^<{XSD}decimal>']),
)
MENTIONED = st.integers(-2, 9) | st.sampled_from([0.0, -0.0, 0.5, 2.5, 1e300, -1e300, 5e-324])
LEAVES = st.sampled_from(
    ["?mentions", "?followers", "0", "1", "2", "-3", "0.5", "2.5e0", "0.0e0", "-0.0e0"]
) | st.sampled_from(["INF", "-INF", "NaN"]).map(lambda text: f'"{text}"^^<{XSD}double>')


def deeper(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    conditions = st.recursive(
        st.one_of(
            st.builds("({} {} {})".format, inner, st.sampled_from(COMPARISONS), inner),
            st.builds("({} IN ({}, {}))".format, inner, inner, inner),
            st.builds("(!{})".format, inner),
            st.just("BOUND(?mentions)"),
        ),
        lambda nested: st.one_of(
            st.builds("({} && {})".format, nested, nested),
            st.builds("({} || {})".format, nested, nested),
            st.builds("(!{})".format, nested),
        ),
        max_leaves=3,
    )
    return st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*//"), inner),
        st.builds("(-{})".format, inner),
        st.builds("COALESCE({}, {})".format, inner, inner),
        st.builds("IF({}, {}, {})".format, conditions, inner, inner),
        st.builds("{}({})".format, st.sampled_from(["ABS", "CEIL", "FLOOR", "ROUND"]), inner),
        st.builds("{}({}, {})".format, st.sampled_from(["least", "greatest"]), inner, inner),
        st.builds("norm({}, 0, 8)".format, inner),
    )


COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
EXPRESSIONS = st.recursive(LEAVES, deeper, max_leaves=6)
FILTERS = st.builds("({} {} {})".format, EXPRESSIONS, st.sampled_from(COMPARISONS), EXPRESSIONS)


@THOROUGH
@settings(max_examples=400)
@given(
    EXPRESSIONS,
    st.none() | FILTERS | FILTERS.map("(!{})".format),
    st.lists(
        st.tuples(st.integers(1, 9), st.sampled_from("abcd"), MENTIONED),
        min_size=1,
        max_size=6,
        unique_by=lambda each: each[0],
    ),
    st.fixed_dictionaries(dict.fromkeys("abc", NUMBERS)),
    st.booleans(),
    st.booleans(),
)
def test_any_arithmetic_is_exact(
    score: str,
    condition: str | None,
    mentions: list[tuple[int, str, float]],
    followers: dict[str, str],
    whole: bool,
    descending: bool,
) -> None:
    shape = Shape(0, 0, 1, 1, 0, 9, 9, 99, 9, 9, "latest", descending, None, 0, False, False)
    replay = Replay(replace(shape, items=1000, n=1000))
    replay.remote = TypedTable(values=followers)
    text = TEXT.format(
        score=score,
        width=9,
        slide=9,
        inner="",
        outer="" if condition is None else f"FILTER({condition})",
        direction="DESC" if descending else "ASC",
        k=99,
        offset=0,
    )
    catalog = catalog_text(start="start_ms = 0", n=1000, items=1000)
    catalog = catalog if whole else catalog.replace("xsd:integer", "xsd:double")
    found = bind_query(text, Catalog.parse(catalog, file=Path("catalog.toml"), variables={}))
    hypothesis.event(type(found).__name__)
    if not isinstance(found, BoundQuery) or found.plan.join is not None:
        return  # nothing of it is computed incrementally, or not on numbers alone
    plan = found.plan
    if condition is not None and not plan.stream_filters and plan.score.condition is None:
        return  # the remote decides its filter
    replay.bound = found
    remote = FilteringRemote(replay.remote, plan.service.group)  # type: ignore[union-attr]
    keeper = Maintainer(
        ReplicaStore("user", ["user", "followers"]), remote, Budget(1000, 1000, 5.0)
    )
    query = ContinuousQuery(found, keeper)
    events = [
        Event(time, user, int(max(-9, min(9, value))) if whole else value)  # type: ignore[arg-type]
        for time, user, value in mentions
    ]
    query.add(STREAM, records(found, events))
    newest = {each.user: each.mentions for each in sorted(events, key=lambda each: each.t)}
    expected = {
        user: score
        for user, mentioned in newest.items()
        if mentioned is not None
        and (score := exactly(plan, number(mentioned, whole), followers.get(user))) is not None
    }
    (answer,) = query.advance(STREAM, 9)
    hypothesis.event(f"{min(len(answer.rows), 2)} rows, {answer.status}")
    if answer.status is Status.EXACT:
        assert_exact(answer, expected, descending)
    else:
        assert answer.reason == REASON
    other = windowed(replay, remote, whole=whole)
    other.add(STREAM, records(found, events))
    (answer,) = other.advance(STREAM, 9)
    assert answer.status is Status.EXACT
    assert_exact(answer, expected, descending)


def assert_exact(answer: Answer, expected: Mapping[str, Number], descending: bool) -> None:
    users = [str(row.bindings["user"]).rpartition("/")[2] for row in answer.rows]
    assert sorted(users) == sorted(expected)
    assert typed(answer) == {user: score.datatype for user, score in expected.items()}
    shown = [expected[user].value for user in users]
    assert shown == sorted(shown, reverse=descending)
    assert [row.score for row in answer.rows] == [float(value) for value in shown]


def number(value: float, whole: bool) -> Number:
    if whole:
        return Number(Fraction(value), f"{XSD}integer")
    return Number(float(value), f"{XSD}double")


def exactly(plan: TopKPlan, mentioned: Number, followed: str | None) -> Number | None:
    """Return the score of a row in exact arithmetic; None if the row is no result."""
    if followed is None:
        return None
    term = to_ast(followed)
    numbers = {
        "mentions": mentioned,
        "followers": number_of(term) if isinstance(term, ast.Literal) else None,
    }
    functions = plan.score.functions
    conditions = [each for each in (*plan.stream_filters, plan.score.condition) if each is not None]
    if not all(holds(plainly(each), numbers, functions) for each in conditions):
        return None
    score = evaluate(plainly(plan.score.expression), numbers, functions)
    return score if isinstance(score, Number) and not score.is_nan else None


def plainly(expression: ast.Expression) -> ast.Expression:
    found = to_sparql(expression)
    assert found is not None
    return found


def typed(answer: Answer) -> dict[str, str]:
    """Return the datatype of each user's score."""
    return {
        str(row.bindings["user"]).rpartition("/")[2]: term_json(row.bindings["score"])["datatype"]
        for row in answer.rows
    }


@dataclass
class TypedTable(TableRemote):
    """A remote whose values are any terms."""

    values: dict[str, str] = field(default_factory=dict)

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        terms = {user_term(user): term for user, term in self.values.items()}
        return [{"user": key, "followers": terms[key]} for key in keys if key in terms]


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
