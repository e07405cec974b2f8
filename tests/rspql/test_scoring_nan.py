"""Errors, NaN and infinity in scores: bounds hold them, and a zero divides as its type says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import replica.terms
from rspql import ast
from rspql.scoring import Interval, bounds, needs_types, vectorise, vectorise_condition
from rspql.scoring.nan import NOT_A_NUMBER
from tests.support.rspql.scores import X, Y, binary, call, number, scores

INTEGER, DOUBLE = ast.XSD + "integer", ast.XSD + "double"
ODD = st.sampled_from([math.inf, -math.inf, NOT_A_NUMBER, math.nan, 0.0, -0.0, 1e300, 5e-324])


def test_both_packages_write_the_number_nan_alike() -> None:
    both = np.array([NOT_A_NUMBER, replica.terms.NOT_A_NUMBER]).view(np.int64)
    assert both[0] == both[1] != np.array(math.nan).view(np.int64)


@pytest.mark.parametrize(
    ("datatypes", "floating", "expected"),
    [
        ({}, [False, True], [100.0, math.inf]),
        ({"x": DOUBLE}, [False, False], [math.inf, math.inf]),
        ({"x": INTEGER, "y": INTEGER}, [True, True], [100.0, 100.0]),
        ({"x": INTEGER, "y": DOUBLE}, [False, False], [math.inf, math.inf]),
    ],
)
def test_a_zero_divides_as_the_type_in_each_row_says(
    datatypes: dict[str, str], floating: list[bool], expected: list[float]
) -> None:
    score = call("coalesce", binary("/", X, Y), number(100))
    columns = {"x": np.array([1.0, 1.0]), "y": np.zeros(2)}
    types = {"x": np.zeros(2, np.bool_), "y": np.array(floating)}
    found = vectorise(score, datatypes=datatypes)(columns, types.__getitem__)
    assert found.tolist() == expected
    assert needs_types(score, datatypes=datatypes) == (set(datatypes) != {"x", "y"})


def test_nan_is_a_value_and_an_error_is_none() -> None:
    columns = {"x": np.array([NOT_A_NUMBER, math.nan, 7.0])}
    assert vectorise_condition(binary("!=", X, number(7)))(columns).tolist() == [True, False, False]
    assert vectorise_condition(call("bound", X))(columns).tolist() == [True, False, True]
    score = vectorise(call("coalesce", X, number(1)))(columns)
    assert np.isnan(score).tolist() == [True, False, False]
    assert vectorise(call("if", X, number(1), number(2)))(columns).tolist()[0] == 2.0


def test_ratios_that_doubles_do_not_hold_are_computed_in_doubles() -> None:
    """The sum of x / y and z is (x + z · y) / y, which would be infinite."""
    score = binary("+", X, binary("/", Y, Y))
    columns = {"x": np.array([1e101, 2.0]), "y": np.array([1e300, 4.0])}
    assert vectorise(score)(columns).tolist() == [1e101, 3.0]


@settings(max_examples=600)
@given(scores(), st.lists(ODD | st.floats(-9, 9), min_size=1, max_size=6), ODD, st.booleans())
def test_bounds_hold_every_score_also_of_nan_and_infinity(
    score: ast.Expression, values: list[float], other: float, floating: bool
) -> None:
    columns = {"x": np.array(values), "y": np.full(len(values), other)}
    types = np.full(len(values), floating)
    found = np.broadcast_to(vectorise(score)(columns, lambda _name: types), len(values))
    ranges = {}
    for name, column in columns.items():
        known = column[~np.isnan(column)]
        if len(known):
            low, high = float(known.min()), float(known.max())
            ranges[name] = Interval(low, high, nan=len(known) < len(column))
    interval = bounds(score, ranges)
    slack = 1e-9
    for each in found[~np.isnan(found)].tolist():
        room = slack * max(1.0, abs(each)) if math.isfinite(each) else 0.0
        assert interval.low - room <= each <= interval.high + room
