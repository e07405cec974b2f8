"""Digits of scores: those of doubles against exact arithmetic, wherever they are called exact."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rspql import ast
from rspql.scoring import DEFAULT_FUNCTIONS, to_sparql, vectorise, vectorise_condition
from rspql.scoring.capacity import Digits, is_exact
from rspql.scoring.exact import Number, evaluate
from rspql.scoring.kinds import NumberKind
from rspql.scoring.ratios import of_decimals

INTEGER, DECIMAL = ast.XSD + "integer", ast.XSD + "decimal"
X, Y, Z = map(ast.Variable, "xyz")
LIMITS = 2**53, 2**53 + 1, 2**40, 1000


def decimal(text: str) -> ast.Literal:
    return ast.Literal(text, DECIMAL)


def integer(value: int) -> ast.Literal:
    return ast.Literal(str(value), INTEGER)


CONSTANTS = st.sampled_from(
    [decimal("0.1"), decimal("0.25"), decimal("0.123456789012345678"), integer(3), integer(365)]
)
EXPRESSIONS = st.recursive(
    st.sampled_from([X, Y, Z]) | CONSTANTS,
    lambda parts: st.one_of(
        st.builds(ast.Binary, st.sampled_from("+-*/"), parts, parts),
        st.builds(lambda x: ast.Call("norm", (x, integer(0), integer(365))), parts),
        st.builds(lambda name, x: ast.Call(name, (x,)), st.sampled_from(["abs", "round"]), parts),
        st.builds(lambda x, y: ast.Call("if", (ast.Binary("<", x, y), x, y)), parts, parts),
        st.builds(lambda x, y: ast.Call("least", (x, y)), parts, parts),
    ),
    max_leaves=6,
)
ROWS = st.lists(
    st.tuples(
        st.integers(-9, 9) | st.sampled_from(LIMITS),
        st.integers(-400, 400),
        st.integers(-300, 300),
    ),
    min_size=2,
    max_size=8,
)


def exact_values(score: ast.Expression, rows: list[tuple[int, int, int]]) -> list[Fraction | None]:
    """Return each row's score in exact arithmetic; ?z has two digits after the point."""
    plain = to_sparql(score)
    assert plain is not None
    found = []
    for x, y, z in rows:
        named = {"x": (x, INTEGER), "y": (y, INTEGER), "z": (Fraction(z, 100), DECIMAL)}
        numbers = {name: Number(Fraction(value), kind) for name, (value, kind) in named.items()}
        value = evaluate(plain, numbers, DEFAULT_FUNCTIONS)
        found.append(Fraction(value.value) if isinstance(value, Number) else None)
    return found


@settings(max_examples=300, deadline=None)
@given(EXPRESSIONS, ROWS)
def test_what_is_called_exact_orders_as_exact_arithmetic(
    score: ast.Expression, rows: list[tuple[int, int, int]]
) -> None:
    columns = np.array(rows, dtype=np.float64).T
    sizes = [float(np.abs(column).max()) for column in columns]
    digits = {
        "x": Digits(sizes[0], kind=NumberKind.WHOLE),
        "y": Digits(sizes[1], kind=NumberKind.WHOLE),
        "z": Digits(sizes[2], 100.0, kind=NumberKind.DECIMAL),
    }
    if not is_exact(score, digits, DEFAULT_FUNCTIONS):
        return
    z = columns[2] / 100
    given_columns = {"x": columns[0], "y": columns[1], "z": z}
    datatypes = {"x": INTEGER, "y": INTEGER, "z": DECIMAL}
    run = vectorise(score, DEFAULT_FUNCTIONS, datatypes)
    found = np.broadcast_to(run(given_columns, None, {"z": of_decimals(z, 2)}), len(rows)).tolist()
    for exact, value in zip(exact_values(score, rows), found, strict=True):
        assert np.isnan(value) if exact is None else value == float(exact)
    known = [
        pair for pair in zip(exact_values(score, rows), found, strict=True) if pair[0] is not None
    ]
    for left, a in known:
        for right, b in known:
            assert left is not None
            assert right is not None
            assert (a < b, a == b) == (left < right, left == right)


def test_decimals_that_are_equal_tie() -> None:
    three_tenths = ast.Binary("*", decimal("0.1"), X)
    columns = {"x": np.array([3.0, 2.0])}
    assert vectorise(three_tenths, datatypes={"x": INTEGER})(columns).tolist() == [0.3, 0.2]
    equal = ast.Binary("=", three_tenths, decimal("0.3"))
    assert vectorise_condition(equal, datatypes={"x": INTEGER})(columns).tolist() == [True, False]


@pytest.mark.parametrize(
    ("score", "size", "kind", "exact"),
    [
        (X, 2.0**50, NumberKind.WHOLE, True),
        (X, 2.0**53, NumberKind.WHOLE, False),
        (ast.Binary("+", X, X), 2.0**50, NumberKind.WHOLE, False),
        (ast.Binary("*", X, decimal("0.123456789012345678")), 9.0, NumberKind.WHOLE, False),
        (ast.Binary("*", X, decimal("0.1")), 9.0, NumberKind.SINGLE, False),
        (ast.Binary("*", X, decimal("0.1")), 2.0**60, NumberKind.DOUBLE, True),
    ],
)
def test_what_is_exact(score: ast.Expression, size: float, kind: NumberKind, exact: bool) -> None:
    assert is_exact(score, {"x": Digits(size, kind=kind)}, DEFAULT_FUNCTIONS) is exact


DOUBLE = ast.XSD + "double"
ENDS = st.tuples(st.integers(0, 3), st.integers(4, 9)).map(lambda ends: tuple(map(integer, ends)))
SHARES = st.builds(
    lambda of, ends: ast.Call("norm", (of, *ends)),
    st.sampled_from([X, Y, Z, ast.Literal("9.5e0", DOUBLE)]),
    ENDS,
)
OF_SHARES = st.recursive(
    SHARES | st.builds(ast.Binary, st.just("*"), CONSTANTS, SHARES),
    lambda parts: st.builds(ast.Binary, st.sampled_from("+-*"), parts, parts | CONSTANTS),
    max_leaves=5,
)
DOUBLES = st.floats(-2, 12) | st.integers(-1, 10).map(float)


@settings(max_examples=300, deadline=None)
@given(OF_SHARES, st.lists(st.tuples(DOUBLES, DOUBLES, DOUBLES), min_size=1, max_size=6))
def test_shares_of_doubles_are_decimals_where_they_are_clamped(
    score: ast.Expression, rows: list[tuple[float, float, float]]
) -> None:
    assume(is_exact(score, dict.fromkeys("xyz", Digits()), DEFAULT_FUNCTIONS))
    columns = dict(zip("xyz", np.array(rows).T, strict=True))
    run = vectorise(score, DEFAULT_FUNCTIONS, dict.fromkeys("xyz", DOUBLE))
    found = np.broadcast_to(run(columns), len(rows)).tolist()
    plain = to_sparql(score)
    assert plain is not None
    for row, value in zip(rows, found, strict=True):
        numbers = {name: Number(each, DOUBLE) for name, each in zip("xyz", row, strict=True)}
        exact = evaluate(plain, numbers, DEFAULT_FUNCTIONS)
        assert isinstance(exact, Number)
        assert value == float(exact.value)
