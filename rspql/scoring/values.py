"""Columns of SPARQL values: numbers, with a mask of errors and a mask of floating types.

The operations are SPARQL's. Errors are apart from NaN, which is a number of xsd:double.

Integers and decimals are ratios of whole numbers (:mod:`rspql.scoring.ratios`). They are exact as
long as the whole numbers are less than 2^51 (:mod:`rspql.scoring.capacity`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from rspql.scoring import ratios
from rspql.scoring.functions import (
    BoolArray,
    FloatArray,
    Mask,
    ResultType,
    ScoringFunction,
)
from rspql.scoring.nan import is_number_nan
from rspql.scoring.ratios import Ratio, Scale, aligned, chosen_scale


class TypesNeededError(Exception):
    """Raised by an operation whose result depends on types that are not known yet."""


@dataclass(frozen=True, slots=True)
class TypedColumn:
    """A column of values.

    ``numbers`` are doubles or, for conditions, booleans; they mean nothing where there is an
    ``error``. ``floating`` marks values of xsd:float or xsd:double; None if that is not known yet.
    With a ``scale`` the values are ``numbers / scale``; it is 1 where they are floating.
    """

    numbers: npt.NDArray[Any]
    error: Mask = False
    floating: Mask | None = False
    scale: Scale | None = None

    @property
    def doubles(self) -> npt.NDArray[Any]:
        """The double nearest to each value."""
        if self.scale is None:
            return self.numbers
        nearest: npt.NDArray[Any] = self.numbers / self.scale
        return nearest

    @property
    def ratio(self) -> Ratio:
        """Values as numerators and denominators."""
        return self.numbers, self.scale

    @property
    def is_boolean(self) -> bool:
        """True if these are the values of a condition."""
        return self.numbers.dtype == np.bool_


def column_of(numbers: FloatArray, floating: Mask | None) -> TypedColumn:
    """Return a variable's values.

    NaN is a number if the type is known to be floating, an error if it is known not to be. If the
    type is not known, only one NaN is a number (:mod:`rspql.scoring.nan`).
    """
    missing = np.isnan(numbers)
    if floating is True or not missing.any():
        return TypedColumn(numbers, False, floating)
    if floating is not False:
        missing &= ~is_number_nan(numbers)
    return TypedColumn(numbers, missing, floating)


def ratio_column(column: TypedColumn, ratio: Ratio) -> TypedColumn:
    """Return a variable's values with those that are not floating as ratios."""
    if column.floating is True:
        return column
    if column.floating is None:
        raise TypesNeededError
    numbers, scale = ratio
    if column.floating is False:
        return TypedColumn(numbers, column.error, False, scale)
    return _where_floating(column.floating, column, ratio)


def _where_floating(floating: BoolArray, plain: TypedColumn, ratio: Ratio) -> TypedColumn:
    """Return plain numbers where the type is floating, and ratios elsewhere."""
    numbers, scale = ratio
    return TypedColumn(
        np.where(floating, plain.numbers, numbers),
        plain.error,
        floating,
        None if scale is None else np.where(floating, 1.0, scale),
    )


def as_scores(values: TypedColumn) -> FloatArray:
    """Return values as doubles: NaN for an error and for the number NaN."""
    numbers = np.asarray(values.doubles, dtype=np.float64)
    if values.error is False:
        return numbers
    return np.where(values.error, np.nan, numbers)


def as_mask(mask: Mask) -> Mask:
    """Return a mask as True or False if it is the same for all rows.

    >>> as_mask(np.array([False, False])), as_mask(np.array([True, False]))
    (False, array([ True, False]))
    """
    if isinstance(mask, bool):
        return mask
    if not mask.any():
        return False
    return True if mask.all() else mask


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


def arithmetic(
    compute: Callable[..., FloatArray], exactly: Callable[..., Ratio]
) -> Callable[..., TypedColumn]:
    """Return an operation whose values have the wider type of their operands'.

    ``exactly`` computes with ratios.
    """

    def operate(*parts: TypedColumn) -> TypedColumn:
        error = reduce(either, (part.error for part in parts))
        floating = reduce(_either_type, (part.floating for part in parts))
        if floating is True or all(part.scale is None for part in parts):
            return TypedColumn(compute(*(part.doubles for part in parts)), error, floating)
        return _of_ratio(exactly(*(part.ratio for part in parts)), compute, parts, error, floating)

    return operate


def _of_ratio(
    ratio: Ratio,
    compute: Callable[..., FloatArray],
    parts: tuple[TypedColumn, ...],
    error: Mask,
    floating: Mask | None,
) -> TypedColumn:
    """Return a ratio where the type is exact, and elsewhere what is computed in doubles."""
    if floating is None:
        raise TypesNeededError
    if floating is False:
        return TypedColumn(ratio[0], error, False, ratio[1])
    floating = np.asarray(floating)
    plain = TypedColumn(compute(*(part.doubles for part in parts)), error, floating)
    return _where_floating(floating, plain, ratio)


