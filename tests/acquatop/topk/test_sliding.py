"""One battery over all structures for windows that slide at each event: the best by sorting, after
every event.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.topk.contract import Certainty, FloatArray
from acquatop.topk.papers.sliding.algorithms import FILTERED, algorithm
from acquatop.topk.papers.sliding.filtered import Filtered
from acquatop.topk.papers.sliding.hybrid import Hybrid
from acquatop.topk.papers.sliding.one_by_one import Unfiltered
from acquatop.topk.papers.sliding.probabilistic import ProbabilisticSkyband
from acquatop.topk.papers.sliding.relaxed import RelaxedSkyband
from acquatop.topk.papers.sliding.strict import StrictSkyband
from acquatop.topk.papers.sliding.trees import Skyband
from acquatop.topk.sliding.backward_scan import undominated
from acquatop.topk.sliding.block_skyline import BlockSkyline
from acquatop.topk.sliding.contract import NONE, Changes, SlidingTopK

INF, NAN = math.inf, math.nan
STRUCTURES: dict[str, Callable[[int, int], SlidingTopK]] = {
    "block skyline": BlockSkyline,
    "SA": lambda k, n: algorithm("SA", k, n),
    "RA": lambda k, n: algorithm("RA", k, n),
    "RA, pruned each time": lambda k, n: algorithm("RA", k, n, gamma=0),
    "PA that holds a window": lambda k, n: Unfiltered(n, ProbabilisticSkyband(k, limit=n)),
    "RAPF, the least filter": lambda k, n: Filtered(
        n, RelaxedSkyband(k, gamma=0.5), ProbabilisticSkyband(k, limit=1), buffer=(n + 1) // 2
    ),
    "SASF, a short buffer": lambda k, n: algorithm("SASF", k, n, buffer=1 + (n - 1) // 4),
    "hybrid, always in doubt": lambda k, n: Hybrid(k, n, limit=1),
    "hybrid": lambda k, n: Hybrid(k, n, limit=3),
    **{name: lambda k, n, name=name: algorithm(name, k, n, sigma=0.5) for name in FILTERED},  # type: ignore[misc]
}
EACH = pytest.mark.parametrize("name", STRUCTURES)


def best(merits: list[float], k: int, n: int, position: int) -> list[int]:
    """Return the best of the window after an event, by sorting it."""
    window = [
        (merits[at], at)
        for at in range(max(0, position - n + 1), position + 1)
        if merits[at] == merits[at]
    ]
    return [at for _, at in sorted(window, reverse=True)[:k]]


@st.composite
def streams(draw: st.DrawFn) -> list[float]:
    """Draw merits in an order of any kind: with ties, without merit, infinite, rising, falling, in
    waves.
    """
    size = draw(st.integers(1, 70))
    levels = draw(st.sampled_from([1, 3, 10, 1000]))
    numbers = st.integers(0, levels).map(float)
    odd = st.one_of(numbers, st.sampled_from([INF, -INF, NAN])) if draw(st.booleans()) else numbers
    merits = draw(st.lists(odd, min_size=size, max_size=size))
    trend = draw(st.sampled_from([0.0, 0.0, 50.0, -50.0]))
    wave = draw(st.sampled_from([0.0, 0.0, 300.0]))
    return [each + trend * at + wave * math.sin(at / 7) for at, each in enumerate(merits)]


def batches(merits: list[float], cuts: list[int]) -> Iterator[FloatArray]:
    """Cut a stream into batches of the given sizes, over and over."""
    start = 0
    for size in itertools.cycle(cuts):
        if start >= len(merits):
            return
        yield np.array(merits[start : start + size])
        start += size


@EACH
@settings(max_examples=60, deadline=None)
@given(
    merits=streams(),
    k=st.integers(1, 6),
    n=st.integers(1, 25),
    cuts=st.lists(st.integers(1, 30), min_size=1),
)
def test_after_every_event_the_best_are_those_of_the_sorted_window(
    name: str, merits: list[float], k: int, n: int, cuts: list[int]
) -> None:
    held = STRUCTURES[name](k, n)
    for batch in batches(merits, cuts):
        before, start = held.top(), held.position
        changes = held.add(batch)
        held._check()
        for position in range(start, held.position):
            assert changes.applied(before, position).positions.tolist() == best(
                merits, k, n, position
            )
        check_changes(changes, set(before.positions.tolist()))
        top = held.top()
        assert top.certainty is Certainty.EXACT
        assert top.positions.tolist() == best(merits, k, n, held.position - 1)
        assert top.merits.tolist() == [merits[at] for at in top.positions.tolist()]
    assert held.rejected == sum(map(math.isnan, merits))


def check_changes(changes: Changes, there: set[int]) -> None:
    """Each change changes something, in the order of the events, one change per event."""
    assert (np.diff(changes.after) > 0).all()
    columns = (changes.after, changes.entered, changes.merits, changes.left)
    for after, entered, merit, left in zip(*(column.tolist() for column in columns), strict=True):
        assert entered != left
        assert entered <= after
        assert (entered == NONE) == math.isnan(merit)
        assert entered not in there
        assert left == NONE or left in there
        there -= {left}
        there |= {entered} - {NONE}


@EACH
@settings(max_examples=20, deadline=None)
@given(merits=streams(), k=st.integers(1, 4), n=st.integers(1, 15), data=st.data())
def test_what_is_held_is_enough_for_all_answers_to_come(
    name: str, merits: list[float], k: int, n: int, data: st.DataObject
) -> None:
    now = data.draw(st.integers(0, len(merits)))
    held = STRUCTURES[name](k, n)
    held.add(np.array(merits[:now]))
    known = held.held().tolist()
    assert known == sorted(set(known))
    assert len(known) <= len(held) <= n
    assert all(now - n <= position < now for position in known)
    later = {
        at
        for position in range(max(0, now - 1), len(merits))
        for at in best(merits, k, n, position)
    }
    assert {at for at in later if at < now} <= set(known)


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_long_stream_in_phases(name: str) -> None:
    chance = np.random.default_rng(5)
    rising, falling = np.arange(400.0), np.arange(400.0)[::-1]
    merits = np.concatenate(
        [chance.random(700) * 400, rising, chance.random(300) * 400, falling, np.zeros(300)]
    )
    k, n = 5, 97
    held = STRUCTURES[name](k, n)
    tops = []
    for start in range(0, len(merits), 61):
        held.add(merits[start : start + 61])
        held._check()
        tops.append((held.position - 1, held.top().positions.tolist()))
    assert tops == [(position, best(merits.tolist(), k, n, position)) for position, _ in tops]


@EACH
def test_changes_do_not_depend_on_how_batches_are_cut(name: str) -> None:
    merits = np.random.default_rng(3).integers(0, 50, 600).astype(np.float64)
    whole = STRUCTURES[name](4, 60).add(merits)
    one = STRUCTURES[name](4, 60)
    each = [one.add(merits[at : at + 1]) for at in range(len(merits))]
    for column in ("after", "entered", "merits", "left"):
        together = np.concatenate([getattr(changes, column) for changes in each])
        assert np.array_equal(together, getattr(whole, column), equal_nan=column == "merits")


@EACH
def test_a_batch_without_events_changes_nothing(name: str) -> None:
    held = STRUCTURES[name](2, 5)
    assert len(held.add(np.empty(0))) == len(held.top()) == len(held) == 0
    held.add(np.array([3.0]))
    assert len(held.add(np.empty(0))) == 0
    assert held.top().positions.tolist() == [0]


@EACH
def test_a_newer_event_wins_a_tie(name: str) -> None:
    held = STRUCTURES[name](2, 4)
    held.add(np.ones(3))
    assert held.top().positions.tolist() == [2, 1]
    if name == "SA":
        assert len(held) == 2, "of a constant stream k are held"


@EACH
def test_events_without_a_merit_push_others_out_of_the_window(name: str) -> None:
    held = STRUCTURES[name](2, 3)
    changes = held.add(np.array([5.0, 4.0, NAN, NAN, NAN]))
    assert changes.after.tolist() == [0, 1, 3, 4]
    assert changes.left.tolist() == [NONE, NONE, 0, 1]
    assert held.top().positions.tolist() == []
    assert held.rejected == 3


@EACH
@pytest.mark.parametrize(("k", "n"), [(0, 5), (1, 0)])
def test_no_answer_or_window_is_without_events(name: str, k: int, n: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        STRUCTURES[name](k, n)


# The traps of the paper ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["SASF", "RAPF"])
@pytest.mark.parametrize("n", [1, 2, 7, 8])
def test_a_buffer_has_half_a_window_at_most(name: str, n: int) -> None:
    longest = (n + 1) // 2
    algorithm(name, 1, n, buffer=longest)
    for wrong in (0, longest + 1):
        with pytest.raises(
            ValueError, match=f"a buffer has 1 to {longest} events, half a window, not {wrong}"
        ):
            algorithm(name, 1, n, buffer=wrong)


class LongBuffer(Filtered):
    """A filter with a buffer that is longer than is allowed."""

    def __init__(self, n: int, band: Skyband, before: Skyband, buffer: int) -> None:
        super().__init__(n, band, before, (n + 1) // 2)
        self._buffer = buffer


def test_with_a_longer_buffer_answers_are_wrong() -> None:
    # Why the bound is there: with n = 3 and b = 3, what kept an arrival from the best leaves while
    # it still waits.
    held = LongBuffer(3, RelaxedSkyband(1, 0.2), StrictSkyband(1), buffer=3)
    merits = [9.0, 1.0, 0.0, 0.0]
    held.add(np.array(merits))
    assert best(merits, 1, 3, position=3) == [1]
    assert held.top().positions.tolist() != [1]


@pytest.mark.parametrize("name", FILTERED)
def test_what_a_filter_held_back_dominates_nothing_newer(name: str) -> None:
    # The 5 waits until the newer 3 and 4 have come. If it counted against the 3, this would be
    # missed at the end.
    merits = [9.0, 8.0, 5.0, 0.0, 3.0, 4.0, -1.0, -1.0, -1.0]
    held = algorithm(name, 2, 6, buffer=3)
    for position, merit in enumerate(merits):
        held.add(np.array([merit]))
        assert held.top().positions.tolist() == best(merits, 2, 6, position)


def test_a_filter_answers_as_many_as_its_query() -> None:
    with pytest.raises(ValueError, match="the same k"):
        Filtered(9, StrictSkyband(2), StrictSkyband(3), buffer=2)


def test_a_relaxed_skyband_s_share_is_not_negative() -> None:
    with pytest.raises(ValueError, match="gamma"):
        algorithm("RA", 1, 2, gamma=-0.1)


@settings(max_examples=100, deadline=None)
@given(merits=streams(), k=st.integers(1, 5))
def test_the_scan_backwards_finds_what_fewer_than_k_newer_ones_beat(
    merits: list[float], k: int
) -> None:
    expected = [
        at
        for at, merit in enumerate(merits)
        if merit == merit and sum(newer >= merit for newer in merits[at + 1 :]) < k
    ]
    assert undominated(np.array(merits), k)[::-1].tolist() == expected


def test_the_strict_skyband_holds_the_skyband_and_nothing_else() -> None:
    merits = np.random.default_rng(11).random(900)
    held = algorithm("SA", 5, 200)
    for start in range(0, 900, 50):
        held.add(merits[start : start + 50])
        window = merits[max(0, held.position - 200) : held.position]
        expected = undominated(window, 5)[::-1] + held.position - len(window)
        assert held.held().tolist() == expected.tolist()
