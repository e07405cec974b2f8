"""What a budget could do at best: a ranker that knows what the remote has. For experiments alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from replica.rankers.contract import Candidates, FloatArray, IntArray

Truth = Callable[[Candidates], FloatArray]
"""Returns the merits that candidates have with what the remote has now."""


def clairvoyant(truth: Truth) -> type:
    """Return a ranker that knows the truth, and each time refreshes what brings the answer nearest to it.

    What an answer is worth is its nDCG and its precision together. One refresh at a time is chosen, as if it were the
    last: where two help only together it may miss them, so the very best is a little better still. Candidates
    without any change, and those that help nothing, are left out. O(k · n²) for n candidates that have changed.
    """

    class Clairvoyant:
        def __call__(self, candidates: Candidates) -> IntArray:
            return greedy_order(np.nan_to_num(candidates.merits, nan=-np.inf), truth(candidates), candidates.k)

    return Clairvoyant


def greedy_order(merits: FloatArray, true: FloatArray, k: int) -> IntArray:
    """Return which merits to set right one after the other, each time the one by which the answer gains most.

    >>> greedy_order(np.array([9.0, 8.0, 1.0]), np.array([9.0, 2.0, 10.0]), k=1).tolist()
    [2]
    """
    merits, relevance = merits.copy(), np.zeros(len(true))
    right = np.argsort(-true, kind="stable")[:k]
    relevance[right] = 2.0 ** -np.arange(len(right)) - 2.0**-k
    chosen: list[int] = []
    left = np.flatnonzero(merits != true)
    while len(left):
        tried = np.tile(merits, (len(left) + 1, 1))
        tried[np.arange(len(left)), left] = true[left]
        worth = _worth(tried, relevance, k)
        at = int(np.argmax(worth[:-1]))
        if worth[at] <= worth[-1]:
            break
        chosen.append(int(left[at]))
        merits[left[at]] = true[left[at]]
        left = np.delete(left, at)
    return np.array(chosen, dtype=np.int64)


def _worth(merits: FloatArray, relevance: FloatArray, k: int) -> FloatArray:
    """Return what the answers are worth that some rows of merits give."""
    answers = relevance[np.argsort(-merits, axis=1, kind="stable")[:, :k]]
    discounts = 1 / np.log2(np.arange(answers.shape[1]) + 2)
    ideal = float((-np.sort(-relevance)[: answers.shape[1]] * discounts).sum())
    return np.asarray(answers @ discounts / max(ideal, 1e-300) + (answers > 0).sum(axis=1) / k)
