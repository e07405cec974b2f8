"""Content of the windows per key, counted once for all queries that rank it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acquatop.ingest.aggregate_columns import AggregateColumns
from acquatop.ingest.identity_hash import Hashes, IdentityHash
from acquatop.ingest.key_codes import KeyCodes
from acquatop.ingest.known_keys import KnownKeys
from acquatop.ingest.panes import Pane
from acquatop.ingest.reduce.pane_partials import hashes_in, partials_of, table_of
from acquatop.ingest.scoring import BoolArray
from acquatop.ingest.solution_columns import GONE, IDENTITY, KEY, number_column
from acquatop.query.aggregates.deduplicated import (
    Deduplicated,
    HashedIdentities,
    SolutionColumns,
    as_integers,
)
from acquatop.topk.aggregates.keyed_content import KeyedContent
from acquatop.topk.aggregates.multi_aggregate import Valuewise
from acquatop.topk.aggregates.partials import NEVER
from acquatop.topk.contract import AnyArray, IntArray, Rows
from acquatop.topk.snapshot import pack_parts, unpack_parts
from connectors.mapping import TIME
from replica.store import JoinedStore

_UNKNOWN = -1
SLACK = 1024


@dataclass(frozen=True)
class _Arrivals:
    """Solutions that are not counted yet; those that only replace an older one have no key."""

    identities: HashedIdentities
    firsts: IntArray
    solutions: SolutionColumns

    def take(self, at: IntArray | BoolArray) -> _Arrivals:
        return _Arrivals(self.identities.take(at), self.firsts[at], self.solutions.take(at))


class AggregateStore:
    """Aggregates of all keys of the open windows, and the replica's rows of the keys.

    A solution is counted once in a window: one of the same identity replaces an older one, which is
    withdrawn from its key's aggregates. With ``is_distinct``, solutions of one identity may come of
    records that leave at different times: the last one counts. If arrivals are distinct, no
    identity comes twice, and partials are added as they are (:meth:`add_partials`).

    Memory is O(keys with a solution in an open window), whose codes are reused. Unless arrivals are
    distinct, identities take O(solutions of the open windows) as well
    (:mod:`acquatop.query.aggregates.deduplicated`).
    """

    def __init__(
        self,
        columns: AggregateColumns,
        store: JoinedStore | None,
        *,
        latest_only: bool,
        is_distinct: bool = False,
        hashes: IdentityHash | None = None,
    ) -> None:
        self.columns = columns
        self.codes = KeyCodes(hashes)
        self.known = KnownKeys(self.codes)
        """Keys of which partials may come without texts."""
        self._is_replayed = False
        """True if partials of a journal may come, which may rely on the keys held before."""
        self.keyed = KeyedContent(columns.aggregates)
        self.rows: IntArray = np.empty(0, dtype=np.int64)
        """Replica row of each key's code; -1 for an unknown key."""
        self._store = store
        self._latest_only = latest_only
        self._is_distinct = is_distinct
        self._retained = Deduplicated(columns.whole)
        self._arrived: list[_Arrivals] = []
        self._open_from = -(2**63)
        self.uncertain_until = -(2**63)
        """Last window that lacks a late solution."""

    # Arrivals -----------------------------------------------------------------------------------

    def add_pane(self, pane: Pane) -> None:
        """Add one pane's solutions. O(n)."""
        self._is_replayed = False
        if pane.last < self._open_from:
            return
        solutions, count = pane.solutions, len(pane.solutions)
        here = np.flatnonzero(~solutions.column(GONE).to_numpy())
        keys = np.full(count, _UNKNOWN)
        keys[here] = self._encode(solutions.column(KEY).take(pa.array(here)))
        self._arrived.append(
            _Arrivals(
                self._retained.identities(solutions.column(IDENTITY)),
                np.full(count, pane.first),
                SolutionColumns(
                    np.full(count, pane.last),
                    keys,
                    np.asarray(solutions.column(TIME).to_numpy()),
                    self._values(solutions),
                ),
            )
        )

    def _values(self, solutions: pa.Table) -> Valuewise:
        """Return the values of each variable: integers with all their digits, or doubles."""
        columns: list[AnyArray] = [
            np.asarray(solutions.column(number_column(of)).to_numpy())
            for of in self.columns.variables
        ]
        is_whole = zip(columns, self.columns.whole, strict=True)
        return tuple(as_integers(column) if whole else column for column, whole in is_whole)

    def add_partials(self, table: pa.Table) -> None:
        """Add partials of panes whose solutions nothing replaces. O(its rows)."""
        codes = self._numbered(table.column(KEY).combine_chunks(), hashes_in(table))
        for first, last, partial in partials_of(table, codes):
            if last >= self._open_from:
                self.keyed.add_partial(first, last, partial)

    def note_late(self, first: int, last: int) -> None:
        """Note a late solution of the windows ``first`` to ``last``: those still open lack it."""
        if first <= last:
            self.uncertain_until = max(self.uncertain_until, last)

    def settle(self, window: int) -> None:
        """Count all arrivals, each identity once, in the newest of its panes."""
        self.keyed.close_before(window)
        self._retained.close_before(window)
        for arrivals in self._newest():
            if self._is_distinct:
                lasts = arrivals.solutions.lasts
                arrivals = arrivals.take(~self._retained.has_longer(arrivals.identities, lasts))
            replaced = self._retained.pop(arrivals.identities)
            if replaced is not None:
                self._withdraw(replaced)
            here = arrivals.take(arrivals.solutions.keys >= 0)
            self._count(here)
            self._retained.put(here.identities, here.solutions)
        self._arrived = []
        self.keyed.enter(window)

    def _newest(self) -> list[_Arrivals]:
        """Return the newest arrival of each identity.

        Open windows with an older one hold it, too.
        """
        if not self._arrived or (len(self._arrived) == 1 and not self._is_distinct):
            return self._arrived
        together = _Arrivals(
            HashedIdentities(
                np.concatenate([each.identities.heads for each in self._arrived]),
                np.concatenate([each.identities.tails for each in self._arrived]),
            ),
            np.concatenate([each.firsts for each in self._arrived]),
            SolutionColumns.together([each.solutions for each in self._arrived]),
        )
        if self._is_distinct:
            order = np.lexsort((together.firsts, together.solutions.lasts))
            together = together.take(order)
        return [together.take(together.identities.newest())]

    def _encode(self, keys: pa.ChunkedArray) -> IntArray:
        encoded = keys.combine_chunks()
        if not pa.types.is_dictionary(encoded.type):
            encoded = encoded.dictionary_encode()
        codes: IntArray = self._numbered(encoded.dictionary)[encoded.indices.to_numpy()]
        return codes

    def _numbered(self, keys: pa.Array, hashes: Hashes | None = None) -> IntArray:
        """Return the keys' codes, and look up the replica's row of each."""
        codes = self.codes.encode(keys, hashes)
        if self.codes.size > len(self.rows):
            self.rows = np.concatenate(
                [self.rows, np.full(self.codes.size - len(self.rows), _UNKNOWN)]
            )
        if self._store is not None:
            # In a replica without a limit, a key keeps its row once it has one.
            some = codes if self._store.limit is not None else codes[self.rows[codes] < 0]
            self.rows[some] = self._store.rows(self.codes.texts(some).tolist())
        return codes

    def _withdraw(self, replaced: SolutionColumns) -> None:
        """Withdraw solutions that newer arrivals replace.

        O(all that is held) if only the latest arrivals count.
        """
        parts = self._parts(replaced)
        if not self._latest_only:
            # The newer solution is the same, only later.
            self.keyed.withdraw(replaced.lasts, replaced.keys, parts, None)
            return
        held = self._retained.of_keys(replaced.keys, self.codes.size)
        held = held.take(np.argsort(held.lasts, kind="stable"))
        wanted = np.zeros(self.codes.size, dtype=np.bool_)

        def left(last: int, keys: IntArray) -> Rows:
            wanted[keys] = True
            its = held.take(slice(*np.searchsorted(held.lasts, [last, last + 1]).tolist()))
            its = its.take(wanted[its.keys])
            wanted[keys] = False
            return Rows(its.times, its.keys, its.keys, self._parts(its))

        self.keyed.withdraw(replaced.lasts, replaced.keys, parts, left)

    def _count(self, here: _Arrivals) -> None:
        """Add arrivals to the keys' aggregates, pane by pane."""
        solutions = here.solutions
        if not len(solutions):
            return
        spans = np.column_stack([here.firsts, solutions.lasts])
        starts = np.flatnonzero(np.any(np.diff(spans, axis=0, prepend=spans[:1] - 1) != 0, axis=1))
        for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(spans)], strict=True):
            each = solutions.take(np.arange(start, stop))
            rows = Rows(each.times, each.keys, each.keys, self._parts(each))
            self.keyed.add(int(spans[start, 0]), int(spans[start, 1]), rows)

    def _parts(self, solutions: SolutionColumns) -> Valuewise:
        """Return the values of each aggregate; none for the count."""
        nothing, variables = np.empty(0), self.columns.variables
        return tuple(
            nothing if of is None else solutions.parts[variables.index(of)]
            for of in self.columns.of
        )

    # Changes of the remote's values ---------------------------------------------------------------

    def look_up(self, keys: Iterable[str]) -> IntArray:
        """Look up the replica's rows of some keys again.

        Return the codes of those in the windows.
        """
        codes = self.codes.find(list(keys))
        if self._store is not None:
            self.rows[codes] = self._store.rows(self.codes.texts(codes).tolist())
        return codes

    # Moving ---------------------------------------------------------------------------------------

    def take_over(self, tables: Iterable[pa.Table], open_from: int, uncertain_until: int) -> None:
        """Take in partials that executors held, with this content's hashes and with texts."""
        self._open_from, self.uncertain_until = open_from, uncertain_until
        # In a journal, partials may follow that rely on keys which only these have.
        self._is_replayed = True
        for table in tables:
            self.add_partials(table)

    @property
    def open_from(self) -> int:
        """First window that is open."""
        return self._open_from

    def tables(self) -> Iterator[pa.Table]:
        """Yield all partials as executors make them, with hashes and texts.

        O(all that is held).
        """
        codes = np.arange(self.codes.size)
        names, hashes = pa.array(self.codes.texts(codes), pa.string()), self.codes.hashes_of(codes)
        for first, last, partial in self.keyed.partials():
            yield table_of([(first, last, partial.listed())], names, hashes)

    # Progress of time -----------------------------------------------------------------------------

    def close_before(self, window: int) -> None:
        """Release data that lies only in earlier windows; all rankings must have seen it."""
        self._open_from = max(self._open_from, window)
        self.keyed.close_before(window)
        self._retained.close_before(window)
        if not (self._is_replayed or self.known.is_published):
            self._release_unused()

    def begin_batch(self) -> None:
        """Release keys whose partials have been waited for: all that are on their way have come."""
        self._is_replayed = False
        self._release_unused()

    @property
    def has_unused(self) -> bool:
        """True if keys are to be released, once nothing that may need them is on its way."""
        return len(self._unused()) > 0

    def _release_unused(self) -> None:
        """Release keys that no open window holds, if they are many."""
        gone = self._unused()
        if len(gone):
            self.codes.release(gone)
            self.rows[gone] = _UNKNOWN

    def _unused(self) -> IntArray:
        """Return the codes of keys that no open window holds; none if they are few."""
        if len(self.codes) > 2 * self.keyed.count() + SLACK:
            is_alive = self._alive()
            if len(self.codes) > 2 * int(np.count_nonzero(is_alive)) + SLACK:
                used = self.codes.used()
                return used[~is_alive[used]]
        return np.empty(0, dtype=np.int64)

    def _alive(self) -> BoolArray:
        """Return a mask of the keys, by code, that the current window holds, or a pane to come."""
        is_alive = np.zeros(self.codes.size, dtype=np.bool_)
        for each in (self.keyed.inside(), self.keyed.to_come()):
            is_alive[each] = True
        for arrivals in self._arrived:
            keys = arrivals.solutions.keys
            is_alive[keys[keys >= 0]] = True
        return is_alive

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state; all arrivals must be counted. O(all that is held)."""
        assert not self._arrived, "what has come is counted when a window closes"
        numbers = f"{self._open_from} {self.uncertain_until}".encode()
        return pack_parts(
            {
                "numbers": numbers,
                "codes": self.codes.snapshot(),
                "keyed": self.keyed.snapshot(),
                "retained": self._retained.snapshot(),
            }
        )

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot of the same query, before any query ranks this content."""
        parts = unpack_parts(snapshot)
        self._is_replayed = True
        self._open_from, self.uncertain_until = map(int, parts["numbers"].split())
        self.codes.resume(parts["codes"])
        self.keyed.resume(parts["keyed"])
        self._retained.resume(parts["retained"])
        self.rows = np.full(self.codes.size, _UNKNOWN)
        used = self.codes.used()
        if self._store is not None and len(used):
            self.rows[used] = self._store.rows(self.codes.texts(used).tolist())

    def _check(self) -> None:
        """Assert every invariant. O(all that is held)."""
        self.keyed._check()
        self._retained._check()
        assert not self._arrived
        alive = self.keyed.inside()
        assert set(alive.tolist()) <= set(self.codes.used().tolist())
        counts = self.keyed.totals.aggregates(alive)[0]
        if not len(self._retained):
            return  # arrivals are distinct, or there are none
        assert int(counts.sum()) == len(self._retained)
        held = self._retained.of_keys(alive, self.codes.size)
        newest = np.full(self.codes.size, NEVER)
        np.maximum.at(newest, held.keys, held.times)
        assert np.array_equal(np.bincount(held.keys, minlength=self.codes.size)[alive], counts)
        assert np.array_equal(newest[alive], self.keyed.totals.newest(alive))
        if self._store is not None:
            rows = self._store.rows(self.codes.texts(alive).tolist())
            assert np.array_equal(rows, self.rows[alive])
