"""Which events fewer than k newer ones beat: one scan from the newest to the oldest."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from acquatop.topk.contract import FloatArray, IntArray


def undominated(merits: FloatArray, k: int) -> IntArray:
    """Return where they stand, the newest first. NaN stands nowhere.

    Backwards the k-th best of what has been passed is a bar for all that is older; of two that tie the newer
    is the better. With m merits and s that are found O(m + s·log k), and the moving of k entries for each.

    >>> undominated(np.array([5.0, 9.0, 2.0, np.nan, 8.0, 3.0]), k=2).tolist()
    [5, 4, 1]
    """
    best: list[float] = []
    found = []
    at = len(merits)
    for merit in merits[::-1].tolist():
        at -= 1
        if len(best) < k:
            if merit != merit:
                continue
        elif merit > best[0]:
            del best[0]
        else:
            continue
        best.insert(bisect_left(best, merit), merit)
        found.append(at)
    return np.array(found, dtype=np.int64)
