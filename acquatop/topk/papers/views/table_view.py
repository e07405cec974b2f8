"""Materialised top-k' view of a changing table, refilled only when too few rows are left.

From *Efficient maintenance of materialized top-k views* (2003), section 3. The view holds exactly
the rows at or above a bar in the order of the table, between k and kmax of them. A row that falls
below the bar leaves; one that rises above it enters. More than kmax push the bar up. With fewer
than k the table is asked for its best kmax, which is the only costly step.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from acquatop.topk.columns import among
from acquatop.topk.contract import AnyArray, FloatArray, IntArray
from acquatop.topk.order import ranking
from acquatop.topk.refill.controller import Controller


class Table(Protocol):
    """Table under a view. It can be asked for its best rows, at a cost."""

    def best(self, count: int) -> tuple[AnyArray, FloatArray]:
        """Return the keys and merits of the best rows, in any order. Ties prefer smaller keys."""

    def __len__(self) -> int:
        """Return the number of rows with a merit."""


class TableView:
    """The best k of a table, and up to kmax - k more, as a controller chooses.

    With k' rows in the view, m changes take O((k' + m) log(k' + m)), whatever the size of the
    table, and a refill costs what the table takes. If the view holds the whole table, every row
    enters it and it is never refilled.

    >>> class Numbers(dict):
    ...     def best(self, count):
    ...         keys = sorted(self, key=lambda key: (-self[key], key))[:count]
    ...         return np.array(keys, dtype=np.int64), np.array([self[key] for key in keys])
    >>> table = Numbers({1: 5.0, 2: 9.0, 3: 7.0, 4: 1.0})
    >>> view = TableView(table, Controller(k=2, kmax=3))
    >>> view.top()[0].tolist()
    [2, 3]
    >>> table[2] = 0.0
    >>> view.changed(np.array([2]), np.array([0.0]))
    >>> view.top()[0].tolist(), view.refills
    ([3, 1], 1)
    """

    def __init__(
        self, table: Table, controller: Controller, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.controller = controller
        self.refills = 0
        self._table = table
        self._clock = clock
        self._keys: AnyArray = np.empty(0, object)
        self._merits = np.empty(0)
        self._bar: tuple[float, Any] | None = None
        """Place of the last row that the view was cut at; None if it holds the whole table."""
        self._refill(controller.kmax)

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
        if self._is_short():
            self._refill(self.controller.needs_refill(len(self._table)))
        else:
            self._cut(self.controller.held(len(self), len(self._table)))

    def top(self) -> tuple[AnyArray, FloatArray]:
        """Return the keys and merits of the best k, best first, or of all if there are fewer."""
        return self._keys[: self.controller.k], self._merits[: self.controller.k]

    def __len__(self) -> int:
        return len(self._keys)

    def _is_short(self) -> bool:
        return self._bar is not None and len(self) < self.controller.k

    def _refill(self, kmax: int) -> None:
        started = self._clock()
        keys, merits = self._table.best(kmax)
        self._bar = None
        self._set(keys, merits)
        if len(self) < len(self._table):
            self._cut_at(len(self))
        self.refills += 1
        self.controller.refilled(kmax, self._clock() - started)

    def _cut(self, kmax: int) -> None:
        if len(self) > kmax:
            self._cut_at(kmax)

    def _cut_at(self, size: int) -> None:
        self._keys, self._merits = self._keys[:size], self._merits[:size]
        self._bar = float(self._merits[-1]), self._keys[-1]

    def _set(self, keys: AnyArray, merits: FloatArray) -> None:
        order: IntArray = ranking(merits, np.zeros(len(keys), np.int64), keys)
        self._keys, self._merits = keys[order], merits[order]

    def _at_or_above_bar(self, keys: AnyArray, merits: FloatArray) -> npt.NDArray[np.bool_]:
        if self._bar is None:
            return ~np.isnan(merits)
        merit, last = self._bar
        above = merits > merit
        # Ties count: a row of the same merit stands above by its key.
        tied = (merits == merit).nonzero()[0]
        above[tied] = keys[tied] <= last
        return above

    def _check(self) -> None:
        """Assert that the view is exactly the table's rows at or above the bar."""
        self.controller._check()
        keys, merits = self._table.best(len(self._table))
        inside = self._at_or_above_bar(keys, merits)
        assert set(keys[inside].tolist()) == set(self._keys.tolist())
        assert len(self) >= min(self.controller.k, len(self._table))
        assert ranking(self._merits, np.zeros(len(self), np.int64), self._keys).tolist() == list(
            range(len(self))
        )
