"""Stable sorting of a column, faster than numpy's stable sort of floats."""

from __future__ import annotations

import numpy as np

from replica.rankers.contract import FloatArray, IntArray


def ascending(values: FloatArray) -> IntArray:
    """Return the positions of ascending values; ties keep their order, NaN last. O(n log n).

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
    # Values that differ have different tie numbers; among equal values the position decides.
    places = ties * count + order
    places.sort()
    return np.asarray(places - ties * count)
