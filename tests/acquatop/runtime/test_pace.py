"""Sizes of batches, from what earlier ones have sent."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from acquatop.runtime.pace import GROWTH, MAX_EXCESS, Allowance, Pace

ALLOWED = Allowance(4_000)
"""Of which a batch should send 1 000."""


def test_a_driver_allows_parts_of_its_memory_and_of_what_a_job_may_send() -> None:
    assert Allowance.of(8_000, 0) == Allowance.of(8_000, 2_000) == Allowance(1_000)
    assert Allowance.of(8_000, 600) == Allowance(300)
    assert Allowance(MAX_EXCESS * 250).wanted == 250


@pytest.mark.parametrize("bytes_each", [0.001, 0.3, 2, 50])
def test_batches_grow_step_by_step_to_what_may_be_sent(bytes_each: float) -> None:
    pace, sizes = Pace(ALLOWED, 10), list[int]()
    for _ in range(12):
        sizes.append(pace.size)
        pace.sent(pace.size, int(pace.size * bytes_each))
    assert sizes[0] == 10
    assert all(after <= GROWTH * before for before, after in pairwise(sizes))
    if bytes_each >= 0.3:
        assert sizes[-1] * bytes_each == pytest.approx(ALLOWED.wanted, rel=0.1)
    else:
        assert sizes[-1] > 1_000_000


def test_a_batch_that_sends_more_makes_the_next_one_smaller() -> None:
    pace = Pace(ALLOWED, 10, 1_000)
    pace.sent(1_000, 3_000)
    assert pace.size == 333
    pace.exceeded(333, 33_300)
    assert pace.size == 10
    for _ in range(10):
        pace.exceeded(pace.size, 10**9)
    assert pace.size == 1


def test_small_batches_of_a_quiet_stream_say_nothing_of_large_ones() -> None:
    pace = Pace(ALLOWED, 10, 1_000)
    for _ in range(5):
        pace.sent(3, 300)
    assert pace.size == 1_000
    pace.sent(3, 900)
    assert pace.size == 3


def test_the_size_is_all_that_must_be_known_to_go_on() -> None:
    chance = random.Random(4)
    pace = Pace(ALLOWED, 10)
    for _ in range(300):
        again = Pace(ALLOWED, 10, pace.size)
        read, sent = chance.randrange(1, pace.size + 1), chance.randrange(3_000)
        for each in (pace, again):
            each.sent(read, sent)
        assert again.size == pace.size >= 1
