from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rspql import ast
from rspql.parser import parse
from rspql.scoring import Interval, bounds, variables_in, vectorise

NUMBERS = st.integers(-5, 5).map(lambda value: ast.Literal(str(value), ast.XSD + "integer"))
LEAVES = NUMBERS | st.sampled_from([ast.Variable("x"), ast.Variable("y")])
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(ast.Unary, st.sampled_from("+-"), inner),
        st.builds(ast.Binary, st.sampled_from("+-*/"), inner, inner),
        st.builds(lambda argument: ast.Call("abs", (argument,)), inner),
        st.builds(lambda value, low, high: ast.Call("norm", (value, low, high)), inner, NUMBERS, NUMBERS),
    ),
    max_leaves=8,
)


def by_hand(expression: ast.Expression, values: dict[str, float]) -> float:
    """Evaluate one row the slow and obvious way; NaN stands for an error."""
    match expression:
        case ast.Variable(name):
            return values[name]
        case ast.Literal(lexical):
            return float(lexical)
        case ast.Unary(operator, operand):
            inner = by_hand(operand, values)
            return -inner if operator == "-" else inner
        case ast.Binary("/", left, right):
            divisor = by_hand(right, values)
            return math.nan if divisor == 0 else by_hand(left, values) / divisor
        case ast.Binary(operator, left, right):
            first, second = by_hand(left, values), by_hand(right, values)
            return {"+": first + second, "-": first - second, "*": first * second}[operator]
        case ast.Call("abs", (argument,)):
            return abs(by_hand(argument, values))
        case ast.Call("norm", arguments):
            value, low, high = (by_hand(argument, values) for argument in arguments)
            return math.nan if not high > low or math.isnan(value) else min(1.0, max(0.0, (value - low) / (high - low)))
    raise AssertionError(expression)


@given(EXPRESSIONS, st.lists(st.tuples(*[st.floats(-10, 10)] * 2), min_size=1, max_size=5))
def test_arrays_give_what_rows_give_one_by_one(expression: ast.Expression, rows: list[tuple[float, float]]) -> None:
    columns = {"x": np.array([x for x, _ in rows]), "y": np.array([y for _, y in rows])}
    scores = np.broadcast_to(vectorise(expression)(columns), len(rows))
    expected = [by_hand(expression, {"x": x, "y": y}) for x, y in rows]
    np.testing.assert_array_equal(scores, np.array(expected))


@settings(max_examples=500)
@given(EXPRESSIONS, st.tuples(*[st.floats(-10, 10)] * 4), st.tuples(*[st.floats(0, 1)] * 2))
def test_no_score_lies_outside_its_bounds(
    expression: ast.Expression, ends: tuple[float, ...], at: tuple[float, float]
) -> None:
    ranges = {"x": Interval(*sorted(ends[:2])), "y": Interval(*sorted(ends[2:]))}
    values = {
        name: min(each.high, max(each.low, each.low + share * (each.high - each.low)))
        for (name, each), share in zip(ranges.items(), at, strict=True)
    }
    score = by_hand(expression, values)
    assert math.isnan(score) or score in bounds(expression, ranges)
    assert math.isnan(score) or score in bounds(expression, {})


def score_of(text: str) -> ast.Expression:
    item = parse(f"SELECT ({text} AS ?score) {{ }}").projection[0]
    assert isinstance(item, ast.Assignment)
    return item.expression


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("0.7 * norm(?x, 0, 10) + 0.3 * norm(?y, 0, 10)", 0.0, 1.0),
        ("?x + ?y", -math.inf, math.inf),
        ("norm(?x, 0, 10) - norm(?y, 0, 10)", -1.0, 1.0),
        ("5 * abs(?x)", 0.0, math.inf),
        ("1 / ?x", -math.inf, math.inf),
    ],
)
def test_how_far_a_score_reaches_when_nothing_is_known(text: str, low: float, high: float) -> None:
    assert bounds(score_of(text), {}) == Interval(low, high)


def test_variables_come_in_the_order_of_their_first_use() -> None:
    assert list(variables_in(score_of("?b + ?a * ?b"))) == ["b", "a"]
