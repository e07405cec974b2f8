"""Groups of rows: which rows are among the best of their group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from acquatop.topk.columns import codes_of
from acquatop.topk.contract import AnyArray, FloatArray, IntArray


def groups_of(columns: Sequence[AnyArray], count: int) -> IntArray:
    """Return a small integer for each of ``count`` rows: equal for rows with equal columns. O(n).

    >>> x, y = np.array(["a", "b", "a"], object), np.array(["c", "c", "d"], object)
    >>> groups_of([x], 3).tolist(), len(set(groups_of([x, y], 3).tolist()))
    ([0, 1, 0], 3)
    """
    groups = np.zeros(count, dtype=np.int64)
    for column in columns if count else ():
        (codes,) = codes_of([column])
        # The codes so far are made dense again, so that their product stays small.
        groups = np.unique(groups, return_inverse=True)[1] * (1 + int(codes.max())) + codes
    return groups


def bars_of(groups: IntArray, merits: FloatArray, count: int) -> FloatArray:
    """Return for each row the merit of its group's ``count``-th best row; -inf if it has fewer.

    O(n log n).

    >>> bars_of(np.array([0, 1, 0, 0]), np.array([3.0, 5.0, 2.0, 1.0]), 2).tolist()
    [2.0, -inf, 2.0, 2.0]
    """
    order = np.lexsort((-merits, groups))
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    sizes = np.diff(starts, append=len(order))
    has_enough = sizes >= count
    lasts = np.full(len(starts), -np.inf)
    lasts[has_enough] = merits[order[starts[has_enough] + count - 1]]
    bars = np.empty(len(order))
    bars[order] = np.repeat(lasts, sizes)
    return bars


def can_be_best(
    groups: IntArray, merits: FloatArray, lasts: IntArray, count: int
) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows that can be, or tie with, one of the best ``count`` of their group.

    Others are outlived by that many rows with greater merits: the windows up to a row's last one
    hold it. O(n log n + p·m log m) for p different last windows, and m rows that can be best.

    >>> merits, lasts = np.array([3.0, 2.0, 2.0, 1.0, 9.0]), np.array([7, 7, 5, 7, 4])
    >>> can_be_best(np.zeros(5, np.int64), merits, lasts, 1).tolist()
    [True, False, False, False, True]
    """
    can = np.zeros(len(merits), dtype=np.bool_)
    best = np.empty(0, dtype=np.int64)
    order = np.argsort(-lasts, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(lasts[order])) + 1) if len(order) else ():
        together = np.concatenate((best, rows))
        bars = bars_of(groups[together], merits[together], count)
        is_among = merits[together] >= bars
        can[rows] = is_among[len(best) :]
        best = together[is_among]
    return can
