"""Growing columns: an array by row, with one more cell at the end for row -1."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from replica.store.contract import IntArray

AnyArray = npt.NDArray[Any]


def column(capacity: int, nothing: float, dtype: npt.DTypeLike) -> AnyArray:
    """Return an empty column.

    Its last cell is the one of row -1, so that one gather serves known and unknown rows.
    """
    return np.full(capacity + 1, nothing, dtype)


def grown(cells: AnyArray, capacity: int, nothing: float) -> AnyArray:
    """Return a column with room for more rows."""
    wider = np.full(capacity + 1, nothing, cells.dtype)
    wider[: len(cells) - 1] = cells[:-1]
    return wider


def room_for(needed: int, capacity: int) -> int:
    """Return the next capacity: growth by a quarter limits unused room and keeps appending cheap.

    >>> room_for(65, 64), room_for(1000, 64), room_for(64, 64)
    (80, 1000, 64)
    """
    return capacity if needed <= capacity else max(needed, capacity + capacity // 4, 64)


def positions_of(starts: IntArray, lengths: IntArray) -> IntArray:
    """Return all positions of some runs, one run after the other. O(positions).

    >>> positions_of(np.array([7, 0]), np.array([2, 3])).tolist()
    [7, 8, 0, 1, 2]
    """
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))
