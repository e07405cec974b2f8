from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Mapping
from fractions import Fraction

import cloudpickle
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rspql import ast
from rspql.scoring import (
    DEFAULT_FUNCTIONS,
    FUNCTIONS,
    MATH,
    FunctionRegistry,
    Interval,
    bounds,
    scoring_function,
    variables_in,
    vectorise,
    vectorise_condition,
)
from rspql.scoring.capacity import Digits, is_exact
from rspql.scoring.kinds import NumberKind
from tests.support.rspql.scores import (
    DEEP,
    EXACT_FUNCTIONS,
    NORM_X,
    NORM_Y,
    X,
    Y,
    binary,
    call,
    conditions,
    nested,
    number,
    scores,
    weighted,
)

VALUES = st.floats(-10, 10) | st.integers(-5, 5).map(float) | st.just(math.nan)
INTEGERS = st.integers(-10, 10).map(float) | st.just(math.nan)
WHOLE = Digits(10.0, kind=NumberKind.WHOLE)


# One row at a time, the slow and obvious way; None stands for an error -------------------------

Number = Fraction | float
Row = Mapping[str, Number]


def by_hand(expression: ast.Expression, row: Row) -> Number | None:
    match expression:
        case ast.Variable(name):
            return None if math.isnan(row[name]) else row[name]
        case ast.Literal("true" | "false" as lexical):
            return float(lexical == "true")
        case ast.Literal(lexical):
            return Fraction(lexical)
        case ast.Call(str(name), arguments) if name in ("if", "coalesce", "bound"):
            return form_by_hand(name, arguments, row)
        case ast.Binary("&&" | "||" as operator, left, right):
            return logic_by_hand(operator, truth_by_hand(left, row), truth_by_hand(right, row))
        case ast.In(operand, choices, negated):
            return membership_by_hand(
                by_hand(operand, row), [by_hand(each, row) for each in choices], negated
            )
    return plain_by_hand(expression, row)


def plain_by_hand(expression: ast.Expression, row: Row) -> Number | None:
    match expression:
        case ast.Unary(name, operand):
            return strict_by_hand("unary " + name, [by_hand(operand, row)])
        case ast.Binary(name, left, right):
            return strict_by_hand(name, [by_hand(left, row), by_hand(right, row)])
        case ast.Call(str(name), arguments):
            return strict_by_hand(name, [by_hand(each, row) for each in arguments])
    raise AssertionError(expression)


def form_by_hand(name: str, arguments: tuple[ast.Expression, ...], row: Row) -> Number | None:
    if name == "coalesce":
        return next(
            (value for each in arguments if (value := by_hand(each, row)) is not None), None
        )
    if name == "bound":
        return float(by_hand(arguments[0], row) is not None)
    holds = truth_by_hand(arguments[0], row)
    return None if holds is None else by_hand(arguments[1 if holds else 2], row)


def truth_by_hand(expression: ast.Expression, row: Row) -> bool | None:
    value = by_hand(expression, row)
    return None if value is None else value != 0


def logic_by_hand(operator: str, left: bool | None, right: bool | None) -> Number | None:
    decisive = operator == "||"
    if decisive in (left, right):
        return float(decisive)
    return None if None in (left, right) else float(not decisive)


def membership_by_hand(
    value: Number | None, choices: list[Number | None], negated: bool
) -> Number | None:
    if value is None:
        return None
    if value in choices:
        return float(not negated)
    return None if None in choices else float(negated)


def strict_by_hand(name: str, values: list[Number | None]) -> Number | None:
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        return None
    try:
        result = STRICT[name](*numbers)
    except (ValueError, ZeroDivisionError):
        return None
    except OverflowError:
        return math.inf
    if isinstance(result, float):
        return None if math.isnan(result) else result
    return Fraction(result)


def norm_by_hand(value: Number, low: Number, high: Number) -> Number:
    return min(1, max(0, (value - low) / (high - low))) if high > low else math.nan


def round_by_hand(value: float) -> float:
    if math.isinf(value):
        return value
    whole, rest = divmod(value, 1)
    return whole + (rest >= 0.5)


