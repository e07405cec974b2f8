"""What every ranker is given and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

Outlook = Callable[[IntArray, int], FloatArray]
"""Draws merits that some candidates, by position, may have by now if they have changed: a row per draw, NaN where
nothing can be said."""


@dataclass(frozen=True)
class Candidates:
    """What may be refreshed, as arrays of one length, best-scored candidate first.

    - ``rows`` in the store; ``fetched_at`` on the clock of ``now``, minus infinity if never.
    - ``merits``: the scores, or their negatives where the least are wanted; NaN if unknown.
    - ``k``: how many results are wanted, so the border between what is reported and what is not lies between
      positions k-1 and k; 0 where nothing says what is in the answer, and there may be more than candidates.
    - ``slide``: seconds between evaluations; ``remaining``: in how many further ones each candidate will be.
    - ``intervals``: the seconds between changes of each, as they are estimated, infinite if it never changes.
    - ``chances``: how likely each has another value by now than the replica has.
    - ``outlook``: what may have become of their merits then.
    - ``random``: where chance has a say, it comes from here.
    """

    rows: IntArray
    fetched_at: FloatArray
    merits: FloatArray
    k: int
    now: float
    slide: float
    remaining: IntArray
    intervals: FloatArray
    chances: FloatArray
    outlook: Outlook
    random: np.random.Generator

    def __post_init__(self) -> None:
        columns = (self.rows, self.fetched_at, self.merits, self.remaining, self.intervals, self.chances)
        lengths = {len(each) for each in columns}
        if len(lengths) > 1:
            raise ValueError(f"columns of candidates differ in length: {sorted(lengths)}")

    def __len__(self) -> int:
        return len(self.rows)


def no_outlook(at: IntArray, count: int) -> FloatArray:
    """Say nothing of what may have become of candidates."""
    return np.full((count, len(at)), np.nan)


class Ranker(Protocol):
    """Says in which order to refresh. One is made for each query, by its class without arguments, and may remember."""

    def __call__(self, candidates: Candidates, /) -> IntArray:
        """Return positions of candidates in the order in which to refresh them, each once; it may leave some out."""


class RankerError(ValueError):
    """A ranker gave something that is not an order of its candidates."""


def ranked(ranker: Ranker, candidates: Candidates) -> IntArray:
    """Return what a ranker says, once that is known to be positions of candidates without a repetition. O(n).

    Raises :class:`RankerError`.
    """
    order = np.asarray(ranker(candidates))
    name = type(ranker).__name__
    if order.ndim != 1 or (len(order) and order.dtype.kind not in "iu"):
        raise RankerError(f"{name} must return one row of whole numbers, not {order.dtype} of shape {order.shape}")
    order = order.astype(np.int64)
    if len(order) and (order.min() < 0 or order.max() >= len(candidates)):
        raise RankerError(f"{name} returned positions that none of {len(candidates)} candidates has")
    if np.bincount(order, minlength=1).max() > 1:
        raise RankerError(f"{name} returned a position more than once")
    return order
