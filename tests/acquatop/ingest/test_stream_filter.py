"""Filters on a stream's integers: decided as whole numbers decide them, whatever their size."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.ingest.stream_filter import StreamFilter
from rspql import ast
from rspql.parser import parse
from rspql.scoring import DEFAULT_FUNCTIONS, scoring_function

INTEGER = ast.XSD + "integer"
FUNCTIONS = DEFAULT_FUNCTIONS.with_function("same", scoring_function(lambda x: x, directions=(1,)))
FILTERS: Mapping[str, Callable[[int, int], bool]] = {
    "?a > ?b": lambda a, b: a > b,
    "?a - ?b = 1": lambda a, b: a - b == 1,
    "?a - ?b IN (1, 2)": lambda a, b: a - b in (1, 2),
    "2 * ?a < ?a + ?b": lambda a, b: a < b,
    "least(?a, ?b) != ?a": lambda a, b: b < a,
    "norm(?a, ?b, ?b + 4) > 0.5": lambda a, b: a - b > 2,
    "same(?a - ?b) >= 2": lambda a, b: a - b >= 2,
    "same(?a - ?b) >= 2 || ?a < ?b": lambda a, b: a - b >= 2 or a < b,
    "ABS(?a - ?b) * 0.1 = 0.3": lambda a, b: abs(a - b) == 3,
}
LARGE = st.integers(-(2**63), 2**63 - 1) | st.builds(
    lambda exponent, more: 2**exponent + more, st.integers(50, 62), st.integers(-3, 3)
)
PAIRS = st.tuples(LARGE, LARGE) | st.builds(
    lambda number, more: (number, max(-(2**63), min(2**63 - 1, number - more))),
    LARGE,
    st.integers(-4, 4),
)


@pytest.mark.parametrize("text", FILTERS)
@settings(max_examples=40, deadline=None)
@given(st.lists(PAIRS, min_size=1, max_size=6))
def test_a_filter_decides_as_whole_numbers_do(text: str, pairs: list[tuple[int, int]]) -> None:
    query = parse(f"SELECT ?a {{ ?a <urn:p> ?b FILTER({text}) }}", bare_unit=None)
    (condition,) = (each.expression for each in ast.walk(query) if isinstance(each, ast.Filter))
    passes = StreamFilter(condition, FUNCTIONS, {"a": INTEGER, "b": INTEGER})
    a, b = (pa.array(column, pa.int64()) for column in zip(*pairs, strict=True))
    assert passes.holds({"a": a, "b": b}).tolist() == [FILTERS[text](*pair) for pair in pairs]
