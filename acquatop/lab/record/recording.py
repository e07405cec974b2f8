"""Folder to which a running query's stream and remote are recorded, and which can be replayed."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from acquatop.catalog.catalog import Catalog
from acquatop.catalog.remotes import PushSource, TableSource
from acquatop.engine.state.folder import Folder, make_folder
from acquatop.engine.state.lock import DirectoryLock
from acquatop.engine.state.names import LOCK
from acquatop.engine.state.problems import explained
from acquatop.errors import UserError
from acquatop.ingest.match import Matcher
from acquatop.lab.record.full_snapshots import FullSnapshots, SnapshotBudget, SnapshotTime
from acquatop.lab.record.recorded_catalog import catalog_text
from acquatop.lab.record.recorded_remote import RecordedFeed, RecordedRemote, milliseconds
from acquatop.lab.record.remote_log import RemoteTape
from acquatop.lab.record.stream_log import StreamTape
from acquatop.lab.record.table_column import TableColumn, UnwritableError
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import Bound, BoundCounted, BoundQuery, BoundWindowed
from acquatop.plan.remote_query import RemoteQuery, star_of
from connectors.mapping import BAD
from connectors.registry import SPARK
from replica.feeds.contract import Feed
from replica.remotes import Remote
from replica.remotes.records import Star
from replica.spending.quota import Quota
from rspql import ast

CATALOG, QUERY, STREAM, REMOTE, STATE = (
    "catalog.toml",
    "query.rspql",
    "stream.ndjson",
    "remote.jsonl",
    "state",
)
_NEW = ".new"
"""Suffix of a file that is being written."""
_WITHOUT_QUERY = {CATALOG, CATALOG + _NEW, QUERY + _NEW, REMOTE, LOCK}
"""Files that a folder may hold if a recording has only been started."""


class Recording:
    """Recording of an engine: the tapes, and the clock that dates the remote's values.

    The remote's values are dated in the stream's time: by the evaluation that requested them, or by
    the last one before they arrived unasked. Values loaded before the first evaluation are dated 0.
    So a replayed evaluation finds the values that it found. A folder has one recording at a time; a
    recording continues in a folder that has the same query.
    """

    def __init__(
        self,
        folder: Path,
        bound: BoundQuery,
        catalog: Catalog,
        *,
        snapshots: SnapshotBudget | None = None,
    ) -> None:
        assert bound.service is not None
        self.folder = folder
        self._bound = bound
        self._service = bound.service
        self._prefixes = catalog.prefixes
        self._budget = snapshots
        self._snapshots: FullSnapshots | None = None
        self._columns = _columns(bound)
        if (folder / CATALOG).is_file():
            self._take_up_datatypes()
        self._write_catalog()
        key = bound.plan.join_variables[0]
        self.stream = StreamTape(folder / STREAM, bound.stream.mapping)
        self.remote = RemoteTape(folder / REMOTE, key, self._columns, self._write_catalog)
        self.now = SnapshotTime()
        self._resources = ExitStack()

    @classmethod
    def open(
        cls,
        folder: Path,
        catalog: Catalog,
        query: str,
        *,
        file: str,
        snapshots: SnapshotBudget | None = None,
    ) -> Self:
        """Start or continue a recording; raise :class:`UserError` for an unfit query or folder."""
        bound = _recordable(bind_query(query, catalog, file=file), file)
        with ExitStack() as resources:
            with explained(folder, "record"):
                make_folder(folder)
                held = Folder(folder)
            resources.callback(held.close)
            resources.callback(DirectoryLock.take(held).release)
            _check(folder, query)
            recording = cls(folder, bound, catalog, snapshots=snapshots)
            resources.callback(recording.remote.close)
            _replace(folder / QUERY, query)
            recording._resources = resources.pop_all()
        return recording

    @property
    def state(self) -> Path:
        """Folder of the engine's state."""
        return self.folder / STATE

    @property
    def size(self) -> int:
        """Bytes of the two files."""
        return self.stream.size + self.remote.size

    @property
    def left_out(self) -> Counter[str]:
        """Number of the remote's solutions that are not in its file, by reason."""
        return Counter(self.remote.left_out)

    @property
    def snapshot_requests(self) -> int:
        """Number of requests that full snapshots have sent."""
        return 0 if self._snapshots is None else self._snapshots.requests

    @property
    def snapshot_failures(self) -> Counter[str]:
        """Number of failed full snapshots, by reason."""
        return Counter() if self._snapshots is None else Counter(self._snapshots.failures)

    def close(self) -> None:
        """Close the files and release the folder."""
        self._resources.close()

    # For the engine -------------------------------------------------------------------------------

    def add(self, tables: list[pa.Table], *, durable: bool) -> None:
        """Record the records of a batch of the stream."""
        self.stream.add(tables, durable=durable)
        keys = {key for table in tables for key in _keys(self._bound.matcher, table)}
        self.remote.meet(sorted(keys), milliseconds(self.now))

    def of_remote(self, remote: Remote, quota: Quota) -> Remote:
        """Return a remote that records its solutions; full snapshots use it from now on."""
        recorded = RecordedRemote(remote, self.remote, self.now)
        if self._budget is not None and not isinstance(self._service.source, PushSource):
            timeout = self._service.timeout_seconds
            self._snapshots = FullSnapshots(self._budget, recorded, self.remote, quota, timeout)
            self.now.snapshots = self._snapshots
        return recorded

    def of_feed(self, feed: Feed) -> Feed:
        """Return a feed that records its solutions."""
        return RecordedFeed(feed, self.remote, self.now)

    # The catalog ----------------------------------------------------------------------------------

    def _write_catalog(self) -> None:
        text = catalog_text(self._bound, self._prefixes, STREAM, REMOTE, self._columns)
        _replace(self.folder / CATALOG, text)

    def _take_up_datatypes(self) -> None:
        service = Catalog.load(self.folder / CATALOG).services.get(self._service.iri)
        if (
            service is None
            or not isinstance(service.source, TableSource)
            or not (self.folder / REMOTE).is_file()
        ):
            return
        for column in self._columns:
            known = service.source.mapping.properties.get(column.predicate)
            column.datatype = known.datatype if known is not None else None