def whole_by_hand(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda value: value if math.isinf(value) else function(value)


def log_by_hand(value: float) -> float:
    return -math.inf if value == 0 else math.log(value)


def pow_by_hand(base: float, exponent: float) -> float:
    if base == 0 and exponent < 0:
        return math.inf
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.copysign(math.inf, base if exponent % 2 == 1 else 1.0)


STRICT: Mapping[str, Callable[..., Number]] = {
    "unary +": lambda value: value,
    "unary -": lambda value: -value,
    "unary !": lambda value: value == 0,
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left / right,
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "abs": abs,
    "ceil": whole_by_hand(math.ceil),
    "floor": whole_by_hand(math.floor),
    "round": round_by_hand,
    "least": lambda *values: min(values),
    "greatest": lambda *values: max(values),
    "sqrt": math.sqrt,
    "log": log_by_hand,
    "exp": math.exp,
    "pow": pow_by_hand,
    "norm": norm_by_hand,
}


# Arrays ----------------------------------------------------------------------------------------


def whole(value: float) -> Number:
    return value if math.isnan(value) else Fraction(value)


# Only functions for which Python and numpy agree to the last digit, as comparisons may hang on it.
@settings(max_examples=500)
@given(
    scores(EXACT_FUNCTIONS) | conditions(EXACT_FUNCTIONS),
    st.lists(st.tuples(INTEGERS, INTEGERS), min_size=1, max_size=5),
)
def test_arrays_give_what_rows_give_one_by_one(
    expression: ast.Expression, rows: list[tuple[float, float]]
) -> None:
    assume(is_exact(expression, {"x": WHOLE, "y": WHOLE}, DEFAULT_FUNCTIONS))
    columns = {"x": np.array([x for x, _ in rows]), "y": np.array([y for _, y in rows])}
    scores = np.broadcast_to(vectorise(expression)(columns), len(rows))
    expected = [by_hand(expression, {"x": whole(x), "y": whole(y)}) for x, y in rows]
    np.testing.assert_array_equal(scores, np.array(expected, dtype=float))
    held = vectorise_condition(expression)(columns)
    assert held.tolist() == [value is not None and value != 0 for value in expected]


@given(
    st.sampled_from(["sqrt", "log", "exp"]),
    VALUES | st.sampled_from([0.0, -0.0, 1000.0, math.inf, -math.inf]),
)
def test_functions_of_one_number_are_those_of_mathematics(name: str, value: float) -> None:
    expected = by_hand(call(name, X), {"x": value})
    score = vectorise(call(name, X))({"x": np.array([value])})
    np.testing.assert_allclose(score, np.array([expected], dtype=float), rtol=1e-13)


@given(VALUES, VALUES)
def test_powers_are_those_of_mathematics(base: float, exponent: float) -> None:
    expected = by_hand(call("pow", X, Y), {"x": base, "y": exponent})
    score = vectorise(call("pow", X, Y))({"x": np.array([base]), "y": np.array([exponent])})
    np.testing.assert_allclose(score, np.array([expected], dtype=float), rtol=1e-13)


def test_halves_are_rounded_up() -> None:
    values = np.array([-2.5, -0.5, 0.49999999999999994, 0.5, 2.5, 4503599627370497.0, math.inf])
    rounded = vectorise(call("round", X))({"x": values})
    assert rounded.tolist() == [-2.0, 0.0, 0.0, 1.0, 3.0, 4503599627370497.0, math.inf]


def test_a_condition_that_needs_no_column_is_as_long_as_the_columns() -> None:
    condition = vectorise_condition(ast.Literal("true", ast.XSD + "boolean"))
    assert condition({"x": np.zeros(3)}).tolist() == [True] * 3


def test_an_error_does_not_spread_where_the_other_operand_decides() -> None:
    fails, false = binary(">", X, number(0)), binary(">", number(0), number(1))
    columns = {"x": np.array([math.nan])}
    assert vectorise(binary("&&", fails, false))(columns).tolist() == [0.0]
    assert vectorise(binary("||", fails, ast.Unary("!", false)))(columns).tolist() == [1.0]
    assert math.isnan(vectorise(binary("||", fails, false))(columns)[0])


def test_depth_is_no_limit() -> None:
    expression = nested(4 * DEEP)
    assert vectorise(expression)({"x": np.array([1.0])}).shape == (1,)
    assert bounds(expression, {"x": Interval(0.0, 1.0)}).low >= 0
    assert list(variables_in(expression)) == ["x"]


# Bounds ------------------------------------------------------------------------------------------

RANGE = (
    st.tuples(st.floats(-10, 10), st.floats(-10, 10)).map(sorted).map(lambda ends: Interval(*ends))
)
SHARE = st.floats(0, 1)


def within(interval: Interval, share: float) -> float:
    return min(
        interval.high, max(interval.low, interval.low + share * (interval.high - interval.low))
    )


@settings(max_examples=1000)
@given(scores() | conditions(), RANGE, RANGE, SHARE, SHARE, st.sampled_from(["", "x", "y"]))
def test_no_score_lies_outside_its_bounds(
    expression: ast.Expression,
    of_x: Interval,
    of_y: Interval,
    at_x: float,
    at_y: float,
    unbound: str,
) -> None:
    values = {"x": within(of_x, at_x), "y": within(of_y, at_y)}
    columns = {
        name: np.array([math.nan if name == unbound else value]) for name, value in values.items()
    }
    score = float(np.broadcast_to(vectorise(expression)(columns), 1)[0])
    assert math.isnan(score) or score in bounds(expression, {"x": of_x, "y": of_y})
    assert math.isnan(score) or score in bounds(expression, {})


@given(scores(), st.sampled_from([math.inf, -math.inf, 0.0, 1e308]), VALUES)
def test_no_score_of_an_extreme_value_lies_outside_its_bounds(
    expression: ast.Expression, x: float, y: float
) -> None:
    score = float(
        np.broadcast_to(vectorise(expression)({"x": np.array([x]), "y": np.array([y])}), 1)[0]
    )
    assert math.isnan(score) or score in bounds(expression, {"x": Interval(x, x)})


@pytest.mark.parametrize(
    ("expression", "low", "high"),
    [
        (weighted(NORM_X, NORM_Y), 0.0, 1.0),
        (binary("+", X, Y), -math.inf, math.inf),
        (binary("-", NORM_X, NORM_Y), -1.0, 1.0),
        (binary("*", number(5), call("abs", X)), 0.0, math.inf),
        (binary("/", number(1), X), -math.inf, math.inf),
        (call("sqrt", NORM_X), 0.0, 1.0),
        (call("least", X, number(3)), -math.inf, 3.0),
        (call("pow", X, number(2)), 0.0, math.inf),
        (call("if", binary(">", X, number(0)), number(1), number(2)), 1.0, 2.0),
        (call("if", binary(">=", NORM_X, number(0)), number(1), number(2)), 1.0, 2.0),
        (call("coalesce", NORM_X, number(-1)), -1.0, 1.0),
    ],
)
def test_how_far_a_score_reaches_when_nothing_is_known(
    expression: ast.Expression, low: float, high: float
) -> None:
    found = bounds(expression, {})
    # The ends of decimals are a little further out than those of doubles.
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)
    assert found.low <= low <= high <= found.high


