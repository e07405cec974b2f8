"""Skyband of a sequence by one backward scan: events that fewer than k newer ones beat."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from acquatop.topk.contract import FloatArray, IntArray


def undominated(merits: FloatArray, k: int) -> IntArray:
    """Return the positions of events that fewer than k newer ones beat, newest first.

    NaN is skipped. Scanning backwards, the k-th best so far is a bar for all older events; of two
    that tie, the newer is better. O(m + s·log k) for m merits and s results, plus moving k list
    entries per result.

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
