"""History of all rows: times of fetches and changes, and the evidence for predictions."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from replica.freshness.arrays import NEVER, BoolArray, FloatArray, IntArray, grown
from replica.freshness.rate_evidence import RateEvidence
from replica.freshness.value_changes import ValueChanges

_SHORTEST, _LONGEST = 1e-6, 1e12
"""Bounds of the seconds between two looks: a shorter gap is no look, a longer one is cut off."""

_GREATEST = 1e30
"""Largest number to learn from: larger ones do not fit into four bytes. NaN is skipped as well."""


class Lane(NamedTuple):
    """One more number for some of the rows of a refresh, given by their positions in it."""

    at: IntArray
    before: Mapping[str, FloatArray]
    after: Mapping[str, FloatArray]


class History:
    """Past of each row: 25 bytes each and 8 per variable, and some kilobytes for all rows together.

    A store owns it, assigns keys to rows, and reports every refresh to it. A
    :class:`~replica.freshness.change_model.ChangeModel` reads from it. ``changed_at`` is the time
    at which a refresh last found another value, ``NEVER`` while the first value stands. Observing n
    rows takes O(n).

    >>> history = History(("followers",))
    >>> history.grow(2)
    >>> rows, unknown, seven, eight = (
    ...     np.arange(2),
    ...     np.full(2, np.nan),
    ...     np.array([7.0]),
    ...     np.array([8.0]),
    ... )
    >>> history.observe(
    ...     rows,
    ...     10.0,
    ...     np.array([True, True]),
    ...     {"followers": unknown},
    ...     {"followers": np.array([7.0, 9.0])},
    ... )
    >>> history.observe(
    ...     rows[:1], 15.0, np.array([True]), {"followers": seven}, {"followers": eight}
    ... )
    >>> history.fetched_at, history.changed_at
    (array([15., 10.]), array([ 15., -inf]))
    """

    def __init__(self, variables: tuple[str, ...]) -> None:
        self.fetched_at: FloatArray = np.empty(0)
        self.changed_at: FloatArray = np.empty(0)
        self.rates = RateEvidence()
        self.value_changes = {name: ValueChanges() for name in variables}

    @property
    def capacity(self) -> int:
        """Number of rows that fit."""
        return len(self.fetched_at)

    @property
    def nbytes(self) -> int:
        """Memory of all columns in bytes."""
        return sum(column.nbytes for column in self.state().values())

    def grow(self, capacity: int) -> None:
        """Make room for more rows; present rows keep their content."""
        self.fetched_at = grown(self.fetched_at, capacity, NEVER)
        self.changed_at = grown(self.changed_at, capacity, NEVER)
        for _, part in self._parts():
            part.grow(capacity)

    def clear(self, rows: IntArray) -> None:
        """Forget rows that will stand for other keys; statistics over all rows remain."""
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
        more: Iterable[Lane] = (),
    ) -> None:
        """Take in the result of a refresh sent at ``now`` for some rows, each at most once.

        ``changed`` marks the rows whose terms differ from before. ``before`` and ``after`` give the
        numbers, NaN if there is none. The first fetch of a row is no evidence of change. Answers to
        questions older than the last one (``now`` before ``fetched_at``) are skipped. ``pushed``
        means that the remote announced the changes when they happened. ``more`` are further
        numbers of rows that have several; such rows must all be current.
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
        # Pushed changes arrive one by one.
        behind = (
            np.ones(len(rows))
            if pushed
            else self.rates.changes_behind(rows, np.where(looked, ages, 0.0))
        )
        self.rates.observe(rows[looked], ages[looked], changed[looked], pushed=pushed)
        self._learn(rows, found, before, after, behind)
        for lane in more:
            at = lane.at
            self._learn(rows[at], found[at], lane.before, lane.after, behind[at])
        self._classify(rows, after)
        self.fetched_at[rows] = now
        self.changed_at[rows[found]] = now

    def _learn(
        self,
        rows: IntArray,
        found: BoolArray,
        before: Mapping[str, FloatArray],
        after: Mapping[str, FloatArray],
        behind: FloatArray,
    ) -> None:
        """Learn from one number of each row; ``found`` marks the rows that have changed."""
        for name, value_changes in self.value_changes.items():
            value_changes.see(after[name])
            numbers = found & (np.abs(before[name]) < _GREATEST) & (np.abs(after[name]) < _GREATEST)
            value_changes.observe(
                rows[numbers], before[name][numbers], after[name][numbers], behind[numbers]
            )

    def _classify(self, rows: IntArray, after: Mapping[str, FloatArray]) -> None:
        """Note what rows' numbers are, by the first variable that has any."""
        for name, value_changes in itertools.islice(self.value_changes.items(), 1):
            self.rates.classes.see(rows, after[name], value_changes.known.figures[:, 0])

    def state(self, used: int | None = None) -> dict[str, npt.NDArray[Any]]:
        """Return the state of the first ``used`` rows, or of all, as read-only columns."""
        named = {"fetched_at": self.fetched_at[:used], "changed_at": self.changed_at[:used]}
        for part, each in self._parts():
            named.update({f"{part}:{name}": column for name, column in each.state(used).items()})
        return named

    def resume(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Continue from the :meth:`state` of a history of the same variables.

        Raises ``ValueError`` for anything else.
        """
        parts = dict(self._parts())
        try:
            fetched_at = np.array(state["fetched_at"], np.float64)
            changed_at = np.array(state["changed_at"], np.float64)
            for part, each in parts.items():
                start = part + ":"
                each.resume(
                    {
                        name[len(start) :]: column
                        for name, column in state.items()
                        if name.startswith(start)
                    }
                )
        except (KeyError, IndexError) as missing:
            raise ValueError(f"not a history of these variables: {missing} is missing") from missing
        rates = self.rates
        by_row: list[npt.NDArray[Any]] = [
            changed_at,
            rates.changes,
            rates.exposure,
            rates.classes.of_rows,
        ]
        for value_changes in self.value_changes.values():
            by_row += [value_changes.offsets, value_changes.spreads, value_changes.counts]
        if any(column.shape != fetched_at.shape for column in by_row):
            raise ValueError("not a history: its columns differ in length")
        self.fetched_at, self.changed_at = fetched_at, changed_at

    def become(self, other: History) -> None:
        """Take over the state of another history, which must not be used again.

        Both must have the same variables.
        """
        self.fetched_at, self.changed_at = other.fetched_at, other.changed_at
        self.rates, self.value_changes = other.rates, other.value_changes

    def _parts(self) -> list[tuple[str, RateEvidence | ValueChanges]]:
        return [
            ("rates", self.rates),
            *(
                (f"jumps:{name}", value_changes)
                for name, value_changes in self.value_changes.items()
            ),
        ]