def test_variables_come_in_the_order_of_their_first_use() -> None:
    a, b = ast.Variable("a"), ast.Variable("b")
    assert list(variables_in(binary("+", b, binary("*", a, b)))) == ["b", "a"]


def test_variables_are_found_in_every_kind_of_expression() -> None:
    pattern = ast.Group((ast.TriplePattern(ast.Variable("s"), ast.Iri("http://example.org/p"), Y),))
    inside = ast.In(ast.Aggregate("sum", X), (ast.Variable("z"),))
    assert list(variables_in(binary("&&", inside, ast.Exists(pattern)))) == ["x", "z", "s", "y"]


# Functions ------------------------------------------------------------------------------------


def test_a_name_is_found_in_any_case_and_an_iri_only_as_it_is() -> None:
    assert DEFAULT_FUNCTIONS.find("NORM") is FUNCTIONS["norm"]
    assert DEFAULT_FUNCTIONS.find(ast.Iri(MATH + "sqrt")) is FUNCTIONS["sqrt"]
    assert DEFAULT_FUNCTIONS.find(ast.Iri(MATH + "SQRT")) is None
    assert DEFAULT_FUNCTIONS.find(ast.Iri("norm")) is None


def decay(age: np.ndarray, pace: np.ndarray) -> np.ndarray:
    return np.exp(-age / pace)


