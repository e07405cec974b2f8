"""Conformance test of rankers: call ``check_ranker(MyRanker)`` in a test of your own ranker."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from replica.rankers.contract import (
    Candidates,
    FloatArray,
    IntArray,
    RankerError,
    no_outlook,
    ranked,
)
from replica.rankers.registry import RankerClass

_SIZES = (0, 1, 2, 3, 7, 50, 1000)
_KS = (0, 1, 5, 2000, 10**15)
_ALIKE = (math.nan, math.inf, -math.inf, 1.0)
"""Merits that all candidates of a kind may have; of most kinds each has its own."""


def check_ranker(ranker: RankerClass) -> None:
    """Run a ranker on candidates of many kinds; takes well under a second for a fast ranker.

    Raises :class:`~replica.rankers.contract.RankerError` if it repeats or invents positions, or if
    a new instance returns another order for the same candidates and random state. The candidates'
    arrays are read-only.
    """
    with np.errstate(all="ignore"):
        for number, (first, second) in enumerate(
            zip(all_candidates(), all_candidates(), strict=True)
        ):
            said = ranked(ranker(), first)
            if not np.array_equal(said, ranked(ranker(), second)):
                raise RankerError(
                    f"{ranker.__name__} is of two minds about the same candidates (kind {number})"
                )


def all_candidates() -> Iterator[Candidates]:
    """Yield candidates of every kind: none, one and many, with and without merits, for answers of
    all lengths.
    """
    for seed, size in enumerate(_SIZES):
        for k in _KS:
            for slide in (0.0, 60.0):
                yield sample_candidates(size, k=k, slide=slide, seed=seed)
            for merit in _ALIKE:
                alike = replace(
                    sample_candidates(size, k=k, seed=seed),
                    merits=_unchangeable(np.full(size, merit)),
                )
                yield from (alike, replace(alike, outlook=no_outlook))


def sample_candidates(size: int, *, k: int = 5, slide: float = 60.0, seed: int = 0) -> Candidates:
    """Return candidates with all special cases: never fetched, no merit, extreme rates."""
    random = np.random.default_rng(seed)

    def mixed(values: FloatArray, *odd: float) -> FloatArray:
        """Replace some values by odd ones, and make the array read-only."""
        for value in odd:
            values[random.random(size) < 0.1] = value
        return _unchangeable(values)

    rows, remaining = random.permutation(size), random.integers(0, 5, size)
    rows.setflags(write=False)
    remaining.setflags(write=False)
    return Candidates(
        rows=rows,
        fetched_at=mixed(np.floor(random.uniform(0, 1000, size)), -np.inf, 1000.0, 2000.0),
        merits=mixed(-np.sort(-random.normal(size=size)), np.nan, np.inf, -np.inf),
        k=k,
        now=1000.0,
        slide=slide,
        remaining=remaining,
        intervals=mixed(random.exponential(300.0, size), np.inf, 0.0, 1e-300, 1e300),
        chances=mixed(random.uniform(0.0, 1.0, size), 0.0, 1.0),
        outlook=_outlook,
        random=np.random.default_rng(seed),
    )


def _unchangeable(values: FloatArray) -> FloatArray:
    values.setflags(write=False)
    return values


def _outlook(at: IntArray, count: int) -> FloatArray:
    """Draw merits with all special cases, equal for equal arguments."""
    random = np.random.default_rng(count)
    merits = random.normal(size=(count, len(at)))
    for value in (np.nan, np.inf, -np.inf):
        merits[random.random(merits.shape) < 0.1] = value
    merits[:, at % 5 == 0] = np.nan
    return merits
