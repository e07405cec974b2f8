"""What is known of every row's past: when it was fetched, when it changed, and what that says of its future."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from replica.freshness.arrays import NEVER, BoolArray, FloatArray, IntArray, grown
from replica.freshness.jumps import Jumps
from replica.freshness.rate_evidence import RateEvidence

_SHORTEST, _LONGEST = 1e-6, 1e12
"""Seconds between two looks: sooner is not later, and for longer nobody has looked."""

_GREATEST = 1e30
"""Of greater numbers than that nothing is learned: they have no place in four bytes. Nor of NaN."""


class History:
    """The past by row, in 24 bytes each and 8 per variable; some kilobytes for all rows together.

    A store owns it, gives each row its key, and reports every refresh to it; a
    :class:`~replica.freshness.change_model.ChangeModel` reads from it. ``changed_at`` is when a refresh last found
    another value, ``NEVER`` while the first value stands. Taking in what n rows gave takes O(n).

    >>> history = History(("followers",))
    >>> history.grow(2)
    >>> rows, unknown, seven, eight = np.arange(2), np.full(2, np.nan), np.array([7.0]), np.array([8.0])
    >>> history.observe(rows, 10.0, np.array([True, True]), {"followers": unknown}, {"followers": np.array([7.0, 9.0])})
    >>> history.observe(rows[:1], 15.0, np.array([True]), {"followers": seven}, {"followers": eight})
    >>> history.fetched_at, history.changed_at
    (array([15., 10.]), array([ 15., -inf]))
    """

    def __init__(self, variables: tuple[str, ...]) -> None:
        self.fetched_at: FloatArray = np.empty(0)
        self.changed_at: FloatArray = np.empty(0)
        self.rates = RateEvidence()
        self.jumps = {name: Jumps() for name in variables}

    @property
    def capacity(self) -> int:
        """How many rows there is room for."""
        return len(self.fetched_at)

    @property
    def nbytes(self) -> int:
        """How much memory all of it takes."""
        return sum(column.nbytes for column in self.columns().values())

    def grow(self, capacity: int) -> None:
        """Make room for more rows; those that there are stay as they are."""
        self.fetched_at = grown(self.fetched_at, capacity, NEVER)
        self.changed_at = grown(self.changed_at, capacity, NEVER)
        for _, part in self._parts():
            part.grow(capacity)

    def clear(self, rows: IntArray) -> None:
        """Forget some rows, which will stand for other keys; what they taught of rows in general remains."""
        self.fetched_at[rows] = NEVER
        self.changed_at[rows] = NEVER
        for _, part in self._parts():
            part.clear(rows)

    def observe(
        self,
        rows: IntArray,
        now: float,
        changed: BoolArray,
        before: Mapping[str, FloatArray],
        after: Mapping[str, FloatArray],
        *,
        pushed: bool = False,
    ) -> None:
        """Take in what a refresh sent at ``now`` found for some rows, each of them once.

        ``changed`` says which have other terms than before, ``before`` and ``after`` give the numbers, NaN where there
        is none. A row that was never fetched before says nothing of change. Answers to older questions than the last
        (``now`` before ``fetched_at``) are passed over. ``pushed`` says that the remote announced the changes when they
        happened.
        """
        current = now >= self.fetched_at[rows]
        if not current.all():
            before = {name: numbers[current] for name, numbers in before.items()}
            after = {name: numbers[current] for name, numbers in after.items()}
            rows, changed = rows[current], changed[current]
        fetched_at = self.fetched_at[rows]
        found = changed & (fetched_at > NEVER)
        ages = np.minimum(now - fetched_at, _LONGEST)
        looked = (fetched_at > NEVER) & (ages > _SHORTEST)
        # Those that are announced come one by one.
        behind = np.ones(len(rows)) if pushed else self.rates.changes_behind(rows, np.where(looked, ages, 0.0))
        self.rates.observe(rows[looked], ages[looked], changed[looked], pushed=pushed)
        for name, jumps in self.jumps.items():
            jumps.see(after[name])
            numbers = found & (np.abs(before[name]) < _GREATEST) & (np.abs(after[name]) < _GREATEST)
            jumps.observe(rows[numbers], before[name][numbers], after[name][numbers], behind[numbers])
        self.fetched_at[rows] = now
        self.changed_at[rows[found]] = now

    def columns(self, used: int | None = None) -> dict[str, npt.NDArray[Any]]:
        """Return all that is known, of the first rows or all, for a snapshot: arrays that must not be written to."""
        named = {"fetched_at": self.fetched_at[:used], "changed_at": self.changed_at[:used]}
        for part, each in self._parts():
            named.update({f"{part}:{name}": column for name, column in each.columns(used).items()})
        return named

    def restore(self, columns: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from what :meth:`columns` gave for the same variables; raises ``ValueError`` for anything else."""
        parts = dict(self._parts())
        try:
            fetched_at = np.array(columns["fetched_at"], np.float64)
            changed_at = np.array(columns["changed_at"], np.float64)
            for part, each in parts.items():
                start = part + ":"
                each.restore({name[len(start) :]: column for name, column in columns.items() if name.startswith(start)})
        except (KeyError, IndexError) as missing:
            raise ValueError(f"not a history of these variables: {missing} is missing") from missing
        by_row: list[npt.NDArray[Any]] = [changed_at, self.rates.changes, self.rates.exposure]
        for jumps in self.jumps.values():
            by_row += [jumps.offsets, jumps.spreads, jumps.counts]
        if any(column.shape != fetched_at.shape for column in by_row):
            raise ValueError("not a history: its columns differ in length")
        self.fetched_at, self.changed_at = fetched_at, changed_at

    def become(self, other: History) -> None:
        """Take all that another of the same variables knows, which is used no longer."""
        self.fetched_at, self.changed_at = other.fetched_at, other.changed_at
        self.rates, self.jumps = other.rates, other.jumps

    def _parts(self) -> list[tuple[str, RateEvidence | Jumps]]:
        return [("rates", self.rates), *((f"jumps:{name}", jumps) for name, jumps in self.jumps.items())]
