"""Array types and growth of the freshness model's columns."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Cell = TypeVar("Cell", bound=np.generic)

NEVER = float("-inf")
"""Time of an event that has not happened."""


def grown(column: npt.NDArray[Cell], capacity: int, fill: float) -> npt.NDArray[Cell]:
    """Return a column with room for more rows, filled with ``fill``.

    >>> grown(np.array([1.0]), 3, NEVER)
    array([  1., -inf, -inf])
    """
    extra = np.full(max(0, capacity - len(column)), fill, dtype=column.dtype)
    return np.concatenate([column, extra])
