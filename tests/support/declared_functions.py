"""Functions that tests' catalogs declare."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def decay(age: FloatArray) -> FloatArray:
    """Halve with every ten; of whole arrays."""
    return np.asarray(0.5 ** (age / 10), np.float64)


def of_one(value: FloatArray, other: FloatArray) -> FloatArray:
    """Raise an exception for a two among the values; of whole arrays."""
    if (value == 2).any():
        raise ZeroDivisionError("two")
    return value / other


def normalised_sum(mentions: FloatArray, followers: FloatArray) -> FloatArray:
    """Return the sum of two counts, each normalised by ten."""
    return (mentions + followers) / 10