def _recordable(bound: Bound, file: str) -> BoundQuery:
    if isinstance(bound, BoundWindowed):
        why = f" ({bound.reason.message})" if bound.reason else ""
        hint = (
            "recorded are top-k joins of a WINDOW with a SERVICE: acquatop explain says why this "
            "is none"
        )
        raise UserError(f"{file}: the query is evaluated window by window{why}\n  hint: {hint}")
    if isinstance(bound, BoundQuery) and bound.parts:
        hint = "recorded are top-k joins of one WINDOW with a SERVICE"
        raise UserError(f"{file}: the query joins several windows\n  hint: {hint}")
    if isinstance(bound, BoundCounted):
        raise UserError(
            f"{file}: the query asks no remote: its stream can be kept as it is, without a "
            "recording"
        )
    if bound.stream.connector == SPARK.name:
        hint = "let Spark write it to files, and record those"
        raise UserError(
            f"<{bound.stream.iri}> is read by a source of Spark's, and not in this process\n"
            f"  hint: {hint}"
        )
    if bound.plan.join is not None:
        hint = "recorded is one SERVICE whose values are joined as they are"
        raise UserError(f"{file}: the query joins several patterns here\n  hint: {hint}")
    if bound.service is None:
        raise UserError(
            f"{file}: the query asks no remote: its stream can be kept as it is, without a "
            "recording"
        )
    return bound


def _columns(bound: BoundQuery) -> list[TableColumn]:
    """Return the table's columns; raise :class:`UserError` if the pattern is no star."""
    assert bound.plan.service is not None
    question = RemoteQuery(
        bound.plan.service.group, bound.plan.service.variables, bound.plan.join_variables[0]
    )
    triples = [each for each in question.group.elements if isinstance(each, ast.TriplePattern)]
    predicates = [each.predicate.value for each in triples if isinstance(each.predicate, ast.Iri)]
    star = star_of(question.group, question.key, predicates)
    if not isinstance(star, Star):
        raise UserError(f"the SERVICE cannot be recorded as a table: {star.message}")
    columns = [
        TableColumn(f"p{at}", star.columns[name], variable=name)
        for at, name in enumerate(star.columns)
    ]
    columns += [
        TableColumn(f"c{at}", iri, constant=star.constants[iri])
        for at, iri in enumerate(star.constants)
    ]
    if len({column.predicate for column in columns}) < len(columns):
        raise UserError("the SERVICE cannot be recorded as a table: it names a property twice")
    for column in columns:
        if column.constant is not None:
            _check_constant(column)
    return columns


def _check_constant(column: TableColumn) -> None:
    assert column.constant is not None
    try:
        column.write(column.constant)
    except UnwritableError as error:
        raise UserError(
            f"the SERVICE cannot be recorded as a table: <{column.predicate}> is {error}"
        ) from None


def _check(folder: Path, query: str) -> None:
    """Raise :class:`UserError` for a folder with other contents."""
    hint = "name a new folder with --out"
    if (folder / QUERY).is_file():
        if (folder / QUERY).read_text("utf-8") != query:
            raise UserError(
                f"{folder} is a recording of another query: {QUERY} differs\n  hint: {hint}"
            )
        if (
            (folder / STREAM).is_file()
            and (folder / STREAM).stat().st_size
            and not (folder / STATE).is_dir()
        ):
            message = (
                f"{folder} cannot be gone on with: its folder {STATE}, which says how far it has "
                "come, is missing"
            )
            raise UserError(f"{message}\n  hint: {hint}")
    elif names := sorted({each.name for each in folder.iterdir()} - _WITHOUT_QUERY):
        raise UserError(f"{folder} is no recording: it holds {names[0]}\n  hint: {hint}")


def _replace(path: Path, text: str) -> None:
    """Write a file atomically."""
    new = path.with_name(path.name + _NEW)
    with explained(path, "write the recording"):
        with new.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)


def _keys(matcher: Matcher, table: pa.Table) -> set[str]:
    """Return the join keys of a batch's good records."""
    good = table.filter(pc.is_null(table.column(BAD)))
    found = {key for batch in good.to_batches() for key in matcher.keys_in(batch).to_pylist()}
    return found - {None}
