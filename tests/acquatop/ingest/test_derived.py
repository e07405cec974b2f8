"""Values computed of each solution: whole numbers up to the ends of 64 bits."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from acquatop.ingest.derived import INTEGER, derived_of
from rspql import ast
from rspql.scoring import DEFAULT_FUNCTIONS

NUMBERS = st.builds(
    lambda exponent, more: 2**exponent + more, st.integers(0, 62), st.integers(-2, 2)
)
PRODUCT = ast.Binary("*", ast.Variable("a"), ast.Variable("b"))


@given(NUMBERS, NUMBERS | NUMBERS.map(lambda each: -each))
@example(2**62, -2)
@example(2**62, 2)
def test_a_product_is_an_error_only_beyond_64_bits(a: int, b: int) -> None:
    derived = derived_of(PRODUCT, {"a": INTEGER, "b": INTEGER}, DEFAULT_FUNCTIONS)
    assert derived is not None
    columns = {"a": pa.array([a], pa.int64()), "b": pa.array([b], pa.int64())}
    found = derived.numbers(1, columns.__getitem__, columns.__getitem__)
    assert found.to_pylist() == [a * b if -(2**63) <= a * b < 2**63 else None]
