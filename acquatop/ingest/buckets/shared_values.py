"""A replica's values in files that executors read, brought up to date by what has changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from uuid import uuid4

import numpy as np
import pyarrow as pa

from acquatop.ingest.buckets.chunk_folder import ChunkFolder
from acquatop.ingest.buckets.replica_values import (
    ABSENT,
    GONE,
    PRESENT,
    BucketValues,
    ValueChunk,
    ValueFacts,
    value_rows,
)
from acquatop.ingest.buckets.sorted_hashes import buckets_of, unsigned
from acquatop.ingest.identity_hash import Hashes, IdentityHash
from acquatop.ingest.reduce.pane_partials import hashes_in
from acquatop.ingest.scoring import BoolArray
from acquatop.topk.contract import IntArray
from replica.store import JoinedStore

MOST_CHANGES = 16
"""Number of files with changes after which all values are written again."""
_SHARE = 4
"""Share of the whole, as a divisor, that changes may have before all values are written again."""
_BLOCK = 1 << 18
"""Number of texts hashed at a time."""


@dataclass
class _Written:
    """Values in files: those of the first one, and changes, up to a version of the replica."""

    names: tuple[tuple[str, ...], tuple[str, ...]]
    version: int
    files: list[str] = field(default_factory=list)
    chunks: list[list[ValueChunk]] = field(default_factory=list)
    rows: int = 0
    changed: int = 0


class SharedValues:
    """Writer of a replica's values, a chunk per bucket. Files are made anew after a restart.

    Bringing them up to date costs O(rows that have changed), at times O(keys of the replica).
    Memory is 17 bytes per row: the hashes that the files know.
    """

    def __init__(
        self, store: JoinedStore, folder: ChunkFolder, hashes: IdentityHash, buckets: int
    ) -> None:
        self._store = store
        # A loss of power loses nothing here.
        self._folder = ChunkFolder(folder.path)
        self._hashes = hashes
        self._buckets = buckets
        self._heads: IntArray = np.empty(0, dtype=np.int64)
        self._tails: IntArray = np.empty(0, dtype=np.int64)
        self._is_written: BoolArray = np.empty(0, dtype=np.bool_)
        self._written: _Written | None = None

    @property
    def files(self) -> list[str]:
        """Names of the files in use."""
        return [] if self._written is None else list(self._written.files)

    def of_buckets(
        self, variables: tuple[str, ...], typed: tuple[str, ...], absent_before: float
    ) -> list[BucketValues]:
        """Return the present values of each bucket's keys, and of the types of some.

        Keys that the remote did not have, asked for after ``absent_before``, are waiting.
        """
        written = self._brought_up_to_date(variables, typed)
        store = self._store
        facts = ValueFacts(
            variables,
            typed,
            {name: store.size(name) for name in variables},
            {name: store.mean(name) for name in variables},
        )
        rows = store.all_rows()
        absent = rows[~store.present(rows)]
        waiting = absent[store.fetched_at(absent) > absent_before]
        waiting = waiting[np.argsort(unsigned(self._heads[waiting]))]
        heads, tails = self._heads[waiting], self._tails[waiting]
        ends = pairwise(self._ends(heads))
        return [
            BucketValues(tuple(chunks), facts, (heads[start:stop], tails[start:stop]))
            for chunks, (start, stop) in zip(written.chunks, ends, strict=True)
        ]

    def have_changed(self, keys: list[str]) -> bool:
        """Return True if the replica's values of some keys are not those in the files any more."""
        if self._written is None:
            return True
        changed = self._store.changes.since(self._written.version)
        rows = self._store.rows(keys)
        return changed is None or bool((rows < 0).any() or np.isin(rows, changed).any())

    def close(self) -> None:
        """Remove all files."""
        self._folder.remove(self.files)
        self._written = None

    def _brought_up_to_date(self, variables: tuple[str, ...], typed: tuple[str, ...]) -> _Written:
        log, written = self._store.changes, self._written
        changed = None if written is None else log.since(written.version)
        if (
            written is None
            or changed is None
            or written.names != (variables, typed)
            or len(written.files) > MOST_CHANGES
            or (written.changed + len(changed)) * _SHARE > written.rows
        ):
            return self._write_all(variables, typed)
        if len(changed):
            self._write_changes(written, changed)
        written.version = log.version
        return written

    def _write_all(self, variables: tuple[str, ...], typed: tuple[str, ...]) -> _Written:
        self.close()
        self._is_written[:] = False
        version = self._store.changes.begin()
        rows = self._store.all_rows()
        self._written = _Written(
            (variables, typed), version, chunks=[[] for _ in range(self._buckets)], rows=len(rows)
        )
        self._note(rows)
        self._write(self._written, rows)
        return self._written

    def _write_changes(self, written: _Written, changed: IntArray) -> None:
        """Write what has become of some rows: their former keys are gone, unless they are held."""
        former = changed[changed < len(self._is_written)]
        former = former[self._is_written[former]]
        gone = self._heads[former], self._tails[former]
        self._is_written[former] = False
        here = changed[self._store.are_held(changed)]
        self._note(here)
        written.changed += len(changed)
        self._write(written, here, gone)

    def _note(self, rows: IntArray) -> None:
        """Hash the keys of rows."""
        room = int(rows.max(initial=-1)) + 1 - len(self._is_written)
        if room > 0:
            room += len(self._is_written) // 2
            self._heads = np.concatenate([self._heads, np.zeros(room, dtype=np.int64)])
            self._tails = np.concatenate([self._tails, np.zeros(room, dtype=np.int64)])
            self._is_written = np.concatenate([self._is_written, np.zeros(room, dtype=np.bool_)])
        for start in range(0, len(rows), _BLOCK):
            some = rows[start : start + _BLOCK]
            self._heads[some], self._tails[some] = self._hashes.of(self._store.keys(some))
        self._is_written[rows] = True

    def _write(self, written: _Written, rows: IntArray, gone: Hashes | None = None) -> None:
        """Write the keys that are gone, and the values of rows, as one more file."""
        tables = [] if gone is None or not len(gone[0]) else [self._gone(written, gone)]
        if len(rows):
            tables.append(self._values(written, rows))
        if not tables:
            return
        parts, buckets = [], []
        for table in tables:
            heads, _ = hashes_in(table)
            order = np.argsort(unsigned(heads))
            sorted_rows = table.take(pa.array(order))
            ends = self._ends(heads[order])
            for number, (start, stop) in enumerate(pairwise(ends)):
                if stop > start:
                    parts.append(sorted_rows.slice(start, stop - start))
                    buckets.append(number)
        file = self._folder.write(parts, uuid4().bytes)
        written.files.append(file)
        for at, number in enumerate(buckets):
            written.chunks[number].append((file, at))

    def _values(self, written: _Written, rows: IntArray) -> pa.RecordBatch:
        store, (variables, typed) = self._store, written.names
        return value_rows(
            (self._heads[rows], self._tails[rows]),
            np.where(store.present(rows), PRESENT, ABSENT).astype(np.int8),
            {name: store.numbers(name, rows) for name in variables},
            {name: store.floating(name, rows) for name in typed},
        )

    def _gone(self, written: _Written, gone: Hashes) -> pa.RecordBatch:
        (variables, typed), count = written.names, len(gone[0])
        return value_rows(
            gone,
            np.full(count, GONE, dtype=np.int8),
            {name: np.full(count, np.nan) for name in variables},
            {name: np.zeros(count, dtype=np.bool_) for name in typed},
        )

    def _ends(self, heads: IntArray) -> list[int]:
        """Return the ends of each bucket's rows among ascending heads, from zero on."""
        ends: list[int] = np.searchsorted(
            buckets_of(heads, self._buckets), np.arange(self._buckets + 1)
        ).tolist()
        return ends
