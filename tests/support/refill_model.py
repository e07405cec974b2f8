"""Refill interval of a view of more than k rows by the random walk model.

From *Efficient maintenance of materialized top-k views* (2003), sections 4.1 to 4.3. A refilled
view holds n - 1 more than the k that are asked for. A bad update removes one with probability p, a
good one adds one with probability q, and the view is refilled when fewer than k are left.
"""

from __future__ import annotations

import math

import numpy as np


def expected_interval(n: int, p: float, q: float, start: int = 0) -> float:
    """Return the mean number of updates until a refill, with ``start`` of n already lost (Lemma 1).

    This is (n + i + 1)(n - i) / 2p if p = q, else ((n - i)(1 - t) - t^(i+1) + t^(n+1)) / p(1 - t)²
    with t = q/p. It is summed term by term, as the closed form is numerically unreliable for t
    close to 1. O(n).

    >>> expected_interval(10, 0.5, 0.5)
    110.0
    """
    if not 0 <= start <= n:
        raise ValueError("start must lie between 0 and n")
    if p <= 0:
        return math.inf if start < n else 0.0
    interval, step = 0.0, 0.0
    for at in range(n):
        step = (1 + q * step) / p
        if at >= start:
            interval += step
    return interval


def bounds(n: int, table: int) -> tuple[float, float]:
    """Return a lower bound on Pr[Z > N] and an upper bound on E[N/Z].

    For p = q and a table of N (Theorem 1, Table 1). Z is the refill interval. It is never below n,
    so E[N/Z] is at most N/n if Z <= N.

    >>> [round(bound, 4) for bound in bounds(30, 100)]
    [0.9556, 1.1037]
    """
    short = 4 * math.exp(-n * n / (2 * table))
    return 1 - short, 1 - short + short * table / n


def expected_frequency(n: int, p: float, q: float, tolerance: float = 1e-6) -> float:
    """Return the mean number of refills per update: the expectation of 1/Z for the interval Z.

    It has no closed form (section 4.2), and is more than 1/E[Z]. It is summed over the walk's steps
    until the rest could add at most a share of ``tolerance``. O(n) for each step, of which there
    are some E[Z].

    >>> round(expected_frequency(2, 0.5, 0.5), 4), 1 / expected_interval(2, 0.5, 0.5)
    (0.2627, 0.16666666666666666)
    """
    if n < 1 or p <= 0 or q < 0 or p + q > 1:
        raise ValueError(
            "n must be at least 1, p positive, q not negative, and both together at most 1"
        )
    lost = np.zeros(n)
    lost[0] = 1.0
    frequency, step = 0.0, 0
    while True:
        step += 1
        frequency += p * float(lost[-1]) / step
        after = (1 - p - q) * lost
        # If nothing is lost, putting a row back changes nothing.
        after[0] += q * lost[0]
        after[1:] += p * lost[:-1]
        after[:-1] += q * lost[1:]
        lost = after
        if float(lost.sum()) / (step + 1) <= tolerance * frequency:
            return frequency
