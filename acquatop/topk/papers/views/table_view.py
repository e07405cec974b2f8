"""Materialised top-k' view of a changing table, refilled only when too few rows are left.

From *Efficient maintenance of materialized top-k views* (2003), section 3. The view holds exactly
the rows at or above a bar in the order of the table, between k and kmax of them. A row that falls
below the bar leaves; one that rises above it enters. More than kmax push the bar up. With fewer
than k the table is asked for its best kmax, which is the only costly step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from acquatop.topk.columns import among
from acquatop.topk.contract import AnyArray, FloatArray, IntArray
from acquatop.topk.order import ranking
from acquatop.topk.refill.controller import Controller


class TableView:
    """The best k of a table, and up to kmax - k more, as a controller chooses.

    It asks nobody: :attr:`wanted` says how many of the table's best rows it needs, and :meth:`fill`
    takes them. Until then it holds the rows at or above the bar, so those that it has are right.
    With k' rows in the view, m changes take O((k' + m) log(k' + m)), whatever the size of the
    table. If the view holds the whole table, every row enters it and it needs no refill.

    >>> view = TableView(Controller(k=2, kmax=3))
    >>> view.wanted
    3
    >>> view.fill(np.array([2, 3, 1]), np.array([9.0, 7.0, 5.0]), 3, is_whole=False, seconds=0.1)
    >>> view.changed(np.array([2]), np.array([0.0]))
    >>> view.top()[0].tolist(), view.wanted
    ([3, 1], None)
    >>> view.changed(np.array([3]), np.array([np.nan]))
    >>> view.top()[0].tolist(), view.wanted
    ([1], 5)
    """

    def __init__(
        self, controller: Controller, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.controller = controller
        self.refills = 0
        self.is_filled = False
        self._clock = clock
        self._keys: AnyArray = np.empty(0, object)
        self._merits = np.empty(0)
        self._bar: tuple[float, Any] | None = (np.inf, None)
        """Place of the last row that the view was cut at; None if it holds the whole table."""

    def changed(self, keys: AnyArray, merits: FloatArray) -> None:
        """Note the present merits of rows, each key once: NaN for removed rows."""
        if not len(keys):
            return
        started = self._clock()
        stays = ~among(self._keys, keys)
        enters = self._at_or_above_bar(keys, merits)
        self._set(
            np.concatenate((self._keys[stays], keys[enters])),
            np.concatenate((self._merits[stays], merits[enters])),
        )
        self._cut(self.controller.kmax)
        self.controller.updated(len(keys), self._clock() - started)
        if not self.is_short:
            self._cut(self.controller.held(len(self), self._available))

    @property
    def is_short(self) -> bool:
        """True if rows of the table that the view does not hold may be among the best k."""
        return self.lacks(self.controller.k)

    @property
    def wanted(self) -> int | None:
        """Number of the table's best rows that the view needs now; None if it needs none."""
        if not self.is_filled:
            return self.controller.kmax
        return self.controller.needs_refill(self._available) if self.is_short else None

    def fill(
        self, keys: AnyArray, merits: FloatArray, kmax: int, *, is_whole: bool, seconds: float
    ) -> None:
        """Take the table's best rows, as many as were :attr:`wanted`, or all that it has.

        ``seconds`` is what they have cost.
        """
        self._set(keys, merits)
        self._bar = None
        if not is_whole:
            self._cut_at(len(self))
        self.refills += 1
        self.is_filled = True
        self.controller.refilled(max(kmax, self.controller.k), seconds)
        self._cut(self.controller.kmax)

    @property
    def bound(self) -> float:
        """Greatest merit that a row which the view does not hold can have."""
        return -np.inf if self._bar is None else self._bar[0]

    @property
    def _available(self) -> int:
        return len(self) if self._bar is None else self.controller.tuning.limit

    def top(self) -> tuple[AnyArray, FloatArray]:
        """Return the keys and merits of the best k, best first, or of all if there are fewer."""
        return self.first(self.controller.k)

    def first(self, count: int) -> tuple[AnyArray, FloatArray]:
        """Return the keys and merits of the first ``count`` rows that are held, best first."""
        return self._keys[:count], self._merits[:count]

    def lacks(self, count: int) -> bool:
        """Return True if rows that the view does not hold may be among the first ``count``."""
        return self._bar is not None and len(self) < count

    def __len__(self) -> int:
        return len(self._keys)

    def _cut(self, kmax: int) -> None:
        if len(self) > kmax:
            self._cut_at(kmax)

    def _cut_at(self, size: int) -> None:
        self._keys, self._merits = self._keys[:size], self._merits[:size]
        # Without a row nothing is known to be above any bar.
        self._bar = (float(self._merits[-1]), self._keys[-1]) if size else (np.inf, None)

    def _set(self, keys: AnyArray, merits: FloatArray) -> None:
        order: IntArray = ranking(merits, np.zeros(len(keys), np.int64), keys)
        self._keys, self._merits = keys[order], merits[order]

    def _at_or_above_bar(self, keys: AnyArray, merits: FloatArray) -> npt.NDArray[np.bool_]:
        if self._bar is None:
            return ~np.isnan(merits)
        merit, last = self._bar
        above = merits > merit
        if last is None:
            return above
        # Ties count: a row of the same merit stands above by its key.
        tied = (merits == merit).nonzero()[0]
        above[tied] = keys[tied] <= last
        return above

    def state(self) -> Mapping[str, Any]:
        """Return the complete state as plain values, with the keys as they are."""
        return {
            "controller": self.controller.state(),
            "keys": self._keys.tolist(),
            "merits": self._merits.tolist(),
            "bar": self._bar,
            "filled": self.is_filled,
            "refills": self.refills,
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Continue from a state."""
        self.controller.resume(state["controller"])
        self._keys = np.array(state["keys"], dtype=object)
        self._merits = np.array(state["merits"], dtype=np.float64)
        self._bar = None if state["bar"] is None else (float(state["bar"][0]), state["bar"][1])
        self.is_filled, self.refills = state["filled"], state["refills"]

    def _check(self, keys: AnyArray, merits: FloatArray) -> None:
        """Assert that the view is exactly the rows of a table at or above the bar."""
        self.controller._check()
        inside = self._at_or_above_bar(keys, merits)
        assert set(keys[inside].tolist()) == set(self._keys.tolist())
        assert ranking(self._merits, np.zeros(len(self), np.int64), self._keys).tolist() == list(
            range(len(self))
        )