def divide_doubles(left: TypedColumn, right: TypedColumn) -> TypedColumn:
    """Return the quotients: by zero, an error of exact types, a number of floating ones."""
    floating = _either_type(left.floating, right.floating)
    quotient = TypedColumn(
        np.divide(left.numbers, right.numbers), either(left.error, right.error), floating
    )
    return _without_zeros(quotient, right)


def divide(left: TypedColumn, right: TypedColumn) -> TypedColumn:
    """Return the quotients; those of exact types as ratios."""
    error, floating = either(left.error, right.error), _either_type(left.floating, right.floating)
    if floating is True:
        return TypedColumn(np.divide(left.doubles, right.doubles), error, True)
    ratio = ratios.divide(left.ratio, right.ratio)
    return _without_zeros(_of_ratio(ratio, np.divide, (left, right), error, floating), right)


def _without_zeros(quotient: TypedColumn, divisor: TypedColumn) -> TypedColumn:
    """Return quotients with an error of exact types where the divisor is zero."""
    is_zero = divisor.numbers == 0
    if not is_zero.any() or quotient.floating is True:
        return quotient
    if quotient.floating is None:
        raise TypesNeededError
    fails = is_zero if quotient.floating is False else is_zero & ~quotient.floating
    return replace(quotient, error=either(quotient.error, fails))


def divide_by_no_zero(left: TypedColumn, right: TypedColumn) -> TypedColumn:
    """Return the quotients if it needs neither types nor the sign of a zero to know them."""
    return _signless(divide_doubles(left, right), right)


def divide_ratios_by_no_zero(left: TypedColumn, right: TypedColumn) -> TypedColumn:
    """Return the quotients, as ratios, if it needs no sign of a zero to know them."""
    return _signless(divide(left, right), right)


def _signless(quotient: TypedColumn, divisor: TypedColumn) -> TypedColumn:
    if quotient.floating is not False and (divisor.numbers == 0).any():
        raise TypesNeededError
    return quotient


def with_one_zero(values: TypedColumn) -> TypedColumn:
    """Return values whose integers and decimals have no negative zero: its quotients differ."""
    if values.is_boolean or values.floating is True:
        return values
    positive = values.numbers + 0.0
    if isinstance(values.floating, np.ndarray):
        positive = np.where(values.floating, values.numbers, positive)
    return replace(values, numbers=positive)


def call(function: ScoringFunction) -> Callable[..., TypedColumn]:
    """Return the operation of a scoring function."""

    def operate(*parts: TypedColumn) -> TypedColumn:
        if function.exactly is not None and any(part.scale is not None for part in parts):
            (part,) = parts
            return replace(part, numbers=function.exactly(part.numbers))
        arguments = [part.doubles for part in parts]
        result = function.apply(*arguments)
        # An argument that is an error may be NaN: the function fails there in any case.
        fails = function.fails(result, *arguments)
        if not isinstance(fails, bool) and not fails.any():
            fails = False
        error = reduce(either, (part.error for part in parts), fails)
        return TypedColumn(result, error, _type_of_call(function, arguments, parts))

    return operate


def share(function: ScoringFunction) -> Callable[..., TypedColumn]:
    """Return the operation of ``norm``: shares of exact types are ratios."""
    plainly = call(function)

    def operate(*parts: TypedColumn) -> TypedColumn:
        floating = reduce(_either_type, (part.floating for part in parts))
        if floating is None:
            raise TypesNeededError
        plain = None if floating is False else plainly(*parts)
        if floating is True and plain is not None:
            return _with_mask(plain)
        value, low, high = (part.ratio for part in parts)
        above, width = ratios.difference(value, low), ratios.difference(high, low)
        numbers, scale = ratios.clamped(above, width)
        error = reduce(either, (part.error for part in parts), _unless(width[0] > 0))
        if plain is None:
            return TypedColumn(numbers, error, False, scale)
        floating = np.asarray(floating)
        of_plain, of_ratio = _with_mask(plain), TypedColumn(numbers, error, False, scale)
        return _either_of(
            floating, of_plain, of_ratio, _chosen(floating, of_plain.error, of_ratio.error)
        )

    return operate


def share_between(
    function: ScoringFunction, low: Fraction, high: Fraction
) -> Callable[..., TypedColumn]:
    """Return the operation of ``norm`` with constant ends, ``low`` less than ``high``."""
    in_general, clamp = share(function), ratios.clamped_between(low, high)

    def operate(value: TypedColumn, *ends: TypedColumn) -> TypedColumn:
        if value.floating is not False or isinstance(value.scale, np.ndarray):
            return in_general(value, *ends)
        if value.scale is not None and not math.isfinite(value.scale):
            return in_general(value, *ends)
        numbers, scale = clamp(value.numbers, value.scale)
        return TypedColumn(numbers, value.error, False, scale)

    return operate


