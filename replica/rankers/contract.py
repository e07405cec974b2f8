"""Contract of rankers: the candidates they receive and the order they return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from replica.spending.allowance import SPEND_ALL, ItemAllowance

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

Outlook = Callable[[IntArray, int], FloatArray]
"""Sampler of changed merits, by candidates' positions: a row per draw, NaN if unknown."""


@dataclass(frozen=True)
class Candidates:
    """Candidates for a refresh, as arrays of one length, best-scored candidate first.

    - ``rows`` in the store; ``fetched_at`` on the clock of ``now``, minus infinity if never.
    - ``merits``: the scores, or their negatives if the least are wanted; NaN if unknown.
    - ``k``: number of results, so the border between reported and unreported candidates lies
      between positions k-1 and k. It is 0 if nothing says what the answer holds, and may exceed the
      number of candidates.
    - ``slide``: seconds between evaluations; ``remaining``: number of further evaluations of each
      candidate.
    - ``intervals``: estimated seconds between changes of each, infinite if it never changes.
    - ``chances``: the chance that each has another value by now than the replica has.
    - ``outlook``: samples of their merits in that case.
    - ``random``: the only source of randomness.
    - ``allowance``: how many may be asked for, and how many of these later instead.
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
    allowance: ItemAllowance = SPEND_ALL

    def __post_init__(self) -> None:
        columns = (
            self.rows,
            self.fetched_at,
            self.merits,
            self.remaining,
            self.intervals,
            self.chances,
        )
        lengths = {len(each) for each in columns}
        if len(lengths) > 1:
            raise ValueError(f"columns of candidates differ in length: {sorted(lengths)}")

    def __len__(self) -> int:
        return len(self.rows)


def no_outlook(at: IntArray, count: int) -> FloatArray:
    """Return NaN for all draws: no knowledge of changed merits."""
    return np.full((count, len(at)), np.nan)


class Ranker(Protocol):
    """Order in which to refresh. One is made per query, without arguments, and may keep state.

    A class that draws no random numbers may say ``is_deterministic = True``: a replay then needs no
    second seed.
    """

    def __call__(self, candidates: Candidates, /) -> IntArray:
        """Return positions of candidates in refresh order, each at most once.

        Some may be left out.
        """


@runtime_checkable
class Appraiser(Protocol):
    """Ranker that also says how much the answer is expected to gain by each refresh."""

    def appraised(self, candidates: Candidates, /) -> tuple[IntArray, FloatArray]:
        """Return positions of candidates in refresh order, and the worth of each.

        The worth is in shares of the answer's nDCG and, twice, of its precision.
        """


class RankerError(ValueError):
    """Result of a ranker that is not an order of its candidates."""


def ranked(ranker: Ranker, candidates: Candidates) -> IntArray:
    """Return a ranker's order, checked to be positions of candidates without repetition. O(n).

    Raises :class:`RankerError`.
    """
    return _checked(np.asarray(ranker(candidates)), candidates, type(ranker).__name__)


def appraised(ranker: Ranker, candidates: Candidates) -> tuple[IntArray, FloatArray | None]:
    """Return a ranker's order, checked, and the worth of each, if the ranker says so."""
    if not isinstance(ranker, Appraiser):
        return ranked(ranker, candidates), None
    order, worths = ranker.appraised(candidates)
    return _checked(np.asarray(order), candidates, type(ranker).__name__), worths


def _checked(order: IntArray, candidates: Candidates, name: str) -> IntArray:
    if order.ndim != 1 or (len(order) and order.dtype.kind not in "iu"):
        raise RankerError(
            f"{name} must return one row of whole numbers, not {order.dtype} of shape {order.shape}"
        )
    order = order.astype(np.int64)
    if len(order) and (order.min() < 0 or order.max() >= len(candidates)):
        raise RankerError(
            f"{name} returned positions that none of {len(candidates)} candidates has"
        )
    if np.bincount(order, minlength=1).max() > 1:
        raise RankerError(f"{name} returned a position more than once")
    return order
