"""One battery over every ranker, one's own included; then what each prefers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replica.rankers import (
    DEFAULT_RANKERS,
    Candidates,
    RankerClass,
    RankerError,
    RankerRegistry,
    known_intervals,
    ranked,
)
from replica.rankers.battery import all_candidates, check_ranker
from replica.rankers.contract import IntArray, no_outlook
from replica.rankers.ordering import ascending


class WorstFirst:
    """A user's own: the worst scored first, and it leaves out what has no merit."""

    def __call__(self, candidates: Candidates) -> IntArray:
        return np.flatnonzero(~np.isnan(candidates.merits))[::-1]


ALL = DEFAULT_RANKERS.with_ranker("WORST-1ST", WorstFirst).with_ranker(
    "WBM-TOLD", known_intervals(lambda rows: 10.0 + rows)
)


def candidates(
    fetched_at: list[float],
    *,
    k: int = 3,
    now: float = 100.0,
    slide: float = 10.0,
    remaining: list[int] | None = None,
    intervals: list[float] | None = None,
) -> Candidates:
    count = len(fetched_at)
    return Candidates(
        rows=np.arange(count),
        fetched_at=np.array(fetched_at, float),
        merits=-np.arange(count, dtype=float),
        k=k,
        now=now,
        slide=slide,
        remaining=np.array(remaining or [0] * count, dtype=np.int64),
        intervals=np.array(intervals or [50.0] * count, float),
        chances=np.full(count, 0.5),
        outlook=no_outlook,
        random=np.random.default_rng(7),
    )


def order(name: str, given_: Candidates) -> list[int]:
    return ranked(ALL[name](), given_).tolist()


@pytest.mark.parametrize("name", ALL)
def test_every_ranker_passes_the_battery(name: str) -> None:
    check_ranker(ALL[name])


@pytest.mark.parametrize("name", DEFAULT_RANKERS)
def test_our_rankers_divide_nothing_by_nothing(name: str) -> None:
    with np.errstate(divide="raise", invalid="raise"):
        for given_ in all_candidates():
            ranked(ALL[name](), given_)


def test_candidates_of_every_kind_are_in_the_battery() -> None:
    kinds = list(all_candidates())
    assert {0, 1} <= {len(each) for each in kinds}
    assert {each.k for each in kinds} >= {0, 1, 10**15}
    assert any(each.k == 0 < len(each) for each in kinds)
    assert any(each.k > len(each) > 0 for each in kinds)
    for is_so in (np.isnan, np.isposinf, np.isneginf):
        assert any(len(each) > 1 and is_so(each.merits).all() for each in kinds)


numbers = st.floats(allow_nan=False) | st.sampled_from([float("-inf"), float("inf"), 0.0, 1.0])


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=40)
@given(
    each=st.lists(st.tuples(numbers, numbers, st.integers(0, 2**40)), max_size=12),
    k=st.integers(0, 20) | st.just(10**15),
    now=st.floats(-1e12, 1e12),
    slide=st.just(0.0) | st.floats(0, 1e9),
)
def test_every_ranker_orders_whatever_candidates(
    name: str, each: list[tuple[float, float, int]], k: int, now: float, slide: float
) -> None:
    given_ = candidates([fetched for fetched, _, _ in each], k=k, now=now, slide=slide)
    given_ = replace(
        given_,
        intervals=np.array([interval for _, interval, _ in each], float),
        remaining=np.array([remaining for _, _, remaining in each], np.int64),
    )
    said = order(name, given_)
    if name not in ("WST", "WORST-1ST"):
        assert sorted(said) == list(range(len(each)))


def bad(order: Callable[[Candidates], object]) -> RankerClass:
    return type("Bad", (), {"__call__": lambda self, candidates: order(candidates)})


@pytest.mark.parametrize(
    ("ranker", "message"),
    [
        (
            bad(lambda given_: np.zeros(len(given_), dtype=int)),
            "Bad returned a position more than once",
        ),
        (bad(lambda given_: np.arange(len(given_)) + 1), "positions that none of 1 candidates has"),
        (bad(lambda given_: np.arange(len(given_)) - 1), "positions that none of"),
        (bad(lambda given_: np.arange(len(given_)) * 1.0), "whole numbers, not float64"),
        (bad(lambda given_: np.zeros((1, 1), dtype=int)), "one row"),
        (bad(lambda given_: np.random.default_rng().permutation(len(given_))), "two minds"),
        (bad(lambda given_: given_.fetched_at.sort() or np.arange(0)), "read-only"),
    ],
)
def test_the_battery_finds_what_is_no_ranker(ranker: RankerClass, message: str) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        check_ranker(ranker)
    assert isinstance(raised.value, RankerError) or message == "read-only"


