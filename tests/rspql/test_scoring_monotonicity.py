from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rspql import ast
from rspql.scoring import (
    DEFAULT_FUNCTIONS,
    EVERYTHING,
    Direction,
    Interval,
    directions,
    explain_direction,
    scoring_function,
    vectorise,
)
from tests.support.rspql.scores import (
    DEEP,
    NORM_X,
    NORM_Y,
    X,
    Y,
    binary,
    call,
    nested,
    number,
    scores,
    weighted,
)

UP, DOWN, FLAT, UNKNOWN = (
    Direction.INCREASING,
    Direction.DECREASING,
    Direction.CONSTANT,
    Direction.UNKNOWN,
)
POSITIVE, NEGATIVE = Interval(0.0, math.inf), Interval(-math.inf, 0.0)
ENDS = st.floats(-10, 10) | st.integers(-5, 5).map(float)
RANGES = (
    st.sampled_from([EVERYTHING, POSITIVE, NEGATIVE, Interval(0.0, 1.0), Interval(1.0, 5.0)])
    | st.tuples(ENDS, ENDS).map(sorted).map(lambda ends: Interval(*ends))
    | ENDS.map(lambda end: Interval(end, end))
)
ANY = st.one_of(
    st.floats(-12, 12),
    st.integers(-6, 6).map(float),
    st.sampled_from([math.inf, -math.inf, 1e200, -1e200, 1e-200]),
)


def squeezed(values: list[float], interval: Interval) -> np.ndarray:
    return np.unique(
        np.clip(np.array([*values, interval.low, interval.high]), interval.low, interval.high)
    )


def grows(scores: np.ndarray) -> bool:
    known = scores[~np.isnan(scores)]
    before, after = known[:-1], known[1:]
    slack = 1e-9 * np.maximum(1.0, np.where(np.isfinite(before), np.abs(before), 1.0))
    return bool(np.all(after >= before - slack))


@settings(max_examples=800)
@given(scores(), RANGES, RANGES, st.lists(ANY, min_size=4, max_size=10), ANY | st.just(math.nan))
def test_what_is_said_of_a_direction_is_so(
    expression: ast.Expression, of_x: Interval, of_y: Interval, values: list[float], other: float
) -> None:
    found = directions(expression, {"x": of_x, "y": of_y})
    for name, interval, others in (("x", of_x, of_y), ("y", of_y, of_x)):
        moving = squeezed(values, interval)
        fixed = np.full(len(moving), np.clip(other, others.low, others.high))
        columns = {name: moving, "y" if name == "x" else "x": fixed}
        score = np.broadcast_to(vectorise(expression)(columns), len(moving))
        direction = found.get(name, FLAT)
        assert direction not in (UP, FLAT) or grows(score)
        assert direction not in (DOWN, FLAT) or grows(-score)
        assert (explain_direction(expression, name, {"x": of_x, "y": of_y}) is None) == (
            direction is not UNKNOWN
        )


RANGED = {"x": Interval(0.0, 10.0), "y": Interval(-5.0, -1.0)}
SQUARE = binary("*", X, X)


