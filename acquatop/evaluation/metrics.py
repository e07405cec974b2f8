"""nDCG@k and precision@k as in the AcquaTop paper (section 2.1.2): an answer against the whole, right order."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence


def relevancies(right: Sequence[Hashable]) -> dict[Hashable, float]:
    """Return how relevant each of some things in their right order is: the last 1, the one before it 2, and so on.

    >>> relevancies("ABC")
    {'A': 3.0, 'B': 2.0, 'C': 1.0}
    """
    return {each: float(len(right) - at) for at, each in enumerate(right)}


def ndcg_at(k: int, answer: Sequence[Hashable], relevance: Mapping[Hashable, float]) -> float:
    """Return the discounted cumulative gain of an answer's first k, as a share of the best that there can be.

    Each place i gains ``(2^relevance - 1) / log2(i + 1)``; what is not among the relevant gains nothing.
    Where nothing is relevant, every answer is as good as it can be: 1. O(n log n).

    >>> round(ndcg_at(3, "ADF", relevancies("ABCDEF")), 3)
    0.754
    """
    _check(k)
    greatest = max(relevance.values(), default=0.0)
    ideal = _gain(sorted(relevance.values(), reverse=True)[:k], greatest)
    return _gain([relevance.get(each, 0.0) for each in answer[:k]], greatest) / ideal if ideal else 1.0


def precision_at(k: int, answer: Sequence[Hashable], relevance: Mapping[Hashable, float]) -> float:
    """Return the share of an answer's first k that are among the k most relevant, in whatever order.

    Where both the answer and the relevant are fewer than k, it is a share of the longer of the two. Of
    equally relevant things at the k-th place, those that come first count. O(n log n).

    >>> round(precision_at(3, "ADF", relevancies("ABCDEF")), 3)
    0.333
    """
    _check(k)
    right = set(sorted(relevance, key=relevance.__getitem__, reverse=True)[:k])
    size = max(len(right), len(answer[:k]))
    return len(right.intersection(answer[:k])) / size if size else 1.0


def _check(k: int) -> None:
    if k < 1:
        raise ValueError("k must be at least 1")


def _gain(relevance: Sequence[float], greatest: float) -> float:
    """Return the discounted gain, divided by two to the greatest relevance: only so it is finite for long lists."""
    unit = 2.0**-greatest
    gains = (2.0 ** (each - greatest) - unit for each in relevance)
    return math.fsum(gain / math.log2(place + 1) for place, gain in enumerate(gains, start=1))
