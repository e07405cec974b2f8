"""Sums of doubles that are exact until they are read."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from acquatop.topk.aggregates.exact_sums import (
    BITS,
    ExactSums,
    digits_of,
    digits_of_integers,
    rounded,
)
from acquatop.topk.aggregates.partials import Accumulator, Numbering, Partial

finite = st.floats(allow_nan=False, allow_infinity=False)
near = st.integers(-(2**80), 2**80).map(float) | st.floats(-1e6, 1e6) | finite


def nearest(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


@given(st.lists(finite, min_size=1, max_size=5))
@example([5e-324, -1.7976931348623157e308])
@example([2.2250738585072014e-308, 2.0**-1054, -(2.0**-1053)])
def test_digits_are_small_and_all_there(values: list[float]) -> None:
    exact = [Fraction(0)] * len(values)
    for bin, digits in digits_of(np.array(values)):
        for at, digit in enumerate(digits.tolist()):
            assert digit == int(digit)
            assert abs(digit) < 2**BITS
            exact[at] += int(digit) * Fraction(2) ** (BITS * bin)
    assert exact == list(map(Fraction, values))


def test_whole_numbers_below_two_to_the_thirty_first_need_one_bin() -> None:
    assert [bin for bin, _ in digits_of(np.array([1.0, -(2.0**31 - 1)]))] == [0]
    assert list(digits_of(np.array([0.0, -0.0]))) == []
    assert list(digits_of(np.empty(0))) == []


limb = (
    st.integers(-(2**62), 2**62)
    | st.integers(-(2**31), 2**31)
    | st.sampled_from([0, -1, 1, 2**31, -(2**31), 2**30])
)


@settings(max_examples=500)
@given(
    st.integers(-35, 33),
    st.lists(st.tuples(limb, limb), min_size=1, max_size=5),
    st.sets(st.integers(0, 4)),
)
@example(0, [(1, 1), (0, 0), (2**22, 2**22)], set())
@example(-2, [(1, 0), (0, 0), (0, 0), (2**30, 2**30), (2**53, 2**53 + 1)], set())
def test_reading_rounds_once_and_to_the_nearest(
    low: int, pairs: list[tuple[int, int]], left_out: set[int]
) -> None:
    limbs = {
        low + at: np.array(pair, dtype=np.int64)
        for at, pair in enumerate(pairs)
        if at == 0 or (at not in left_out and low + at <= 33)
    }
    if low == -35:
        limbs[low] = (limbs[low] >> 11) << 11
    with np.errstate(over="ignore"):
        found = rounded(limbs).tolist()
    for at, value in enumerate(found):
        exact = sum(
            (int(column[at]) * Fraction(2) ** (BITS * bin) for bin, column in limbs.items()),
            Fraction(0),
        )
        assert value == nearest(exact)


@pytest.mark.parametrize("more", [0, 1, -1])
@pytest.mark.parametrize("exponent", [0, 31, 62, 100])
def test_a_tie_is_decided_by_what_is_far_below(more: int, exponent: int) -> None:
    """2⁵³ + 1 lies half way between two doubles."""
    total = (2**53 + 1) * 2**exponent
    limbs = {bin: np.array([(total >> (31 * bin)) & (2**31 - 1)]) for bin in range(6)}
    limbs[-3] = np.array([more])
    assert rounded(limbs).tolist() == [float(Fraction(total) + Fraction(more, 2**93))]


def partial_of(sums: ExactSums, values: list[float]) -> Partial:
    slots = np.zeros(len(values), dtype=np.int64)
    return Partial(
        np.array([4]), np.array([len(values)]), np.array([0]), sums.fold(slots, 1, np.array(values))
    )


@given(st.lists(st.lists(near, max_size=6), min_size=1, max_size=6), st.data())
def test_what_is_left_is_as_if_it_had_been_alone(
    lists: list[list[float]], data: st.DataObject
) -> None:
    sums = ExactSums()
    sums.grow(9)
    each = [partial_of(sums, values) for values in lists]
    for partial in each:
        sums.enter(0, partial)
    gone = data.draw(st.sets(st.integers(0, len(lists) - 1)))
    sums.leave(1, [each[at] for at in gone])
    left = [value for at, values in enumerate(lists) if at not in gone for value in values]
    assert sums.read(np.array([4, 3])).tolist() == [
        nearest(sum(map(Fraction, left), Fraction(0))),
        0.0,
    ]
    if not left:
        assert sums.bins_in_use == 0


@given(st.lists(near, min_size=1, max_size=12), st.integers(0, 12))
def test_merging_is_folding_together(values: list[float], cut: int) -> None:
    sums = ExactSums()
    numbering = Numbering()
    numbering.grow(5)
    folder = Accumulator(sums, numbering)
    keys = np.array([value.as_integer_ratio()[0] % 5 for value in values])
    times, column = np.arange(len(values)), np.array(values)
    for known in (5, 1_000):
        whole = folder.fold(keys, times, column, known).listed()
        numbering.grow(1_000)
        parts = [
            folder.fold(keys[at], times[at], column[at], known)
            for at in (slice(cut), slice(cut, None))
        ]
        merged = folder.together(parts).listed()
        assert as_dict(merged) == as_dict(whole)


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9), min_size=1, max_size=6))
def test_an_integer_has_the_same_digits_beside_others_and_alone(values: list[int]) -> None:
    """Integers added beside large ones are subtracted without them: zeros must remain."""
    together = {bin: digits.tolist() for bin, digits in digits_of_integers(np.array(values))}
    for at, value in enumerate(values):
        alone = {bin: int(digits[0]) for bin, digits in digits_of_integers(np.array([value]))}
        assert {bin: digits[at] for bin, digits in together.items() if digits[at]} == {
            bin: digit for bin, digit in alone.items() if digit
        }
        assert sum(digit << (BITS * bin) for bin, digit in alone.items()) == value
        assert all(abs(digit) < 2**BITS for digit in alone.values())


def as_dict(partial: Partial) -> dict[int, tuple[int, int, dict[int, int]]]:
    return {
        key: (
            int(partial.counts[at]),
            int(partial.newest[at]),
            {bin: int(column[at]) for bin, column in partial.columns.items() if column[at]},
        )
        for at, key in enumerate(partial.keys().tolist())
    }


@pytest.mark.parametrize("more", [0, 1, -1])
@pytest.mark.parametrize("exponent", range(1, 110, 4))
def test_a_tie_is_decided_by_the_bit_that_is_lowest(more: int, exponent: int) -> None:
    total = (2**53 + 1) * 2**exponent + more
    limbs = {bin: np.array([(total >> (31 * bin)) & (2**31 - 1)]) for bin in range(6)}
    assert rounded(limbs).tolist() == [float(total)]
    assert rounded({bin: -limb for bin, limb in limbs.items()}).tolist() == [-float(total)]