def test_the_battery_finds_what_divides_by_the_answer_s_length() -> None:
    with pytest.raises(ZeroDivisionError):
        check_ranker(bad(lambda given_: np.arange(min(len(given_), 1 // given_.k))))


def test_a_registry_is_extended_into_another() -> None:
    assert "WORST-1ST" in ALL
    assert "WORST-1ST" not in DEFAULT_RANKERS
    assert list(DEFAULT_RANKERS) == ["WST", "RND", "LRU", "WBM", "TSM", "BSM", "ASM", "IMP"]
    assert DEFAULT_RANKERS.with_ranker("LRU", WorstFirst)["LRU"] is WorstFirst
    assert len(RankerRegistry({})) == 0


@pytest.mark.parametrize("name", ["", "lru", "A B", "A\n", "Ä", "A_B"])
def test_a_name_consists_of_capitals_digits_and_dashes(name: str) -> None:
    with pytest.raises(ValueError, match="is no name for a ranker"):
        DEFAULT_RANKERS.with_ranker(name, WorstFirst)


@pytest.mark.parametrize("ranker", [WorstFirst(), lambda given_: given_, type("Mute", (), {})])
def test_a_ranker_is_a_class_of_what_can_be_called(ranker: RankerClass) -> None:
    with pytest.raises(ValueError, match="must be a class"):
        DEFAULT_RANKERS.with_ranker("MINE", ranker)


def test_columns_of_candidates_are_equally_long() -> None:
    with pytest.raises(ValueError, match=r"differ in length: \[1, 2\]"):
        replace(candidates([1.0, 2.0]), merits=np.zeros(1))


def test_what_each_prefers() -> None:
    fetched_at = candidates([5.0, 1.0, 3.0, 1.0, 9.0, float("-inf")])
    assert order("TSM", fetched_at) == order("ASM", fetched_at) == [0, 1, 2, 3, 4, 5]
    assert order("BSM", fetched_at) == [2, 3, 1, 4, 0, 5]
    assert order("LRU", fetched_at) == [5, 1, 3, 2, 0, 4]
    assert order("WST", fetched_at) == []


def test_the_border_may_lie_beyond_the_candidates() -> None:
    assert order("BSM", candidates([0.0] * 3, k=9)) == [2, 1, 0]


def test_chance_orders_all_and_differs_from_time_to_time() -> None:
    given_ = candidates([0.0] * 20)
    first, second = order("RND", given_), order("RND", given_)
    assert sorted(first) == sorted(second) == list(range(20))
    assert first != second
    often = np.array(
        [
            order(
                "RND",
                candidates([0.0] * 5)
                if not at
                else replace(candidates([0.0] * 5), random=np.random.default_rng(at)),
            )[0]
            for at in range(1000)
        ]
    )
    assert np.bincount(often, minlength=5).min() > 140


def test_the_example_of_the_paper_for_top_and_border() -> None:
    """Figure 6(d), K=3, N=1, a budget of 2: TSM refreshes G and E, BSM refreshes C and F."""
    listed = ["G", "E", "C", "F", "A"]
    given_ = candidates([0.0] * 5, k=3)
    assert [listed[at] for at in order("TSM", given_)[:2]] == ["G", "E"]
    assert [listed[at] for at in order("BSM", given_)[:2]] == ["C", "F"]


def test_the_example_of_the_paper_for_window_based_maintenance() -> None:
    """Figure 5 at time 5, windows that slide by 2: A, B and E may be stale, renewed they last until
    11, 10 and 12.
    """
    names = "ABCDE"
    given_ = candidates(
        [-3.0, -2.0, 0.0, 1.0, -2.0],  # best before 4, 4, 8, 7 and 5
        now=5.0,
        slide=2.0,
        remaining=[1, 1, 2, 2, 3],
        intervals=[7.0, 6.0, 8.0, 6.0, 7.0],
    )
    wbm = known_intervals(lambda rows: given_.intervals[rows])()
    scores = dict(zip(names, wbm.scores(given_).tolist(), strict=True))
    assert [scores[each] for each in "ABE"] == [1, 1, 3]
    assert wbm.scores(replace(given_, remaining=np.full(5, 99)))[[0, 1, 4]].tolist() == [
        3,
        3,
        4,
    ]  # the Vs
    assert [names[at] for at in order("WBM", given_)] == ["E", "A", "B", "D", "C"]
    told = replace(given_, intervals=np.full(5, 1e9))
    assert ranked(wbm, told).tolist() == ranked(ALL["WBM"](), given_).tolist()
    assert order("WBM", told) != order("WBM", given_)


def test_window_based_maintenance_begins_with_what_was_never_fetched() -> None:
    never, stale, fresh = float("-inf"), 10.0, 90.0
    given_ = candidates([fresh, stale, never, stale - 1, never], remaining=[9, 2, 0, 2, 0])
    assert order("WBM", given_) == [2, 4, 3, 1, 0]


def test_what_never_changes_comes_last_and_what_always_does_gains_nothing() -> None:
    given_ = candidates([0.0, 0.0, 0.0], remaining=[5, 5, 5], intervals=[float("inf"), 0.0, 90.0])
    assert order("WBM", given_) == [2, 1, 0]


def test_a_value_long_past_its_best_is_not_forgotten() -> None:
    given_ = candidates([0.0, 85.0], remaining=[3, 3], intervals=[10.0, 10.0], slide=5.0)
    assert ALL["WBM"]().scores(given_).tolist() == [2, 1]  # type: ignore[attr-defined]
    assert order("WBM", given_) == [0, 1]


def test_without_a_slide_only_the_remaining_evaluations_count() -> None:
    assert order("WBM", candidates([0.0, 0.0, 0.0], remaining=[1, 3, 2], slide=0.0)) == [1, 2, 0]


@given(st.lists(st.sampled_from([-np.inf, 0.0, 1.0, 2.5, np.inf])))
def test_equals_are_sorted_in_their_order(values: list[float]) -> None:
    assert ascending(np.array(values)).tolist() == sorted(
        range(len(values)), key=values.__getitem__
    )
