"""Exact sums of numbers per key, without drift, whatever the order of adding and subtracting.

Every double is an integer combination of powers of two, and so is every 64-bit integer. It is cut
into *digits* of 31 bits; the bins 2³¹ᵇ are the same for all numbers, and each bin holds 64-bit
integer sums. Adding and subtracting are then exact. Only reading rounds, once and correctly: a sum
of doubles equals ``math.fsum`` of the same values. Infinities are counted in bins of their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from acquatop.topk.aggregates.partials import At, Columns, Partial, add_to, take_from
from acquatop.topk.contract import AnyArray, FloatArray, IntArray

BITS = 31
"""Bits of a digit. A key's sum may hold up to 2³² values before a bin could overflow."""
BASE = 1 << BITS
MASK = BASE - 1
LOWEST = -35
"""Bin of the smallest doubles."""
PLUS_INFINITY, MINUS_INFINITY = 1001, 1002
"""Bins that count infinities."""

_BLOCK = 1 << 13
"""Values processed at a time, so that intermediate results stay in the processor's cache."""
_HEAD_BITS = 62
_PLAIN_SHIFT = 1000


def digits_of(
    values: FloatArray, greatest: float | None = None
) -> Iterator[tuple[int, FloatArray]]:
    """Yield the bins of finite values, highest first, with the digits: integers below 2³¹.

    ``greatest`` is the greatest magnitude, if known.

    O(n) for each bin between the greatest value's and the last one needed. Integers below 2³¹ need
    one bin, most other values two or three.

    >>> [(bin, digits.tolist()) for bin, digits in digits_of(np.array([3.0, -0.5]))]
    [(0, [3.0, -0.0]), (-1, [0.0, -1073741824.0])]
    """
    rest = values
    top = _greatest(values) if greatest is None else greatest
    while top:
        bin = (math.frexp(top)[1] - 1) // BITS
        scaled = _scaled(rest, -BITS * bin)
        digits = np.trunc(scaled)
        yield bin, digits
        # Scaling up loses nothing. Scaled down, the smallest values could have vanished.
        if bin == LOWEST or (bin <= 0 and bool((digits == scaled).all())):
            return
        rest = rest - _scaled(digits, BITS * bin)
        top = _greatest(rest)


