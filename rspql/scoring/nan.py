"""Two NaNs: the one that stands for an error, and the number NaN of xsd:float and xsd:double."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_BITS = np.int64(0x7FF8_0000_0000_0001)

NOT_A_NUMBER = float(np.array(_BITS).view(np.float64))
"""The number NaN in a column of numbers. Every other NaN there stands for an error or no value."""


def is_number_nan(column: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows that hold the number NaN.

    >>> is_number_nan(np.array([1.0, np.nan, NOT_A_NUMBER]))
    array([False, False,  True])
    """
    mask: npt.NDArray[np.bool_] = np.ascontiguousarray(column).view(np.int64) == _BITS
    return mask
