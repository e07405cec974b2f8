"""How solutions are scored: the stream's numbers, joined with what the replica knows of the remote's."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from typing import Protocol

import numpy as np
import numpy.typing as npt

from acquatop.topk.contract import AnyArray, FloatArray, IntArray
from rspql import ast
from rspql.plan import Score
from rspql.scoring import Interval, ScoreFunction, bounds, variables_in, vectorise, vectorise_condition

BoolArray = npt.NDArray[np.bool_]

_RANGES = 1024
"""For how many ranges of the stream's numbers it is remembered what they could reach."""

_GROUPS = 256
"""How many different rows are looked at one by one when it is asked what they could reach."""


class Values(Protocol):
    """What is asked of a replica."""

    def rows(self, keys: list[str]) -> IntArray:
        """Return each key's row, -1 where nothing is known of the key."""

    def numbers(self, variable: str, rows: IntArray) -> FloatArray:
        """Return a variable's values as numbers, NaN where there is none."""

    def present(self, rows: IntArray) -> BoolArray:
        """Return whether the remote had each row's key when it was last asked."""

    def mean(self, variable: str) -> float:
        """Return the mean of a variable's values, NaN where there is none."""


class ReplicaScoring:
    """Merits with the replica's present values; without a store, of the stream's numbers alone.

    A merit is the score, or its negative where the smallest are wanted; NaN where the remote's part
    is missing, or the score is an error, or its condition does not hold.
    """

    def __init__(self, score: Score, store: Values | None) -> None:
        self._score = score
        self._store = store
        self._function = _scoring(score)
        self._conditions = [
            vectorise_condition(each, score.functions)
            for each in _conjuncts(score.condition)
            if all(name in score.stream_variables for name in variables_in(each))
        ]
        self._sign = 1.0 if score.descending else -1.0
        # Small numbers, such as counts, come again and again.
        self._reach_of_any = lru_cache(maxsize=_RANGES)(partial(self._reach, remote={}))
        self.scored = 0
        """How many rows have been scored."""

    @property
    def stream_variables(self) -> tuple[str, ...]:
        """Return the stream's variables that the score needs."""
        return self._score.stream_variables

    @property
    def remote_variables(self) -> tuple[str, ...]:
        """Return the remote's variables that the score needs."""
        return self._score.remote_variables

    def merits(self, keys: AnyArray, parts: tuple[FloatArray, ...]) -> FloatArray:
        """Return each row's merit."""
        return self.merits_of(keys.tolist(), np.arange(len(keys)), parts)

    def merits_of(self, keys: list[str], indices: IntArray, parts: tuple[FloatArray, ...]) -> FloatArray:
        """Return each row's merit, where the keys are given once each, and by index for the rows."""
        return self.merits_at(indices if self._store is None else self._store.rows(keys)[indices], parts)

    def merits_at(self, rows: IntArray, parts: tuple[FloatArray, ...]) -> FloatArray:
        """Return each row's merit, where its key's row in the replica is given, -1 for what that does not know."""
        self.scored += len(rows)
        if self._store is None:
            return self.merits_given({}, parts, len(rows))
        numbers = {name: self._store.numbers(name, rows) for name in self._score.remote_variables}
        merits = self.merits_given(numbers, parts, len(rows))
        merits[~self._store.present(rows)] = np.nan
        return merits

    def merits_given(self, remote: Mapping[str, FloatArray], parts: tuple[FloatArray, ...], count: int) -> FloatArray:
        """Return the merit that each row would have with these numbers from the remote, by variable: a new column."""
        columns = {**dict(zip(self._score.stream_variables, parts, strict=True)), **remote}
        merits = self._sign * self._function(columns)
        return merits if merits.shape == (count,) else np.array(np.broadcast_to(merits, count))

    def can_count(self, parts: tuple[FloatArray, ...], count: int) -> BoolArray:
        """Return which rows could be results, as far as conditions on the stream's numbers alone tell."""
        columns = dict(zip(self._score.stream_variables, parts, strict=True))
        possible = np.ones(count, dtype=np.bool_)
        for holds in self._conditions:
            possible &= holds(columns)
        return possible

    def reach(self, lows: tuple[float, ...], highs: tuple[float, ...], keys: AnyArray | None = None) -> float:
        """Return the best merit possible for the stream's numbers within ranges.

        With ``keys`` for the replica's values of any of these, minus infinity if the remote has none of them;
        without, for any value of the remote's that the query's filters allow.
        """
        if keys is None:
            return self._reach_of_any(lows, highs)
        remote = self._values(keys)
        return -math.inf if remote is None else self._reach(lows, highs, remote)

    def _reach(self, lows: tuple[float, ...], highs: tuple[float, ...], remote: Mapping[str, Interval]) -> float:
        ranges = zip(self._score.stream_variables, map(Interval, lows, highs), strict=True)
        known = {**self._score.ranges, **dict(ranges), **remote}
        reach = bounds(self._score.expression, known, functions=self._score.functions)
        return reach.high if self._score.descending else -reach.low

    def reaches(self, parts: tuple[FloatArray, ...], count: int) -> FloatArray:
        """Return for each row a merit that it cannot exceed, whatever the remote has for it.

        It is the best merit possible as long as there are few different rows; of many, neighbours are
        taken together. O(n log n), and O(1) analyses of the score.
        """
        if not parts or not count:
            return np.full(count, self.reach((), ()) if count else math.nan)
        order = np.lexsort(parts)
        columns = [part[order] for part in parts]
        begins = np.any([np.diff(column, prepend=math.nan) != 0 for column in columns], axis=0)
        groups = np.cumsum(begins) - 1
        if groups[-1] >= _GROUPS:
            groups = groups * _GROUPS // (groups[-1] + 1)
            begins = np.diff(groups, prepend=-1) != 0
        starts = np.flatnonzero(begins)
        # Without a number anything is possible.
        lows = [np.minimum.reduceat(np.where(np.isnan(each), -math.inf, each), starts).tolist() for each in columns]
        highs = [np.maximum.reduceat(np.where(np.isnan(each), math.inf, each), starts).tolist() for each in columns]
        reaches = np.array(list(map(self.reach, zip(*lows, strict=True), zip(*highs, strict=True))))
        of_rows = np.empty(count)
        of_rows[order] = reaches[groups]
        return of_rows

    def _values(self, keys: AnyArray) -> dict[str, Interval] | None:
        """Return where the remote's values of some keys lie, of those that are numbers; None if it has no such keys."""
        if self._store is None:
            return {}
        rows = self._store.rows(keys.tolist())
        rows = rows[self._store.present(rows)]
        if not len(rows):
            return None
        columns = {name: self._store.numbers(name, rows) for name in self._score.remote_variables}
        # A score may do without a value that is no number: then nothing is said of that.
        numbers = {name: column[~np.isnan(column)] for name, column in columns.items()}
        return {name: Interval(float(each.min()), float(each.max())) for name, each in numbers.items() if len(each)}

    def expected(self, parts: tuple[FloatArray, ...], count: int) -> FloatArray:
        """Return a guess at the merits of solutions without a value from the remote: with the replica's mean."""
        columns = dict(zip(self._score.stream_variables, parts, strict=True))
        for name in self._score.remote_variables if self._store is not None else ():
            mean = self._store.mean(name) if self._store is not None else 0.0
            columns[name] = np.full(count, 0.0 if np.isnan(mean) else mean)
        return self._sign * np.broadcast_to(self._function(columns), count)


def _conjuncts(condition: ast.Expression | None) -> Iterator[ast.Expression]:
    """Yield the conditions that must all hold for one to hold."""
    match condition:
        case None:
            return
        case ast.Binary("&&", left, right):
            yield from _conjuncts(left)
            yield from _conjuncts(right)
        case _:
            yield condition


def _scoring(score: Score) -> ScoreFunction:
    """Return what scores columns: NaN where the score is an error or its condition does not hold."""
    value = vectorise(score.expression, score.functions)
    if score.condition is None:
        return value
    holds = vectorise_condition(score.condition, score.functions)
    return lambda columns: np.where(holds(columns), value(columns), np.nan)
