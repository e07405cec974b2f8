"""A remote with several solutions for a key, of which one is used: no such answer is exact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import event, given, settings

from acquatop.answer.answer import Answer, Status
from acquatop.query.sparql.evaluation import SparqlEvaluation
from replica.budget import Budget
from replica.maintainer import Maintainer
from replica.store import Solution, SolutionStore
from tests.support.disks import quick_folder
from tests.support.fed import Fed
from tests.support.markers import THOROUGH
from tests.support.queries import aggregated as random_posts
from tests.support.queries.both import windowed
from tests.support.queries.joined import Replay, Shape, known_followers, shapes, shown
from tests.support.queries.twins import Twins
from tests.support.worlds import STREAM, Event, TableRemote, continuous, integer, records, user_term

SEVERAL = ("a", "c", "d")
MORE = 3


@dataclass
class Several(TableRemote):
    """A remote that has another solution, of more followers, for some of its users."""

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        found = super().fetch(keys, timeout)
        others = [
            {"user": row["user"], "followers": integer(self._more(row["user"]))} for row in found
        ]
        return [*found, *(row for row in others if row["user"] in map(user_term, SEVERAL))]

    def load(self, timeout: float, may_ask: object = None) -> Iterator[list[Solution]]:
        yield self.fetch([user_term(user) for user in self.followers], timeout)

    def _more(self, key: str) -> int:
        return (
            next(count for user, count in self.followers.items() if user_term(user) == key) + MORE
        )


def replayed(shape: Shape) -> Replay:
    replay = Replay(shape)
    replay.remote = Several(replay.remote.followers)
    replay.query = continuous(replay.bound, replay.remote)
    if shape.preload:
        replay.query.maintainer.load()
    return replay


@THOROUGH
@settings(max_examples=50)
@given(shapes)
def test_an_answer_that_chose_is_never_exact_and_one_that_is_exact_is_right_for_any_choice(
    shape: Shape,
) -> None:
    replay = replayed(shape)
    for answer in replay.answers():
        event(f"{answer.status}, {'some' if answer.counts.ambiguous else 'none'} ambiguous")
        followers = replay.remote.followers
        if answer.counts.ambiguous:
            assert answer.status is not Status.EXACT
        if answer.status is not Status.APPROXIMATE:
            assert shown(answer) == replay.right(answer, known_followers(replay.query))
        if answer.status is Status.EXACT:
            for more in (0, MORE):
                chosen = {
                    user: count + more * (user in SEVERAL) for user, count in followers.items()
                }
                assert shown(answer) == replay.right(answer, chosen)


@pytest.mark.parametrize("refill", [False, True])
def test_an_answer_for_which_all_was_fetched_is_certified_if_one_of_several_was_chosen(
    refill: bool,
) -> None:
    shape = Shape(0, 0, 2, 1, 0, 9, 3, 2, 9, 9, "all", True, None, 0, False, False, refill)
    replay = Replay(shape)
    for followers, expected in (
        ({"a": 1, "b": 1}, Status.CERTIFIED),
        ({"b": 1, "e": 1}, Status.EXACT),
    ):
        query = continuous(replay.bound, Several(followers))
        query.add(STREAM, records(replay.bound, [Event(1, user, 1) for user in followers]))
        (answer,) = query.advance(STREAM, 9)
        assert answer.counts.ambiguous == (1 if "a" in followers else 0)
        assert (answer.status, answer.reason) == (expected, None)
        assert answer.expected is not None
        assert len(answer.rows) == 2


def test_evaluated_window_by_window_all_of_a_key_s_solutions_join_and_the_answer_is_exact() -> None:
    replay = replayed(Shape(3, 40, 6, 3, 0, 9, 3, 4, 9, 99, "all", True, None, 0, False, False))
    found = windowed(replay)
    assert isinstance(found.evaluation, SparqlEvaluation)
    (part,) = found._bound.plan.remotes
    keeper = Maintainer(
        SolutionStore(part.key, part.variables), replay.remote, Budget(1000, 1000, 5.0)
    )
    query = Fed(SparqlEvaluation(found._bound, [keeper]), found._bound)
    query.add(STREAM, records(replay.bound, [Event(1, "a", 1), Event(2, "b", 1)]))
    (answer,) = query.advance(STREAM, 9)
    assert sorted(row.score for row in answer.rows if row.score is not None) == sorted(
        2 + replay.remote.followers[user] + more for user, more in (("a", 0), ("a", MORE), ("b", 0))
    )
    assert (answer.status, answer.counts.ambiguous) == (Status.EXACT, 0)


class SeveralOfAll(random_posts.Table):
    """A remote that has another solution for every key."""

    def fetch(self, keys: object, timeout: float) -> list[Solution]:
        found = super().fetch(keys, timeout)  # type: ignore[arg-type]
        return [*found, *({**row, "followers": integer(99)} for row in found)]


def aggregated(seed: int) -> random_posts.Shape:
    shape = random_posts.plain(joined=True, pattern="?post :mentions ?user", items=99, start=0)
    return replace(shape, seed=seed, posts=60, subjects=20, users=5, values=3)


def assert_certified(answers: list[Answer]) -> None:
    assert {answer.status for answer in answers if answer.counts.ambiguous} == {Status.CERTIFIED}
    assert all(answer.counts.ambiguous or not answer.rows for answer in answers)


@pytest.mark.parametrize("seed", range(3))
def test_aggregates_per_key_say_so_too(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_posts, "Table", SeveralOfAll)
    assert_certified(list(random_posts.Replay(aggregated(seed)).answers()))


def test_so_do_they_where_executors_hold_the_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_posts, "Table", SeveralOfAll)
    with quick_folder() as folder:
        pairs = list(Twins(aggregated(1), folder).answers())
    assert_certified([answer for pair in pairs for answer in pair])
