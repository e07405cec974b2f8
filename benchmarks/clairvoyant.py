"""Ranker that knows the remote's values: the best that a budget could do. For experiments only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from replica.rankers.contract import Candidates, FloatArray, IntArray

_NOTHING = 1e-12
_MOST_IN_PAIRS = 100
"""Largest number of candidates among which pairs are tried."""

Truth = Callable[[Candidates], FloatArray]
"""Function that returns the candidates' merits with the remote's present values."""


def clairvoyant(truth: Truth) -> type:
    """Return a ranker that knows the truth, and each time refreshes what improves the answer most.

    An answer's worth is the sum of its nDCG and its precision. Refreshes are chosen one at a time,
    as if each were the last. If none helps alone, two are chosen that help together (such as one
    that leaves the answer, and the one that then enters). If three are needed it may miss them, so
    the true optimum is slightly better. Candidates without a change, and those that do not help,
    are left out. A choice among n candidates costs O(n log n) for each of the c that have changed,
    or for each of c² pairs if none helps alone and c is at most 100.
    """

    class Clairvoyant:
        def __call__(self, candidates: Candidates) -> IntArray:
            return greedy_order(
                np.nan_to_num(candidates.merits, nan=-np.inf), truth(candidates), candidates.k
            )

    return Clairvoyant


def greedy_order(merits: FloatArray, true: FloatArray, k: int) -> IntArray:
    """Return the order in which to correct merits, each time the one that gains most.

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


def _most_gained(
    merits: FloatArray, true: FloatArray, left: IntArray, relevance: FloatArray, k: int
) -> IntArray:
    """Return the position that gains most, or two if none helps alone; none if none helps."""
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
    # If only one more may be refreshed, this is the better one.
    return (
        left[pair[np.argsort(-alone[pair], kind="stable")]]
        if both[best] > now + _NOTHING
        else left[:0]
    )


def _worth_with(
    several: IntArray, merits: FloatArray, true: FloatArray, relevance: FloatArray, k: int
) -> FloatArray:
    """Return the answer's worth after each row of positions is corrected."""
    tried = np.tile(merits, (len(several), 1))
    np.put_along_axis(tried, several, true[several], axis=1)
    return _worth(tried, relevance, k)


def _worth(merits: FloatArray, relevance: FloatArray, k: int) -> FloatArray:
    """Return the worth of the answers that rows of merits give."""
    answers = relevance[np.argsort(-merits, axis=1, kind="stable")[:, :k]]
    discounts = 1 / np.log2(np.arange(answers.shape[1]) + 2)
    ideal = float((-np.sort(-relevance)[: answers.shape[1]] * discounts).sum())
    return np.asarray(
        answers @ discounts / max(ideal, 1e-300) + (answers > 0).sum(axis=1) / max(k, 1)
    )
