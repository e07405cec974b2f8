"""Top-k queries over aggregates per key: incrementally, by window, and by counting afresh."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings

from acquatop.answer import expected_quality
from acquatop.answer.answer import Status
from acquatop.catalog.catalog import Catalog
from acquatop.ingest.scoring import ReplicaScoring
from acquatop.plan.bind import bind_query, bind_windowed
from acquatop.plan.bound import BoundWindowed
from acquatop.query.aggregates import content as aggregated_content
from acquatop.query.aggregates import deduplicated as retained
from acquatop.query.aggregates.deduplicated import HashedIdentities
from acquatop.query.aggregates.ranking import AggregateRanking
from acquatop.query.sparql.evaluation import SparqlEvaluation
from acquatop.refresh.replica_refresh import Inquiry
from acquatop.topk.aggregates import aggregate_view, keyed_content
from replica.budget import Budget
from replica.maintainer import Maintainer
from replica.store import ReplicaStore, SolutionStore
from tests.support.fed import Fed
from tests.support.markers import THOROUGH
from tests.support.queries.aggregated import (
    CATALOG,
    TEXT,
    Post,
    Replay,
    Shape,
    Table,
    decoded,
    plain,
    shapes,
)
from tests.support.queries.both import Both
from tests.support.single_query import ContinuousQuery
from tests.support.worlds import STREAM, XSD


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make what is meant for many happen with few."""
    monkeypatch.setattr(aggregated_content, "SLACK", 1)
    monkeypatch.setattr(retained, "_SLACK", 4)
    monkeypatch.setattr(keyed_content, "FOLD_AT", 4)
    monkeypatch.setattr(aggregate_view, "SLACK", 1)
    monkeypatch.setattr(aggregate_view, "OVERFULL", 1)
    of = HashedIdentities.of

    def with_few_heads(texts: list[str]) -> HashedIdentities:
        identities = of(texts)
        return HashedIdentities(identities.heads % 4, identities.tails)

    monkeypatch.setattr(HashedIdentities, "of", with_few_heads)


