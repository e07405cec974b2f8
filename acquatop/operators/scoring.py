"""How solutions are scored: the stream's numbers, joined with what the replica knows of the remote's."""

from __future__ import annotations

import math

import numpy as np

from acquatop.topk.contract import AnyArray, FloatArray, IntArray
from replica.store import ReplicaStore
from rspql.plan import Score
from rspql.scoring import Interval, ScoreFunction, bounds, vectorise, vectorise_condition


class ReplicaScoring:
    """Merits with the replica's present values; without a store, of the stream's numbers alone.

    A merit is the score, or its negative where the smallest are wanted; NaN where the remote's part
    is missing, or the score is an error, or its condition does not hold.
    """

    def __init__(self, score: Score, store: ReplicaStore | None) -> None:
        self._score = score
        self._store = store
        self._function = _scoring(score)
        self._sign = 1.0 if score.descending else -1.0
        self.scored = 0
        """How many rows have been scored."""

    def merits(self, keys: AnyArray, parts: tuple[FloatArray, ...]) -> FloatArray:
        """Return each row's merit."""
        return self.merits_of(keys.tolist(), np.arange(len(keys)), parts)

    def merits_of(self, keys: list[str], indices: IntArray, parts: tuple[FloatArray, ...]) -> FloatArray:
        """Return each row's merit, where the keys are given once each, and by index for the rows."""
        self.scored += len(indices)
        columns = dict(zip(self._score.stream_variables, parts, strict=True))
        if self._store is None:
            return np.array(np.broadcast_to(self._sign * self._function(columns), len(indices)))
        rows = self._store.rows(keys)
        for name in self._score.remote_variables:
            columns[name] = self._store.numbers(name, rows)[indices]
        present = self._store.present(rows)[indices]
        return np.where(present, self._sign * np.broadcast_to(self._function(columns), present.shape), np.nan)

    def reach(self, lows: tuple[float, ...], highs: tuple[float, ...], keys: AnyArray | None = None) -> float:
        """Return the best merit possible for the stream's numbers within ranges.

        With ``keys`` for the replica's values of any of these, minus infinity if none has all;
        without, for any value of the remote's that the query's filters allow.
        """
        remote = {} if keys is None else self._values(keys)
        if remote is None:
            return -math.inf
        ranges = zip(self._score.stream_variables, map(Interval, lows, highs), strict=True)
        known = {**self._score.ranges, **dict(ranges), **remote}
        reach = bounds(self._score.expression, known, functions=self._score.functions)
        return reach.high if self._score.descending else -reach.low

    def _values(self, keys: AnyArray) -> dict[str, Interval] | None:
        """Return where the remote's values of some keys lie; None if there are none."""
        if self._store is None:
            return {}
        rows = self._store.rows(keys.tolist())
        columns = [self._store.numbers(name, rows) for name in self._score.remote_variables]
        whole = self._store.present(rows)
        for column in columns:
            whole = whole & ~np.isnan(column)
        if not whole.any():
            return None
        values = [column[whole] for column in columns]
        return {
            name: Interval(float(each.min()), float(each.max()))
            for name, each in zip(self._score.remote_variables, values, strict=True)
        }

    def expected(self, parts: tuple[FloatArray, ...], count: int) -> FloatArray:
        """Return a guess at the merits of solutions without a value from the remote: with the replica's mean."""
        columns = dict(zip(self._score.stream_variables, parts, strict=True))
        for name in self._score.remote_variables if self._store is not None else ():
            mean = self._store.mean(name) if self._store is not None else 0.0
            columns[name] = np.full(count, 0.0 if np.isnan(mean) else mean)
        return self._sign * np.broadcast_to(self._function(columns), count)


def _scoring(score: Score) -> ScoreFunction:
    """Return what scores columns: NaN where the score is an error or its condition does not hold."""
    value = vectorise(score.expression, score.functions)
    if score.condition is None:
        return value
    holds = vectorise_condition(score.condition, score.functions)
    return lambda columns: np.where(holds(columns), value(columns), np.nan)
