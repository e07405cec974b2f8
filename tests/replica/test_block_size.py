from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replica.spending.block_size import BlockSize


def ask(size: BlockSize, limit: int, requests: int) -> list[int]:
    """Send full blocks to a remote that answers ``limit`` keys at most, and return their sizes."""
    sizes = []
    for _ in range(requests):
        sizes.append(size.now)
        if size.now <= limit:
            size.succeeded(size.now)
        else:
            size.failed(size.now, too_large=True)
    return sizes


sizes_and_limits = (
    st.integers(1, 20_000),
    st.integers(1, 20_000),
    st.one_of(st.none(), st.integers(1, 20_000)),
)


@settings(max_examples=80)
@given(*sizes_and_limits)
def test_a_hidden_limit_is_found_soon_and_kept(most: int, limit: int, first: int | None) -> None:
    size = BlockSize(most, first=first)
    reachable = min(most, limit)
    start = min(most, first or 100)
    soon = math.ceil(abs(math.log2(start / reachable))) + 14
    ask(size, limit, soon)
    later = ask(size, limit, 1000)
    assert max(later) <= most
    too_large = [each for each in later if each > limit]
    assert len(too_large) <= 10
    assert all(each <= 1.1 * limit + 1 for each in too_large)
    assert all(each >= reachable / 2 for each in later)
    assert sum(each > 0.9 * reachable - 1 for each in later) >= 970


@settings(max_examples=80)
@given(*sizes_and_limits, st.integers(1, 20_000), st.integers(0, 300))
def test_a_limit_that_changes_is_found_again(
    most: int, before: int, first: int | None, limit: int, asked: int
) -> None:
    size = BlockSize(most, first=first)
    ask(size, before, asked)
    reachable = min(most, limit)
    ask(size, limit, 150)
    later = ask(size, limit, 500)
    assert sum(each > limit for each in later) <= 5
    assert all(each >= reachable / 2 for each in later)


def test_an_example() -> None:
    sizes = ask(BlockSize(10_000), 300, 16)
    assert sizes == [100, 200, 400, 200, 220, 242, 266, 292, 321, 160, 292, 292, 292, 292, 292, 292]


def test_blocks_that_fail_together_halve_it_once() -> None:
    size = BlockSize(400, first=400)
    for _ in range(4):
        size.failed(400, too_large=True)
    assert size.now == 200


def test_ordinary_failures_and_blocks_that_are_not_full_leave_it() -> None:
    size = BlockSize(400)
    size.failed(100)
    size.succeeded(40)
    assert size.now == 100


def test_a_part_of_a_block_that_is_too_large_counts() -> None:
    size = BlockSize(400)
    size.failed(40, too_large=True)
    assert size.now == 20


def test_it_is_never_less_than_one_nor_more_than_the_most() -> None:
    size = BlockSize(150)
    assert ask(size, 0, 20)[-1] == 1
    assert BlockSize(7).now == 7
    assert max(ask(BlockSize(150), 1000, 20)) == 150


@given(
    st.integers(1, 500),
    st.lists(
        st.tuples(st.sampled_from(["good", "bad", "large"]), st.integers(1, 500)), max_size=60
    ),
)
def test_no_answers_in_any_order_lead_it_out_of_its_range(
    most: int, answers: list[tuple[str, int]]
) -> None:
    size = BlockSize(most)
    for answer, keys in answers:
        keys = size.now if keys > 250 else keys
        size.succeeded(keys) if answer == "good" else size.failed(keys, too_large=answer == "large")
        assert 1 <= size.now <= most


def test_no_block_can_hold_nothing() -> None:
    with pytest.raises(ValueError, match="at least one key"):
        BlockSize(0)
    with pytest.raises(ValueError, match="at least one key"):
        BlockSize(5, first=0)


@given(st.integers(1, 1000), st.integers(0, 12))
def test_a_remote_that_hung_for_a_while_is_soon_asked_for_as_much_as_before(
    items: int, times: int
) -> None:
    size = BlockSize(1000)
    for _ in range(9):
        size.succeeded(min(items, size.now))
    before = min(items, size.now)
    for _ in range(times):
        size.timed_out(min(items, size.now))
    for _ in range(math.ceil(math.log2(before)) + 1):
        size.succeeded(min(items, size.now))
    assert min(items, size.now) == before


@given(*sizes_and_limits)
def test_blocks_that_take_too_long_are_found_out_as_those_that_are_refused(
    most: int, limit: int, first: int | None
) -> None:
    size = BlockSize(most, first=first)
    answered = []
    for _ in range(400):
        answered.append(size.now <= limit)
        if answered[-1]:
            size.succeeded(size.now)
        else:
            size.timed_out(size.now)
    assert sum(answered[100:]) >= 290
    assert size.now >= min(most, limit) / 4


def test_a_single_key_that_fails_says_nothing_of_sizes() -> None:
    size = BlockSize(100)
    while size.now > 1:
        size.failed(size.now, too_large=True)
    size.failed(1, too_large=True)
    for _ in range(8):
        size.succeeded(size.now)
    assert size.now > 50
