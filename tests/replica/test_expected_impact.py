"""The ranker by expected impact: against brute force over all that may have happened."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replica.rankers import Candidates, ranked
from replica.rankers.battery import sample_candidates
from replica.rankers.contract import FloatArray, IntArray, Outlook, no_outlook
from replica.rankers.imp import ExpectedImpact, worth_of


def candidates(
    merits: list[float],
    outlook: Outlook = no_outlook,
    *,
    chances: list[float] | None = None,
    remaining: list[int] | None = None,
    intervals: list[float] | None = None,
    fetched_at: list[float] | None = None,
    k: int = 2,
) -> Candidates:
    count = len(merits)
    return Candidates(
        rows=np.arange(count),
        fetched_at=np.array(fetched_at or [0.0] * count),
        merits=np.array(merits, float),
        k=k,
        now=100.0,
        slide=10.0,
        remaining=np.array(remaining or [0] * count, np.int64),
        intervals=np.array(intervals or [50.0] * count),
        chances=np.array(chances or [0.5] * count),
        outlook=outlook,
        random=np.random.default_rng(0),
    )


def becoming(drawn: list[list[float]]) -> Outlook:
    """Return an outlook that says the same few worlds again and again, each as often."""

    def outlook(at: IntArray, count: int) -> FloatArray:
        worlds = np.array(drawn, float).reshape(len(drawn), -1)[:, at]
        return np.tile(worlds, (count // len(worlds) + 1, 1))[: count // len(worlds) * len(worlds)]

    return outlook


def order(given_: Candidates) -> list[int]:
    return ranked(ExpectedImpact(), given_).tolist()


def place(merits: list[float], at: int) -> int:
    return sorted(range(len(merits)), key=lambda each: (-merits[each], each)).index(at)


def gain(k: int, place: int) -> float:
    """Return a place's share of nDCG's gain, as the paper defines it, and of precision, which
    counts more.
    """
    gains = [(2 ** (k - at) - 1) / np.log2(at + 2) for at in range(k)]
    return gains[place] / sum(gains) + 2.0 / k if place < k else 0.0


def quality(merits: list[float], true: list[float], k: int) -> float:
    """Return the nDCG and twice the precision of the answer that merits give."""
    ideal = sum((2 ** (k - at) - 1) / np.log2(at + 2) for at in range(k))
    total = 0.0
    for at in range(len(true)):
        right, shown = place(true, at), place(merits, at)
        if right < k and shown < k:
            total += (2 ** (k - right) - 1) / np.log2(shown + 2) / ideal + 2.0 / k
    return total


def impacts(given_: Candidates) -> tuple[FloatArray, FloatArray]:
    return ExpectedImpact().impacts(given_, np.arange(len(given_)))


def shift(merits: list[float], true: list[float], at: int, k: int) -> float:
    """Return what moving one candidate to its place is worth where all others are right."""
    before = [*true[:at], merits[at], *true[at + 1 :]]
    return abs(gain(k, place(true, at)) - gain(k, place(before, at)))


def better(merits: list[float], true: list[float], at: int, k: int) -> float:
    """Return by how much the answer is better if one candidate alone is set right."""
    after = [*merits[:at], true[at], *merits[at + 1 :]]
    return quality(after, true, k) - quality(merits, true, k)


@given(data=st.data(), count=st.integers(1, 6), worlds=st.integers(1, 4), k=st.integers(0, 4))
def test_impacts_are_what_brute_force_over_all_worlds_finds(
    data: st.DataObject, count: int, worlds: int, k: int
) -> None:
    # No two merits are equal, the best is first; each has changed or has not.
    shuffled = [float(each) for each in data.draw(st.permutations(range(count * (1 + worlds))))]
    changed = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    merits = sorted(shuffled[:count], reverse=True)
    drawn = [shuffled[count * each : count * (each + 1)] for each in range(1, worlds + 1)]
    alone, together = impacts(
        candidates(merits, becoming(drawn), k=k, chances=[float(each) for each in changed])
    )
    true = [[each[it] if changed[it] else merits[it] for it in range(count)] for each in drawn]
    for at in range(count):
        assert together[at] == pytest.approx(np.mean([shift(merits, each, at, k) for each in true]))
        assert alone[at] == pytest.approx(
            max(0.0, np.mean([better(merits, each, at, k) for each in true]))
        )


def test_others_have_changed_as_often_as_is_likely() -> None:
    merits, new, chances = [9.0, 7.0, 5.0, 3.0], [4.0, 8.0, 10.0, 6.0], [0.2, 0.5, 0.7, 0.9]
    given_ = candidates(merits, becoming([new]), chances=chances)
    found = np.mean([impacts(given_) for _ in range(60)], axis=0)
    worlds = list(itertools.product((False, True), repeat=4))
    true = [[new[it] if which[it] else merits[it] for it in range(4)] for which in worlds]
    weights = [np.prod(np.where(which, chances, 1 - np.array(chances))) for which in worlds]
    for at in range(4):
        alone, together = (
            sum(
                weight * worth(merits, each, at, 2)
                for weight, each in zip(weights, true, strict=True)
            )
            for worth in (better, shift)
        )
        assert found[:, at] == pytest.approx([max(0.0, alone), together], abs=0.03)


def test_a_place_s_worth_is_nothing_behind_the_answer_and_finite_for_long_answers() -> None:
    for k in (1, 5, 5000):
        worth = worth_of(k)
        assert worth[:-1].sum() == pytest.approx(3)
        assert worth[-1] == 0
        assert (np.diff(worth) <= 0).all()
    assert worth_of(0).tolist() == [0.0]
    assert worth_of(3).tolist() == pytest.approx([gain(3, at) for at in range(4)])


def test_the_first_is_what_is_best_alone_and_what_follows_counts_on_others() -> None:
    # The last comes in as a rule, whatever is known of others; that the second is to go only helps
    # with that.
    outlook = becoming([[9.0, 0.0, 3.0, 8.5], [9.0, 0.0, 3.0, 7.0]])
    given_ = candidates([9.0, 8.0, 3.0, 2.0], outlook, chances=[0.0, 1.0, 0.0, 1.0])
    alone, together = impacts(given_)
    assert alone[3] > alone[1] == 0.0 < together[1]
    assert order(given_)[:2] == [3, 1]


def test_what_may_come_into_the_answer_is_before_what_cannot_leave_its_place() -> None:
    # The first two stay where they are, the third may come in, and the last cannot.
    outlook = becoming([[10.0, 7.0, 6.5, 0.0], [9.2, 7.0, 9.0, 1.0]])
    assert order(candidates([9.5, 8.0, 5.0, 4.0], outlook))[0] == 2


def test_what_has_not_changed_needs_no_refresh() -> None:
    outlook = becoming([[1.0, 9.0, 9.5]])
    assert order(candidates([5.0, 4.0, 3.0], outlook, chances=[0.0, 0.1, 0.9])) == [2, 1, 0]


def test_a_refresh_that_the_next_window_can_use_is_worth_more() -> None:
    outlook = becoming([[5.0, 4.0, 9.0, 9.0]])
    assert order(candidates([5.0, 4.0, 2.0, 1.0], outlook, remaining=[0, 0, 0, 3]))[:2] == [3, 2]
    lasting = candidates(
        [5.0, 4.0, 2.0, 1.0], outlook, remaining=[0, 0, 3, 3], intervals=[9.0, 9.0, 5.0, 5000.0]
    )
    assert order(lasting)[:2] == [3, 2]


def test_where_nothing_matters_the_likelier_to_have_changed_and_then_the_older_is_first() -> None:
    merits, outlook = [9.0, 8.0, 3.0, 2.0, 1.0], becoming([[9.0, 8.0, 3.0, 2.0, 1.0]])
    given_ = candidates(
        merits, outlook, chances=[0.1, 0.2, 0.5, 0.5, 0.9], fetched_at=[1.0, 2.0, 9.0, 3.0, 4.0]
    )
    assert order(given_) == [4, 3, 2, 1, 0]


def test_an_answer_without_places_gains_nothing_and_the_likelier_to_have_changed_is_first() -> None:
    chances, fetched_at = [0.1, 0.5, 0.5, 0.9], [1.0, 9.0, 3.0, 4.0]
    for merits in ([9.0, 8.0, 3.0, 2.0], [float("nan")] * 4):
        for outlook in (no_outlook, becoming([[1.0, 9.0, 5.0, 3.0]])):
            given_ = candidates(merits, outlook, chances=chances, fetched_at=fetched_at, k=0)
            assert [each.tolist() for each in impacts(given_)] == [[0.0] * 4] * 2
            assert order(given_) == [3, 2, 1, 0]


def test_an_answer_of_any_length_is_weighed_in_time_and_room_of_the_candidates() -> None:
    given_ = candidates(
        [9.0, 8.0, 3.0, 2.0], becoming([[1.0, 9.0, 5.0, 3.0]]), chances=[0.1, 0.5, 0.5, 0.9], k=5000
    )
    assert order(replace(given_, k=10**15)) == order(given_)


def test_without_an_outlook_results_that_may_have_changed_come_first() -> None:
    assert order(candidates([9.0, 8.0, 7.0, 6.0], chances=[0.0, 0.3, 0.2, 0.9])) == [1, 3, 2, 0]
    nothing = [float("nan")] * 4
    assert order(candidates(nothing, chances=[0.5, 0.5, 0.3, 0.9])) == [0, 1, 3, 2]


def test_without_places_the_likelier_to_have_changed_and_then_the_older_is_first() -> None:
    """So it is of queries without ORDER BY: no result is known to be better than another."""
    nothing = [float("nan")] * 3
    given_ = candidates(nothing, k=0, chances=[0.2, 0.5, 0.5], fetched_at=[1.0, 9.0, 5.0])
    assert order(given_) == [2, 1, 0]
    assert order(candidates([], k=0)) == []


def test_the_same_random_state_gives_the_same_order_of_many() -> None:
    def outlook_of(random: np.random.Generator) -> Outlook:
        return lambda at, count: random.normal(size=(count, len(at)))

    given_ = replace(sample_candidates(10_000, seed=2), merits=np.linspace(3.0, -3.0, 10_000))
    orders = []
    for seed in (1, 1, 2):
        random = np.random.default_rng(seed)
        orders.append(order(replace(given_, outlook=outlook_of(random), random=random)))
    assert orders[0] == orders[1] != orders[2]
