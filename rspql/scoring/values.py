"""Columns of SPARQL values: numbers, with a mask of errors and a mask of floating types.

The operations are SPARQL's. Errors are apart from NaN, which is a number of xsd:double.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from rspql.scoring.functions import (
    BoolArray,
    FloatArray,
    Mask,
    ResultType,
    ScoringFunction,
)
from rspql.scoring.nan import is_number_nan


class TypesNeededError(Exception):
    """Raised by an operation whose result depends on types that are not known yet."""


@dataclass(frozen=True, slots=True)
class Values:
    """A column of values.

    ``numbers`` are doubles or, for conditions, booleans; they mean nothing where there is an
    ``error``. ``floating`` marks values of xsd:float or xsd:double; None if that is not known yet.
    """

    numbers: npt.NDArray[Any]
    error: Mask = False
    floating: Mask | None = False

    @property
    def is_boolean(self) -> bool:
        """True if these are the values of a condition."""
        return self.numbers.dtype == np.bool_


def column_of(numbers: FloatArray, floating: Mask | None) -> Values:
    """Return a variable's values.

    NaN is a number if the type is known to be floating, an error if it is known not to be. If the
    type is not known, only one NaN is a number (:mod:`rspql.scoring.nan`).
    """
    missing = np.isnan(numbers)
    if floating is True or not missing.any():
        return Values(numbers, False, floating)
    if floating is not False:
        missing &= ~is_number_nan(numbers)
    return Values(numbers, missing, floating)


def as_scores(values: Values) -> FloatArray:
    """Return values as doubles: NaN for an error and for the number NaN."""
    numbers = np.asarray(values.numbers, dtype=np.float64)
    if values.error is False:
        return numbers
    return np.where(values.error, np.nan, numbers)


# Masks ----------------------------------------------------------------------------------------


def either(left: Mask, right: Mask) -> Mask:
    """Return where one of two masks is set."""
    if left is False or right is True:
        return right
    if right is False or left is True:
        return left
    return left | right


def _either_type(left: Mask | None, right: Mask | None) -> Mask | None:
    if left is True or right is True:
        return True
    return None if left is None or right is None else either(left, right)


def _chosen(condition: BoolArray, then: Mask, otherwise: Mask) -> Mask:
    if then is otherwise:
        return then
    return np.where(condition, then, otherwise)


def _chosen_type(condition: BoolArray, then: Mask | None, otherwise: Mask | None) -> Mask | None:
    return None if then is None or otherwise is None else _chosen(condition, then, otherwise)


def _no(mask: Mask) -> Mask:
    return not mask if isinstance(mask, bool) else ~mask


# Arithmetic -----------------------------------------------------------------------------------


def arithmetic(compute: Callable[..., FloatArray]) -> Callable[..., Values]:
    """Return an operation whose values have the wider type of their operands'."""

    def operate(*parts: Values) -> Values:
        return Values(
            compute(*(part.numbers for part in parts)),
            reduce(either, (part.error for part in parts)),
            reduce(_either_type, (part.floating for part in parts)),
        )

    return operate


def divide(left: Values, right: Values) -> Values:
    """Return the quotients: by zero, an error of exact types, a number of floating ones."""
    quotient = arithmetic(np.divide)(left, right)
    is_zero = right.numbers == 0
    if not is_zero.any() or quotient.floating is True:
        return quotient
    if quotient.floating is None:
        raise TypesNeededError
    fails = is_zero if quotient.floating is False else is_zero & ~quotient.floating
    return Values(quotient.numbers, either(quotient.error, fails), quotient.floating)


def divide_by_no_zero(left: Values, right: Values) -> Values:
    """Return the quotients if it needs neither types nor the sign of a zero to know them."""
    quotient = divide(left, right)
    if quotient.floating is not False and (right.numbers == 0).any():
        raise TypesNeededError
    return quotient


def with_one_zero(values: Values) -> Values:
    """Return values whose integers and decimals have no negative zero: its quotients differ."""
    if values.is_boolean or values.floating is True:
        return values
    positive = values.numbers + 0.0
    if isinstance(values.floating, np.ndarray):
        positive = np.where(values.floating, values.numbers, positive)
    return Values(positive, values.error, values.floating)


