"""Whether values that change are drawn anew, or move by steps that are small beside how far apart values are."""

from __future__ import annotations

import numpy as np

from replica.freshness.arrays import FloatArray

_POWERS = (np.arange(64) + 0.5) / 64
_MOST = 500.0


def chance_drawn_anew(before: FloatArray, steps: FloatArray, known: FloatArray) -> float:
    """Return how likely it is that changes draw from all values anew, by how near they ended. O(k log k) for k known.

    A change's nearness u is the share of the values known that lie nearer to the old value than the new one does. Of
    what is drawn anew any u is as likely as any other. Of steps small ones are likelier: u has the density
    a · u^(a − 1), and of the power a nothing is known but that it is between 0 and 1. Both are as likely at first.
    It is ranks that count, so the size and the shape of the population do not matter; with few values known, nothing
    can be very near, and little is learned.

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
    # The old value is among them: it stands for the new one.
    nearer = np.searchsorted(values, before + far, "left") - np.searchsorted(values, before - far, "right")
    logs = np.log(np.clip(nearer, 1, len(values)) / len(values))
    odds = len(steps) * np.log(_POWERS) + (_POWERS - 1) * logs.sum()
    return float(1 / (1 + np.exp(np.minimum(odds, _MOST)).mean()))
