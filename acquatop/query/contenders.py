"""Solutions of a window beside its best, kept for explanations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acquatop.topk.contract import FloatArray, IntArray, Rows

MOST = 128
"""Number of solutions with a score, and of those without, that are kept beside an answer's."""


@dataclass(frozen=True)
class Contenders:
    """Solutions of a window: the best, best first, then some without a merit (NaN).

    ``numbers`` are those that the score needs. Unless they are the ``is_whole`` content, others
    have at most the merit ``beyond``, NaN if that is not known.
    """

    rows: Rows
    merits: FloatArray
    numbers: tuple[FloatArray, ...]
    is_whole: bool = False
    beyond: float = np.nan

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, at: IntArray | slice) -> Contenders:
        """Return those at some positions."""
        numbers = tuple(each[at] for each in self.numbers)
        return Contenders(self.rows.take(at), self.merits[at], numbers, self.is_whole, self.beyond)


def first_of(
    rows: Rows,
    merits: FloatArray,
    numbers: Sequence[FloatArray],
    most: int,
    *,
    is_whole: bool,
) -> Contenders:
    """Return the best of some solutions, and as many of those without a merit."""
    order = np.lexsort((-rows.times, -np.where(np.isnan(merits), -np.inf, merits)))
    scored = order[~np.isnan(merits[order])]
    without = np.flatnonzero(np.isnan(merits))
    at = np.concatenate((scored[:most], without[:most]))
    every = len(at) == len(rows)
    beyond = np.nan if every or len(scored) <= most else float(merits[scored[most]])
    kept = Contenders(rows, merits, tuple(numbers)).take(at)
    return Contenders(kept.rows, kept.merits, kept.numbers, is_whole and every, beyond)
