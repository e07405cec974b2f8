"""The clairvoyant: what it refreshes first is the best there is to refresh."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquatop.lab.replay.metrics import ndcg_at, precision_at, relevancies
from benchmarks.clairvoyant import clairvoyant, greedy_order
from replica.rankers import DEFAULT_RANKERS, ranked
from replica.rankers.battery import sample_candidates

different = st.lists(st.integers(0, 99), min_size=2, max_size=12, unique=True).filter(
    lambda each: len(each) % 2 == 0
)


def worth(merits: list[float], true: list[float], k: int) -> float:
    """Return the nDCG and the precision, together, of the answer that merits give."""
    answer, right = (sorted(range(len(each)), key=lambda at: -each[at]) for each in (merits, true))
    relevance = relevancies(right[:k])
    return ndcg_at(k, answer, relevance) + precision_at(k, answer, relevance)


def refreshed(merits: list[float], true: list[float], chosen: tuple[int, ...]) -> list[float]:
    return [true[at] if at in chosen else merits[at] for at in range(len(merits))]


@given(different, st.integers(1, 4))
def test_no_other_first_refresh_is_better(numbers: list[int], k: int) -> None:
    merits, true = [float(each) for each in numbers[::2]], [float(each) for each in numbers[1::2]]
    k = min(k, len(merits))
    order = greedy_order(np.array(merits), np.array(true), k).tolist()
    each = [worth(refreshed(merits, true, (at,)), true, k) for at in range(len(merits))]
    unchanged = worth(merits, true, k)
    if max(each) > unchanged + 1e-9:
        assert each[order[0]] == pytest.approx(max(each))


@given(different, st.integers(1, 4))
def test_it_ends_where_neither_one_nor_two_refreshes_help_any_more(
    numbers: list[int], k: int
) -> None:
    merits, true = [float(each) for each in numbers[::2]], [float(each) for each in numbers[1::2]]
    k = min(k, len(merits))
    order = tuple(greedy_order(np.array(merits), np.array(true), k).tolist())
    steps = [
        worth(refreshed(merits, true, order[:count]), true, k) for count in range(len(order) + 1)
    ]
    # Of two that help together the first alone does not.
    assert all(
        max(after) > before
        for before, *after in zip(steps, steps[1:], [*steps[2:], 0.0], strict=False)
    )
    for more in itertools.combinations(range(len(merits)), min(2, len(merits))):
        assert worth(refreshed(merits, true, order + more), true, k) <= steps[-1] + 1e-9


def test_what_has_not_changed_or_does_not_help_is_left_out() -> None:
    assert (
        greedy_order(np.array([9.0, 8.0, 3.0, 1.0]), np.array([9.0, 8.0, 4.0, 1.0]), 2).tolist()
        == []
    )
    assert greedy_order(np.array([]), np.array([]), 2).tolist() == []


def test_it_is_a_ranker_that_knows() -> None:
    given_ = sample_candidates(50)
    ranker = clairvoyant(lambda candidates: -candidates.merits)
    rankers = DEFAULT_RANKERS.with_ranker("CLAIRVOYANT", ranker)
    assert len(ranked(rankers["CLAIRVOYANT"](), given_)) > 0
