"""Content of the open windows: every arrival, pane by pane, as columns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from acquatop.topk.columns import ValueIndex, among, codes_of, newest_of, newest_of_codes
from acquatop.topk.contract import AnyArray, IntArray, Rows
from acquatop.topk.dropped_bounds import Ranges, hull
from acquatop.topk.snapshot import State, pack, reading, rows_of, table_of, unpack

NEVER = 2**63 - 1
"""Index after all windows."""

_KIND, _VERSION = "content", 1
_BEFORE_ALL = -(2**63)
_REMOVED = 1_000
"""Largest number of identities to be removed later, besides an eighth of the rows kept."""
_CHUNK = 4096


@dataclass(frozen=True)
class PaneRows:
    """Rows of one pane, with the first and the last window that hold it."""

    first: int
    last: int
    rows: Rows


@dataclass(frozen=True)
class _Chunk:
    """Rows in arrival order, with their earliest and latest time.

    Indexes are built on first use.
    """

    rows: Rows
    low: int
    high: int

    @cached_property
    def identities(self) -> ValueIndex:
        """Positions of the identities."""
        return ValueIndex(self.rows.identities)

    @cached_property
    def keys(self) -> ValueIndex:
        """Positions of the keys; often these are the identities."""
        is_same = (
            self.rows.keys.dtype == self.rows.identities.dtype
            and (self.rows.keys == self.rows.identities).all()
        )
        return self.identities if is_same else ValueIndex(self.rows.keys)

    @cached_property
    def ranges(self) -> Ranges:
        """Lows and highs of the parts. NaN may stand for any number: no bounds."""
        lows = (float(part.min()) for part in self.rows.parts)
        highs = (float(part.max()) for part in self.rows.parts)
        return (
            tuple(-math.inf if math.isnan(low) else low for low in lows),
            tuple(math.inf if math.isnan(high) else high for high in highs),
        )

    @cached_property
    def is_newest(self) -> npt.NDArray[np.bool_]:
        """Mask of the rows that are the newest of their identity."""
        newest = np.zeros(len(self.rows), dtype=np.bool_)
        newest[newest_of(self.rows.identities, self.rows.times)] = True
        return newest


class WindowContent:
    """The arrivals of all open windows. Replacement is resolved when they are read.

    A newer arrival hides the older ones of its identity in the windows that hold both. Newer means
    a later time, or at the same time a later pane, or a later arrival. No later pane may hold an
    earlier time. With ``distinct`` every arrival has its own identity, and identities are not
    compared.

    Memory: the columns of every row in any open window, hidden ones too, until the last window that
    holds them closes; for a stream in order this is width plus slide. In panes that have been
    searched, another 100 bytes or so per key, and per identity that is not a key. Small batches are
    joined to chunks of some thousand rows, which copies a row a few times. Reading joins a pane's
    chunks to one, and needs the pane's memory once more for that moment.

    >>> content = WindowContent()
    >>> content.append(
    ...     0,
    ...     1,
    ...     Rows(np.array([3, 4]), np.array([7, 8]), np.array([7, 8]), (np.array([5.0, 6.0]),)),
    ... )
    >>> content.append(1, 2, Rows(np.array([9]), np.array([7]), np.array([7]), (np.array([1.0]),)))
    >>> [pane.rows.times.tolist() for pane in content.newest()]
    [[3, 4], [9]]
    >>> content.close_before(1)
    >>> [pane.rows.times.tolist() for pane in content.newest()]
    [[4], [9]]
    """

    def __init__(self, *, distinct: bool = False) -> None:
        self.distinct = distinct
        self._current = _BEFORE_ALL
        self._panes: dict[tuple[int, int], list[_Chunk]] = {}
        self._latest = (_BEFORE_ALL, _BEFORE_ALL)
        self._removed: set[Any] = set()

    def __len__(self) -> int:
        """Return the number of arrivals kept, including hidden ones and pending removals."""
        return sum(len(chunk.rows) for chunks in self._panes.values() for chunk in chunks)

    @property
    def nbytes(self) -> int:
        """Bytes of the columns; for columns of objects, of the references."""
        return sum(
            column.nbytes
            for chunks in self._panes.values()
            for chunk in chunks
            for column in table_of(chunk.rows).values()
        )

    @property
    def chunks(self) -> int:
        """Number of chunks, of all panes together."""
        return sum(map(len, self._panes.values()))

    @property
    def pending_removals(self) -> int:
        """Number of identities whose removal has not been carried out yet."""
        return len(self._removed)

    def append(self, first: int, last: int, arrivals: Rows) -> None:
        """Store a copy of arrivals that lie in the windows ``first`` to ``last``."""
        if last < max(first, self._current):
            raise ValueError(f"no open window holds the pane of the windows {first} to {last}")
        if not len(arrivals):
            return
        if (
            self._removed
            and among(arrivals.identities, _column(self._removed, arrivals.identities)).any()
        ):
            self._settle()
        chunk = _chunk(_copy(arrivals))
        self._latest = max(self._latest, (chunk.high, first))
        chunks = self._panes.setdefault((first, last), [])
        chunks.append(chunk)
        while len(chunks) > 1 and len(chunks[-2].rows) < min(2 * len(chunks[-1].rows), _CHUNK):
            chunks[-2:] = [_joined(chunks[-2], chunks[-1])]

    def remove(self, identities: AnyArray) -> None:
        """Remove all arrivals of some identities. The removal is carried out at the next read."""
        self._removed.update(identities.tolist())

    def close_before(self, window: int) -> None:
        """Drop the panes that lie only in windows before this one."""
        self._current = max(self._current, window)
        for pane in [pane for pane in self._panes if pane[1] < window]:
            del self._panes[pane]
        if not self._panes:
            self._removed.clear()
        elif len(self._removed) > _REMOVED + len(self) // 8:
            self._settle()

    def panes(self) -> Iterator[PaneRows]:
        """Yield everything that is kept, oldest pane first, each pane in arrival order."""
        for (first, last), chunk in self._whole():
            yield PaneRows(first, last, chunk.rows)

    def _whole(self) -> Iterator[tuple[tuple[int, int], _Chunk]]:
        """Yield the panes, each as one chunk, the oldest first."""
        self._settle()
        for span in sorted(self._panes):
            yield span, self._one(span)

    def _one(self, span: tuple[int, int]) -> _Chunk:
        chunks = self._panes[span]
        if len(chunks) > 1:
            chunks[:] = [_chunk(Rows.together(chunk.rows for chunk in chunks))]
        return chunks[0]

    def newest(self, window: int | None = None) -> list[PaneRows]:
        """Return the rows that are visible in at least one open window, oldest pane first.

        With ``window``, return the rows visible in that window. O(n), and O(n log n) for integer
        identities that are far apart.
        """
        panes = [
            pane for pane in self.panes() if window is None or pane.first <= window <= pane.last
        ]
        if self.distinct or not panes:
            return panes
        current = self._current if window is None else window
        codes = codes_of([pane.rows.identities for pane in panes])
        hides_from = np.full(1 + max(int(each.max()) for each in codes), NEVER)
        found = []
        for pane, code in zip(reversed(panes), reversed(codes), strict=True):
            seen = newest_of_codes(code, pane.rows.times, len(hides_from))
            seen = seen[hides_from[code[seen]] > max(pane.first, current)]
            hides_from[code] = pane.first
            if len(seen):
                found.append(
                    pane
                    if len(seen) == len(code)
                    else PaneRows(pane.first, pane.last, pane.rows.take(seen))
                )
        return found[::-1]

    def hidden_from(self, first: int, arrivals: Rows) -> IntArray:
        """Return, per arrival of a pane, the first window in which a newer kept row hides it.

        ``NEVER`` if none does. O(1) for arrivals that are as new as anything kept, else O(arrivals)
        for each newer pane, once its index is built.
        """
        until = np.full(len(arrivals), NEVER)
        if self.distinct or not len(arrivals) or (int(arrivals.times.min()), first) >= self._latest:
            return until
        self._settle()
        at: dict[Any, list[int]] = {}
        for position, identity in enumerate(arrivals.identities.tolist()):
            at.setdefault(identity, []).append(position)
        for pane_first, time, identity in self._newer(first, arrivals):
            for position in at[identity]:
                if (time, pane_first) > (arrivals.times[position], first):
                    until[position] = min(until[position], pane_first)
        return until

    def find(self, arrivals: Rows) -> list[PaneRows]:
        """Return the rows kept, with their panes, that have the identity and time of an arrival.

        O(n). Of several such rows in one pane, return the one that came last.
        """
        wanted = set(zip(arrivals.identities.tolist(), arrivals.times.tolist(), strict=True))
        found = []
        for pane in self.panes() if wanted else ():
            same_time = np.flatnonzero(np.isin(pane.rows.times, arrivals.times))
            identities, times = (
                pane.rows.identities[same_time].tolist(),
                pane.rows.times[same_time].tolist(),
            )
            same = [each in wanted for each in zip(identities, times, strict=True)]
            if any(same):
                rows = pane.rows.take(same_time[np.array(same)])
                found.append(
                    PaneRows(
                        pane.first, pane.last, rows.take(newest_of(rows.identities, rows.times))
                    )
                )
        return found

    def with_keys(self, keys: AnyArray) -> list[PaneRows]:
        """Return the rows of some keys. O(keys) for each pane, once its index is built."""
        chosen = ((pane, chunk, chunk.keys.of(keys)) for pane, chunk in self._whole())
        return [
            PaneRows(first, last, chunk.rows.take(at))
            for (first, last), chunk, at in chosen
            if len(at)
        ]

    def ranges(self) -> Ranges | None:
        """Return the lows and highs of the parts of all rows; None if there are none."""
        each = [chunk.ranges for _, chunk in self._whole()]
        return hull(each) if each else None

    def spans(self) -> list[tuple[int, int]]:
        """Return the first and the last window of each pane, the oldest pane first."""
        self._settle()
        return sorted(self._panes)

    def newest_with_keys(self, span: tuple[int, int], keys: AnyArray) -> Rows:
        """Return a pane's rows of some keys that are the newest of their identity in the pane.

        O(keys) once the pane's index is built.
        """
        self._settle()
        chunk = self._one(span)
        at = chunk.keys.of(keys)
        if len(at) and not self.distinct:
            at = at[chunk.is_newest[at]]
        return chunk.rows.take(at)

    def take_out(self, first: int, last: int, arrivals: Rows) -> None:
        """Remove the rows of one pane that have the identity and time of an arrival.

        O(1) if the pane has no rows of the arrivals' times, else O(pane).
        """
        if not len(arrivals):
            return
        low, high = int(arrivals.times.min()), int(arrivals.times.max())
        chunks = self._panes.get((first, last), [])
        if not any(chunk.low <= high and low <= chunk.high for chunk in chunks):
            return
        gone = set(zip(arrivals.identities.tolist(), arrivals.times.tolist(), strict=True))
        rows = Rows.together(chunk.rows for chunk in chunks)
        names = zip(rows.identities.tolist(), rows.times.tolist(), strict=True)
        stay = np.flatnonzero(
            np.fromiter((name not in gone for name in names), dtype=bool, count=len(rows))
        )
        if not len(stay):
            del self._panes[first, last]
        elif len(stay) < len(rows):
            self._panes[first, last] = [_chunk(rows.take(stay))]

    def snapshot(self) -> bytes:
        """Return the complete state as bytes."""
        panes = list(self.panes())
        sizes = {
            "firsts": np.array([pane.first for pane in panes], dtype=np.int64),
            "lasts": np.array([pane.last for pane in panes], dtype=np.int64),
            "sizes": np.array([len(pane.rows) for pane in panes], dtype=np.int64),
        }
        rows = table_of(Rows.together(pane.rows for pane in panes)) if panes else {}
        settings = {
            "distinct": self.distinct,
            "current": self._current,
            "latest": list(self._latest),
        }
        tables = {"panes": sizes, "rows": rows} if rows else {"panes": sizes}
        return pack(_KIND, _VERSION, State(settings, tables))

    def resume(self, snapshot: bytes) -> None:
        """Continue from a snapshot, before anything is added.

        Raise ``SnapshotError`` for any other bytes.
        """
        state = unpack(_KIND, _VERSION, snapshot)
        with reading():
            self.distinct = bool(state.settings["distinct"])
            panes = [state.tables["panes"][name].tolist() for name in ("firsts", "lasts", "sizes")]
            rows = rows_of(state.tables["rows"]) if "rows" in state.tables else None
            start = 0
            for first, last, size in zip(*panes, strict=True):
                assert rows is not None
                self.append(first, last, rows.take(slice(start, start + size)))
                start += size
            time, pane = state.settings["latest"]
            self._current = int(state.settings["current"])
            self._latest = int(time), int(pane)

    # Internals --------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Carry out pending removals."""
        if not self._removed:
            return
        removed, self._removed = self._removed, set()
        for pane, chunks in list(self._panes.items()):
            stay = [
                np.flatnonzero(
                    ~among(chunk.rows.identities, _column(removed, chunk.rows.identities))
                )
                for chunk in chunks
            ]
            chunks[:] = [
                chunk if len(at) == len(chunk.rows) else _chunk(chunk.rows.take(at))
                for chunk, at in zip(chunks, stay, strict=True)
                if len(at)
            ]
            if not chunks:
                del self._panes[pane]

    def _newer(self, first: int, arrivals: Rows) -> Iterator[tuple[int, int, Any]]:
        """Yield pane, time and identity of rows that may be newer than an arrival like them.

        Only rows with the identity of one of the arrivals are yielded.
        """
        oldest = int(arrivals.times.min())
        for (pane_first, _), chunks in self._panes.items():
            for chunk in chunks:
                if (chunk.high, pane_first) > (oldest, first):
                    same = chunk.identities.of(arrivals.identities)
                    times, identities = (
                        chunk.rows.times[same].tolist(),
                        chunk.rows.identities[same].tolist(),
                    )
                    yield from ((pane_first, *each) for each in zip(times, identities, strict=True))

    def _check(self) -> None:
        """Assert every invariant."""
        for (first, last), chunks in self._panes.items():
            assert first <= last
            assert last >= self._current, "a pane of closed windows only is kept"
            assert chunks, "a pane without rows is kept"
            for chunk in chunks:
                assert {len(column) for column in table_of(chunk.rows).values()} == {
                    len(chunk.rows)
                }
                assert (chunk.low, chunk.high) == (chunk.rows.times.min(), chunk.rows.times.max())
                assert (chunk.high, first) <= self._latest
            sizes = [len(chunk.rows) for chunk in chunks]
            assert all(size > 0 for size in sizes)


def _column(values: set[Any], like: AnyArray) -> AnyArray:
    kind = like.dtype if like.dtype.kind in "iu" else np.dtype(object)
    return np.fromiter(values, dtype=kind, count=len(values))


def _chunk(rows: Rows) -> _Chunk:
    return _Chunk(rows, int(rows.times.min()), int(rows.times.max()))


def _joined(older: _Chunk, newer: _Chunk) -> _Chunk:
    return _Chunk(
        Rows.together([older.rows, newer.rows]),
        min(older.low, newer.low),
        max(older.high, newer.high),
    )


def _copy(rows: Rows) -> Rows:
    """Return independent copies, not views that keep a whole batch in memory."""
    return Rows(
        rows.times.copy(),
        rows.identities.copy(),
        rows.keys.copy(),
        tuple(part.copy() for part in rows.parts),
        tuple(column.copy() for column in rows.carried),
    )