def call(function: ScoringFunction) -> Callable[..., Values]:
    """Return the operation of a scoring function."""

    def operate(*parts: Values) -> Values:
        arguments = [part.numbers for part in parts]
        result = function.apply(*arguments)
        # An argument that is an error may be NaN: the function fails there in any case.
        fails = function.fails(result, *arguments)
        if not isinstance(fails, bool) and not fails.any():
            fails = False
        error = reduce(either, (part.error for part in parts), fails)
        return Values(result, error, _type_of_call(function, arguments, parts))

    return operate


def _type_of_call(
    function: ScoringFunction, arguments: Sequence[FloatArray], parts: Sequence[Values]
) -> Mask | None:
    if function.result is ResultType.DOUBLE:
        return True
    known = [part.floating for part in parts if part.floating is not None]
    if all(each is False for each in known) and len(known) == len(parts):
        return False
    if function.floating is None:
        return reduce(_either_type, (part.floating for part in parts))
    return None if len(known) < len(parts) else function.floating(arguments, known)


# Conditions -----------------------------------------------------------------------------------


def truth(value: Values) -> BoolArray:
    """Return the effective boolean values: false for zero and for NaN."""
    if value.is_boolean:
        return value.numbers
    return np.abs(value.numbers) > 0  # type: ignore[no-any-return]


def negation(value: Values) -> Values:
    """Return the values of ``!``."""
    return Values(~truth(value), value.error)


def conjunction(left: Values, right: Values) -> Values:
    """Return the values of ``&&``: false if either is false, even if the other is an error."""
    a, b = truth(left), truth(right)
    if left.error is False and right.error is False:
        return Values(a & b)
    is_false = (~a & _no(left.error)) | (~b & _no(right.error))
    return Values(a & b, either(left.error, right.error) & ~is_false)


def disjunction(left: Values, right: Values) -> Values:
    """Return the values of ``||``: true if either is true, even if the other is an error."""
    a, b = truth(left), truth(right)
    if left.error is False and right.error is False:
        return Values(a | b)
    is_true = (a & _no(left.error)) | (b & _no(right.error))
    return Values(is_true, either(left.error, right.error) & ~is_true)


def comparison(compare: Callable[..., BoolArray]) -> Callable[[Values, Values], Values]:
    """Return an operation that compares numbers; NaN is unequal to all, and never less or more."""

    def operate(left: Values, right: Values) -> Values:
        return Values(compare(left.numbers, right.numbers), either(left.error, right.error))

    return operate


equal = comparison(np.equal)


def within(value: Values, *choices: Values) -> Values:
    """Return the values of ``IN``."""
    nothing = Values(np.zeros_like(value.numbers, dtype=np.bool_), value.error)
    return reduce(disjunction, (equal(value, choice) for choice in choices), nothing)


def not_within(value: Values, *choices: Values) -> Values:
    """Return the values of ``NOT IN``."""
    return negation(within(value, *choices))


# Forms ----------------------------------------------------------------------------------------


def choice(condition: Values, then: Values, otherwise: Values) -> Values:
    """Return the values of ``IF``; each keeps the type of the branch that it comes from."""
    holds = truth(condition)
    return Values(
        np.where(holds, then.numbers, otherwise.numbers),
        either(condition.error, _chosen(holds, then.error, otherwise.error)),
        _chosen_type(holds, then.floating, otherwise.floating),
    )


def coalesce(*values: Values) -> Values:
    """Return the first values that are no errors, with their types."""
    return reduce(_or_else, values)


def _or_else(first: Values, second: Values) -> Values:
    if first.error is False:
        return first
    fails = np.asarray(first.error)
    return Values(
        np.where(fails, second.numbers, first.numbers),
        False if second.error is False else fails & second.error,
        _chosen_type(fails, second.floating, first.floating),
    )


def is_bound(value: Values) -> Values:
    """Return the values of ``BOUND``."""
    bound = np.ones(np.shape(value.numbers), dtype=np.bool_)
    return Values(bound if value.error is False else bound & ~np.asarray(value.error))
