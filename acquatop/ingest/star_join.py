"""Solutions of a star of patterns over several records of each subject, by whole columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from acquatop.ingest.scoring import BoolArray
from acquatop.ingest.solution_count import check_count
from acquatop.topk.contract import IntArray

_NEVER = -(2**63)
MOST = 1 << 17
"""Number of solutions from which on no more are made at once."""


class StarSolutions(NamedTuple):
    """Some solutions: the row that each pattern's value is taken from, and the oldest row's time.

    A solution holds until its oldest part has gone.
    """

    rows: tuple[IntArray, ...]
    times: IntArray


def no_solutions(patterns: int) -> StarSolutions:
    """Return no solutions of a number of patterns."""
    nothing = np.empty(0, dtype=np.int64)
    return StarSolutions((nothing,) * patterns, nothing)


class _Values(NamedTuple):
    """Distinct values of one pattern, in the order of their subjects.

    ``rows`` are the newest rows that say them, ``times`` the times of these, and ``before`` those
    of the newest rows that are not fresh.
    """

    subjects: IntArray
    rows: IntArray
    times: IntArray
    before: IntArray

    def where(self, mask: BoolArray) -> _Values:
        return _Values(*(column[mask] for column in self))

    @property
    def are_newer(self) -> BoolArray:
        """Mask of the values that a fresh row says."""
        newer: BoolArray = self.times > self.before
        return newer


class _Joined(NamedTuple):
    """Values of some patterns, joined by their subjects."""

    subjects: IntArray
    rows: tuple[IntArray, ...]
    times: IntArray
    before: IntArray

    def take(self, at: IntArray | slice) -> _Joined:
        return _Joined(
            self.subjects[at], tuple(row[at] for row in self.rows), self.times[at], self.before[at]
        )


def star_solutions(
    subjects: IntArray,
    times: IntArray,
    fresh: BoolArray,
    patterns: Sequence[IntArray],
    most: int = MOST,
) -> Iterator[StarSolutions]:
    """Yield the solutions that fresh rows make, or make to hold longer than the others did.

    Rows are given by their subjects and times, whether they are fresh, and for each pattern by the
    code of the value with which they match it, -1 if they do not. No fresh row is older than one
    that is not. Each solution comes once, about ``most`` at a time: O(solutions) time, O(rows +
    most) memory. Raises :class:`~acquatop.errors.EvaluationError` if there are very many.

    >>> subjects, times = np.array([7, 7, 8, 7]), np.array([1, 2, 3, 4])
    >>> by, n = np.array([0, -1, 1, -1]), np.array([-1, 5, -1, 6])
    >>> [
    ...     ([each.tolist() for each in found.rows], found.times.tolist())
    ...     for found in star_solutions(subjects, times, times > 2, [by, n])
    ... ]
    [([[0], [3]], [1])]
    """
    values = [_distinct(subjects, times, fresh, codes) for codes in patterns]
    check_count(_count(values, int(subjects.max(initial=0)) + 1))
    for first in range(len(values)):
        # The first of the patterns with a newer value is this one, so nothing comes twice.
        sides = [
            (at, each.where(each.are_newer) if at == first else each)
            if at >= first
            else (at, each.where(~each.are_newer))
            for at, each in enumerate(values)
        ]
        (_, own), others = sides[first], [side for side in sides if side[0] != first]
        order = [first, *(at for at, _ in others)]
        start = _Joined(own.subjects, (own.rows,), own.times, own.before)
        for joined in _joined(start, [side for _, side in others], most):
            longer = np.flatnonzero(joined.times > joined.before)
            if len(longer):
                found = joined.take(longer)
                rows = tuple(found.rows[order.index(at)] for at in range(len(values)))
                yield StarSolutions(rows, found.times)


def solutions_together(
    columns: Sequence[pa.ChunkedArray], times: IntArray
) -> Iterator[StarSolutions]:
    """Yield all solutions that some rows make, given their subjects and their values by pattern."""
    subjects, *values = map(value_codes, columns)
    return star_solutions(subjects, times, np.ones(len(times), dtype=np.bool_), values)


def value_codes(values: pa.ChunkedArray) -> IntArray:
    """Return a code for each distinct value, in their order; -1 for null.

    Zeros with different signs differ.
    """
    column = values.combine_chunks()
    if pa.types.is_floating(column.type):
        column = column.view(pa.int64())
    indices = column.dictionary_encode().indices
    return np.asarray(indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)


def _count(values: Sequence[_Values], size: int) -> float:
    """Return the number of all solutions."""
    counts = (np.bincount(each.subjects, minlength=size).astype(np.float64) for each in values)
    return float(reduce(np.multiply, counts).sum())


def _distinct(subjects: IntArray, times: IntArray, fresh: BoolArray, codes: IntArray) -> _Values:
    """Return each subject's distinct values. O(n log n)."""
    at = np.flatnonzero(codes >= 0)
    order = at[np.lexsort((at, times[at], codes[at], subjects[at]))]
    subject, code = subjects[order], codes[order]
    ends = (np.diff(subject, append=-1) != 0) | (np.diff(code, append=-1) != 0)
    last = np.flatnonzero(ends)
    before = np.full(len(last), _NEVER)
    old = np.flatnonzero(~fresh[order])
    # Rows of a value are in the order of time, so the last that is old wins.
    before[np.searchsorted(last, old)] = times[order[old]]
    return _Values(subject[last], order[last], times[order[last]], before)


def _joined(left: _Joined, others: Sequence[_Values], most: int) -> Iterator[_Joined]:
    if not others:
        yield left
        return
    right, *rest = others
    starts = np.searchsorted(right.subjects, left.subjects, side="left")
    counts = np.searchsorted(right.subjects, left.subjects, side="right") - starts
    sums = np.cumsum(counts)
    start = 0
    while start < len(sums):
        made = int(sums[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(sums, made + most, side="right")))
        part = slice(start, stop)
        yield from _joined(_product(left.take(part), right, starts[part], counts[part]), rest, most)
        start = stop


def _product(left: _Joined, right: _Values, starts: IntArray, counts: IntArray) -> _Joined:
    """Return each row on the left with its values on the right, given by start and number."""
    which = np.repeat(np.arange(len(counts)), counts)
    offsets = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
    at = starts[which] + offsets
    return _Joined(
        left.subjects[which],
        (*(row[which] for row in left.rows), right.rows[at]),
        np.minimum(left.times[which], right.times[at]),
        np.minimum(left.before[which], right.before[at]),
    )