@pytest.fixture
def few_considered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let more keys have no value than are considered one by one."""
    monkeypatch.setattr(expected_quality, "CONSIDERED_AT_LEAST", 1)
    monkeypatch.setattr(expected_quality, "CONSIDERED_PER_RESULT", 1)


@THOROUGH
@pytest.mark.usefixtures("few_considered")
@settings(max_examples=45, deadline=None)
@given(shapes)
def test_what_is_called_right_is_right(shape: Shape) -> None:
    replay = Replay(shape)
    for answer in replay.answers():
        operator = replay.query.operator
        assert isinstance(operator, AggregateRanking)
        operator._check()
        assert answer.spending.items <= shape.items
        has_late = "too late" in (answer.reason or "")
        if not shape.late:
            assert answer.counts.late == 0
            assert not has_late
        if answer.status is not Status.APPROXIMATE:
            replay.assert_right(answer, replay.known())
        if shape.joined and answer.status is not Status.APPROXIMATE:
            full = len(answer.rows) == shape.k
            assert replay.reach(answer) < (
                shape.sign * answer.rows[-1].score if full else -math.inf
            ) or (replay.reach(answer) == -math.inf)
        if answer.status is Status.EXACT:
            replay.assert_right(answer, replay.remote.followers)
        if not shape.joined:
            assert answer.status is (Status.APPROXIMATE if has_late else Status.EXACT)
        event(
            f"{answer.status}, {'some' if answer.rows else 'no'} rows, "
            f"{'joined' if shape.joined else 'alone'}"
        )


@THOROUGH
@settings(max_examples=20, deadline=None)
@given(shapes)
def test_enough_budget_is_always_exact(shape: Shape) -> None:
    replay = Replay(replace(shape, items=1000, n=1000, policy=None, late=0))
    for answer in replay.answers():
        assert answer.status is Status.EXACT
        replay.assert_right(answer, replay.remote.followers)


@THOROUGH
@settings(max_examples=20, deadline=None)
@given(shapes)
def test_both_evaluations_give_the_same(shape: Shape) -> None:
    shape = replace(shape, items=1000, n=1000, policy=None, start=0)
    replay = Replay(shape)
    # Which of two arrivals of one subject and time counts, the two tell by different terms.
    replay.posts = list({(post.t, post.s): post for post in replay.posts}.values())
    found = bind_windowed(replay.bound.plan.windowed, shape.catalog(), text="")
    keepers = [
        Maintainer(SolutionStore(part.key, part.variables), replay.remote, Budget(1000, 1000, 5.0))
        for part in found.plan.remotes
    ]
    replay.query = Both(replay.query, Fed(SparqlEvaluation(found, keepers), found))
    for one, other in replay.answers():
        assert (one.window, one.closes_ms) == (other.window, other.closes_ms)
        # A late record that is no solution makes only the other uncertain.
        assert one.status is other.status or (one.status is Status.EXACT and shape.late)
        assert [row.score for row in one.rows] == pytest.approx([row.score for row in other.rows])
        assert one.counts.late <= other.counts.late
        last = one.rows[-1].score if one.rows else math.nan
        first = one.rows[0].score if one.rows else math.nan
        # Which of equals are shown at the ends, and in which order, is the other's own affair.
        ours, theirs = (
            {
                (name, row.bindings["user"].n3()): _value(term)
                for row in each.rows
                if min(abs(row.score - last), abs(row.score - first)) > 1e-6
                for name, term in row.bindings.items()
            }
            for each in (one, other)
        )
        assert ours.keys() == theirs.keys()
        for name in ours:
            assert ours[name] == (
                pytest.approx(theirs[name]) if isinstance(ours[name], float) else theirs[name]
            )


def _value(term: Any) -> Any:
    return (
        float(str(term))
        if str(getattr(term, "datatype", "")) in (XSD + "double", XSD + "decimal")
        else term.n3()
    )


def test_keys_that_have_left_all_windows_leave_nothing_behind() -> None:
    shape = plain(pattern="?post :mentions ?user", width=10, slide=5)
    query = ContinuousQuery(shape.bind(), None)
    for round_ in range(200):
        posts = [
            Post(1 + 5 * round_, f"s{round_}-{at}", f"u{round_}-{at}", None, None)
            for at in range(10)
        ]
        query.add(STREAM, decoded(query._bound, posts))
        list(query.advance(STREAM, 1 + 5 * round_))
    operator = query.operator
    assert isinstance(operator, AggregateRanking)
    assert operator._content.codes.size <= 128
    assert sum(map(len, operator._content._retained._runs)) <= 60


def test_ties_at_the_border_go_by_the_key_s_text_whichever_came_first() -> None:
    shape = plain(pattern="?post :mentions ?user", k=2)
    query = ContinuousQuery(shape.bind(), None)
    query.add(
        STREAM,
        decoded(query._bound, [Post(1, "s1", "d", None, None), Post(1, "s2", "b", None, None)]),
    )
    list(query.advance(STREAM, 3))
    posts = [Post(5, f"s{at}", user, None, None) for at, user in enumerate("dcab", start=3)]
    query.add(STREAM, decoded(query._bound, posts))
    (*_, answer) = query.advance(STREAM, 12)
    assert [str(row.bindings["user"]) for row in answer.rows] == ["a", "b"]


def test_a_newer_arrival_of_a_subject_moves_it_to_another_key_or_to_none() -> None:
    shape = plain(
        pattern="?post :mentions ?user ; :x ?x",
        width=9,
        slide=3,
        k=5,
        columns=3,
        score="?s - 2 * ?n",
    )
    query = ContinuousQuery(shape.bind(), None)
    posts = [
        Post(1, "p", "ann", 5, None),
        Post(2, "q", "ann", 7, None),
        Post(4, "p", "bob", 6, None),
    ]
    query.add(
        STREAM,
        decoded(
            query._bound, [*posts, Post(8, "q", None, 1, None), Post(18, "z", None, None, None)]
        ),
    )
    shown = [
        {str(row.bindings["user"]): int(row.bindings["s"]) for row in answer.rows}
        for answer in query.advance(STREAM, 18)
    ]
    assert shown == [{"ann": 12}, {"ann": 7, "bob": 6}, {"bob": 6}, {"bob": 6}, {}, {}]


@pytest.mark.parametrize("score", ["?s - 2 * ?n", "?n", "?a + ?n / 4"])
def test_a_sum_beyond_64_bits_is_an_error_to_both(score: str) -> None:
    shape = plain(columns=7, score=score, start=0)
    query = ContinuousQuery(shape.bind(), None)
    windowed = bind_windowed(query._bound.plan.windowed, shape.catalog(), text="")
    other = Fed(SparqlEvaluation(windowed), windowed)
    posts = [Post(at, user, None, 2**62, None) for at, user in enumerate("aabc", start=1)]
    posts.append(Post(5, "a", None, 2**62 + 2**20, None))
    for each in (query, other):
        each.add(STREAM, decoded(query._bound, posts))
    for one, its in zip(query.advance(STREAM, 9), other.advance(STREAM, 9), strict=True):
        shown = [
            {row.bindings["user"]: sorted(row.bindings) for row in each.rows} for each in (one, its)
        ]
        assert shown[0] == shown[1]
        assert len(one.rows) == (3 if score == "?n" else 2)


def test_what_the_condition_on_an_aggregate_leaves_out_is_not_asked_for() -> None:
    shape = plain(
        pattern="?post :mentions ?user", joined=True, having="FILTER(?n > 1)", items=1, columns=1
    )
    remote = Table({'"a"': 9, '"b"': 3})
    query = ContinuousQuery(
        shape.bind(), Maintainer(ReplicaStore("user", ["followers"]), remote, Budget(1, 1, 5.0))
    )
    posts = [Post(1, f"s{at}", user, None, None) for at, user in enumerate("abbcdefg")]
    query.add(STREAM, decoded(query._bound, posts))
    (answer,) = query.advance(STREAM, 3)
    assert [str(row.bindings["user"]) for row in answer.rows] == ["b"]
    assert answer.status is Status.EXACT
    assert answer.counts.unscored == 0


def test_absent_keys_whose_time_has_not_come_hide_none_whose_has() -> None:
    shape = plain(pattern="?post :mentions ?user", joined=True)
    store = ReplicaStore("user", ["followers"])
    query = ContinuousQuery(shape.bind(), Maintainer(store, Table({}), Budget(0, 0, 5.0)))
    posts = [Post(1, f"s{at}", user, None, None) for at, user in enumerate("aaabbcd")]
    query.add(STREAM, decoded(query._bound, posts))
    (answer,) = query.advance(STREAM, 3)
    for user, asked_at in (("a", 100.0), ("b", 100.0), ("c", 1.0), ("d", 2.0)):
        store.put([f'"{user}"'], [], asked_at)
    query.operator.apply_changes([f'"{user}"' for user in "abcd"], frozenset())
    wanted = query.operator.wanted(answer.window + 1, Inquiry(2, absent_before=50.0))
    assert (wanted.unknown, wanted.absent) == ([], ['"c"', '"d"'])


def test_of_many_keys_that_differ_what_they_could_reach_is_never_understated() -> None:
    shape = plain(joined=True, columns=7, score="?s - 2 * ?n", bounded=True)
    scoring = ReplicaScoring(shape.bind().plan.score, ReplicaStore("user", ["followers"]))
    chance = np.random.default_rng(3)
    parts = tuple(
        np.append(chance.integers(-99, 99, 2_000), math.nan).astype(float) for _ in range(2)
    )
    reaches = scoring.reaches(parts, 2_001)
    each = [
        scoring.reach(point, point)
        for point in zip(*(part.tolist() for part in parts), strict=True)
    ]
    assert (reaches[:-1] >= each[:-1]).all()
    assert reaches[-1] == math.inf
    few = tuple(part[:100] for part in parts)
    assert scoring.reaches(few, 100).tolist() == each[:100]


@pytest.mark.parametrize(
    ("pattern", "columns", "arrivals", "solutions", "said"),
    [
        ("?p :mentions ?user", "(SUM(?user) AS ?n)", "all", "", "SUM needs a number in ?user"),
        ("?user :x ?x", "(SUM(?user) AS ?n)", "all", "", "SUM needs a number in ?user"),
        ("?p :y ?user", "(COUNT(*) AS ?n)", "all", "", "an xsd:double on the stream"),
        ("?p :x ?user . ?q :y ?user", "(COUNT(*) AS ?n)", "all", "", "each is about one subject"),
        (
            "?p :mentions ?user FILTER(sqrt(?user) > 3)",
            "(COUNT(*) AS ?n)",
            "all",
            "",
            "a FILTER calls a function of numbers",
        ),
    ],
)
def test_what_is_not_kept_up_to_date_is_evaluated_by_window_and_it_is_said_why(
    pattern: str, columns: str, arrivals: str, solutions: str, said: str
) -> None:
    text = TEXT.format(
        names="?n",
        followers="",
        score="?n * 2",
        width=9,
        slide=3,
        columns=columns,
        pattern=pattern,
        filtered="",
        service="SERVICE :people { ?user :followers ?followers }" if solutions else "",
        having="",
        direction="DESC",
        k=3,
        offset=0,
    )
    catalog = CATALOG.format(
        arrivals=arrivals, start="", solutions=solutions, policy="", n=0, items=0
    )
    found = bind_query(text, Catalog.parse(catalog, file=Path("catalog.toml"), variables={}))
    assert isinstance(found, BoundWindowed)
    assert found.reason is not None
    assert said in found.reason.message + (found.reason.hint or "")
