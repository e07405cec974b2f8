"""Filters on texts and IRIs of a stream that compare whole columns with constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.ingest.scoring import BoolArray
from connectors.mapping import IRI
from rspql import ast
from rspql.scoring import variables_in

_Column = Callable[[Mapping[str, pa.Array]], pa.Array]
_SEARCHES = {
    "contains": pc.match_substring,
    "strstarts": pc.starts_with,
    "strends": pc.ends_with,
}


class TextFilter:
    """Condition that is decided by comparing columns: no error is possible in it."""

    def __init__(self, condition: ast.Expression, decide: _Column) -> None:
        self.variables = tuple(variables_in(condition))
        self._decide = decide

    def holds(self, values: Mapping[str, pa.Array]) -> BoolArray:
        """Return a mask of the rows of values for which the condition holds."""
        found = pc.fill_null(self._decide(values), False)
        return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.bool_)


def text_filter(condition: ast.Expression, datatypes: Mapping[str, str]) -> TextFilter | None:
    """Return a filter that decides a condition by whole columns; None if that is not enough.

    ``datatypes`` are those of variables that are always texts or IRIs, which come in brackets.
    """
    decide = _decided(condition, datatypes)
    return None if decide is None else TextFilter(condition, decide)


def _decided(condition: ast.Expression, datatypes: Mapping[str, str]) -> _Column | None:
    match condition:
        case ast.Unary("!", operand):
            inner = _decided(operand, datatypes)
            return None if inner is None else lambda values: pc.invert(inner(values))
        case ast.Binary("&&" | "||" as operator, left, right):
            one, other = _decided(left, datatypes), _decided(right, datatypes)
            if one is None or other is None:
                return None
            both = pc.and_ if operator == "&&" else pc.or_
            return lambda values: both(one(values), other(values))
        case ast.Binary("=", left, right):
            return _equal(left, right, datatypes)
        case ast.Binary("!=", left, right):
            equal = _equal(left, right, datatypes)
            return None if equal is None else lambda values: pc.invert(equal(values))
        case ast.Call(str(name), (operand, ast.Literal() as text)) if name in _SEARCHES:
            return _found(name, operand, text, datatypes)
        case _:
            return None


def _equal(
    left: ast.Expression, right: ast.Expression, datatypes: Mapping[str, str]
) -> _Column | None:
    if not isinstance(left, ast.Variable):
        left, right = right, left
    if not isinstance(left, ast.Variable) or left.name not in datatypes:
        return None
    name, datatype = left.name, datatypes[left.name]
    match right:
        case ast.Variable(other) if datatypes.get(other) == datatype:
            return lambda values: pc.equal(values[name], values[other])
        case ast.Iri(value) if datatype == IRI:
            return lambda values: pc.equal(values[name], f"<{value}>")
        case ast.Literal(lexical, kind, None) if kind == datatype == ast.XSD + "string":
            return lambda values: pc.equal(values[name], lexical)
        case _:
            return None


def _found(
    name: str, operand: ast.Expression, text: ast.Literal, datatypes: Mapping[str, str]
) -> _Column | None:
    """Return the search for a plain text in another."""
    if text.language is not None or text.datatype != ast.XSD + "string":
        return None
    search, wanted = _SEARCHES[name], text.lexical
    match operand:
        case ast.Variable(of) if datatypes.get(of) == ast.XSD + "string":
            return lambda values: search(values[of], wanted)
        case ast.Call("str", (ast.Variable(of),)) if datatypes.get(of) == IRI:
            return lambda values: search(pc.utf8_slice_codeunits(values[of], 1, -1), wanted)
        case ast.Call("str", (ast.Variable(of),)) if of in datatypes:
            return lambda values: search(values[of], wanted)
        case _:
            return None
