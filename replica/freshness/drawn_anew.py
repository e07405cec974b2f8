"""Test for how values change: drawn anew, or moved by small steps."""

from __future__ import annotations

import numpy as np

from replica.freshness.arrays import FloatArray

_POWERS = (np.arange(64) + 0.5) / 64
_MOST = 500.0


def chance_drawn_anew(before: FloatArray, steps: FloatArray, known: FloatArray) -> float:
    """Return the chance that changes draw values anew, by how near they end. O(k log k), k known.

    A change's nearness u is the share of the known values that lie nearer to the old value than the
    new one does. If values are drawn anew, u is uniform. If they move by steps, small u is
    likelier: u has the density a · u^(a − 1), with the power a uniform between 0 and 1. Both
    hypotheses are equally likely at first. Only ranks count, so the size and the shape of the
    population do not matter. With few known values nothing can be very near, and little is learned.

    >>> known = np.arange(100.0)
    >>> chance_drawn_anew(np.empty(0), np.empty(0), known)
    0.5
    >>> near = chance_drawn_anew(np.array([10.0, 50.0, 90.0]), np.array([1.0, -1.0, 2.0]), known)
    >>> far = chance_drawn_anew(np.array([10.0, 50.0, 90.0]), np.array([50.0, -40.0, -20.0]), known)
    >>> near < 0.02 < 0.5 < far
    True
    """
    values = np.unique(known)
    if not len(steps) or not len(values):
        return 0.5
    far = np.abs(steps)
    # The old value is among them and stands for the new one.
    nearer = np.searchsorted(values, before + far, "left") - np.searchsorted(
        values, before - far, "right"
    )
    logs = np.log(np.clip(nearer, 1, len(values)) / len(values))
    odds = len(steps) * np.log(_POWERS) + (_POWERS - 1) * logs.sum()
    return float(1 / (1 + np.exp(np.minimum(odds, _MOST)).mean()))
