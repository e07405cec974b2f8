"""Values computed of each solution: expressions that are aggregated, or grouped by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.ingest.computed_terms import ColumnOf, ComputedTerms
from acquatop.ingest.scoring import BoolArray
from acquatop.ingest.stream_filter import numbers_of
from acquatop.topk.contract import AnyArray, FloatArray, IntArray
from connectors.coded import distinct
from connectors.mapping import XSD_DOUBLE
from rspql import ast
from rspql.diagnostics import Diagnostic
from rspql.scoring import FunctionRegistry, check_expression, result_type, variables_in
from rspql.scoring.capacity import capacity, fixed_scale
from rspql.scoring.exact import Number, compiled, text_of
from rspql.scoring.values import TypedColumn
from rspql.scoring.vectorise import evaluation
from rspql.term_conditions import term_value

INTEGER, DECIMAL = ast.XSD + "integer", ast.XSD + "decimal"
_INTEGER_FUNCTIONS = (
    *("strlen", "year", "month", "day", "hours", "minutes"),
    ast.Iri(INTEGER),
)
_LARGEST = 2.0**53
"""Magnitude below which doubles have all digits of whole numbers."""


@dataclass(frozen=True)
class ColumnKind:
    """Kind of the numbers of a column: doubles, or whole numbers divided by a ``scale``."""

    datatype: str
    scale: int = 1


class Derived(Protocol):
    """Computation of one value of each solution."""

    @property
    def kind(self) -> ColumnKind | None:
        """Kind of its numbers; None if it is not known to be a number."""

    def numbers(self, count: int, values: ColumnOf, terms: ColumnOf) -> pa.Array:
        """Return the numbers of some rows: 64-bit integers or doubles, null for errors.

        Decimals are multiplied by their scale.
        """

    def terms(self, count: int, values: ColumnOf, terms: ColumnOf) -> pa.Array:
        """Return the values of some rows as terms; ``""`` for errors."""


def derived_of(
    expression: ast.Expression, datatypes: Mapping[str, str | None], functions: FunctionRegistry
) -> Derived | None:
    """Return the computation of an expression; None if there is none for values of these types.

    ``datatypes`` are those of variables whose numbers are computed with.
    """
    leaves: dict[str, ComputedLeaf] = {}

    def change(node: ast.Node) -> ast.Node:
        leaf = leaf_of(node, functions)
        if leaf is None:
            return node
        name = f"computed {len(leaves)}"
        leaves[name] = leaf
        return ast.Variable(name)

    arithmetic = ast.rewritten(expression, change)
    known = {
        name: leaves[name].datatype if name in leaves else datatypes.get(name)
        for name in variables_in(arithmetic)
    }
    typed = {name: datatype for name, datatype in known.items() if datatype is not None}
    problems: list[Diagnostic] = []
    check_expression(arithmetic, problems, functions=functions)
    if not problems and typed and len(typed) == len(known):
        kind = _kind(arithmetic, typed, functions)
        if kind is not None:
            return ComputedNumbers(arithmetic, typed, functions, kind, leaves)
    plain = term_value(expression, functions)
    return None if plain is None else ComputedTerms(plain, tuple(variables_in(expression)))


def _kind(
    expression: ast.Expression, datatypes: Mapping[str, str], functions: FunctionRegistry
) -> ColumnKind | None:
    datatype = result_type(expression, datatypes, functions)
    if datatype == XSD_DOUBLE:
        return ColumnKind(datatype)
    if datatype not in (INTEGER, DECIMAL):
        return None
    scale = fixed_scale(expression, datatypes, functions)
    return None if scale is None else ColumnKind(datatype, scale)


@dataclass(frozen=True)
class ComputedLeaf:
    """Integers that an engine computes of terms, as part of arithmetic.

    Of doubles an error could not be told from NaN.
    """

    of: ComputedTerms
    datatype = INTEGER

    def numbers(self, count: int, values: ColumnOf, terms: ColumnOf) -> pa.Array:
        """Return the numbers: an error is null."""
        texts = distinct(self.of.terms(count, values, terms))
        known = [int(each.split('"')[1]) if each else None for each in texts.dictionary.to_pylist()]
        return pa.array(known, pa.int64()).take(texts.indices)


def leaf_of(node: ast.Node, functions: FunctionRegistry) -> ComputedLeaf | None:
    """Return the computation of a call whose values are integers, or errors."""
    if not isinstance(node, ast.Call) or node.function not in _INTEGER_FUNCTIONS:
        return None
    plain = term_value(node, functions)
    if plain is None:
        return None
    return ComputedLeaf(ComputedTerms(plain, tuple(variables_in(node))))


class ComputedNumbers:
    """Numbers of one datatype, computed of numbers over whole columns.

    Rows whose integers are too large for doubles are computed one by one in exact digits.
    """

    def __init__(
        self,
        expression: ast.Expression,
        datatypes: Mapping[str, str],
        functions: FunctionRegistry,
        kind: ColumnKind,
        leaves: Mapping[str, ComputedLeaf],
    ) -> None:
        self._variables = tuple(variables_in(expression))
        self.kind = kind
        self._leaves = leaves
        self._datatypes = datatypes
        self._in_doubles = evaluation(expression, functions, datatypes)
        self._exactly = compiled(expression, functions)
        self._capacity = capacity([expression], datatypes, functions)

    def numbers(self, count: int, values: ColumnOf, terms: ColumnOf) -> pa.Array:
        """Return the numbers: an error is null."""
        known = {
            name: self._leaves[name].numbers(count, values, terms)
            if name in self._leaves
            else values(name)
            for name in self._variables
        }
        columns = {
            name: np.asarray(numbers_of(each).to_numpy(zero_copy_only=False), dtype=np.float64)
            for name, each in known.items()
        }
        found: TypedColumn = self._in_doubles(columns, None)
        doubles = np.array(np.broadcast_to(found.doubles, count), dtype=np.float64)
        errors = np.array(np.broadcast_to(found.error, count), dtype=np.bool_)
        if self.kind.datatype == XSD_DOUBLE:
            made: AnyArray = doubles
        else:
            scaled = doubles * self.kind.scale
            beyond = ~(np.abs(scaled) < _LARGEST)
            errors |= beyond
            made = np.rint(np.where(beyond, 0.0, scaled)).astype(np.int64)
        for at, value in self._large(known, columns):
            errors[at] = value is None
            made[at] = 0 if value is None else value
        return pa.array(made, mask=errors)

    def terms(self, count: int, values: ColumnOf, terms: ColumnOf) -> pa.Array:
        """Return the numbers as terms."""
        numbers = self.numbers(count, values, terms)
        if self.kind.datatype == DECIMAL:
            texts = pa.array([self._text(each) for each in numbers.to_pylist()], pa.string())
        else:
            texts = pc.cast(numbers, pa.string())
        ends = f'"^^<{self.kind.datatype}>'
        return pc.fill_null(pc.binary_join_element_wise('"', texts, ends, ""), "")

    def _text(self, number: int | None) -> str | None:
        return None if number is None else text_of(Fraction(number, self.kind.scale))

    def _large(
        self, values: Mapping[str, pa.Array], columns: Mapping[str, FloatArray]
    ) -> Iterator[tuple[int, int | float | None]]:
        """Yield the rows with large integers, each with its value; None for an error."""
        beyond: BoolArray | None = None
        for name, column in columns.items():
            if self._datatypes[name] == INTEGER:
                large = np.abs(column) > self._capacity
                beyond = large if beyond is None else beyond | large
        at: IntArray = np.flatnonzero(beyond) if beyond is not None else np.empty(0, np.int64)
        if not len(at):
            return
        rows = zip(*(values[name].take(pa.array(at)).to_pylist() for name in values), strict=True)
        for place, row in zip(at.tolist(), rows, strict=True):
            numbers = {
                name: self._number(name, value) for name, value in zip(values, row, strict=True)
            }
            yield place, self._whole(self._exactly(numbers))

    def _number(self, name: str, value: Any) -> Number | None:
        if value is None:
            return None
        datatype = self._datatypes[name]
        return Number(Fraction(value) if datatype == INTEGER else value, datatype)

    def _whole(self, value: object) -> int | float | None:
        if not isinstance(value, Number):
            return None
        if not isinstance(value.value, Fraction):
            return value.value
        scaled = value.value * self.kind.scale
        return int(scaled) if -(2**63) <= scaled < 2**63 else None
