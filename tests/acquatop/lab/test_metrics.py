"""The metrics against the AcquaTop paper's worked example (section 2.1.2), and at their edges."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquatop.lab.replay.metrics import (
    ndcg_at,
    ndcg_positional_at,
    precision_at,
    rank_correlation,
    relevancies,
)

PAPER = relevancies("ABCDEF")


def test_the_relevancies_of_the_paper() -> None:
    assert PAPER == {"A": 6, "B": 5, "C": 4, "D": 3, "E": 2, "F": 1}


def test_the_ideal_gain_of_the_paper() -> None:
    assert 63 / 1 + 31 / math.log2(3) + 15 / 2 == pytest.approx(90.06, abs=0.005)


# All four numbers of the paper come out as printed.
@pytest.mark.parametrize(
    ("answer", "ndcg", "precision"), [("ADF", 0.754, 0.333), ("FCB", 0.288, 0.667)]
)
def test_the_worked_example(answer: str, ndcg: float, precision: float) -> None:
    assert ndcg_at(3, answer, PAPER) == pytest.approx(ndcg, abs=0.0005)
    assert precision_at(3, answer, PAPER) == pytest.approx(precision, abs=0.0005)


def test_only_the_first_k_count() -> None:
    assert precision_at(2, "ABF", PAPER) == ndcg_at(2, "ABF", PAPER) == 1.0
    assert precision_at(2, "CAB", PAPER) == 0.5


def test_an_answer_that_is_too_short_misses_the_rest() -> None:
    assert precision_at(3, "AB", PAPER) == pytest.approx(2 / 3)
    assert ndcg_at(3, "AB", PAPER) == pytest.approx((63 + 31 / math.log2(3)) / 90.0589, abs=1e-5)


def test_fewer_than_k_may_be_right() -> None:
    assert precision_at(5, "AB", relevancies("AB")) == ndcg_at(5, "AB", relevancies("AB")) == 1.0
    assert precision_at(5, "ABX", relevancies("AB")) == pytest.approx(2 / 3)
    assert precision_at(5, "", {}) == ndcg_at(5, "", {}) == 1.0
    assert precision_at(5, "X", {}) == 0.0


def test_long_lists_do_not_overflow() -> None:
    long = relevancies(range(5000))
    assert ndcg_at(5000, range(5000), long) == 1.0
    assert 0.0 < ndcg_at(10, range(5, 15), long) < 0.1


def test_k_is_checked() -> None:
    for metric in (ndcg_at, precision_at):
        with pytest.raises(ValueError, match="k must be"):
            metric(0, "A", PAPER)


@given(answer=st.permutations("ABCDEF"), k=st.integers(1, 8))
def test_the_right_order_is_the_only_best(answer: list[str], k: int) -> None:
    assert 0.0 <= precision_at(k, answer, PAPER) <= 1.0
    assert (ndcg_at(k, answer, PAPER) == 1.0) == (answer[:k] == list("ABCDEF")[:k])


def test_the_positional_variant_forgives_swaps_and_nothing_else() -> None:
    ideal = 7 / 1 + 3 / math.log2(3) + 1 / 2
    assert ndcg_positional_at(3, "CAB", "ABCDEF") == 1.0
    assert ndcg_positional_at(3, "ADF", "ABCDEF") == pytest.approx(7 / ideal)
    assert ndcg_positional_at(3, "DAF", "ABCDEF") == pytest.approx(3 / math.log2(3) / ideal)
    assert ndcg_positional_at(3, "AB", "ABCDEF") == pytest.approx((ideal - 1 / 2) / ideal)
    assert ndcg_positional_at(5, "BA", "AB") == ndcg_positional_at(5, "", "") == 1.0


@given(answer=st.permutations("ABCDEF"), k=st.integers(1, 6))
def test_both_variants_are_one_for_the_right_answer_and_zero_for_none_that_is_right(
    answer: list[str], k: int
) -> None:
    right = "".join(answer)
    assert ndcg_positional_at(k, right, right) == ndcg_at(k, right, relevancies(right[:k])) == 1.0
    assert ndcg_positional_at(k, "XYZ", right) == ndcg_at(k, "XYZ", relevancies(right[:k])) == 0.0


@given(answer=st.permutations("ABCDEF"))
def test_rank_correlation_is_that_of_kendall(answer: list[str]) -> None:
    inversions = sum(answer[a] > answer[b] for b in range(6) for a in range(b))
    assert rank_correlation(answer, "ABCDEF") == pytest.approx(1 - 2 * inversions / 15)
    assert rank_correlation("XY", "ABCDEF") == 1.0
