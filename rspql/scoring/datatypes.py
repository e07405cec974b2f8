"""Numeric datatypes of SPARQL: literals that are numbers, and the types of arithmetic results."""

from __future__ import annotations

import math
import re
from functools import lru_cache, reduce

import numpy as np

from rspql import ast

BOOLEAN = ast.XSD + "boolean"
INTEGER = ast.XSD + "integer"
DECIMAL = ast.XSD + "decimal"
FLOAT = ast.XSD + "float"
DOUBLE = ast.XSD + "double"

_DERIVED_FROM_INTEGER = frozenset(
    ast.XSD + name
    for name in """
    nonPositiveInteger negativeInteger long int short byte nonNegativeInteger unsignedLong
    unsignedInt unsignedShort unsignedByte positiveInteger
    """.split()
)
_PROMOTION = (INTEGER, DECIMAL, FLOAT, DOUBLE)
FLOATING = frozenset((FLOAT, DOUBLE))
"""Types of IEEE 754: with infinities, NaN, and quotients by zero."""
_WHOLE = r"[+-]?[0-9]+"
_DECIMAL = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)"
_FLOATING = rf"{_DECIMAL}([eE][+-]?[0-9]+)?|[+-]?INF|NaN"
_LEXICAL = {INTEGER: _WHOLE, DECIMAL: _DECIMAL, FLOAT: _FLOATING, DOUBLE: _FLOATING}
_BOOLEANS = {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}


def primitive(datatype: str | None) -> str | None:
    """Return the numeric type that arithmetic uses for a datatype; None if it is not numeric.

    >>> primitive(ast.XSD + "byte") == INTEGER, primitive(ast.XSD + "string")
    (True, None)
    """
    if datatype in _DERIVED_FROM_INTEGER:
        return INTEGER
    return datatype if datatype in _PROMOTION else None


@lru_cache(maxsize=1024)
def promote(*datatypes: str | None) -> str | None:
    """Return the numeric type to which values of several types are promoted.

    >>> promote(INTEGER, FLOAT, DECIMAL) == FLOAT
    True
    """
    return reduce(_wider, map(primitive, datatypes))


def quotient(left: str | None, right: str | None) -> str | None:
    """Return the type of a quotient; the quotient of two integers is a decimal."""
    datatype = promote(left, right)
    return DECIMAL if datatype == INTEGER else datatype


def is_number(literal: ast.Literal) -> bool:
    """Return True if a literal is a number, valid for its datatype; NaN is one of xsd:double.

    >>> is_number(ast.Literal("NaN", DOUBLE)), is_number(ast.Literal("NaN", DECIMAL))
    (True, False)
    """
    pattern = _LEXICAL.get(primitive(literal.datatype) or "")
    return pattern is not None and re.fullmatch(pattern, literal.lexical) is not None


def literal_value(literal: ast.Literal) -> float:
    """Return a numeric literal's value as a double; NaN also if it is not a number.

    >>> literal_value(ast.Literal("7.5", DECIMAL)), literal_value(ast.Literal("7.5", INTEGER))
    (7.5, nan)
    """
    if not is_number(literal):
        return math.nan
    value = float(literal.lexical)
    return single(value) if literal.datatype == FLOAT else value


def single(value: float) -> float:
    """Return the xsd:float that is nearest to a number."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def boolean_value(literal: ast.Literal) -> float:
    """Return 1 for true, 0 for false, NaN if the literal is not an xsd:boolean."""
    return _BOOLEANS.get(literal.lexical, math.nan) if literal.datatype == BOOLEAN else math.nan


def constant_value(literal: ast.Literal) -> float:
    """Return a literal's value in a score or a condition, NaN if it cannot be part of either."""
    return boolean_value(literal) if literal.datatype == BOOLEAN else literal_value(literal)


def _wider(left: str | None, right: str | None) -> str | None:
    if left is None or right is None:
        return None
    return max(left, right, key=_PROMOTION.index)
