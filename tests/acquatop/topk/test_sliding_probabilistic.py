"""The probabilistic k-skyband: its limit, its error rate, and the hybrid that is never wrong."""

from __future__ import annotations

import math
from itertools import pairwise, takewhile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.topk.contract import Certainty, FloatArray
from acquatop.topk.papers.sliding.algorithms import algorithm
from acquatop.topk.papers.sliding.certified import CertifiedSkyband
from acquatop.topk.papers.sliding.hybrid import Hybrid
from acquatop.topk.papers.sliding.limit import bounds, convex_from, limit_of_the_table, safe_limit
from acquatop.topk.papers.sliding.one_by_one import Unfiltered
from acquatop.topk.papers.sliding.probabilistic import ProbabilisticSkyband
from acquatop.topk.sliding.block_skyline import BlockSkyline
from acquatop.topk.sliding.contract import NONE, Changes, SlidingTopK

KS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
TABLE_V = {
    1_000: (18, 21, 26, 32, 40, 56, 72, 91, 106),
    10_000: (22, 25, 30, 37, 46, 65, 86, 116, 172),
    100_000: (25, 28, 34, 41, 51, 72, 95, 128, 192),
    1_000_000: (28, 32, 38, 46, 56, 78, 103, 138, 207),
}


@pytest.mark.parametrize("n", TABLE_V)
def test_table_v(n: int) -> None:
    assert tuple(limit_of_the_table(n, k, 0.001) for k in KS) == TABLE_V[n]


@pytest.mark.parametrize("n", TABLE_V)
def test_the_limit_by_the_sum_of_the_tail_is_the_safer_one(n: int) -> None:
    for k in KS:
        assert sum_after(n, k, k + safe_limit(n, k, 0.001)) < 0.001
        assert safe_limit(n, k, 0.001) >= limit_of_the_table(n, k, 0.001)
    assert sum_after(n, 500, 500 + TABLE_V[n][-1]) > 0.001


def sum_after(n: int, k: int, last: int) -> float:
    """Return the sum of the bounds of all ranks after one, but for those that are as good as
    nothing.
    """
    return sum(
        bound
        for rank, bound in takewhile(lambda each: each[1] > 1e-12, bounds(n, k))
        if rank > last
    )


@pytest.mark.parametrize(("n", "k"), [(20, 1), (30, 4), (60, 10)])
def test_the_bound_is_equation_9(n: int, k: int) -> None:
    for rank, bound in bounds(n, k):
        terms = (
            math.comb(n - 1, best - 1)
            * math.comb(n - 1, rank - 1)
            / math.comb(2 * n - 2, rank + best - 2)
            for best in range(1, k + 1)
        )
        assert bound == pytest.approx(n * n / (4 * n - 2) * sum(terms))
    assert [rank for rank, _ in bounds(n, k)] == list(range(convex_from(n, k) + 1, n + 1))


@pytest.mark.parametrize(("n", "k"), [(1, 1), (2, 5), (3, 3), (50, 49), (7, 1)])
def test_small_windows_have_a_limit_too(n: int, k: int) -> None:
    assert 1 <= limit_of_the_table(n, k, 0.01) <= max(1, n)
    assert 1 <= safe_limit(n, k, 0.01) <= max(1, n)


def test_the_bound_holds_for_streams_in_random_order() -> None:
    # How often an event that comes at a rank is among the best later on, against the bound for that
    # rank.
    n, k, chance = 60, 3, np.random.default_rng(2)
    came, rose = np.zeros(n + 1), np.zeros(n + 1)
    for _ in range(4_000):
        around = chance.random(2 * n - 1)
        mine = around[n - 1]
        rank = 1 + int(np.count_nonzero(around[: n - 1] > mine))
        better = np.concatenate(([0], np.cumsum(around[n:] > mine)))
        older = np.cumsum((around[: n - 1] > mine)[::-1])[::-1]
        ranks = 1 + better + np.concatenate((older, [0]))
        came[rank] += 1
        rose[rank] += bool((ranks[1:] <= k).any())
    for rank, bound in bounds(n, k):
        error = 4 * math.sqrt(0.25 / max(1, came[rank]))
        assert rose[rank] <= came[rank] * (min(1.0, bound) + error)


def reported(changes: Changes) -> set[int]:
    return set(changes.entered[changes.entered != NONE].tolist())


@pytest.mark.parametrize("k", [1, 4, 20])
def test_fewer_events_are_missed_than_the_bound_allows(k: int) -> None:
    n, size, sigma = 500, 60_000, 0.2
    merits = np.random.default_rng(k).random(size)
    right = reported(BlockSkyline(k, n).add(merits))
    given = reported(algorithm("PA", k, n, sigma=sigma).add(merits))
    assert len(right - given) < sigma * size / n
    assert len(given - right) < 1.5 * sigma * size / n
    assert len(right) > 100 * k


