"""Choice of a pane's best by merits that come block by block: what sorting all would choose."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from acquatop.ingest.reduce import pane_choice
from acquatop.ingest.reduce.pane_choice import PaneChoice
from acquatop.ingest.reduce.panes import Positions
from acquatop.topk.contract import AnyArray, IntArray

MERITS = st.sampled_from([math.nan, -math.inf, -1.0, -0.0, 0.0, 2.0, 3.0, math.inf])


@dataclass
class Found:
    """Records with few different times, and identities that are all different."""

    times: IntArray

    def identities_at(self, at: IntArray) -> AnyArray:
        return np.array([f"{(7 * each) % 1009:04}" for each in at.tolist()], dtype=object)


@given(
    st.lists(st.tuples(MERITS, st.integers(0, 2)), min_size=1, max_size=60),
    st.integers(0, 9),
    st.integers(1, 13),
    st.booleans(),
)
def test_blocks_of_any_size_give_what_sorting_gives(
    rows: list[tuple[float, int]], capacity: int, block: int, in_order: bool
) -> None:
    merits, times = (np.array(each) for each in zip(*rows, strict=True))
    shift = 5
    order = np.arange(len(rows)) if in_order else np.random.default_rng(1).permutation(len(rows))
    at: Positions = slice(shift, shift + len(rows)) if in_order else shift + order
    found = Found(np.concatenate([np.zeros(shift, dtype=np.int64), times]))
    choice = PaneChoice(capacity)
    for start in range(0, len(rows), block):
        choice.add(start, merits[order][start : start + block])
    chosen = choice.of(found, at)
    positions = range(shift, shift + len(rows))
    names = dict(zip(positions, found.identities_at(np.array(positions)), strict=True))
    scored = [each for each in positions if not math.isnan(merits[each - shift])]
    scored.sort(key=lambda each: (-merits[each - shift], -found.times[each], names[each]))
    waiting = [each for each in positions if math.isnan(merits[each - shift])]
    assert sorted(chosen.rows.tolist()) == sorted([*scored[:capacity], *waiting])
    assert (chosen.let_go, chosen.shed) == (len(scored) > capacity, False)


def test_of_many_without_a_merit_the_newest_are_kept() -> None:
    count = pane_choice.LIMIT + 5
    found, choice = Found(np.arange(count)), PaneChoice(3)
    for start in range(0, count, 1_000):
        choice.add(start, np.full(min(1_000, count - start), math.nan))
    chosen = choice.of(found, slice(0, count))
    assert (chosen.let_go, chosen.shed) == (False, True)
    assert sorted(chosen.rows.tolist()) == list(range(5, count))


def test_many_that_tie_are_told_apart_by_their_identities() -> None:
    found, choice = Found(np.zeros(40_000, dtype=np.int64)), PaneChoice(2)
    for start in range(0, 40_000, 1_000):
        choice.add(start, np.zeros(1_000))
    least = sorted(range(40_000), key=lambda at: ((7 * at) % 1009, at))[:2]
    assert sorted(choice.of(found, slice(0, 40_000)).rows.tolist()) == sorted(least)
