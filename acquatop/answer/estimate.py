"""Expected precision and nDCG of an answer, against worlds as likely as the real one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Estimate:
    """Precision and nDCG that an answer can be expected to have."""

    precision: float
    ndcg: float


CERTAIN = Estimate(1.0, 1.0)
"""Estimate of an answer that cannot be wrong."""


def worst(several: Sequence[Estimate]) -> Estimate:
    """Return the least precision and nDCG of some estimates."""
    return Estimate(min(each.precision for each in several), min(each.ndcg for each in several))


def estimate(merits: FloatArray, reported: int, k: int, offset: int = 0) -> Estimate:
    """Return an answer's mean precision and nDCG over worlds.

    ``merits`` has a row per world and a column per solution; NaN if that world does not have it.
    The first ``reported`` columns are the answer's, best first; of equal merits the one further
    left is the better. A world's truth are its best k. In both, the first ``offset`` are not shown
    and do not count. The measures are those of :mod:`acquatop.lab.replay.metrics`: the last of the
    truth has the relevance 1, the one before it 2. O(w·n) for w worlds and n solutions, and the
    sorting of the solutions among the best in any world.

    >>> found = estimate(np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 4.0]]), reported=2, k=2)
    >>> found.precision, round(found.ndcg, 3)
    (0.75, 0.638)
    """
    merits = _contenders(merits, reported, k)
    right = np.argsort(-merits, axis=1, kind="stable")[:, offset:k]
    is_there = ~np.isnan(np.take_along_axis(merits, right, axis=1))
    sizes = is_there.sum(axis=1)
    # The additional last column stands for missing solutions.
    relevance = np.zeros((len(merits), merits.shape[1] + 1))
    places = np.where(is_there, right, merits.shape[1])
    np.put_along_axis(
        relevance, places, np.maximum(sizes[:, None] - np.arange(right.shape[1]), 0.0), axis=1
    )
    relevance = relevance[:, offset : min(k, reported)]
    return Estimate(_precision(relevance, sizes), _ndcg(relevance, sizes))


def belonging(merits: FloatArray, k: int) -> npt.NDArray[np.bool_]:
    """Return a mask of the solutions that are among the best k, a row per world.

    >>> belonging(np.array([[3.0, 2.0, np.nan], [3.0, 2.0, 4.0]]), k=2).astype(int).tolist()
    [[1, 1, 0], [1, 0, 1]]
    """
    known = np.where(np.isnan(merits), -np.inf, merits)
    count = merits.shape[1]
    is_there: npt.NDArray[np.bool_] = ~np.isnan(merits)
    if count > k:
        is_there &= known >= np.partition(known, count - k, axis=1)[:, count - k, None]
    return is_there


def _contenders(merits: FloatArray, reported: int, k: int) -> FloatArray:
    """Return the columns of the answer, and of all solutions among the best k of any world."""
    count = merits.shape[1]
    if count <= k:
        return merits
    known = np.where(np.isnan(merits), -np.inf, merits)
    bars = np.partition(known, count - k, axis=1)[:, count - k]
    matters = (known >= bars[:, None]).any(axis=0) | (np.arange(count) < reported)
    return merits[:, matters]


def _precision(relevance: FloatArray, sizes: IntArray) -> float:
    """Return the mean share of right results in the answer, or in the truth if that is longer."""
    hits = (relevance > 0).sum(axis=1)
    lengths = np.maximum(sizes, relevance.shape[1])
    return float(np.where(lengths > 0, hits / np.maximum(lengths, 1), 1.0).mean())


def _ndcg(relevance: FloatArray, sizes: IntArray) -> float:
    """Return the mean of the answer's gain as a share of the greatest possible gain."""
    longest = max(relevance.shape[1], int(sizes.max(initial=0)))
    discounts = 1 / np.log2(np.arange(2, longest + 2))
    # Divided by two to the greatest relevance: only so are gains finite for long answers.
    unit = 2.0 ** -sizes[:, None].astype(np.float64)
    gained = ((2.0 ** (relevance - sizes[:, None]) - unit) * discounts[: relevance.shape[1]]).sum(
        axis=1
    )
    best = np.maximum(sizes[:, None] - np.arange(longest), 0.0)
    ideal = ((2.0 ** (best - sizes[:, None]) - unit) * discounts).sum(axis=1)
    return float(np.where(ideal > 0, gained / np.where(ideal > 0, ideal, 1.0), 1.0).mean())