def _unless(holds: BoolArray) -> Mask:
    return False if holds.all() else ~holds


def _with_mask(column: TypedColumn) -> TypedColumn:
    mask = column.floating
    return column if mask is None else replace(column, floating=as_mask(mask))


def _type_of_call(
    function: ScoringFunction, arguments: Sequence[FloatArray], parts: Sequence[TypedColumn]
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


def truth(value: TypedColumn) -> BoolArray:
    """Return the effective boolean values: false for zero and for NaN."""
    if value.is_boolean:
        return value.numbers
    return np.abs(value.numbers) > 0  # type: ignore[no-any-return]


def negation(value: TypedColumn) -> TypedColumn:
    """Return the values of ``!``."""
    return TypedColumn(~truth(value), value.error)


def conjunction(left: TypedColumn, right: TypedColumn) -> TypedColumn:
    """Return the values of ``&&``: false if either is false, even if the other is an error."""
    a, b = truth(left), truth(right)
    if left.error is False and right.error is False:
        return TypedColumn(a & b)
    is_false = (~a & _no(left.error)) | (~b & _no(right.error))
    return TypedColumn(a & b, either(left.error, right.error) & ~is_false)


def disjunction(left: TypedColumn, right: TypedColumn) -> TypedColumn:
    """Return the values of ``||``: true if either is true, even if the other is an error."""
    a, b = truth(left), truth(right)
    if left.error is False and right.error is False:
        return TypedColumn(a | b)
    is_true = (a & _no(left.error)) | (b & _no(right.error))
    return TypedColumn(is_true, either(left.error, right.error) & ~is_true)


def comparison(
    compare: Callable[..., BoolArray],
) -> Callable[[TypedColumn, TypedColumn], TypedColumn]:
    """Return an operation that compares numbers; NaN is unequal to all, and never less or more."""

    def operate(left: TypedColumn, right: TypedColumn) -> TypedColumn:
        return TypedColumn(compare(left.doubles, right.doubles), either(left.error, right.error))

    return operate


equal = comparison(np.equal)


def within(value: TypedColumn, *choices: TypedColumn) -> TypedColumn:
    """Return the values of ``IN``."""
    nothing = TypedColumn(np.zeros_like(value.numbers, dtype=np.bool_), value.error)
    return reduce(disjunction, (equal(value, choice) for choice in choices), nothing)


def not_within(value: TypedColumn, *choices: TypedColumn) -> TypedColumn:
    """Return the values of ``NOT IN``."""
    return negation(within(value, *choices))


# Forms ----------------------------------------------------------------------------------------


def choice(condition: TypedColumn, then: TypedColumn, otherwise: TypedColumn) -> TypedColumn:
    """Return the values of ``IF``; each keeps the type of the branch that it comes from."""
    holds = truth(condition)
    error = either(condition.error, _chosen(holds, then.error, otherwise.error))
    if otherwise.numbers.ndim and not holds.any():
        # Usually nothing is clamped. Then all values have the same type.
        return replace(otherwise, error=error)
    return _either_of(holds, then, otherwise, error)


def where(mask: BoolArray, then: TypedColumn, otherwise: TypedColumn) -> TypedColumn:
    """Return the values of one column where a mask is set, and of another elsewhere."""
    return _either_of(mask, then, otherwise, _chosen(mask, then.error, otherwise.error))


def _either_of(
    holds: BoolArray, then: TypedColumn, otherwise: TypedColumn, error: Mask
) -> TypedColumn:
    """Return values of one column where a mask is set, and of another elsewhere."""
    floating = _chosen_type(holds, then.floating, otherwise.floating)
    if then.scale is None and otherwise.scale is None:
        return TypedColumn(np.where(holds, then.numbers, otherwise.numbers), error, floating)
    if then.floating is False and otherwise.floating is False:
        first, second, scale = aligned(then.ratio, otherwise.ratio)
        if scale is not None:
            return TypedColumn(np.where(holds, first, second), error, False, scale)
    scale = chosen_scale(holds, then.scale, otherwise.scale)
    return TypedColumn(np.where(holds, then.numbers, otherwise.numbers), error, floating, scale)


def coalesce(*values: TypedColumn) -> TypedColumn:
    """Return the first values that are no errors, with their types."""
    return reduce(_or_else, values)


def _or_else(first: TypedColumn, second: TypedColumn) -> TypedColumn:
    if first.error is False:
        return first
    fails = np.asarray(first.error)
    error = False if second.error is False else fails & second.error
    return _either_of(fails, second, first, error)


def is_bound(value: TypedColumn) -> TypedColumn:
    """Return the values of ``BOUND``."""
    bound = np.ones(np.shape(value.numbers), dtype=np.bool_)
    return TypedColumn(bound if value.error is False else bound & ~np.asarray(value.error))
