"""Expected quality of an answer under a known model of the remote's changes."""

from __future__ import annotations

import numpy as np
import pytest

from acquatop.answer.estimate import CERTAIN
from acquatop.answer.expected_quality import CONSIDERED, ContentSample, QualityEstimator
from acquatop.ingest.scoring import ReplicaScoring
from acquatop.lab.replay.metrics import ndcg_at, precision_at, relevancies
from acquatop.topk.contract import NO_ROWS, Certainty, Rows, Top
from acquatop.topk.order import ranking
from replica.store import ReplicaStore
from tests.support.worlds import bound, catalog_text, integer, query_text, user_term

NOW = 100.0


class Redrawn:
    """Model of a remote: each value was drawn anew, from 0 to ``high``, with the same chance."""

    def __init__(
        self, chance: float, high: float = 10.0, rates: dict[int, float] | None = None
    ) -> None:
        self._chance = chance
        self._high = high
        self._rates = rates or {}

    def rates(self, rows: np.ndarray) -> np.ndarray:
        return np.array([self._rates.get(row, 1.0) for row in rows.tolist()])

    def chance(self, rows: np.ndarray, now: float) -> np.ndarray:
        assert now == NOW
        return np.where(rows < 0, 1.0, self._chance)

    def draw(
        self,
        variable: str,
        rows: np.ndarray,
        values: np.ndarray,
        count: int,
        random: np.random.Generator,
        *,
        now: float,
    ) -> np.ndarray:
        assert now == NOW
        assert (rows >= 0).all()
        assert not np.isnan(values).any()
        return random.uniform(0, self._high, (count, len(rows)))


class World:
    """A replica, and solutions of a window: each a user and her mentions."""

    def __init__(
        self, followers: dict[str, int], absent: tuple[str, ...] = (), k: int = 2, offset: int = 0
    ) -> None:
        self.k, self.offset = k, offset
        self.store = ReplicaStore("user", ["followers"])
        known = [
            {"user": user_term(user), "followers": integer(count)}
            for user, count in followers.items()
        ]
        self.store.put([user_term(user) for user in (*followers, *absent)], known, now=0.0)
        self.scoring = ReplicaScoring(
            bound(query_text(score="?mentions + ?followers"), catalog_text()).plan.score, self.store
        )

    def rows(self, mentions: list[tuple[str, float]]) -> Rows:
        keys = np.array([user_term(user) for user, _ in mentions] or [""], dtype=object)[
            : len(mentions)
        ]
        names = np.array([f"{key} {at}" for at, key in enumerate(keys)] or [""], dtype=object)[
            : len(mentions)
        ]
        return Rows(
            np.arange(len(keys)),
            names,
            keys,
            (np.array([count for _, count in mentions], dtype=np.float64),),
        )

    def top(self, rows: Rows, certainty: Certainty = Certainty.APPROXIMATE) -> tuple[Top, Rows]:
        """Return the best of some solutions by the replica's values, and all that have a score."""
        merits = self.scoring.merits(rows.keys, rows.parts)
        order = ranking(merits, rows.times, rows.identities)
        order = order[~np.isnan(merits[order])]
        return Top(7, rows.take(order[: self.k]), merits[order[: self.k]], certainty), rows.take(
            order
        )

    def expectation(self, model: Redrawn) -> QualityEstimator:
        return QualityEstimator(self.scoring, self.store, model, k=self.k, offset=self.offset)


USERS = {"a": 5, "b": 4, "c": 3, "d": 1}
EACH = [(user, 0.0) for user in USERS]


def test_where_nothing_changes_an_answer_is_right() -> None:
    world = World(USERS)
    for certainty in Certainty:
        top, held = world.top(world.rows(EACH), certainty)
        assert world.expectation(Redrawn(0.0)).of(top, ContentSample(held), NOW) == CERTAIN


def test_an_answer_of_nothing_where_there_is_nothing_is_right() -> None:
    world = World(USERS)
    top, held = world.top(world.rows([]))
    assert world.expectation(Redrawn(1.0)).of(top, ContentSample(held), NOW) == CERTAIN


def test_it_is_what_brute_force_finds_on_average() -> None:
    world = World(USERS)
    top, held = world.top(world.rows([("a", 0.0), ("b", 1.0), ("c", 2.0), ("d", 6.0), ("a", 2.0)]))
    expectation = world.expectation(Redrawn(0.4))
    found = [
        expectation.of(Top(window, top.rows, top.merits, top.certainty), ContentSample(held), NOW)
        for window in range(30)
    ]
    random = np.random.default_rng(5)
    precision, ndcg = [], []
    answer = top.rows.identities.tolist()
    for _ in range(8000):
        # Both solutions of one user have the same value.
        now = {
            user_term(user): random.uniform(0, 10) if random.random() < 0.4 else v
            for user, v in USERS.items()
        }
        scores = held.parts[0] + np.array([now[key] for key in held.keys.tolist()])
        relevance = relevancies(held.identities[np.argsort(-scores, kind="stable")[:2]].tolist())
        precision.append(precision_at(2, answer, relevance))
        ndcg.append(ndcg_at(2, answer, relevance))
    assert np.mean([each.precision for each in found]) == pytest.approx(
        np.mean(precision), abs=0.015
    )
    assert np.mean([each.ndcg for each in found]) == pytest.approx(np.mean(ndcg), abs=0.015)


