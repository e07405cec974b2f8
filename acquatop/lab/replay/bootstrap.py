"""Confidence interval of the mean over a recording's windows."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from acquatop.topk.contract import FloatArray, IntArray

DRAWS, BLOCK = 1_000, 5
"""Number of resamples, and number of consecutive windows that are drawn together."""

_MIDDLE = (2.5, 97.5)


class ConfidenceInterval(NamedTuple):
    """A mean and its bounds with a confidence of 95 %."""

    mean: float
    low: float
    high: float


def interval(values: FloatArray, seed: int = 0) -> ConfidenceInterval:
    """Return the mean of some series, a row each, and its interval by a bootstrap.

    Windows overlap, and stale values stay so for a while. Therefore blocks of windows are drawn,
    not single ones. If there are several series (data sets), these are drawn too. The same values
    give the same interval. O(draws · windows / block).

    >>> interval(np.array([[1.0] * 20]))
    ConfidenceInterval(mean=1.0, low=1.0, high=1.0)
    """
    series, windows = values.shape
    if not series or not windows:
        return ConfidenceInterval(math.nan, math.nan, math.nan)
    block = min(BLOCK, windows)
    blocks = -(-windows // block)
    # The windows form a ring, so that the first and the last are drawn as often as others.
    ring = np.concatenate([values, values[:, : block - 1]], axis=1)
    sums = np.lib.stride_tricks.sliding_window_view(ring, block, axis=1).sum(axis=2)
    whose, begins = _drawn(series, windows, blocks, seed)
    means = sums[whose, begins].mean(axis=(1, 2)) / block
    low, high = np.percentile(means, _MIDDLE)
    return ConfidenceInterval(float(values.mean()), float(low), float(high))


@lru_cache(maxsize=4)
def _drawn(series: int, windows: int, blocks: int, seed: int) -> tuple[IntArray, IntArray]:
    """Return the series drawn, and the starts of the blocks: the same for equal sizes."""
    random = np.random.default_rng(seed)
    return random.integers(0, series, (DRAWS, series, 1)), random.integers(
        0, windows, (DRAWS, series, blocks)
    )
