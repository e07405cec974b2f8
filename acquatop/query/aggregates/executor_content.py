"""Content of the windows per key, in files that executors read; the driver knows their names."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from acquatop.errors import EnvironmentProblem
from acquatop.ingest.aggregate_columns import AggregateColumns
from acquatop.ingest.buckets.chunk_folder import ChunkFolder
from acquatop.ingest.buckets.partials import BucketPartials, chunks_in, placed, restored
from acquatop.ingest.buckets.replica_values import BucketValues
from acquatop.ingest.buckets.shared_values import SharedValues
from acquatop.ingest.buckets.task import (
    Bucket,
    BucketBest,
    BucketFound,
    BucketRanking,
    BucketTask,
    Chunk,
    Pane,
)
from acquatop.ingest.identity_hash import IdentityHash
from acquatop.ingest.match import Matcher
from acquatop.ingest.reduce.pane_partials import hashes_in
from acquatop.ingest.scoring import typed_variables
from acquatop.query.aggregates.spans import Cover, Spans
from acquatop.topk.snapshot import pack_parts, pack_table, reading, unpack_parts, unpack_table
from acquatop.windows import Windows
from replica.store import JoinedStore

RunTasks = Callable[[BucketTask, Sequence[Bucket]], Sequence[BucketFound]]
"""Function that runs a task for each bucket on the executors."""

_FEW = 8
"""Number of a pane's chunks in a bucket above which a close merges them, for later closes."""
_MANY = 64
"""Number of a pane's chunks in a bucket above which they are merged between two closes."""
_SCHEMA = pa.schema(
    {
        "first": pa.int64(),
        "last": pa.int64(),
        "bucket": pa.int64(),
        "file": pa.string(),
        "at": pa.int64(),
    }
)


class Close(NamedTuple):
    """Close of a window, and the number of keys in it."""

    window: int
    keys: int


