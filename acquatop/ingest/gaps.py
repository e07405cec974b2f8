"""Marks of the solutions that have no value of what is aggregated: they can be added up."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.topk.contract import FloatArray, IntArray

_NAN = 2.0**32
"""Mark of the number NaN, which is a value that cannot be added up; 1 marks no value."""


def marks_of(values: pa.Array) -> IntArray:
    """Return a mark for each value: null is none.

    >>> marks_of(pa.array([1.5, None])).tolist()
    [0, 1]
    """
    marks = np.asarray(pc.is_null(values).to_numpy(zero_copy_only=False)).astype(np.int64)
    if pa.types.is_floating(values.type):
        is_nan = pc.fill_null(pc.is_nan(values), False).to_numpy(zero_copy_only=False)
        marks[np.asarray(is_nan)] = int(_NAN)
    return marks


def without_gaps(values: pa.Array) -> FloatArray:
    """Return values as doubles, with zeros in place of those that cannot be added up."""
    doubles = np.array(values.to_numpy(zero_copy_only=False), dtype=np.float64)
    doubles[np.isnan(doubles)] = 0.0
    return doubles


def gaps_in(marks: FloatArray) -> FloatArray:
    """Return the number of solutions without a value, given sums of marks.

    >>> gaps_in(np.array([3.0, 2.0**32 + 1])).tolist()
    [3.0, 1.0]
    """
    return np.asarray(np.mod(marks, _NAN))
