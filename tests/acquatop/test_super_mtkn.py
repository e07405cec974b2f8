"""The Super-MTK+N list by itself: against brute force, invariants checked after every step."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.topk.candidate import Candidate
from acquatop.topk.super_mtkn import SuperMTKN
from acquatop.windows import Windows


def candidate(name: str, time: int, merit: float, windows: Windows) -> Candidate:
    return Candidate(name, name, time, merit, windows.first(time), windows.last(time), (merit,), (name,))


@settings(max_examples=150)
@given(
    seed=st.integers(0, 2**32),
    windows=st.builds(Windows, st.integers(1, 20), st.integers(1, 20)),
    k=st.integers(1, 5),
    n=st.integers(0, 4),
    levels=st.sampled_from([1, 4, 1000]),
)
def test_answers_are_right_unless_something_better_was_dropped(
    seed: int, windows: Windows, k: int, n: int, levels: int
) -> None:
    chance = random.Random(seed)
    held, everything = SuperMTKN(k, n), {}
    for step in range(60):
        arrivals = [
            candidate(f"c{chance.randrange(12)}", step, float(chance.randrange(levels)), windows)
            for _ in range(chance.randrange(4))
        ]
        everything.update({each.identity: each for each in arrivals})
        held.insert(arrivals)
        held._check()
        if chance.random() < 0.3:
            changed = [each for each in held if chance.random() < 0.3]
            held.rescore([(each, float(chance.randrange(levels))) for each in changed])
            held._check()
        if chance.random() < 0.1:
            gone = [each.identity for each in held][: chance.randrange(3)]
            held.remove(gone)
            for identity in gone:
                del everything[identity]
            held._check()
        closing = windows.first(step)
        if windows.bounds(closing)[1] == step:
            right = sorted((each for each in everything.values() if each.covers(closing)), key=lambda each: each.rank)
            dropped = held.dropped(closing)
            top = held.top(closing)
            if dropped is None or (len(top) == k and top[-1].rank < dropped.best):
                assert [each.identity for each in top] == [each.identity for each in right[:k]]
            held.close_before(closing + 1)
            held._check()


def test_without_changes_nothing_that_matters_is_ever_dropped() -> None:
    chance, windows = random.Random(5), Windows(width_ms=50, slide_ms=7)
    held, everything = SuperMTKN(3, 0), []
    for step in range(1000):
        arrival = candidate(f"c{step}", step, float(chance.randrange(10)), windows)
        everything.append(arrival)
        held.insert([arrival])
        closing = windows.first(step)
        if windows.bounds(closing)[1] == step:
            right = sorted((each for each in everything if each.covers(closing)), key=lambda each: each.rank)
            assert held.top(closing) == right[:3]
            held.close_before(closing + 1)


def test_an_older_arrival_does_not_replace_a_newer_one() -> None:
    windows, held = Windows(10, 10), SuperMTKN(1, 0)
    held.insert([candidate("a", 5, 1.0, windows)])
    held.insert([candidate("a", 3, 9.0, windows)])
    assert [each.merit for each in held] == [1.0]


def test_newer_wins_a_tie_so_a_constant_stream_keeps_only_k_of_a_window() -> None:
    windows, held = Windows(width_ms=10_000, slide_ms=1, t0_ms=0), SuperMTKN(3, 0)
    held.insert(candidate(f"c{time:05}", time, 7.0, windows) for time in range(1, 2001))
    assert len(held) == 3
    assert [each.time_ms for each in held] == [2000, 1999, 1998]


def test_memory_does_not_grow_with_the_number_of_events() -> None:
    chance, windows = random.Random(1), Windows(width_ms=1000, slide_ms=100)
    sizes = []
    for events in (1_000, 10_000):
        held = SuperMTKN(5, 5)
        held.insert(
            candidate(f"c{number}", 1 + number * 999 // events, chance.random(), windows) for number in range(events)
        )
        sizes.append(len(held))
    assert sizes[1] < 2 * sizes[0] < 200


def test_k_and_n_are_checked() -> None:
    with pytest.raises(ValueError, match="at least"):
        SuperMTKN(0, 1)
