"""Best of many queries over the same windows, from the best of each pane, as columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from acquatop.topk.contract import NO_ROWS, FloatArray, IntArray, Rows, Top
from acquatop.topk.order import best
from acquatop.topk.row_pool import RowPool
from acquatop.topk.snapshot import State, pack, reading, rows_of, table_of, unpack

_KIND, _VERSION = "tops of panes", 1
_ROOM = 4_096
"""Number of candidates up to which all are kept, whether they matter or not."""


class _Pairs(NamedTuple):
    """Queries and rows: merits and times of the rows, and their slots."""

    queries: IntArray
    merits: FloatArray
    times: IntArray
    slots: IntArray


class WindowTops:
    """Candidates of one window, until others are added or dropped."""

    def __init__(self, window: int, pool: RowPool, pairs: _Pairs) -> None:
        self._window = window
        self._pool = pool
        self._pairs = pairs

    def top(self, query: int, k: int) -> Top:
        """Return the best k of a query. O(k), unless the last of them tie."""
        at = self._best(self._of(query), k)
        slots = self._pairs.slots[at]
        rows = self._pool.take(slots) if len(slots) else NO_ROWS
        return Top(self._window, rows, self._pairs.merits[at])

    def held(self, query: int) -> tuple[Rows, FloatArray]:
        """Return all candidates of a query, and their merits."""
        at = self._of(query)
        slots = self._pairs.slots[at]
        return self._pool.take(slots) if len(slots) else NO_ROWS, self._pairs.merits[at]

    def _of(self, query: int) -> slice:
        start, stop = np.searchsorted(self._pairs.queries, (query, query + 1)).tolist()
        return slice(start, stop)

    def _best(self, own: slice, k: int) -> slice | IntArray:
        near = slice(own.start, min(own.stop, own.start + k + 1))
        merits, times = self._pairs.merits[near], self._pairs.times[near]
        if not ((merits[1:] == merits[:-1]) & (times[1:] == times[:-1])).any():
            return slice(own.start, min(own.stop, own.start + k))
        identities = self._pool.identities(self._pairs.slots[own])
        found = best(k, self._pairs.merits[own], self._pairs.times[own], identities)
        at: IntArray = own.start + found
        return at


class PaneTops:
    """Candidates of queries, which are numbers, whose scores never change.

    A pane's best k of each query come as pairs of queries and rows. A window's best are found for
    all queries at once, by one sort of all candidates. A candidate that as many better ones outlive
    as its query wants is dropped, once the number of candidates has doubled: held are about as many
    as :mod:`acquatop.topk.pane_dominance` would hold for each query, or twice as many.
    """

    def __init__(self) -> None:
        self._pool = RowPool()
        self._queries: IntArray = np.empty(0, dtype=np.int64)
        self._merits: FloatArray = np.empty(0)
        self._times: IntArray = np.empty(0, dtype=np.int64)
        self._firsts: IntArray = np.empty(0, dtype=np.int64)
        self._lasts: IntArray = np.empty(0, dtype=np.int64)
        self._slots: IntArray = np.empty(0, dtype=np.int64)
        self._room = _ROOM

    def __len__(self) -> int:
        return len(self._queries)

    def add(
        self,
        first: int,
        last: int,
        rows: Rows,
        queries: IntArray,
        places: IntArray,
        merits: FloatArray,
    ) -> None:
        """Add the best of a pane: the rows at ``places``, for each of the queries.

        A negative number is that of no query.
        """
        if (queries < 0).any():
            at = (queries >= 0).nonzero()[0]
            queries, places, merits = queries[at], places[at], merits[at]
        if not len(queries):
            return
        count, slots = len(queries), self._pool.append(rows) + places
        self._queries = np.concatenate((self._queries, queries))
        self._merits = np.concatenate((self._merits, merits))
        self._times = np.concatenate((self._times, rows.times[places]))
        self._firsts = np.concatenate((self._firsts, np.full(count, first)))
        self._lasts = np.concatenate((self._lasts, np.full(count, last)))
        self._slots = np.concatenate((self._slots, slots))

    def inside(self, window: int) -> WindowTops:
        """Return the candidates of a window. O(c log c)."""
        at = ((self._firsts <= window) & (self._lasts >= window)).nonzero()[0]
        return WindowTops(window, self._pool, self._in_order(at))

    def _in_order(self, at: IntArray) -> _Pairs:
        """Return some candidates by query, best first but for ties in merit and time."""
        order = np.lexsort((-self._times[at], -self._merits[at], self._queries[at]))
        at = at[order]
        return _Pairs(self._queries[at], self._merits[at], self._times[at], self._slots[at])

    # What no longer matters -----------------------------------------------------------------------

    def leave(self, query: int) -> None:
        """Drop a query's candidates."""
        self._keep((self._queries != query).nonzero()[0])

    def close_before(self, window: int, ks: Mapping[int, int]) -> None:
        """Drop what lies only in earlier windows; ``ks`` tell how many each query wants."""
        if len(self) <= self._room:
            return
        self._keep((self._lasts >= window).nonzero()[0])
        if len(self) > self._room // 2:
            self._keep(self._undominated(window, ks))
        self._room = max(_ROOM, 2 * len(self))

    def _undominated(self, window: int, ks: Mapping[int, int]) -> IntArray:
        """Return the candidates that fewer better ones outlive than their query wants.

        Candidates of windows that open later are all kept: they are not in all windows of others.
        """
        wanted = np.zeros(1 + max(*ks, int(self._queries.max()), 0), dtype=np.int64)
        wanted[[*ks]] = [*ks.values()]
        is_open = self._firsts <= window
        running: IntArray = np.empty(0, dtype=np.int64)
        kept = [(~is_open).nonzero()[0]]
        for last in np.unique(self._lasts[is_open])[::-1].tolist():
            own = (is_open & (self._lasts == last)).nonzero()[0]
            both = np.concatenate((running, own))
            both = both[np.lexsort((-self._times[both], -self._merits[both], self._queries[both]))]
            queries = self._queries[both]
            ranks = np.arange(len(both)) - np.searchsorted(queries, queries)
            # What ties in merit and time is ordered by identity: it is kept.
            at = np.searchsorted(queries, queries) + wanted[queries] - 1
            at = np.minimum(at, len(both) - 1)
            ties = (self._merits[both] == self._merits[both[at]]) & (
                self._times[both] == self._times[both[at]]
            )
            running = both[(ranks < wanted[queries]) | (ties & (queries == queries[at]))]
            kept.append(running[self._lasts[running] == last])
        return np.sort(np.concatenate(kept))

    def _keep(self, at: IntArray) -> None:
        if len(at) == len(self):
            return
        self._queries, self._merits, self._times = (
            self._queries[at],
            self._merits[at],
            self._times[at],
        )
        self._firsts, self._lasts = self._firsts[at], self._lasts[at]
        slots, self._slots = np.unique(self._slots[at], return_inverse=True)
        self._pool.keep(slots)

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state."""
        slots, places = np.unique(self._slots, return_inverse=True)
        columns = {
            "queries": self._queries,
            "merits": self._merits,
            "firsts": self._firsts,
            "lasts": self._lasts,
            "places": places,
        }
        tables = {"pairs": columns}
        if len(slots):
            tables["rows"] = table_of(self._pool.take(slots))
        return pack(_KIND, _VERSION, State({}, tables))

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot; raises ``SnapshotError`` for any other bytes."""
        with reading():
            tables = unpack(_KIND, _VERSION, snapshot).tables
            if "rows" not in tables:
                return
            pairs, rows = tables["pairs"], rows_of(tables["rows"])
            self._queries, self._merits = pairs["queries"], pairs["merits"]
            self._firsts, self._lasts = pairs["firsts"], pairs["lasts"]
            self._times = rows.times[pairs["places"]]
            self._slots = self._pool.append(rows) + pairs["places"]
