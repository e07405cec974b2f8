"""A continuous query against brute force: what it calls exact or certified is right, always."""

from __future__ import annotations

from hypothesis import event, given, settings

from acquatop.answer.answer import Status
from tests.support.markers import THOROUGH
from tests.support.queries.joined import Replay, Shape, known_followers, shapes, shown
from tests.support.worlds import (
    STREAM,
    Event,
    TableRemote,
    bound,
    catalog_text,
    continuous,
    query_text,
    records,
    solutions_in,
    user_term,
)


@THOROUGH
@settings(max_examples=80)
@given(shapes)
def test_what_is_called_right_is_right(shape: Shape) -> None:
    replay = Replay(shape)
    for answer in replay.answers():
        replay.query.operator.list._check()
        assert answer.spending.items <= shape.items
        assert answer.counts.late == 0
        if answer.status is not Status.APPROXIMATE:
            assert shown(answer) == replay.right(answer, known_followers(replay.query))
            inside = solutions_in(
                replay.events, answer.opens_ms, answer.closes_ms, latest=shape.arrivals == "latest"
            )
            unknown = [
                pair
                for pair in inside
                if replay.query.maintainer.store.rows([user_term(pair[0])])[0] < 0
            ]
            assert all(shape.cannot_reach(answer, mentions) for _, mentions in unknown)
        if answer.status is Status.EXACT:
            assert shown(answer) == replay.right(answer, replay.remote.followers)
        if shape.refill and answer.status is Status.APPROXIMATE:
            assert "no value from the remote yet" in (answer.reason or "")
        event(
            f"{answer.status}, {'some' if answer.rows else 'no'} rows, "
            f"{'refilled' if shape.refill else 'dropped'}"
        )


@settings(max_examples=45)
@given(shapes)
def test_enough_budget_and_candidates_are_always_exact(shape: Shape) -> None:
    plenty = Shape(**{**vars(shape), "items": 1000, "n": 1000, "policy": None})
    for answer in Replay(plenty).answers():
        assert answer.status is Status.EXACT


def test_what_comes_too_late_makes_the_windows_that_are_still_open_uncertain() -> None:
    query_bound = bound(
        query_text(width=9, slide=3, k=1), catalog_text(start="start_ms = 0", items=9, n=9)
    )
    query = continuous(query_bound, TableRemote({"a": 1, "b": 1}))
    query.add(STREAM, records(query_bound, [Event(5, "a", 1), Event(10, "a", 1)]))
    (first,) = query.advance(STREAM, 9)
    query.add(STREAM, records(query_bound, [Event(8, "b", 100)]))
    later = list(query.advance(STREAM, 30))
    assert (first.status, first.counts.late) == (Status.EXACT, 0)
    assert later[0].counts.late == 1
    assert [answer.status for answer in later[:2]] == [
        Status.APPROXIMATE
    ] * 2  # (3, 12] and (6, 15] should hold b
    assert "too late" in (later[0].reason or "")
    assert all(answer.status is Status.EXACT for answer in later[2:])


def test_a_query_that_joins_later_answers_only_for_windows_it_has_seen_from_their_start() -> None:
    for start in ("", "start_ms = 0"):
        query_bound = bound(query_text(width=9, slide=3), catalog_text(start=start, items=9, n=9))
        query = continuous(query_bound, TableRemote({"a": 1}))
        query.start_after(STREAM, 10)
        query.add(STREAM, records(query_bound, [Event(11, "a", 1), Event(14, "a", 2)]))
        answers = list(query.advance(STREAM, 30))
        assert answers[0].opens_ms == 12
        assert shown(answers[0]) == [("a", 2, 5)]


def test_a_jump_in_time_skips_the_empty_windows_and_says_how_many() -> None:
    query_bound = bound(query_text(width=1, slide=1), catalog_text(start="start_ms = 0", items=9))
    query = continuous(query_bound, TableRemote({"a": 1}))
    query.add(STREAM, records(query_bound, [Event(1, "a", 1), Event(10**12, "a", 2)]))
    answers = list(query.advance(STREAM, 10**12))
    assert [(answer.closes_ms, len(answer.rows)) for answer in answers] == [
        (1, 1),
        (2, 0),
        (10**12, 1),
    ]
    assert [answer.counts.skipped for answer in answers] == [0, 0, 10**12 - 3]
    assert shown(answers[2]) == [("a", 2, 5)]
