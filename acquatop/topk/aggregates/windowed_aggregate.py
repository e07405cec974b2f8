"""Top k of keys by a windowed aggregate, computed in the way that has proved cheaper."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from acquatop.topk.aggregates.aggregate_totals import AggregateKind
from acquatop.topk.aggregates.keyed_aggregate import KeyedAggregate
from acquatop.topk.aggregates.keyed_content import KeyedContent
from acquatop.topk.aggregates.partials import Partial
from acquatop.topk.contract import AnyArray, IntArray, Scoring

_FIXED = 1000
"""Fixed cost of a call, in units of work."""
_TRIALS = 0.02
_WEIGHT = 0.25


class Chooser:
    """Choice of the cheapest of several ways, by the seconds per unit each has taken so far.

    Two hundredths of the time may go into trying the others again.

    >>> chooser = Chooser(2)
    >>> chooser.note(0, 1000, 3.0)
    >>> chooser.note(1, 1000, 1.0)
    >>> chooser.choose([1000, 1000]), chooser.choose([1000, 9000])
    (1, 0)
    """

    def __init__(self, ways: int) -> None:
        self._rates: list[float | None] = [None] * ways
        self._for_trials = 0.0

    def choose(self, units: Sequence[int]) -> int:
        """Return the way to take, given the units of work of each."""
        if None in self._rates:
            return self._rates.index(None)
        costs = [
            (amount + _FIXED) * (rate or 0.0)
            for amount, rate in zip(units, self._rates, strict=True)
        ]
        ways = sorted(range(len(costs)), key=costs.__getitem__)
        if self._for_trials > costs[ways[1]]:
            self._for_trials = 0.0
            return ways[1]
        return ways[0]

    def note(self, way: int, units: int, seconds: float) -> None:
        """Note the time that a way has taken."""
        rate, known = seconds / (units + _FIXED), self._rates[way]
        self._rates[way] = rate if known is None else known + _WEIGHT * (rate - known)
        self._for_trials += _TRIALS * seconds


class WindowedAggregate(KeyedAggregate):
    """Scoring of all keys at a close, or only of those touched. The choice affects only time.

    >>> import numpy as np
    >>> from acquatop.topk.contract import FirstPart, Rows
    >>> sums = WindowedAggregate(2, "sum", FirstPart())
    >>> times, keys = np.array([1, 2, 3]), np.array([0, 1, 0])
    >>> _ = sums.add(0, 1, Rows(times, keys, keys, (np.array([5.0, 6.0, 2.5]),)))
    >>> top = sums.top(0)
    >>> top.rows.keys.tolist(), top.merits.tolist()
    ([0, 1], [7.5, 6.0])
    """

    def __init__(
        self,
        k: int,
        aggregates: AggregateKind | str | Sequence[AggregateKind | str],
        scoring: Scoring,
        clock: Callable[[], float] = time.perf_counter,
        names: Callable[[IntArray], AnyArray] = lambda keys: keys,
        content: KeyedContent | None = None,
    ) -> None:
        super().__init__(k, aggregates, scoring, names, content)
        self._clock = clock
        self._chooser = Chooser(2)

    def _bring_up_to_date(self, touched: Sequence[Partial | IntArray]) -> None:
        few = sum(len(part.counts) if isinstance(part, Partial) else len(part) for part in touched)
        sizes = self._content.known, few
        way = self._chooser.choose(sizes)
        started = self._clock()
        if way == 0:
            self._score_all()
        else:
            self._score_touched(touched)
        self._chooser.note(way, sizes[way], self._clock() - started)
