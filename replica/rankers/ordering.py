"""Sorting a column with ties in place, faster than numpy's own stable sort of floats."""

from __future__ import annotations

import numpy as np

from replica.rankers.contract import FloatArray, IntArray


def ascending(values: FloatArray) -> IntArray:
    """Return the positions of values, least first, of equals the first first; NaN last. O(n log n).

    >>> ascending(np.array([2.0, 1.0, 2.0, -np.inf, 1.0])).tolist()
    [3, 1, 4, 0, 2]
    """
    count = len(values)
    order = np.argsort(values)
    in_order = values[order]
    differs = in_order[1:] != in_order[:-1]
    if differs.all():
        return order
    ties = np.zeros(count, dtype=np.int64)
    np.cumsum(differs, out=ties[1:])
    # Where values differ, so do the numbers of their ties; where they are equal, the position decides.
    places = ties * count + order
    places.sort()
    return np.asarray(places - ties * count)
