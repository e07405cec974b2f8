"""Filters on a stream's values, decided on arrival."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.ingest.scoring import BoolArray
from acquatop.topk.contract import FloatArray, IntArray
from rspql import ast
from rspql.scoring import (
    ConditionFunction,
    FunctionRegistry,
    variables_in,
    vectorise_condition,
)
from rspql.scoring.capacity import capacity
from rspql.scoring.exact import Number, compiled_condition
from rspql.scoring.fold import operands, postorder

_INTEGER = ast.XSD + "integer"
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


def numbers_of(values: pa.Array) -> pa.Array:
    """Return a column's values as doubles; text has none."""
    if pa.types.is_string(values.type):
        return pa.nulls(len(values), pa.float64())
    return pc.cast(values, pa.float64(), safe=False)


class StreamFilter:
    """Condition on numbers of a stream, of known datatypes.

    It is decided in doubles, over whole columns. Rows whose integers are too large for that, and
    could be decided otherwise, are decided one by one in exact digits.
    """

    def __init__(
        self,
        condition: ast.Expression,
        functions: FunctionRegistry,
        datatypes: Mapping[str, str],
    ) -> None:
        self.variables = tuple(variables_in(condition))
        self._datatypes = datatypes
        self._in_doubles = vectorise_condition(condition, functions, datatypes)
        self._exactly = compiled_condition(condition, functions)
        doubtful = _doubtful(condition)
        self._is_doubtful: ConditionFunction | None = None
        if doubtful is not None:
            self._is_doubtful = vectorise_condition(doubtful, functions, datatypes)
        self._capacity = capacity([condition], datatypes, functions)

    def holds(self, values: Mapping[str, pa.Array]) -> BoolArray:
        """Return a mask of the rows for which the condition holds."""
        columns = {
            name: np.asarray(numbers_of(each).to_numpy(zero_copy_only=False))
            for name, each in values.items()
        }
        found = self._in_doubles(columns)
        at = self._undecided(columns)
        if not len(at):
            return found
        found = found.copy()
        found[at] = [self._exactly(row) for row in self._rows(values, pa.array(at))]
        return found

    def _undecided(self, columns: Mapping[str, FloatArray]) -> IntArray:
        large: BoolArray | None = None
        for name, column in columns.items():
            if self._datatypes[name] == _INTEGER:
                beyond = np.abs(column) > self._capacity
                if beyond.any():
                    large = beyond if large is None else large | beyond
        if large is None:
            return np.empty(0, dtype=np.int64)
        if self._is_doubtful is not None:
            large = large & self._is_doubtful(columns)
        return np.flatnonzero(large)

    def _rows(self, values: Mapping[str, pa.Array], at: pa.Array) -> Iterator[dict[str, Number]]:
        names, columns = list(values), [each.take(at).to_pylist() for each in values.values()]
        for row in zip(*columns, strict=True):
            yield {
                name: self._number(name, value)
                for name, value in zip(names, row, strict=True)
                if value is not None
            }

    def _number(self, name: str, value: Any) -> Number:
        datatype = self._datatypes[name]
        return Number(Fraction(value) if datatype == _INTEGER else value, datatype)


def _doubtful(condition: ast.Expression) -> ast.Expression | None:
    """Return a condition of the rows that doubles may decide wrongly; None if any could be.

    Rounding keeps the order of integers. So if a condition compares values as they are, it can be
    wrong only where doubles are equal.
    """
    compared: list[ast.Expression] = []
    for node in postorder(condition):
        match node:
            case ast.Variable() | ast.Literal() | ast.Unary("!") | ast.Binary("&&" | "||"):
                continue
            case ast.Binary(operator, left, right) if operator in _COMPARISONS:
                compared.append(ast.Binary("=", left, right))
            case ast.In(operand, choices):
                compared += [ast.Binary("=", operand, each) for each in choices]
            case _:
                return None
    sides = (side for pair in compared for side in operands(pair))
    if not all(isinstance(side, ast.Variable | ast.Literal) for side in sides):
        return None
    nothing: ast.Expression = ast.Literal("false", ast.XSD + "boolean")
    return reduce(lambda a, b: ast.Binary("||", a, b), compared, nothing)
