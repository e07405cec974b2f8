"""Places of several rows' values, if a row may have any number of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from replica.store.columns import positions_of
from replica.store.contract import FloatArray, IntArray


@dataclass(frozen=True)
class Runs:
    """Places of the values of some rows, row by row, and the position of each place's row.

    >>> runs = Runs(np.array([7, 8, 3]), np.array([0, 0, 2]), 3)
    >>> runs.best(np.array([1.0, 5.0, np.nan]))
    array([ 5., nan, nan])
    """

    places: IntArray
    owners: IntArray
    count: int
    """Number of rows."""

    def __len__(self) -> int:
        return len(self.places)

    @property
    def counts(self) -> IntArray:
        """Number of places of each row."""
        return np.bincount(self.owners, minlength=self.count)

    @property
    def is_plain(self) -> bool:
        """True if each row has one place."""
        return len(self.places) == self.count and (
            not self.count or bool((np.diff(self.owners) == 1).all())
        )

    def best(self, values: FloatArray) -> FloatArray:
        """Return the greatest value of each row's places along the last axis; NaN if none has one.

        ``values`` are those of the places.
        """
        if self.is_plain:
            return values
        best = np.full((*values.shape[:-1], self.count), np.nan)
        if len(self.places):
            starts = np.flatnonzero(np.diff(self.owners, prepend=-1))
            best[..., self.owners[starts]] = np.fmax.reduceat(values, starts, axis=-1)
        return best


def runs_at(starts: IntArray, counts: IntArray, *, least: int = 0) -> Runs:
    """Return the runs of rows, given where each begins and how long it is.

    With ``least`` 1, a row without a place has the place -1, where columns have no value.
    """
    starts, counts = starts.astype(np.int64), counts.astype(np.int64)
    if least:
        starts, counts = np.where(counts > 0, starts, -1), np.maximum(counts, 1)
    return Runs(
        positions_of(starts, counts), np.repeat(np.arange(len(counts)), counts), len(counts)
    )