class ExecutorAggregates:
    """Files of the open windows' panes, and the results of the last close.

    A close reads all data of its window, that of many panes as spans. Memory is O(panes x buckets x
    chunks), with a few chunks of a pane in each bucket, and O(what queries ask of each bucket).

    Files that no open window holds are removed; durable ones only once no snapshot that can be
    restored names them, as :meth:`saved` tells.
    """

    def __init__(
        self,
        columns: AggregateColumns,
        store: JoinedStore | None,
        folder: ChunkFolder,
        run: RunTasks,
        *,
        buckets: int,
        asked: int,
        hashes: IdentityHash | None = None,
    ) -> None:
        self.columns = columns
        self.asked = asked
        self.buckets = buckets
        self.uncertain_until = -(2**63)
        """Last window that lacks a late solution."""
        self._store = store
        self._folder = folder
        self._run = run
        self._panes: dict[Pane, list[list[Chunk]]] = {}
        self._uses: Counter[str] = Counter()
        self._unused: set[str] = set()
        """Files that are not needed since the last snapshot, which names them."""
        self._long_unused: set[str] = set()
        """Files that only the snapshot before that names."""
        self._spans = Spans()
        self._has_strangers = False
        """True if files may be there that nobody knows of."""
        self.last_close: Close | None = None
        """Last window whose keys have been ranked."""
        self.open_from = -(2**63)
        """First window that is open."""
        self._rankings: dict[int, BucketRanking] = {}
        self._window = 0
        self.hashes = hashes or IdentityHash()
        self._values = None if store is None else self._shared_values(store)
        self._bests: dict[int, list[BucketBest]] | None = None

    # Rankings -------------------------------------------------------------------------------------

    def enrol(self, ranking: BucketRanking) -> int:
        """Add the ranking of one more query; return its number, for :meth:`bests`."""
        number = max(self._rankings, default=-1) + 1
        self._rankings[number] = ranking
        self._bests = None
        return number

    def leave(self, number: int) -> None:
        """Drop the ranking of a query."""
        self._rankings.pop(number, None)

    # Arrivals -------------------------------------------------------------------------------------

    def reducer(self, matcher: Matcher, windows: Windows) -> BucketPartials:
        """Return the reducer of a stream's records; call it only while no records are under way."""
        self.remove_strangers()
        return BucketPartials(
            matcher, windows, self.columns, self.buckets, self._folder, self.hashes
        )

    def remove_strangers(self) -> None:
        """Remove files that nobody knows of, such as those of tasks that have been killed.

        Call it only while no records are under way, nor in a journal.
        """
        if self._has_strangers:
            self._has_strangers = False
            own = () if self._values is None else self._values.files
            self._folder.remove(
                set(self._folder.names()) - {*self._uses, *self._unused, *self._long_unused, *own}
            )

    def add_partials(self, table: pa.Table) -> None:
        """Note the places of some panes' partials."""
        over = []
        for chunks in chunks_in(table):
            if chunks.last < self.open_from:
                over.append(chunks.file)
                continue
            held = self._pane(chunks.first, chunks.last)
            for at, bucket in enumerate(chunks.buckets):
                self._hold(held[bucket], (chunks.file, chunks.start + at))
        self.leave_out(over)
        crowded = self._crowded(_MANY)
        if crowded:
            self._do(
                BucketTask(self._folder, self.columns, ()),
                {pane: self._panes[pane] for pane in crowded},
                crowded,
            )

    def leave_out(self, files: Iterable[str]) -> None:
        """Release files, except those with chunks in use."""
        self._let_go({file for file in files if not self._uses[file]})

    def note_late(self, first: int, last: int) -> None:
        """Note a late solution of the windows ``first`` to ``last``: those still open lack it."""
        if first <= last:
            self.uncertain_until = max(self.uncertain_until, last)

    def take_over(self, tables: Iterable[pa.Table], open_from: int, uncertain_until: int) -> None:
        """Take in partials that the driver held, with this content's hashes, a pane each.

        Raise EnvironmentProblem if the files cannot be written, or if executors cannot use them.
        """
        self.open_from, self.uncertain_until = open_from, uncertain_until
        # After a restart there may be files of the same move, made before.
        self._has_strangers = True
        try:
            for number, table in enumerate(tables):
                origin = f"moved {number}".encode()
                self.add_partials(placed(table, self.buckets, self._folder, origin))
        except OSError as error:
            raise EnvironmentProblem(f"{self._folder.path}: cannot be written: {error}") from error
        self._do(BucketTask(self._folder, self.columns, (), trial=True), self._panes, ())

    def give_up(self) -> None:
        """Remove all files: the driver goes on to hold what was to be taken over."""
        self._folder.remove(list(self._uses))

    def keys_beyond(self, window: int, most: int) -> float:
        """Return the number of keys in panes that a window does not hold.

        Return infinity if these have more than so many partials: no more are read.
        """
        heads, count = [np.empty(0, dtype=np.int64)], 0
        for _, rows in self._chunks(lambda pane: pane[0] > window):
            heads.append(hashes_in(rows)[0])
            count += len(rows)
            if count > most:
                return math.inf
        return len(np.unique(np.concatenate(heads)))

    def tables(self) -> Iterator[pa.Table]:
        """Yield all partials of open windows, with hashes and texts, a chunk at a time."""
        for (first, last), rows in self._chunks(lambda pane: pane[1] >= self.open_from):
            yield restored(rows, first, last)

    def _chunks(self, is_wanted: Callable[[Pane], bool]) -> Iterator[tuple[Pane, pa.RecordBatch]]:
        try:
            for pane in filter(is_wanted, self._panes):
                for file, at in (chunk for chunks in self._panes[pane] for chunk in chunks):
                    (rows,) = self._folder.read(file, [at])
                    yield pane, rows
        except (OSError, pa.ArrowException) as error:
            raise self._problem(error) from error

    def retire(self) -> None:
        """Release all data: the driver holds it again. Older snapshots still name the files."""
        self.close_before(2**63 - 1)
        if self._values is not None:
            self._values.close()

    @property
    def is_forgotten(self) -> bool:
        """True if all files that are not in use have been removed."""
        return not (self._unused or self._long_unused or self._has_strangers)

    def succeed(self, retired: ExecutorAggregates) -> None:
        """Remove a retired content's files once no snapshot that can be restored names them."""
        self._unused |= retired._unused - set(self._uses)
        self._long_unused |= retired._long_unused - set(self._uses)

    # Results --------------------------------------------------------------------------------------

    def settle(self, window: int) -> None:
        """Note that all records of a window have come."""
        self._window, self._bests = window, None

    def bests(self, number: int, absent_before: float = math.inf) -> list[BucketBest]:
        """Return a query's result for each bucket.

        The first call runs the tasks for all queries.
        """
        if self._bests is None:
            self._bests = self._look(absent_before)
        return self._bests[number]

    def look_again(self) -> None:
        """Drop the results: the replica has new values."""
        self._bests = None

    def values_have_changed(self, keys: list[str]) -> bool:
        """Return True if the replica's values of some keys are no more those that tasks used."""
        assert self._values is not None, "without a replica nothing changes"
        return self._values.have_changed(keys)

    def _shared_values(self, store: JoinedStore) -> SharedValues:
        return SharedValues(store, self._folder, self.hashes, self.buckets)

    def _look(self, absent_before: float) -> dict[int, list[BucketBest]]:
        values = None
        if self._values is not None:
            names = {
                name: None
                for each in self._rankings.values()
                for name in each.score.remote_variables
            }
            typed = {
                name: None
                for each in self._rankings.values()
                for name in typed_variables(each.score)
            }
            values = self._values.of_buckets(tuple(names), tuple(typed), absent_before)
        task = BucketTask(self._folder, self.columns, list(self._rankings.values()), self.asked)
        panes = {
            pane: chunks
            for pane, chunks in self._panes.items()
            if pane[0] <= self._window <= pane[1]
        }
        crowded = [pane for pane in self._crowded(_FEW) if pane in panes and pane[1] > self._window]
        cover = self._spans.cover(panes, self._window)
        read = {pane: panes[pane] for pane in cover.panes}
        found = self._do(task, read, [pane for pane in crowded if pane in read], values, cover)
        self.last_close = Close(self._window, sum(each.keys for each in found))
        return {
            number: [each.bests[at] for each in found] for at, number in enumerate(self._rankings)
        }

    # Tasks ----------------------------------------------------------------------------------------

    def _crowded(self, most: int) -> list[Pane]:
        return [pane for pane, chunks in self._panes.items() if max(map(len, chunks)) > most]

    def _do(
        self,
        task: BucketTask,
        panes: dict[Pane, list[list[Chunk]]],
        crowded: Sequence[Pane],
        values: Sequence[BucketValues] | None = None,
        cover: Cover | None = None,
    ) -> list[BucketFound]:
        """Run a task for each bucket with any of some panes, and use the chunks that it merged."""
        buckets = list(self._buckets_with(panes, crowded, values, cover))
        found = list(self._run(task, buckets)) if buckets else []
        problem = next((each.problem for each in found if each.problem is not None), None)
        if problem is not None:
            raise self._problem(problem)
        for bucket, each in zip(buckets, found, strict=True):
            for pane, chunk in each.merged.items():
                self._replace(self._panes[pane][bucket.number], chunk)
        if cover is not None:
            places = [
                (bucket.number, each.made) for bucket, each in zip(buckets, found, strict=True)
            ]
            self._spans.note(cover.made, places)
            for file in (file for _, made in places for file, _ in made.values()):
                self._use(file)
        return found

    def _problem(self, problem: object) -> EnvironmentProblem:
        return EnvironmentProblem(
            f"{self._folder.path}: the keys that executors keep cannot be read or written: "
            f"{problem}\n"
            "  hint: every executor and the driver must reach this place and write to it, "
            "and nobody else may remove files from it"
        )

    def _buckets_with(
        self,
        panes: dict[Pane, list[list[Chunk]]],
        crowded: Sequence[Pane],
        values: Sequence[BucketValues] | None,
        cover: Cover | None,
    ) -> Iterable[Bucket]:
        for number in range(self.buckets):
            own = {pane: tuple(chunks[number]) for pane, chunks in panes.items() if chunks[number]}
            spans = {} if cover is None else self._spans.chunks(cover.spans, number)
            if own or spans:
                several = frozenset(pane for pane in crowded if len(own.get(pane, ())) > 1)
                known = None if values is None else values[number]
                made = {} if cover is None else cover.made
                yield Bucket(number, own, several, known, spans, made)

    # Files ----------------------------------------------------------------------------------------

    def _pane(self, first: int, last: int) -> list[list[Chunk]]:
        return self._panes.setdefault((first, last), [[] for _ in range(self.buckets)])

    def _hold(self, chunks: list[Chunk], chunk: Chunk) -> None:
        chunks.append(chunk)
        self._use(chunk[0])

    def _use(self, file: str) -> None:
        self._uses[file] += 1
        self._unused.discard(file)
        self._long_unused.discard(file)

    def _replace(self, chunks: list[Chunk], chunk: Chunk) -> None:
        before = list(chunks)
        chunks.clear()
        self._hold(chunks, chunk)
        self._release(before)

    def _release(self, chunks: Iterable[Chunk]) -> None:
        self._let_go(self._forgotten(chunks))

    def _forgotten(self, chunks: Iterable[Chunk]) -> set[str]:
        """Use chunks no longer; return the files with no other chunk in use."""
        files = [file for file, _ in chunks]
        self._uses.subtract(files)
        gone = {file for file in files if not self._uses[file]}
        for file in gone:
            del self._uses[file]
        return gone

    def _let_go(self, files: set[str]) -> None:
        if self._folder.durable:
            self._unused |= files
        else:
            self._folder.remove(files)

    def snapshot_committed(self) -> None:
        """Note that the last snapshot is durable: only one earlier one can still be restored."""
        self._folder.remove(self._long_unused)
        self._unused, self._long_unused = set(), self._unused

    def close(self) -> None:
        """Remove all files, unless they are durable."""
        if self._values is not None:
            self._values.close()
        if not self._folder.durable:
            self._folder.remove(list(self._uses))
        self._folder.forget_copies()

    # Progress of time -----------------------------------------------------------------------------

    def close_before(self, window: int) -> None:
        """Release data that lies only in earlier windows."""
        self.open_from = max(self.open_from, window)
        for pane in [pane for pane in self._panes if pane[1] < self.open_from]:
            self._release(chunk for chunks in self._panes.pop(pane) for chunk in chunks)
        # No snapshot names spans.
        self._folder.remove(self._forgotten(self._spans.close_before(self.open_from)))

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the names of files and places of chunks, not their content. O(chunks)."""
        rows = [
            (*pane, bucket, *chunk)
            for pane, chunks in self._panes.items()
            for bucket, own in enumerate(chunks)
            for chunk in own
        ]
        columns = [
            pa.array([row[at] for row in rows], field.type) for at, field in enumerate(_SCHEMA)
        ]
        numbers = [self.open_from, self.uncertain_until]
        said = {
            "numbers": numbers,
            "seed": self.hashes.seed.hex(),
            "buckets": self.buckets,
            "unused": [sorted(files) for files in (self._unused, self._long_unused)],
        }
        return pack_parts(
            {
                "said": json.dumps(said).encode(),
                "chunks": pack_table(pa.Table.from_arrays(columns, schema=_SCHEMA)),
            }
        )

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot, before any query ranks this content."""
        with reading():
            parts = unpack_parts(snapshot)
            said = json.loads(parts["said"])
            self.open_from, self.uncertain_until = said["numbers"]
            self.hashes = IdentityHash(bytes.fromhex(said["seed"]))
            self.buckets = said["buckets"]
            self._unused, self._long_unused = map(set, said["unused"])
            columns = [column.to_pylist() for column in unpack_table(parts["chunks"]).columns]
            for first, last, bucket, file, at in zip(*columns, strict=True):
                self._hold(self._pane(first, last)[bucket], (file, at))
        if self._store is not None:
            self._values = self._shared_values(self._store)
        self._has_strangers = True