def test_the_same_window_has_the_same_worlds() -> None:
    world = World(USERS)
    top, held = world.top(world.rows(EACH))
    first, second = (
        world.expectation(Redrawn(0.4)).of(top, ContentSample(held), NOW) for _ in range(2)
    )
    assert first == second
    assert 0 < first.precision < 1


def test_what_was_let_go_makes_an_answer_worth_less() -> None:
    world = World({**USERS, **{f"z{at}": 0 for at in range(40)}})
    top, held = world.top(world.rows(EACH))
    others = world.rows([(f"z{at}", 0.0) for at in range(40)])
    expectation = world.expectation(Redrawn(0.4))
    alone = expectation.of(top, ContentSample(held), NOW)
    whole = expectation.of(top, ContentSample(held, others, 40.0), NOW)
    assert whole.precision < alone.precision - 0.1
    # Some of them can stand for all.
    part = expectation.of(top, ContentSample(held, others.take(slice(20)), 40.0), NOW)
    assert part.precision == pytest.approx(whole.precision, abs=0.1)


def test_a_part_of_many_stands_for_all_of_them() -> None:
    many = 3 * CONSIDERED
    world = World({**USERS, "z": 0})
    top, held = world.top(world.rows(EACH))
    others = world.rows([("z", -0.001 * at) for at in range(many)])
    found = world.expectation(Redrawn(0.0)).of(top, ContentSample(held, others, float(many)), NOW)
    assert found == CERTAIN, "nothing of what was let go has risen"


def test_a_key_of_which_nothing_is_known_may_have_what_any_other_has() -> None:
    world = World({"a": 5, "b": 5, "c": 4, "d": 9})
    rows = world.rows([("a", 0.0), ("b", 0.0), ("new", 0.0)])
    top, held = world.top(rows)
    # It is better than both with the value of d, one of four, and with any other's than neither.
    found = world.expectation(Redrawn(0.0)).of(
        top, ContentSample(Rows.together([held, rows.take(slice(2, 3))])), NOW
    )
    assert found.precision == pytest.approx(1 - 0.25 / 2, abs=0.05)


def test_where_no_value_is_known_at_all_nothing_is_expected_of_an_answer() -> None:
    world = World({})
    rows = world.rows([("new", 0.0), ("newer", 1.0)])
    top, _ = world.top(rows)
    found = world.expectation(Redrawn(0.0)).of(top, ContentSample(rows), NOW)
    assert (found.precision, found.ndcg) == (0.0, 0.0)


def test_a_key_that_the_remote_does_not_have_may_appear() -> None:
    world = World({"a": 5, "b": 4}, absent=("gone",))
    rows = world.rows([("a", 0.0), ("b", 0.0), ("gone", 10.0)])
    top, held = world.top(rows)
    content = ContentSample(Rows.together([held, rows.take(slice(2, 3))]))
    assert world.expectation(Redrawn(0.0)).of(top, content, NOW) == CERTAIN
    model = Redrawn(0.5, rates={0: 0.5, 1: 0.5, 2: 0.0})
    assert world.expectation(model).of(top, content, NOW).precision < 0.8


def test_as_many_keys_vanish_as_appear() -> None:
    world = World({"a": 5, "b": 4}, absent=("gone", "lost"))
    top, held = world.top(world.rows([("a", 0.0), ("b", 0.0)]))
    # Both have changed: to be gone, as those that are absent change as often as they.
    found = world.expectation(Redrawn(1.0)).of(top, ContentSample(held), NOW)
    assert found.precision == pytest.approx(0.0, abs=0.01)
    steady = Redrawn(1.0, rates=dict.fromkeys(range(4), 0.0) | {0: 1.0, 1: 1.0})
    assert world.expectation(steady).of(top, ContentSample(held), NOW).precision > 0.0


def test_what_stands_before_the_offset_is_not_shown() -> None:
    world = World(USERS, k=3, offset=2)
    top, held = world.top(world.rows(EACH))
    found = world.expectation(Redrawn(0.3)).of(top, ContentSample(held), NOW)
    # One row is shown, which is right or is not.
    assert found.precision == pytest.approx(found.ndcg)
    assert 0.2 < found.precision < 0.9
    few, held = world.top(world.rows(EACH[:2]))
    assert world.expectation(Redrawn(0.3)).of(few, ContentSample(held), NOW) == CERTAIN


def test_fewer_than_k_are_all_there_is() -> None:
    world = World(USERS, k=9)
    top, held = world.top(world.rows(EACH))
    found = world.expectation(Redrawn(0.5)).of(top, ContentSample(held), NOW)
    assert found.precision == 1.0
    assert found.ndcg < 1.0


def test_nothing_held_and_a_sample_of_others() -> None:
    world = World(USERS)
    top, _ = world.top(world.rows([]))
    others = world.rows(EACH)
    found = world.expectation(Redrawn(0.5)).of(top, ContentSample(NO_ROWS, others, 1000.0), NOW)
    assert found.precision == 0.0
