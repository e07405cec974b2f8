"""nDCG@k and precision@k as in the AcquaTop paper (section 2.1.2), and other metrics of answers."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence


def relevancies(right: Sequence[Hashable]) -> dict[Hashable, float]:
    """Return the relevance of things in their right order: 1 for the last, 2 before it, and so on.

    >>> relevancies("ABC")
    {'A': 3.0, 'B': 2.0, 'C': 1.0}
    """
    return {each: float(len(right) - at) for at, each in enumerate(right)}


def ndcg_at(k: int, answer: Sequence[Hashable], relevance: Mapping[Hashable, float]) -> float:
    """Return nDCG@k: the discounted cumulative gain of an answer's first k, relative to the best.

    Each place i gains ``(2^relevance - 1) / log2(i + 1)``; anything not relevant gains nothing. If
    nothing is relevant, every answer is perfect: 1. O(n log n).

    >>> round(ndcg_at(3, "ADF", relevancies("ABCDEF")), 3)
    0.754
    """
    _check(k)
    greatest = max(relevance.values(), default=0.0)
    ideal = _gain(sorted(relevance.values(), reverse=True)[:k], greatest)
    return (
        _gain([relevance.get(each, 0.0) for each in answer[:k]], greatest) / ideal if ideal else 1.0
    )


def precision_at(k: int, answer: Sequence[Hashable], relevance: Mapping[Hashable, float]) -> float:
    """Return the share of an answer's first k that are among the k most relevant, in any order.

    If both the answer and the relevant are fewer than k, it is a share of the longer of the two. Of
    equally relevant things at the k-th place, those that come first count. O(n log n).

    >>> round(precision_at(3, "ADF", relevancies("ABCDEF")), 3)
    0.333
    """
    _check(k)
    right = set(sorted(relevance, key=relevance.__getitem__, reverse=True)[:k])
    size = max(len(right), len(answer[:k]))
    return len(right.intersection(answer[:k])) / size if size else 1.0


def ndcg_positional_at(k: int, answer: Sequence[Hashable], right: Sequence[Hashable]) -> float:
    """Return nDCG as the paper's authors compute it: hits gain by their *reported* place.

    So swaps within the right answer cost nothing; ``right`` is the right order. The paper's Table 6
    holds this metric, its text defines :func:`ndcg_at`. O(k).

    >>> ndcg_positional_at(3, "CBA", "ABCDEF"), round(ndcg_positional_at(3, "ADF", "ABCDEF"), 3)
    (1.0, 0.745)
    """
    _check(k)
    best = set(right[:k])
    size = max(len(best), len(answer[:k]))
    places = [float(size - at) for at in range(size)]
    ideal = _gain(places, float(size))
    gained = [
        place if at < len(answer) and answer[at] in best else 0.0 for at, place in enumerate(places)
    ]
    return _gain(gained, float(size)) / ideal if ideal else 1.0


def rank_correlation(answer: Sequence[Hashable], right: Sequence[Hashable]) -> float:
    """Return Kendall's tau of an answer's order: 1 if all pairs are in order, -1 if none is.

    Only things in both orders count; with fewer than two the result is 1. O(n²) for n such things.

    >>> rank_correlation("ABC", "ABCDEF"), rank_correlation("FX", "ABCDEF")
    (1.0, 1.0)
    >>> rank_correlation("BAC", "ABC")
    0.3333333333333333
    """
    places = {each: place for place, each in enumerate(right)}
    order = [places[each] for each in answer if each in places]
    pairs = [1 if order[a] < order[b] else -1 for b in range(len(order)) for a in range(b)]
    return sum(pairs) / len(pairs) if pairs else 1.0


def _check(k: int) -> None:
    if k < 1:
        raise ValueError("k must be at least 1")


def _gain(relevance: Sequence[float], greatest: float) -> float:
    """Return the discounted gain divided by 2^greatest, so that it is finite for long lists."""
    unit = 2.0**-greatest
    gains = (2.0 ** (each - greatest) - unit for each in relevance)
    return math.fsum(gain / math.log2(place + 1) for place, gain in enumerate(gains, start=1))