@pytest.mark.parametrize(
    ("expression", "ranges", "expected"),
    [
        (weighted(NORM_X, NORM_Y), {}, {"x": UP, "y": UP}),
        (weighted(ast.Unary("-", NORM_X), NORM_Y), {}, {"x": DOWN, "y": UP}),
        (binary("*", X, Y), RANGED, {"x": DOWN, "y": UP}),
        (binary("*", X, Y), {}, {"x": UNKNOWN, "y": UNKNOWN}),
        (binary("*", NORM_X, NORM_Y), {}, {"x": UP, "y": UP}),
        (binary("*", number(0), X), {}, {"x": FLAT}),
        (SQUARE, {}, {"x": UNKNOWN}),
        (SQUARE, RANGED, {"x": UP}),
        (SQUARE, {"x": NEGATIVE}, {"x": DOWN}),
        (binary("/", X, Y), RANGED, {"x": DOWN, "y": DOWN}),
        (binary("/", number(1), X), {"x": POSITIVE}, {"x": DOWN}),
        (binary("/", number(1), X), {}, {"x": UNKNOWN}),
        (binary("/", X, number(4)), {}, {"x": UP}),
        (binary("-", X, X), {}, {"x": UNKNOWN}),
        (call("abs", X), {}, {"x": UNKNOWN}),
        (call("abs", Y), RANGED, {"y": DOWN}),
        (call("log", call("sqrt", X)), {}, {"x": UP}),
        (call("exp", ast.Unary("-", X)), {}, {"x": DOWN}),
        (call("pow", X, number(3)), {}, {"x": UP}),
        (call("pow", X, number(2)), {}, {"x": UNKNOWN}),
        (call("pow", X, number(2)), {"x": NEGATIVE}, {"x": DOWN}),
        (call("pow", number("0.5"), X), {}, {"x": DOWN}),
        (call("round", binary("-", number(1), X)), {}, {"x": DOWN}),
        (call("least", X, call("greatest", Y, number(2))), {}, {"x": UP, "y": UP}),
        (call("norm", number(1), X, Y), {}, {"x": DOWN, "y": DOWN}),
        (call("if", binary("<", number(1), number(2)), X, ast.Unary("-", X)), {}, {"x": UP}),
        (call("if", binary(">", X, number(-1)), X, SQUARE), RANGED, {"x": UP}),
        (
            call("if", binary("=", Y, number(0)), X, binary("*", number(2), X)),
            {},
            {"y": UNKNOWN, "x": UP},
        ),
        (
            call("if", binary("=", Y, number(0)), X, ast.Unary("-", X)),
            {},
            {"y": UNKNOWN, "x": UNKNOWN},
        ),
        (call("if", call("bound", X), X, number(0)), {}, {"x": UP}),
        (call("coalesce", X, number(0)), {}, {"x": UP}),
        (call("coalesce", X, Y), {}, {"x": UP, "y": UP}),
        (call("coalesce", NORM_X, number(0)), {}, {"x": UP}),
        (call("coalesce", call("sqrt", X), number(0)), {}, {"x": UNKNOWN}),
        (call("coalesce", call("sqrt", X), number(0)), RANGED, {"x": UP}),
        (number(1), {}, {}),
    ],
)
def test_directions_follow_from_ranges(
    expression: ast.Expression, ranges: dict[str, Interval], expected: dict[str, Direction]
) -> None:
    assert directions(expression, ranges) == expected


def test_an_unbound_variable_in_one_branch_makes_coalesce_jump() -> None:
    branch = call("if", binary(">", X, number(0)), number(5), Y)
    assert directions(call("coalesce", branch, X), {})["x"] is UNKNOWN


def test_directions_of_a_function_of_ones_own_are_as_declared() -> None:
    function = scoring_function(lambda a, b, c: a - b + c % 2, directions=(1, -1, 0))
    registry = DEFAULT_FUNCTIONS.with_function("mine", function)
    z = ast.Variable("z")
    found = directions(call("mine", X, Y, z), {}, functions=registry)
    assert found == {"x": UP, "y": DOWN, "z": UNKNOWN}


def test_the_part_to_blame_is_the_innermost_one() -> None:
    blamed = call("abs", X)
    expression = binary("+", binary("*", number(0), SQUARE), binary("-", Y, call("sqrt", blamed)))
    assert explain_direction(expression, "x", {}) is blamed
    assert explain_direction(expression, "y", {}) is None
    assert explain_direction(expression, "nowhere", {}) is None


def test_a_branch_that_is_never_taken_is_not_to_blame() -> None:
    never = binary(">", NORM_X, number(2))
    expression = call("if", never, SQUARE, call("abs", X))
    assert explain_direction(expression, "x", {}) == call("abs", X)


def test_two_branches_that_disagree_are_to_blame_together() -> None:
    expression = call("if", binary("=", Y, number(0)), X, ast.Unary("-", X))
    assert explain_direction(expression, "x", {}) is expression
    assert explain_direction(expression, "y", {}) == binary("=", Y, number(0))


def test_depth_is_no_limit() -> None:
    assert directions(nested(4 * DEEP), {"x": Interval(0.0, 1.0)})["x"] in Direction
    assert explain_direction(nested(4 * DEEP), "x", {}) is not None
