"""Each known trap of the papers' algorithms by name, over every structure that could fall in."""

from __future__ import annotations

import random
import re
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pytest

from acquatop.topk.contract import AnyArray, Certainty, FloatArray, NotANumberError, Top, refuse
from acquatop.topk.snapshot import SnapshotError
from acquatop.windows import Windows
from tests.support.topk_streams import (
    CHANGING,
    INF,
    NAN,
    RECURRING,
    STRUCTURES,
    Arrival,
    Joined,
    column,
    rows_of,
)

EACH = pytest.mark.parametrize("name", STRUCTURES)
EACH_CHANGING = pytest.mark.parametrize("name", CHANGING)
EACH_RECURRING = pytest.mark.parametrize("name", RECURRING)
FIXED = sorted(set(STRUCTURES) - set(CHANGING))
ON_LISTS = pytest.mark.parametrize(
    "name", [name for name in STRUCTURES if not name.startswith("pane")]
)
SHARP = pytest.mark.parametrize("name", ["super_mtkn", "super_mtkn_distinct"])
"""Those that remember no more than what was dropped; others may remember the range of a pane."""
NINE_BY_THREE = Windows(width_ms=9, slide_ms=3, t0_ms=1)


SCORINGS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""The scoring that each structure was made with."""


def make(name: str, k: int, n: int = 0, **values: float) -> Any:
    return make_with(Joined(values), name, k, n)


def make_with(scoring: Any, name: str, k: int, n: int = 0) -> Any:
    held = STRUCTURES[name].build(k, n, scoring)
    SCORINGS[held] = scoring
    return held


def add(held: Any, windows: Windows, *arrivals: tuple[str, int, float]) -> list[int]:
    """Add arrivals one by one: identity (and key), time, merit."""
    rejected: list[int] = []
    for number, (identity, time, x) in enumerate(arrivals):
        span = windows.first(time), windows.last(time)
        if span[0] <= span[1]:
            rejected += [number] * len(
                held.add(*span, rows_of([Arrival(time, identity, identity, x)]))
            )
        held._check()
    return rejected


def change(held: Any, **values: float) -> list[str]:
    SCORINGS[held].values.update(values)
    left = held.change(column(values))
    held._check()
    return list(left.identities.tolist())


def answer(held: Any, window: int) -> str:
    """Return the identities of a window's best, with a question mark if they are not certain; close
    the window.
    """
    found = peek(held.top(window))
    held._check()
    held.close_before(window + 1)
    held._check()
    return found


def peek(top: Top) -> str:
    return "".join(top.rows.identities.tolist()) + "?" * (top.certainty is Certainty.APPROXIMATE)


# MinTopk's ----------------------------------------------------------------------------------------


@EACH
def test_a_new_window_has_no_last_place_until_it_holds_k(name: str) -> None:
    held, windows = make(name, k=2), Windows(4, 2, 0)
    add(held, windows, ("a", 1, 9.0), ("b", 2, 8.0))
    assert answer(held, 0) == "ab"
    add(held, windows, ("c", 5, 1.0))  # alone in its last window, and lower than all before
    assert answer(held, 1) == "c"
    add(held, windows, ("d", 7, 0.5))
    assert answer(held, 2) == "cd"


@EACH
def test_a_window_that_holds_fewer_than_k_takes_every_arrival_however_low(name: str) -> None:
    held, windows = make(name, k=3), Windows(4, 4, 0)
    add(held, windows, ("a", 1, 9.0), ("b", 2, 5.0), ("c", 3, -7.0), ("d", 4, 1.0))
    assert answer(held, 0) == "abd"


@EACH
def test_an_arrival_that_ties_with_the_last_place_takes_it(name: str) -> None:
    held, windows = make(name, k=2), Windows(9, 3, 0)
    add(held, windows, ("a", 1, 5.0), ("b", 2, 5.0), ("c", 3, 5.0))
    assert answer(held, 0) == "cb"


@EACH
def test_ties_go_to_the_newer_then_to_the_smaller_identity(name: str) -> None:
    held, windows = make(name, k=3), Windows(9, 9, 0)
    add(held, windows, ("d", 4, 1.0), ("b", 5, 1.0), ("a", 5, 1.0), ("c", 5, 1.0))
    assert answer(held, 0) == "abc"


@EACH
def test_the_last_place_moves_to_a_candidate_of_the_same_window(name: str) -> None:
    held, windows = make(name, k=2), Windows(6, 2, 0)
    # By rank: a, c, b, d; of them only c and d are in the last window, and b stands between.
    add(held, windows, ("a", 1, 9.0), ("b", 2, 7.0))
    add(held, windows, ("c", 5, 8.0), ("d", 6, 1.0))
    assert answer(held, 0) == "ac"
    add(held, windows, ("e", 7, 5.0), ("f", 8, 6.0))
    assert answer(held, 1) == "cf"
    assert answer(held, 2) == "cf"
    assert answer(held, 3) == "fe"


@EACH
def test_closing_goes_on_over_any_number_of_empty_windows(name: str) -> None:
    held, windows = make(name, k=2), Windows(4, 2, 0)
    add(held, windows, ("a", 1, 9.0))
    assert answer(held, 0) == "a"
    add(held, windows, ("b", 99, 1.0))
    assert [answer(held, window) for window in range(1, 48)] == [""] * 47
    assert answer(held, 48) == "b"
    held.close_before(60)
    assert len(held) == 0
    assert answer(held, 60) == ""


@EACH
def test_a_slide_that_does_not_divide_the_width(name: str) -> None:
    held, windows = make(name, k=1), Windows(5, 3, 0)
    add(
        held, windows, ("a", 1, 9.0), ("b", 4, 8.0), ("c", 5, 7.0)
    )  # (0, 5] holds all, (3, 8] all but a
    assert answer(held, 0) == "a"
    add(held, windows, ("d", 6, 6.0), ("e", 7, 5.0))
    assert answer(held, 1) == "b"
    assert answer(held, 2) == "e"


@EACH
def test_what_falls_between_windows_is_in_none(name: str) -> None:
    held, windows = make(name, k=2), Windows(2, 5, 0)
    add(held, windows, ("a", 1, 1.0), ("b", 2, 2.0), ("gap", 4, 9.0), ("c", 6, 3.0))
    assert answer(held, 0) == "ba"
    assert answer(held, 1) == "c"
    assert len(held) == 0


@EACH
def test_a_late_pane_within_open_windows_counts(name: str) -> None:
    held, windows = make(name, k=2), Windows(9, 3, 0)
    add(held, windows, ("a", 9, 1.0), ("b", 2, 3.0), ("c", 8, 2.0), ("d", 4, 9.0))
    assert answer(held, 0) == "db"
    add(held, windows, ("e", 12, 4.0), ("f", 10, 5.0))
    assert answer(held, 1) == "df"
    assert answer(held, 2) == "fe"
    assert answer(held, 3) == "fe"


@EACH
def test_a_pane_of_closed_windows_only_is_refused(name: str) -> None:
    held = make(name, k=1)
    held.close_before(5)
    with pytest.raises(ValueError, match="windows 3 to 4"):
        held.add(3, 4, rows_of([Arrival(1, "a", "a", 1.0)]))
    held.add(4, 5, rows_of([Arrival(2, "b", "b", 1.0)]))
    assert answer(held, 5) == "b"


@ON_LISTS
def test_a_pane_in_no_window_is_ignored_and_a_closed_window_is_not_answered(name: str) -> None:
    held = make(name, k=1)
    held.close_before(5)
    assert held.add(8, 7, rows_of([Arrival(1, "a", "a", 1.0)])).tolist() == []
    assert len(held) == 0
    with pytest.raises(ValueError, match="window 4 is closed"):
        held.top(4)
    held.close_before(4)
    held.add(5, 6, rows_of([Arrival(2, "b", "b", 1.0)]))
    held.close_before(5)
    assert answer(held, 5) == "b"


@ON_LISTS
def test_without_a_scoring_the_first_part_is_the_merit(name: str) -> None:
    kind = type(make(name, k=1))
    held = kind(1, 0) if name in CHANGING else kind(1)
    held.add(0, 0, rows_of([Arrival(1, "a", "a", 1.0, 5.0), Arrival(2, "b", "b", 2.0, 9.0)]))
    assert held.top(0).merits.tolist() == [2.0]


# AcquaTop's ---------------------------------------------------------------------------------------


@EACH
def test_the_arrival_that_closes_a_window_is_not_lost(name: str) -> None:
    held = make(name, k=1)
    add(
        held, NINE_BY_THREE, ("a", 9, 1.0), ("b", 12, 5.0)
    )  # b comes after (1, 10] is over, before its answer
    assert answer(held, 0) == "a"
    assert answer(held, 1) == "b"


@EACH
def test_an_arrival_may_close_several_windows_at_once(name: str) -> None:
    held = make(name, k=2)
    add(held, NINE_BY_THREE, ("a", 3, 1.0), ("b", 9, 2.0), ("c", 40, 5.0))
    assert [answer(held, window) for window in range(4)] == ["ba", "b", "b", ""]
    assert answer(held, NINE_BY_THREE.first(40)) == "c"


@EACH_CHANGING
def test_closing_lets_go_of_all_k_and_n_of_a_window(name: str) -> None:
    held, windows = make(name, k=1, n=3), Windows(4, 4, 0)
    add(held, windows, ("a", 1, 9.0), ("b", 2, 8.0), ("c", 3, 7.0), ("d", 4, 6.0))
    held.top(0)
    assert len(held) == 4
    held.close_before(1)
    assert len(held) == 0
    assert held.held().identities.tolist() == []


@EACH_CHANGING
def test_a_window_with_k_but_not_k_and_n_takes_every_arrival(name: str) -> None:
    held, windows = make(name, k=1, n=2), Windows(9, 9, 0)
    add(held, windows, ("a", 1, 9.0), ("b", 2, 5.0), ("c", 3, 1.0))
    assert change(held, a=-9.0, b=-9.0) == []
    assert answer(held, 0) == "c"


@EACH_CHANGING
def test_who_leaves_one_window_stays_for_another(name: str) -> None:
    held, windows = make(name, k=1, n=1), Windows(6, 3, 0)
    add(held, windows, ("a", 1, 9.0), ("b", 2, 8.0), ("c", 5, 3.0), ("d", 6, 5.0))
    assert answer(held, 0) == "a"
    add(held, windows, ("e", 7, 4.0))  # pushes c out of (3, 9]
    assert answer(held, 1) == "d"
    assert answer(held, 2) == "e"


@EACH_RECURRING
def test_a_newer_arrival_replaces_the_older_and_an_older_one_is_ignored(name: str) -> None:
    held, windows = make(name, k=2), Windows(9, 3, 0)
    add(held, windows, ("a", 4, 9.0), ("a", 6, 5.0), ("a", 5, 7.0), ("b", 6, 6.0))
    assert answer(held, 0) == "ba"
    assert held.held().times.tolist() == [6, 6]


@EACH_RECURRING
def test_a_rearrival_with_a_lower_score_leaves_a_hole_that_is_not_called_exact(name: str) -> None:
    held = make(name, k=1)
    add(held, NINE_BY_THREE, ("a", 9, 9.0), ("b", 9, 8.0))
    assert answer(held, 0) == "a"  # b is let go
    add(held, NINE_BY_THREE, ("a", 12, 1.0))
    top = held.top(1)
    assert peek(top) == "a?"
    assert top.bound == 8.0
    assert top.reason


@EACH_RECURRING
def test_an_older_window_keeps_what_a_newer_arrival_replaces_only_later(name: str) -> None:
    held = make(name, k=1)
    add(
        held, NINE_BY_THREE, ("a", 9, 9.0), ("b", 9, 8.0), ("a", 12, 1.0)
    )  # the second a is not in (1, 10]
    top = held.top(0)
    assert (peek(top), top.merits.tolist()) == ("a", [9.0])


@SHARP
def test_a_part_that_is_no_number_bounds_nothing(name: str) -> None:
    """A score may be one all the same: where such an arrival was dropped, any change may matter."""

    class Lenient(Joined):
        def merits(self, keys: AnyArray, parts: tuple[FloatArray, ...]) -> FloatArray:
            return super().merits(keys, tuple(map(np.nan_to_num, parts)))

    held = make_with(Lenient(), name, k=1)
    held.add(0, 2, rows_of([Arrival(9, "a", "a", 9.0), Arrival(9, "b", "b", NAN)]))
    assert answer(held, 0) == "a"
    change(held, b=1.0)
    top = held.top(1)
    assert (peek(top), top.bound) == ("a?", INF)


@EACH_RECURRING
def test_an_arrival_without_a_score_replaces_all_the_same(name: str) -> None:
    held = make(name, k=2)
    assert add(held, NINE_BY_THREE, ("a", 5, 9.0), ("b", 5, 1.0), ("a", 6, NAN)) == [2]
    assert held.rejected == 1
    assert answer(held, 0) == "b"


@EACH_CHANGING
def test_what_was_dropped_is_remembered_as_long_as_it_is_alive(name: str) -> None:
    held = make(name, k=1)
    add(held, NINE_BY_THREE, ("a", 9, 9.0), ("b", 9, 8.0))
    assert answer(held, 0) == "a"
    assert answer(held, 1) == "a"
    change(held, b=20.0)
    assert answer(held, 2) == "a?"
    add(held, NINE_BY_THREE, ("c", 19, 1.0))
    assert answer(held, 3) == "c"  # b has expired


@SHARP
def test_dropped_that_could_be_worth_as_much_as_the_last_of_the_answer_make_it_uncertain(
    name: str,
) -> None:
    held = make(name, k=1)
    add(held, NINE_BY_THREE, ("a", 9, 9.0), ("b", 9, 8.0))
    assert answer(held, 0) == "a"
    change(held, b=1.0)
    top = held.top(1)
    assert (peek(top), top.bound) == ("a?", 9.0)


@SHARP
def test_a_change_of_the_dropped_that_cannot_matter_leaves_the_answer_exact(name: str) -> None:
    held = make(name, k=1)
    add(held, NINE_BY_THREE, ("a", 9, 9.0), ("b", 9, 8.0))
    assert answer(held, 0) == "a"
    change(held, b=0.5)
    assert answer(held, 1) == "a"


@EACH_CHANGING
def test_the_low_end_of_a_part_bounds_scores_that_fall_with_it(name: str) -> None:
    held = make(name, k=1)
    each = [
        Arrival(9, "a", "a", 100.0, 0.0),
        Arrival(9, "b", "b", 100.0, 10.0),
        Arrival(9, "c", "c", 100.0, 50.0),
    ]
    held.add(0, 2, rows_of(each))
    assert answer(held, 0) == "a"
    assert answer(held, 1) == "a"
    change(held, c=20.0)  # c itself would be worth 70; by what is known of the dropped, 110
    top = held.top(2)
    assert peek(top) == "a?"
    assert top.bound is not None
    assert top.bound >= 110.0


@EACH_CHANGING
def test_the_ranges_of_parts_are_those_of_all_that_was_dropped(name: str) -> None:
    """If a score multiplies, a worse one may have the part that a new value makes most of."""

    class Product(Joined):
        def merits(self, keys: AnyArray, parts: tuple[FloatArray, ...]) -> FloatArray:
            return parts[0] * self._of(keys)

        def reach(
            self, lows: tuple[float, ...], highs: tuple[float, ...], keys: AnyArray | None = None
        ) -> float:
            return INF if keys is None else float((highs[0] * self._of(keys)).max())

    held = make_with(Product({"a": 9.0, "b": 8.0, "c": 3.0}), name, k=1)
    held.add(
        0,
        2,
        rows_of([Arrival(9, "a", "a", 1.0), Arrival(9, "b", "b", 1.0), Arrival(9, "c", "c", 2.0)]),
    )
    assert answer(held, 0) == "a"
    change(held, c=5.0)
    assert answer(held, 1) == "a?"


@EACH_RECURRING
def test_a_key_whose_only_solution_is_held_says_nothing_of_the_dropped(name: str) -> None:
    held = make(name, k=1, n=1)
    add(held, NINE_BY_THREE, ("a", 9, 9.0), ("b", 9, 8.0), ("c", 9, 7.0))
    assert answer(held, 0) == "a"
    change(held, a=100.0, b=50.0)
    assert answer(held, 1) == "a"
    change(held, c=50.0)
    assert answer(held, 2) == "a"  # 109 is out of reach
    held = make(name, k=1)
    add(held, NINE_BY_THREE, ("a", 9, 9.0), ("b", 9, 8.0))
    held.top(0)
    change(held, c=100.0)  # for all that is known, c has been dropped
    assert answer(held, 0) == "a?"


@EACH_CHANGING
def test_a_score_that_vanishes_hands_the_arrival_back(name: str) -> None:
    held = make(name, k=1, n=1)
    add(held, NINE_BY_THREE, ("a", 9, 9.0), ("b", 9, 8.0))
    assert answer(held, 0) == "a"
    assert change(held, a=NAN) == ["a"]
    assert held.held().identities.tolist() == ["b"]
    assert answer(held, 1) == "b"
    SCORINGS[held].values["a"] = 0.0
    held.add(2, 2, rows_of([Arrival(9, "a", "a", 9.0)]))
    assert answer(held, 2) == "a"


@EACH_CHANGING
def test_what_is_removed_leaves_a_hole_that_is_not_called_exact(name: str) -> None:
    held = make(name, k=1)
    add(held, NINE_BY_THREE, ("a", 9, 9.0), ("b", 9, 8.0))
    assert answer(held, 0) == "a"
    held.remove(column(["a", "never seen"]))
    held._check()
    top = held.top(1)
    assert peek(top) == "?"
    assert top.bound is not None
    assert top.bound >= 8.0


@EACH_CHANGING
def test_fewer_than_k_are_exact_only_if_nothing_was_dropped(name: str) -> None:
    held = make(name, k=2)
    add(held, NINE_BY_THREE, ("a", 9, 9.0))
    assert answer(held, 0) == "a"
    held.note_lost(0, 1, -INF)
    assert answer(held, 1) == "a?"
    assert answer(held, 2) == "a"


@EACH_CHANGING
def test_what_came_too_late_makes_its_windows_uncertain(name: str) -> None:
    held = make(name, k=1)
    add(held, NINE_BY_THREE, ("a", 9, 9.0))
    held.note_lost(-3, 1)
    held._check()
    assert [peek(held.top(0)), held.top(0).bound] == ["a?", INF]
    assert [answer(held, window) for window in range(3)] == ["a?", "a?", "a"]


@EACH_CHANGING
def test_what_was_lost_outside_counts_for_as_much_as_it_could_be_worth(name: str) -> None:
    held = make(name, k=1)
    add(held, NINE_BY_THREE, ("a", 9, 9.0))
    held.note_lost(0, 2, 5.0, (0.0, 0.0), (5.0, 0.0))
    assert answer(held, 0) == "a"
    change(held, b=3.0)
    assert answer(held, 1) == "a"
    change(held, b=4.0)
    assert answer(held, 2) == "a?"


@EACH_CHANGING
def test_a_smaller_n_drops_and_remembers_a_greater_one_makes_room(name: str) -> None:
    held = make(name, k=1, n=2)
    add(held, NINE_BY_THREE, ("a", 9, 9.0), ("b", 9, 8.0), ("c", 9, 7.0))
    assert answer(held, 0) == "a"
    held.resize(0)
    held._check()
    assert len(held) == 1
    held.resize(1)
    add(held, NINE_BY_THREE, ("d", 12, 1.0))
    assert answer(held, 1) == "a"
    assert len(held) == 2
    change(held, a=-8.5)
    assert answer(held, 2) == "d?"
    with pytest.raises(ValueError, match="n must be"):
        held.resize(-1)


# All structures' ----------------------------------------------------------------------------------


@EACH
def test_not_a_number_is_no_score(name: str) -> None:
    held = make(name, k=2)
    arrivals = rows_of(
        [Arrival(5, "a", "a", NAN), Arrival(5, "b", "b", 1.0), Arrival(5, "c", "c", INF, INF)]
    )
    rejected = held.add(0, 1, arrivals)
    assert rejected.tolist() == [0, 2]
    assert rejected.dtype == np.int64
    with pytest.raises(NotANumberError, match="2 of 3 arrivals have no score, first a at 5"):
        refuse(rejected, arrivals)
    assert held.rejected == 2
    assert answer(held, 0) == "b"
    again = make(name, k=2)
    again.resume(held.snapshot())
    assert again.rejected == 2


@EACH
def test_infinite_scores_rank_first_and_last(name: str) -> None:
    held, windows = make(name, k=3), Windows(9, 9, 0)
    add(held, windows, ("a", 1, -INF), ("b", 2, INF), ("c", 3, 0.0))
    top = held.top(0)
    assert peek(top) == "bca"
    assert top.merits.tolist() == [INF, 0.0, -INF]


@EACH
def test_negative_scores_and_negative_zero(name: str) -> None:
    held, windows = make(name, k=3), Windows(9, 9, 0)
    add(held, windows, ("a", 1, -2.0), ("b", 2, -1.0), ("c", 3, -0.0), ("d", 4, 0.0))
    assert answer(held, 0) == "dcb"


@EACH
def test_empty_windows_still_have_an_answer(name: str) -> None:
    held = make(name, k=2)
    top = held.top(3)
    assert (top.window, len(top), len(top.merits), top.certainty) == (3, 0, 0, Certainty.EXACT)
    assert len(held) == len(held.held()) == 0


@EACH
def test_k_larger_than_the_content(name: str) -> None:
    held = make(name, k=100)
    add(held, NINE_BY_THREE, ("a", 2, 9.0), ("b", 3, 8.0), ("c", 4, 7.0))
    assert answer(held, 0) == "abc"


@EACH
def test_a_constant_stream_holds_no_more_than_k_because_the_newer_wins_a_tie(name: str) -> None:
    held, windows = make(name, k=3), Windows(100, 1, 0)
    for time in range(1, 301):
        add(held, windows, (f"{time:03}", time, 7.0))
        if windows.bounds(windows.first(time))[1] == time:
            held.top(windows.first(time))
            assert len(held) == 3
            held.close_before(windows.first(time) + 1)
    assert held.held().times.tolist() == [300, 299, 298]


@EACH
def test_memory_does_not_grow_with_the_number_of_events(name: str) -> None:
    sizes = []
    for events in (200, 2_000):
        chance, windows, held = random.Random(1), Windows(1000, 100, 0), make(name, k=5, n=5)
        for start in range(0, 1000, 100):
            each = [
                Arrival(start + 100, f"{start}-{at}", "", chance.random())
                for at in range(events // 10)
            ]
            held.add(windows.first(start + 100), windows.last(start + 100), rows_of(each))
        held.top(0)
        sizes.append(len(held))
    assert sizes[1] < 2 * sizes[0] < 200


@pytest.mark.parametrize("name", sorted(set(STRUCTURES) - set(RECURRING)))
def test_where_nothing_comes_again_a_pane_waits_as_its_best_only(name: str) -> None:
    held = make(name, k=2, n=1)
    for start in range(0, 3000, 500):
        held.add(7, 9, rows_of(Arrival(50, start + at, 0, float(at)) for at in range(500)))
    assert len(held) < 200
    assert held.top(7).merits.tolist() == [499.0, 499.0]


@EACH
def test_a_batch_without_rows_changes_nothing(name: str) -> None:
    held = make(name, k=2)
    assert held.add(0, 2, rows_of([])).tolist() == []
    assert answer(held, 0) == ""


@EACH
def test_identities_may_be_numbers_or_text_and_what_is_carried_comes_back(name: str) -> None:
    for identity in (3, "three"):
        held = make(name, k=1)
        arrivals = rows_of([Arrival(5, identity, identity, 1.0, 0.25, 17)])
        held.add(0, 1, arrivals)
        restored = make(name, k=1)
        restored.resume(held.snapshot())
        for each in (held.top(0).rows, restored.top(0).rows, restored.held()):
            assert each.identities.tolist() == each.keys.tolist() == [identity]
            assert [part.tolist() for part in each.parts] == [[1.0], [0.25]]
            assert [part.tolist() for part in each.carried] == [[17], [f"{identity}@5"]]
            assert each.identities.dtype == arrivals.identities.dtype


@EACH
def test_fixed_width_text_is_never_cut_short(name: str) -> None:
    held = make(name, k=2)
    for time, identity in ((5, "a"), (6, "a much longer one")):
        rows = rows_of([Arrival(time, identity, identity, 1.0)])
        held.add(
            0,
            1,
            type(rows)(
                rows.times, np.array([identity]), np.array([identity]), rows.parts, rows.carried
            ),
        )
    saved = held.snapshot()
    held = make(name, k=2)
    held.resume(saved)
    assert held.top(0).rows.identities.tolist() == ["a much longer one", "a"]


@EACH
def test_other_bytes_are_no_snapshot(name: str) -> None:
    held = make(name, k=1)
    add(held, NINE_BY_THREE, ("a", 9, 9.0))
    snapshot = held.snapshot()
    other_version = re.sub(rb'"version": \d+', b'"version": 0', snapshot, count=1)
    assert other_version != snapshot
    others = [b"", b"other", snapshot[:30], other_version]
    for other in others:
        with pytest.raises(SnapshotError):
            make(name, k=1).resume(other)
    others_of_kinds = {type(each): each for each in (make(other, k=1) for other in STRUCTURES)}
    for kind in set(others_of_kinds) - {type(held)}:
        with pytest.raises(SnapshotError, match="this is a snapshot of"):
            others_of_kinds[kind].resume(snapshot)


@EACH
def test_a_snapshot_whose_end_is_missing_says_so(name: str) -> None:
    held = make(name, k=1)
    add(held, NINE_BY_THREE, ("a", 9, 9.0))
    with pytest.raises(SnapshotError):
        make(name, k=1).resume(held.snapshot()[:-20])


@EACH
def test_k_and_n_are_checked(name: str) -> None:
    with pytest.raises(ValueError, match="at least"):
        make(name, k=0)


@EACH_CHANGING
def test_n_is_checked(name: str) -> None:
    with pytest.raises(ValueError, match="at least"):
        make(name, k=1, n=-1)


@pytest.mark.parametrize("name", FIXED)
def test_a_structure_for_scores_that_never_change_says_so(name: str) -> None:
    held = make(name, k=1)
    for call in (held.change, held.remove):
        with pytest.raises((NotImplementedError, ValueError), match=r"never change|stay|fixed"):
            call(column(["a"]))
