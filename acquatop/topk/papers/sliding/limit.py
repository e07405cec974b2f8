"""Number of candidates for a probabilistic k-skyband (Section 4.1.1 of the paper): formulas only.

For an event that comes at rank l of a window in random order, the probability of being among the
best k before it leaves is at most ``p(l)`` (Theorem 4.4), from a certain rank on (Lemma A.2).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

_NEGLIGIBLE = 1e-9
"""Share of sigma at which the tail of the probabilities is cut off.

From there each is less than half of the one before.
"""


def convex_from(n: int, k: int) -> int:
    """Return the last rank (L in the paper) for which the bound does not hold, at most n.

    >>> convex_from(40_000, 9)
    17
    """
    square = -8 * k * k * n + 4 * k * k + 8 * k * n * n + 4 * k * n - 4 * k - 5 * n * n - 2 * n + 3
    return min(
        n, math.floor((3 * n - 4 * k + 2 * k * n + 3 + math.sqrt(max(0, 3 * square))) / (2 * n + 2))
    )


def bounds(n: int, k: int) -> Iterator[tuple[int, float]]:
    """Yield the ranks after L with their bounds on the probability (Equation 9).

    The paper's sum is over C(n-1, l'-1)·C(n-1, l-1) / C(2n-2, l+l'-2). Each term follows from that
    of the rank before by a factor, in logarithms: such binomials exceed floats. O(k) per rank.

    >>> [(rank, round(bound, 4)) for rank, bound in bounds(5, 1)]
    [(4, 0.0992), (5, 0.0198)]
    """
    best = np.arange(1, min(k, n) + 1, dtype=np.float64)
    terms = np.concatenate(([0.0], np.cumsum(np.log((n - best[:-1]) / (2 * n - 1 - best[:-1])))))
    last = convex_from(n, k)
    for rank in range(1, n + 1):
        if rank > last:
            yield rank, n * n / (4 * n - 2) * float(np.exp(terms).sum())
        if rank < n:
            terms += np.log((n - rank) / rank * (rank + best - 1) / (2 * n - rank - best))


def limit_of_the_table(n: int, k: int, sigma: float) -> int:
    """Return the limit of the paper's Table V.

    Ranks from the first one with a bound below σ/2 are dropped.

    >>> limit_of_the_table(10_000, 10, 0.001)
    37
    """
    for rank, bound in bounds(n, k):
        if bound < sigma / 2:
            return max(1, rank - 1 - k)
    return max(1, n - k)


def safe_limit(n: int, k: int, sigma: float) -> int:
    """Return the limit of Definition 4.5: the bounds of all dropped ranks sum to less than σ.

    Table V assumes that from there on each bound is less than half of the one before, which does
    not hold for large k.

    >>> safe_limit(10_000, 10, 0.001), safe_limit(1_000, 500, 0.001)  # in the table 37 and 106
    (37, 109)
    """
    ranks, tail = [convex_from(n, k)], []
    for rank, bound in bounds(n, k):
        ranks.append(rank)
        tail.append(bound)
        if bound < _NEGLIGIBLE * sigma:
            break
    given_up = np.cumsum(tail[::-1])[::-1]
    return max(1, ranks[int(np.count_nonzero(given_up >= sigma))] - k)
