"""Sampling of the greatest of many draws without making each draw."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def greatest(
    values: FloatArray, count: float, k: int, worlds: int, random: np.random.Generator
) -> FloatArray:
    """Return the k greatest of ``count`` draws from some values, greatest first, for each world.

    The draws are independent, and so are the worlds. The result is derived from the k greatest of
    as many uniform numbers, so ``count`` costs nothing: O(v log v + w·k) for v values and w worlds.
    NaN if there are not as many draws. No draw exceeds the greatest of the values.

    >>> greatest(np.array([1.0, 2.0]), 1000, 3, 1, np.random.default_rng(1))
    array([[2., 2., 2.]])
    """
    if not len(values):
        return np.full((worlds, k), np.nan)
    left = count - np.arange(k)
    there = left >= 1
    # The greatest of n uniform numbers is distributed as the n-th root of one; the next is so
    # distributed below it.
    logs = np.log(random.random((worlds, k))) / np.where(there, left, 1.0)
    places = (np.exp(np.cumsum(logs, axis=1)) * len(values)).astype(np.int64)
    return np.where(there, np.sort(values)[np.minimum(places, len(values) - 1)], np.nan)
