"""Scoring of solutions: the stream's numbers, joined with the replica's values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from acquatop.topk.contract import AnyArray, FloatArray, IntArray
from replica.store.runs import Runs
from replica.view import AveragedValues
from rspql import ast
from rspql.plan import Score
from rspql.scoring import (
    Interval,
    ScoreFunction,
    bounds,
    needs_types,
    variables_in,
    vectorise,
    vectorise_condition,
)
from rspql.scoring.ratios import Ratio, of_decimals, taken

BoolArray = npt.NDArray[np.bool_]
TypesOf = Callable[[str], BoolArray]
"""Function that returns which of a variable's numbers are of xsd:float or xsd:double."""

NO_RATIOS: Mapping[str, Ratio] = {}

_RANGES = 1024
"""Number of ranges of the stream's numbers whose best possible merit is cached."""

_WITHOUT_NAN = frozenset((ast.XSD + "integer", ast.XSD + "decimal"))

_GROUPS = 256
"""Number of distinct rows up to which the best possible merit is computed for each of them."""


class ReplicaScoring:
    """Merits with the replica's present values; without a store, with the stream's numbers alone.

    A merit is the score, or its negative if the smallest are wanted. It is NaN if the remote's part
    is missing, the score is an error, or its condition does not hold. If a key has several
    solutions at the remote, it is the best of these: the best k joined solutions are of the k
    solutions with the best merits.
    """

    def __init__(self, score: Score, store: AveragedValues | None) -> None:
        self._score = score
        self._store = store
        self._function = _scoring(score)
        self._conditions = [
            vectorise_condition(each, score.functions, score.datatypes)
            for each in conjuncts(score.condition)
            if all(name in score.stream_variables for name in variables_in(each))
        ]
        self._sign = 1.0 if score.descending else -1.0
        # Small numbers, such as counts, recur often.
        self._reach_of_any = lru_cache(maxsize=_RANGES)(partial(self._reach, remote={}))
        self.scored = 0
        """Number of rows that have been scored."""

    @property
    def stream_variables(self) -> tuple[str, ...]:
        """Stream variables that the score needs."""
        return self._score.stream_variables

    @property
    def remote_variables(self) -> tuple[str, ...]:
        """Remote variables that the score needs."""
        return self._score.remote_variables

    def merits(self, keys: AnyArray, parts: tuple[FloatArray, ...]) -> FloatArray:
        """Return each row's merit."""
        return self.merits_of(keys.tolist(), np.arange(len(keys)), parts)

    def merits_of(
        self, keys: list[str], indices: IntArray, parts: tuple[FloatArray, ...]
    ) -> FloatArray:
        """Return each row's merit; keys are given once each, and rows refer to them by index."""
        return self.merits_at(
            indices if self._store is None else self._store.rows(keys)[indices], parts
        )

    def merits_at(
        self, rows: IntArray, parts: tuple[FloatArray, ...], ratios: Mapping[str, Ratio] = NO_RATIOS
    ) -> FloatArray:
        """Return each row's merit, given its key's row in the replica; -1 for an unknown key.

        ``ratios`` are the decimals among the parts, by variable.
        """
        self.scored += len(rows)
        if self._store is None:
            return self.merits_given({}, parts, len(rows), ratios=ratios)
        runs = self._store.runs(rows)
        if runs is not None:
            return runs.best(self.merits_in(runs, parts, ratios))
        merits = self._merits_of_places(rows, parts, ratios)
        merits[~self._store.present(rows)] = np.nan
        return merits

    def merits_in(
        self, runs: Runs, parts: tuple[FloatArray, ...], ratios: Mapping[str, Ratio] = NO_RATIOS
    ) -> FloatArray:
        """Return the merit of each place of some rows, whose ``parts`` are given by row."""
        if not runs.is_plain:
            parts = tuple(part[runs.owners] for part in parts)
            ratios = {name: taken(ratio, runs.owners) for name, ratio in ratios.items()}
        return self._merits_of_places(runs.places, parts, ratios)

    def _merits_of_places(
        self, places: IntArray, parts: tuple[FloatArray, ...], ratios: Mapping[str, Ratio]
    ) -> FloatArray:
        store = self._store
        assert store is not None
        numbers = {name: store.numbers(name, places) for name in self._score.remote_variables}
        return self.merits_given(
            numbers, parts, len(places), lambda name: store.floating(name, places), ratios
        )

    def merits_given(
        self,
        remote: Mapping[str, FloatArray],
        parts: tuple[FloatArray, ...],
        count: int,
        types: TypesOf | None = None,
        ratios: Mapping[str, Ratio] = NO_RATIOS,
    ) -> FloatArray:
        """Return each row's merit for given numbers of the remote, by variable: a new column.

        ``types`` returns which of a variable's numbers are of xsd:float or xsd:double; without it
        they are taken for integers and decimals.
        """
        columns = {**dict(zip(self._score.stream_variables, parts, strict=True)), **remote}
        merits = self._sign * self._function(columns, types, {**ratios, **self._ratios(remote)})
        return merits if merits.shape == (count,) else np.array(np.broadcast_to(merits, count))

    def _ratios(self, remote: Mapping[str, FloatArray]) -> dict[str, Ratio]:
        """Return the remote's decimals."""
        if self._store is None:
            return {}
        places = {name: self._store.size(name).places for name in remote}
        return {name: of_decimals(remote[name], each) for name, each in places.items() if each}

    def can_count(self, parts: tuple[FloatArray, ...], count: int) -> BoolArray:
        """Return a mask of the rows that the conditions on the stream's numbers alone admit."""
        columns = dict(zip(self._score.stream_variables, parts, strict=True))
        possible = np.ones(count, dtype=np.bool_)
        for holds in self._conditions:
            possible &= holds(columns)
        return possible

    def reach(
        self, lows: tuple[float, ...], highs: tuple[float, ...], keys: AnyArray | None = None
    ) -> float:
        """Return the best possible merit for stream numbers within ranges.

        With ``keys``, the remote's values are the replica's values of any of these keys; the merit
        is minus infinity if the remote has none of them. Without ``keys``, they are any values that
        the query's filters allow.
        """
        if keys is None:
            return self._reach_of_any(lows, highs)
        remote = self._values(keys)
        return -math.inf if remote is None else self._reach(lows, highs, remote)

    def _reach(
        self, lows: tuple[float, ...], highs: tuple[float, ...], remote: Mapping[str, Interval]
    ) -> float:
        ranges = {
            name: Interval(low, high, nan=self._score.datatypes.get(name) not in _WITHOUT_NAN)
            for name, low, high in zip(self._score.stream_variables, lows, highs, strict=True)
        }
        known = {**self._score.ranges, **ranges, **remote}
        reach = bounds(self._score.expression, known, functions=self._score.functions)
        return reach.high if self._score.descending else -reach.low

    def reaches(self, parts: tuple[FloatArray, ...], count: int) -> FloatArray:
        """Return for each row a merit that it cannot exceed, whatever values the remote has for it.

        It is the best possible merit if there are few distinct rows; of many rows, neighbours share
        a bound. O(n log n), and O(1) analyses of the score.
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
        # If there is no number, anything is possible.
        lows = [
            np.minimum.reduceat(np.where(np.isnan(each), -math.inf, each), starts).tolist()
            for each in columns
        ]
        highs = [
            np.maximum.reduceat(np.where(np.isnan(each), math.inf, each), starts).tolist()
            for each in columns
        ]
        reaches = np.array(list(map(self.reach, zip(*lows, strict=True), zip(*highs, strict=True))))
        of_rows = np.empty(count)
        of_rows[order] = reaches[groups]
        return of_rows

    def _values(self, keys: AnyArray) -> dict[str, Interval] | None:
        """Return the ranges of the remote's numbers for some keys.

        None if it has none of the keys.
        """
        if self._store is None:
            return {}
        rows = self._store.rows(keys.tolist())
        rows = rows[self._store.present(rows)]
        if not len(rows):
            return None
        runs = self._store.runs(rows)
        places = rows if runs is None else runs.places
        columns = {name: self._store.numbers(name, places) for name in self._score.remote_variables}
        # No range for a variable without numbers: the score may do without its value.
        numbers = {name: column[~np.isnan(column)] for name, column in columns.items()}
        return {
            name: Interval(float(each.min()), float(each.max()), nan=len(each) < len(columns[name]))
            for name, each in numbers.items()
            if len(each)
        }

    def expected(self, parts: tuple[FloatArray, ...], count: int) -> FloatArray:
        """Return estimated merits of solutions without a remote value: with the replica's mean."""
        columns = dict(zip(self._score.stream_variables, parts, strict=True))
        for name in self._score.remote_variables if self._store is not None else ():
            mean = self._store.mean(name) if self._store is not None else 0.0
            columns[name] = np.full(count, 0.0 if np.isnan(mean) else mean)
        return self._sign * np.broadcast_to(self._function(columns, None), count)


def conjuncts(condition: ast.Expression | None) -> Iterator[ast.Expression]:
    """Yield the conjuncts of a condition."""
    match condition:
        case None:
            return
        case ast.Binary("&&", left, right):
            yield from conjuncts(left)
            yield from conjuncts(right)
        case _:
            yield condition


def _scoring(score: Score) -> ScoreFunction:
    """Return a scoring function for columns: NaN for an error, or if the condition fails."""
    value = vectorise(score.expression, score.functions, score.datatypes)
    if score.condition is None:
        return value
    holds = vectorise_condition(score.condition, score.functions, score.datatypes)

    def scoring(
        columns: Mapping[str, FloatArray],
        types: TypesOf | None,
        ratios: Mapping[str, Ratio] = NO_RATIOS,
    ) -> FloatArray:
        return np.where(holds(columns, types, ratios), value(columns, types, ratios), np.nan)

    return scoring


def typed_variables(score: Score) -> tuple[str, ...]:
    """Return the remote's variables whose types can decide a score."""
    expressions = [each for each in (score.expression, score.condition) if each is not None]
    typed = any(needs_types(each, score.functions, score.datatypes) for each in expressions)
    return score.remote_variables if typed else ()