def test_on_a_falling_stream_it_misses_nearly_everything_and_does_not_claim_otherwise() -> None:
    n, k = 500, 4
    merits = np.arange(5_000.0)[::-1]
    right = reported(BlockSkyline(k, n).add(merits))
    held = algorithm("PA", k, n)
    given = reported(held.add(merits))
    assert len(right - given) > 0.8 * len(right)
    assert held.top().certainty is Certainty.APPROXIMATE


@settings(max_examples=50, deadline=None)
@given(merits=st.lists(st.integers(0, 9), min_size=8, max_size=8), order=st.permutations(range(8)))
def test_the_best_of_what_was_let_go_is_known_in_whatever_order_it_goes(
    merits: list[int], order: list[int]
) -> None:
    band = CertifiedSkyband(1, 1)
    for position in order:
        band.remember((float(merits[position]), position))
        band._check()
    for position in range(8):
        assert band.best_dropped == max((merits[at], at) for at in range(position, 8))
        band.leave(position)
    assert band.certain


def test_a_limit_is_at_least_one() -> None:
    with pytest.raises(ValueError, match="limit"):
        ProbabilisticSkyband(1, 0)


# The hybrid ---------------------------------------------------------------------------------------


def steps(changes: Changes) -> list[tuple[int, int, int]]:
    return list(
        zip(changes.after.tolist(), changes.entered.tolist(), changes.left.tolist(), strict=True)
    )


def adversary(n: int, size: int, limit: int, k: int) -> FloatArray:
    """Return a stream made to betray: in random order until what a limit holds has left, then all
    is worse.
    """
    chance = np.random.default_rng(9)
    merits = chance.random(size)
    for start in range(n, size, 3 * n):
        merits[start : start + k + limit] += 5
        merits[start + k + limit : start + 2 * n] -= (
            np.arange(len(merits[start + k + limit : start + 2 * n])) / n
        )
    return merits


N, K, LIMIT = 300, 3, 12
STREAMS = {
    "random order": np.random.default_rng(1).random(9_000),
    "rising": np.arange(3_000.0),
    "falling": np.arange(3_000.0)[::-1],
    "waves": np.sin(np.arange(9_000) / 90),
    "random, then falling, then random": np.concatenate(
        (
            np.random.default_rng(1).random(2_000) * 99,
            np.arange(900.0)[::-1] / 9,
            np.random.default_rng(2).random(4_000),
        )
    ),
    "a random walk": np.cumsum(np.random.default_rng(4).standard_normal(9_000)),
    "made to betray": adversary(N, 9_000, LIMIT, K),
    "constant": np.zeros(2_000),
    "steps down": -np.floor(np.arange(4_000) / 40),
}


@pytest.mark.parametrize("name", STREAMS)
def test_the_hybrid_is_exact_on_any_stream(name: str) -> None:
    held: SlidingTopK = Hybrid(K, N, LIMIT)
    right = BlockSkyline(K, N)
    for start in range(0, len(STREAMS[name]), 370):
        batch = STREAMS[name][start : start + 370]
        assert steps(held.add(batch)) == steps(right.add(batch))
        held._check()


def test_the_hybrid_stays_probabilistic_where_it_may() -> None:
    for name in ("random order", "rising", "constant"):
        held = Hybrid(K, N, safe_limit(N, K, 0.001))
        held.add(STREAMS[name])
        assert (held.switches, held.is_exact) == (0, False)


def test_the_hybrid_comes_back_when_the_order_is_random_again() -> None:
    held = Hybrid(K, N, safe_limit(N, K, 0.001))
    merits = STREAMS["random, then falling, then random"]
    held.add(merits[:2_000])
    assert held.switches == 0
    held.add(merits[2_000:2_900])
    assert held.is_exact
    held.add(merits[2_900:])
    assert not held.is_exact


@pytest.mark.parametrize("name", ["falling", "steps down", "made to betray"])
def test_doubts_that_come_again_and_again_become_rare(name: str) -> None:
    held = Hybrid(K, 30, 1)
    merits = STREAMS[name]
    turns = []
    for merit in merits.tolist():
        before = held.switches
        held.add(np.array([merit]))
        if held.switches > before:
            turns.append(held.position)
    apart = [later - earlier for earlier, later in pairwise(turns)]
    assert min(apart, default=30) >= 30, "the exact algorithm stays for a window at least"
    assert held.switches < 2 + 2 * math.log2(64) + len(merits) / 30 / 8


def test_without_the_exact_algorithm_the_same_streams_are_answered_wrongly() -> None:
    for name in ("falling", "made to betray", "steps down"):
        wrong = Unfiltered(N, ProbabilisticSkyband(K, LIMIT))
        assert steps(wrong.add(STREAMS[name])) != steps(BlockSkyline(K, N).add(STREAMS[name]))