def test_a_function_of_ones_own_is_used_by_name_and_by_iri() -> None:
    iri = "http://example.org/decay"
    function = scoring_function(decay, directions=(-1, 1), range=(0, 1))
    registry = DEFAULT_FUNCTIONS.with_function("decay", function).with_function(iri, function)
    columns = {"x": np.array([0.0, 7.0, math.nan]), "y": np.array([7.0, 7.0, 7.0])}
    for name in ("decay", ast.Iri(iri)):
        scores = vectorise(ast.Call(name, (X, Y)), functions=registry)(columns)
        np.testing.assert_allclose(scores, [1.0, math.exp(-1), math.nan])
    assert DEFAULT_FUNCTIONS.find("decay") is None
    assert function.signature == "decay(value1, value2)"
    assert registry.with_function("other", function)["other"].signature == "other(value1, value2)"


def test_the_bounds_of_a_function_of_ones_own_follow_from_its_directions() -> None:
    registry = DEFAULT_FUNCTIONS.with_function("decay", scoring_function(decay, directions=(-1, 1)))
    expression = call("decay", X, Y)
    reach = bounds(expression, {"x": Interval(1, 2), "y": Interval(1, 2)}, functions=registry)
    assert reach.low == pytest.approx(math.exp(-2))
    assert reach.high == pytest.approx(math.exp(-0.5))
    limited = DEFAULT_FUNCTIONS.with_function(
        "decay", scoring_function(decay, directions=(0, 1), range=(0, 1))
    )
    assert bounds(expression, {"y": Interval(1, 2)}, functions=limited) == Interval(0, 1)
    at_one = bounds(expression, {"x": Interval(1, 1), "y": Interval(1, 1)}, functions=limited)
    assert at_one.low == pytest.approx(at_one.high) == pytest.approx(math.exp(-1))


def test_a_corner_without_a_value_bounds_nothing() -> None:
    registry = FunctionRegistry({"f": scoring_function(np.sqrt, directions=(1,))})
    assert bounds(call("f", X), {"x": Interval(-4, 4)}, functions=registry) == Interval(
        -math.inf, pytest.approx(2.0)
    )


def test_constants_are_spread_over_the_rows_for_a_function_of_ones_own() -> None:
    registry = FunctionRegistry(
        {"f": scoring_function(lambda a, b: a[:] + b[:], directions=(1, 1))}
    )
    assert vectorise(call("f", X, number(1)), functions=registry)(
        {"x": np.array([1.0, 2.0])}
    ).tolist() == [2.0, 3.0]


def test_the_library_is_sent_by_its_names() -> None:
    sent = cloudpickle.dumps(DEFAULT_FUNCTIONS)
    assert len(sent) < 1000
    received = pickle.loads(sent)
    assert all(received[name] is DEFAULT_FUNCTIONS[name] for name in DEFAULT_FUNCTIONS)
    # By another name it is a function of its own.
    more = DEFAULT_FUNCTIONS.with_function("biggest", FUNCTIONS["greatest"])
    received = pickle.loads(cloudpickle.dumps(more))
    assert received["biggest"].signature == "biggest(value, …)"
    assert vectorise(call("biggest", X, number(2)), functions=received)(
        {"x": np.array([1.0, 3.0])}
    ).tolist() == [2.0, 3.0]


@pytest.mark.parametrize("name", ["if", "COUNT", "abs", "two words", ""])
def test_a_name_must_be_free(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        DEFAULT_FUNCTIONS.with_function(name, FUNCTIONS["exp"])


def test_declarations_without_meaning_are_refused() -> None:
    with pytest.raises(ValueError, match="directions"):
        scoring_function(np.exp, directions=(2,))
    with pytest.raises(ValueError, match="directions"):
        scoring_function(np.exp, directions=())
    with pytest.raises(ValueError, match="range"):
        scoring_function(np.exp, directions=(1,), range=(1, 0))
