"""What a budget could do at best: a ranker that knows what the remote has. For experiments alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from replica.rankers.contract import Candidates, FloatArray, IntArray

_NOTHING = 1e-12
_MOST_IN_PAIRS = 100
"""Among how many it looks for two that help together."""

Truth = Callable[[Candidates], FloatArray]
"""Returns the merits that candidates have with what the remote has now."""


def clairvoyant(truth: Truth) -> type:
    """Return a ranker that knows the truth, and each time refreshes what brings the answer nearest to it.

    What an answer is worth is its nDCG and its precision together. One refresh at a time is chosen, as if it were the
    last; where none helps by itself, two that help together (one that leaves the answer, say, and who comes in then).
    Where it takes three it may miss them, so the very best is a little better still. Candidates without any change,
    and those that help nothing, are left out. O(n log n) for each of n² pairs of n candidates that have changed.
    """

    class Clairvoyant:
        def __call__(self, candidates: Candidates) -> IntArray:
            return greedy_order(np.nan_to_num(candidates.merits, nan=-np.inf), truth(candidates), candidates.k)

    return Clairvoyant


def greedy_order(merits: FloatArray, true: FloatArray, k: int) -> IntArray:
    """Return which merits to set right one after the other, each time the one by which the answer gains most.

    >>> greedy_order(np.array([9.0, 8.0, 1.0]), np.array([9.0, 2.0, 10.0]), k=1).tolist()
    [2]
    >>> greedy_order(np.array([9.0, 5.0, 1.0]), np.array([2.0, 5.0, 7.0]), k=1).tolist()
    [0, 2]
    """
    merits, relevance = merits.copy(), np.zeros(len(true))
    right = np.argsort(-true, kind="stable")[:k]
    relevance[right] = 2.0 ** -np.arange(len(right)) - 2.0**-k
    chosen: list[int] = []
    left = np.flatnonzero(merits != true)
    while len(left):
        together = _most_gained(merits, true, left, relevance, k)
        if not len(together):
            break
        chosen += together.tolist()
        merits[together] = true[together]
        left = np.setdiff1d(left, together)
    return np.array(chosen, dtype=np.int64)


def _most_gained(merits: FloatArray, true: FloatArray, left: IntArray, relevance: FloatArray, k: int) -> IntArray:
    """Return the one of those left by which the answer gains most, or two if none helps alone; nothing if none do."""
    now = _worth(merits[None], relevance, k)[0]
    alone = _worth_with(left[:, None], merits, true, relevance, k)
    if alone.max() > now + _NOTHING:
        return left[[int(np.argmax(alone))]]
    firsts, seconds = np.triu_indices(len(left), 1)
    if len(left) > _MOST_IN_PAIRS or not len(firsts):
        return left[:0]
    both = _worth_with(left[np.column_stack([firsts, seconds])], merits, true, relevance, k)
    best = int(np.argmax(both))
    pair = np.array([firsts[best], seconds[best]])
    # Where only one more may be refreshed, that is the better one.
    return left[pair[np.argsort(-alone[pair], kind="stable")]] if both[best] > now + _NOTHING else left[:0]


def _worth_with(several: IntArray, merits: FloatArray, true: FloatArray, relevance: FloatArray, k: int) -> FloatArray:
    """Return what the answer is worth once some are set right, a row of them each."""
    tried = np.tile(merits, (len(several), 1))
    np.put_along_axis(tried, several, true[several], axis=1)
    return _worth(tried, relevance, k)


def _worth(merits: FloatArray, relevance: FloatArray, k: int) -> FloatArray:
    """Return what the answers are worth that some rows of merits give."""
    answers = relevance[np.argsort(-merits, axis=1, kind="stable")[:, :k]]
    discounts = 1 / np.log2(np.arange(answers.shape[1]) + 2)
    ideal = float((-np.sort(-relevance)[: answers.shape[1]] * discounts).sum())
    return np.asarray(answers @ discounts / max(ideal, 1e-300) + (answers > 0).sum(axis=1) / max(k, 1))