def digits_of_integers(values: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Yield the bins of 64-bit integers with the digits, highest first: below 2³¹ in magnitude.

    Each digit has its number's sign, so a number has the same digits beside whatever others: what
    is subtracted leaves zeros. Integers below 2³¹ need one bin, those below 2⁶² two, all others
    three.

    >>> [(bin, digits.tolist()) for bin, digits in digits_of_integers(np.array([-3, -(1 << 32)]))]
    [(1, [0, -2]), (0, [-3, 0])]
    """
    # The magnitude of the least integer is none of 64 bits with a sign.
    sizes = np.abs(values).view(np.uint64)
    most = int(sizes.max(initial=0))
    if most < BASE:
        if most:
            yield 0, values
        return
    signs = np.sign(values)
    for bin in range((most.bit_length() - 1) // BITS, -1, -1):
        yield bin, signs * ((sizes >> (BITS * bin)) & MASK).astype(np.int64)


def rounded(limbs: Mapping[int, IntArray]) -> FloatArray:
    """Return the doubles nearest to Σ limbs[b]·2³¹ᵇ; infinity if out of range.

    O(n) for each bin from the lowest to the highest.

    >>> rounded({0: np.array([1, -1]), -1: np.array([1 << 30, 1 << 30])}).tolist()
    [1.5, -0.5]
    """
    size = len(next(iter(limbs.values())))
    sums = np.empty(size)
    with np.errstate(over="ignore"):
        for start in range(0, size, _BLOCK):
            block = slice(start, start + _BLOCK)
            sums[block] = _rounded({bin: limb[block] for bin, limb in limbs.items()})
    return sums


def _rounded(limbs: Mapping[int, IntArray]) -> FloatArray:
    low, high = min(limbs), max(limbs)
    if low == high:
        return _scaled(limbs[low].astype(np.float64), BITS * low)
    digits, top = _carried(limbs, low, high)
    if high - low <= 2 and bool((np.abs(top) < BASE).all()):
        pair = (top << BITS) | digits[high - 1]
        if high - low == 1:
            return _scaled(pair.astype(np.float64), BITS * low)
        # The nearest double, and the exact remainder: 41 bits at most. Their sum rounds once.
        near = pair.astype(np.float64)
        left = (pair - near.astype(np.int64)).astype(np.float64) + digits[low] / BASE
        return _scaled(near + left, BITS * (low + 1))
    return _rounded_at_length(digits, top, low, high)


def _greatest(values: FloatArray) -> float:
    return max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))


def _scaled(values: FloatArray, shift: int) -> FloatArray:
    """Return values·2^shift."""
    if shift == 0:
        return values
    if abs(shift) <= _PLAIN_SHIFT:
        scaled: FloatArray = values * math.ldexp(1.0, shift)
        return scaled
    return np.ldexp(values, shift)


def _carried(
    limbs: Mapping[int, IntArray], low: int, high: int
) -> tuple[dict[int, IntArray], IntArray]:
    """Return the digits (0 ≤ digit < 2³¹) of all bins but the highest, and the highest bin.

    The highest includes the carries.
    """
    digits: dict[int, IntArray] = {}
    carry: IntArray = np.zeros_like(limbs[high])
    for bin in range(low, high):
        total = carry + limbs[bin] if bin in limbs else carry
        digits[bin] = total & MASK
        carry = total >> BITS
    return digits, limbs[high] + carry


def _rounded_at_length(
    digits: dict[int, IntArray], top: IntArray, low: int, high: int
) -> FloatArray:
    """Collect digits, highest first, until the head has 62 bits; the rest becomes a sticky bit."""
    head = top >> BITS
    exponent = np.full(len(head), BITS * (high + 1))
    full = np.zeros(len(head), dtype=np.bool_)
    more = np.zeros(len(head), dtype=np.bool_)
    for bin in range(high, low - 1, -1):
        digit = top & MASK if bin == high else digits[bin]
        more |= full & (digit != 0)
        fits = np.abs(head) < BASE
        last = ~full & ~fits
        taken = np.where(full, 0, BITS)
        if last.any():
            size = np.frexp(head[last].astype(np.float64))[1].astype(np.int64)
            taken[last] = np.maximum(_HEAD_BITS - size, 0)
        left = BITS - taken
        more |= last & ((digit & ((np.int64(1) << left) - 1)) != 0)
        head = (head << taken) | np.where(full, 0, digit >> left)
        exponent -= taken
        full |= last
    # The low bit stands for all bits left out: it breaks ties, and changes nothing else.
    result: FloatArray = np.ldexp((head | more).astype(np.float64), exponent)
    return result


def _fold(columns: Columns, slots: IntArray, size: int, values: AnyArray) -> None:
    if values.dtype.kind == "i":
        for bin, whole in digits_of_integers(values):
            np.add.at(_column(columns, bin, size), slots, whole)
        return
    greatest: float | None = _greatest(values)
    if greatest == math.inf:
        for bin, infinity in ((PLUS_INFINITY, np.inf), (MINUS_INFINITY, -np.inf)):
            if (hits := slots[values == infinity]).size:
                np.add.at(_column(columns, bin, size), hits, 1)
        finite = np.isfinite(values)
        slots, values, greatest = slots[finite], values[finite], None
    for bin, digits in digits_of(values, greatest):
        np.add.at(_column(columns, bin, size), slots, digits.astype(np.int64))


def _column(columns: Columns, bin: int, size: int) -> IntArray:
    if bin not in columns:
        columns[bin] = np.zeros(size, dtype=np.int64)
    return columns[bin]


class ExactSums:
    """Exact sum per key. Adding or subtracting m keys' partial sums costs O(m) per bin in use."""

    def __init__(self) -> None:
        self._bins: dict[int, IntArray] = {}
        self._users: dict[int, int] = {}
        self._size = 0

    @property
    def bins_in_use(self) -> int:
        """Number of bins that values need."""
        return len(self._bins)

    def fold(self, slots: IntArray, size: int, values: AnyArray) -> Columns:
        """Return the sums per slot of values, which are doubles or 64-bit integers."""
        columns: Columns = {}
        for start in range(0, len(values), _BLOCK):
            block = slice(start, start + _BLOCK)
            _fold(columns, slots[block], size, values[block])
        return columns

    def unfold(
        self,
        slots: IntArray,
        size: int,
        values: AnyArray,
        left: tuple[IntArray, AnyArray] | None,
    ) -> Columns:
        """Return the sums that subtract the values again."""
        return {bin: -sums for bin, sums in self.fold(slots, size, values).items()}

    def clear(self, columns: Columns, at: npt.NDArray[np.bool_]) -> None:
        """Do nothing: subtraction is exact."""

    def merge(self, places: Sequence[At], columns: Sequence[Columns], size: int) -> Columns:
        """Return the sums of several partials, whose keys have places among ``size``."""
        merged: Columns = {}
        for at, each in zip(places, columns, strict=True):
            for bin, sums in each.items():
                add_to(_column(merged, bin, size), at, sums)
        return merged

    def grow(self, size: int) -> None:
        """Make room for more keys."""
        self._size = size
        self._bins = {bin: _grown(sums, size) for bin, sums in self._bins.items()}

    def enter(self, last: int, partial: Partial) -> None:
        """Add a partial's sums."""
        for bin, sums in partial.columns.items():
            if bin not in self._bins:
                self._bins[bin] = np.zeros(self._size, dtype=np.int64)
            self._users[bin] = self._users.get(bin, 0) + 1
            add_to(self._bins[bin], partial.at, sums)

    def leave(self, window: int, gone: Sequence[Partial]) -> None:
        """Subtract the sums of partials, and drop bins that no partial uses any more."""
        for partial in gone:
            for bin, sums in partial.columns.items():
                take_from(self._bins[bin], partial.at, sums)
                self._users[bin] -= 1
                if not self._users[bin]:
                    del self._bins[bin], self._users[bin]

    def exchange(
        self, last: int, before: Sequence[Partial], change: Partial, after: Partial
    ) -> None:
        """Replace several partials by one: their merger with a change."""
        # The values that a change subtracts were added before, so its bins are in use.
        for bin, sums in change.columns.items():
            add_to(self._bins[bin], change.at, sums)
        for bin in after.columns:
            self._users[bin] += 1
        for partial in before:
            for bin in partial.columns:
                self._users[bin] -= 1

    def read(self, at: At) -> FloatArray:
        """Return the sums of some keys; NaN if both infinities are among the values."""
        bins = {bin: sums[at] for bin, sums in self._bins.items()}
        return _read(bins) if bins else np.zeros(self._size)[at]

    def rolled_up(self, at: IntArray, groups: IntArray, size: int) -> FloatArray:
        """Return the sums of groups of keys: exact, and rounded once."""
        bins: dict[int, IntArray] = {}
        for bin, sums in self._bins.items():
            np.add.at(_column(bins, bin, size), groups, sums[at])
        return _read(bins) if bins else np.zeros(size)


def _read(bins: Mapping[int, IntArray]) -> FloatArray:
    """Return the doubles nearest to sums in bins, of which there is one at least."""
    limbs = {bin: sums for bin, sums in bins.items() if bin < PLUS_INFINITY}
    sums = rounded(limbs) if limbs else np.zeros(len(next(iter(bins.values()))))
    plus, minus = _any(bins, PLUS_INFINITY), _any(bins, MINUS_INFINITY)
    if plus is not None:
        sums = np.where(plus, np.inf, sums)
    if minus is not None:
        sums = np.where(minus, -np.inf if plus is None else np.where(plus, np.nan, -np.inf), sums)
    return sums


def _any(bins: Mapping[int, IntArray], bin: int) -> npt.NDArray[np.bool_] | None:
    return bins[bin] > 0 if bin in bins else None


def _grown(column: IntArray, size: int) -> IntArray:
    wider = np.zeros(size, dtype=np.int64)
    wider[: len(column)] = column
    return wider
