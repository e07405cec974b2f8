"""Folder to which a running query's stream and remotes are recorded, and which can be replayed."""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from acquatop.catalog.catalog import Catalog
from acquatop.catalog.graphs import StaticGraph
from acquatop.catalog.remotes import PushSource, TableSource
from acquatop.engine.side_outputs.growing_file import SideOutputFile
from acquatop.engine.state.folder import Folder, make_folder
from acquatop.engine.state.lock import DirectoryLock
from acquatop.engine.state.names import LOCK
from acquatop.engine.state.problems import explained
from acquatop.errors import UserError
from acquatop.ingest.composite_keys import terms_of_key
from acquatop.ingest.match import Matcher
from acquatop.lab.record.full_snapshots import FullSnapshots, SnapshotBudget, SnapshotTime
from acquatop.lab.record.recorded_catalog import catalog_text
from acquatop.lab.record.recorded_patterns import tables_of
from acquatop.lab.record.recorded_remote import RecordedFeed, RecordedRemote, milliseconds
from acquatop.lab.record.remote_log import PatternTape, RemoteTape
from acquatop.lab.record.stream_log import StreamTape
from acquatop.plan.asked_patterns import AskedPattern, asked_patterns, joins_many
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import Bound, BoundCounted, BoundQuery, BoundTable, BoundWindowed
from connectors.mapping import BAD
from connectors.registry import SPARK
from replica.feeds.contract import Feed
from replica.remotes import Remote
from replica.spending.quota import Quota

CATALOG, QUERY, STREAM, REMOTE, STATE = (
    "catalog.toml",
    "query.rspql",
    "stream.ndjson",
    "remote.jsonl",
    "state",
)
_NEW = ".new"
"""Suffix of a file that is being written."""
GRAPH = "graph"
"""Beginning of the names of the files of static graphs."""
_REMOTE = re.compile(r"remote\d*\.jsonl|graph\d+\.\w+")
_STREAM = re.compile(r"stream\d*\.ndjson")
_WITHOUT_QUERY = {CATALOG, CATALOG + _NEW, QUERY + _NEW, LOCK}
"""Files that a folder may hold, beside those of remotes, if a recording has only been started."""


class Recording:
    """Recording of an engine: the tapes, and the clock that dates the remotes' values.

    The remotes' values are dated in the stream's time: by the evaluation that requested them, or by
    the last one before they arrived unasked. Values loaded before the first evaluation are dated 0.
    So a replayed evaluation finds the values that it found. A folder has one recording at a time; a
    recording continues in a folder that has the same query.
    """

    def __init__(
        self,
        folder: Path,
        bound: BoundQuery | BoundWindowed,
        catalog: Catalog,
        *,
        snapshots: SnapshotBudget | None = None,
    ) -> None:
        self.folder = folder
        self.catalog = catalog
        """Catalog for the engine: services are asked for what a table can hold."""
        self._bound = bound
        self._budget = snapshots
        self._snapshots: list[FullSnapshots] = []
        self._patterns = asked_patterns(bound)
        tables = enumerate(tables_of(self._patterns))
        self._tables = {_file(REMOTE, at): table for at, table in tables}
        if (folder / CATALOG).is_file():
            self._take_up_datatypes()
        self._streams = {_file(STREAM, at): each for at, each in enumerate(bound.streams)}
        self._graphs = _copied_graphs(folder, bound)
        self._write_catalog()
        self._stream_tapes = {
            each.iri: StreamTape(folder / file, each.mapping)
            for file, each in self._streams.items()
        }
        self._tapes = {
            file: RemoteTape(folder / file, table.parts, self._write_catalog)
            for file, table in self._tables.items()
        }
        self.remotes = self._pattern_tapes()
        """Log of each pattern's solutions."""
        self.now = SnapshotTime()
        self._resources = ExitStack()

    def _pattern_tapes(self) -> list[PatternTape]:
        """Return the log of each pattern; answers of some give keys to others."""
        tapes: list[PatternTape] = []
        for position, asked in enumerate(self._patterns):
            (file,) = (file for file, table in self._tables.items() if position in table.of)
            part = self._tables[file].of[position]
            names, is_many = part.names or None, joins_many(self._bound, asked)
            tape = PatternTape(self._tapes[file], asked.key, part.number, names, many=is_many)
            tapes.append(tape)
            if asked.giver is not None:
                giver = tapes[asked.giver]
                giver.gives = (*giver.gives, (asked.key, tape))
        return tapes

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
        catalog = replace(catalog, asks_for_records=True)
        bound = _recordable(bind_query(query, catalog, file=file), file)
        with ExitStack() as resources:
            with explained(folder, "record"):
                make_folder(folder)
                held = Folder(folder)
            resources.callback(held.close)
            resources.callback(DirectoryLock.take(held).release)
            _check(folder, query)
            recording = cls(folder, bound, catalog, snapshots=snapshots)
            for tape in recording._tapes.values():
                resources.callback(tape.close)
            _replace(folder / QUERY, query)
            recording._resources = resources.pop_all()
        return recording

    @property
    def state(self) -> Path:
        """Folder of the engine's state."""
        return self.folder / STATE

    @property
    def events(self) -> int:
        """Number of the streams' records that have been recorded in this run."""
        return sum(tape.count for tape in self._stream_tapes.values())

    @property
    def size(self) -> int:
        """Bytes of all files of the streams and the remotes."""
        of_streams = sum(tape.size for tape in self._stream_tapes.values())
        return of_streams + sum(tape.size for tape in self._tapes.values())

    @property
    def values(self) -> int:
        """Number of the remotes' values that have been recorded."""
        return sum(tape.count for tape in self._tapes.values())

    @property
    def keys(self) -> int:
        """Number of keys of all remotes."""
        return sum(len(tape) for tape in self._tapes.values())

    @property
    def left_out(self) -> Counter[str]:
        """Number of the remotes' solutions that are not in their files, by reason."""
        return sum((tape.left_out for tape in self._tapes.values()), Counter())

    @property
    def snapshot_requests(self) -> int:
        """Number of requests that full snapshots have sent."""
        return sum(each.requests for each in self._snapshots)

    @property
    def snapshot_failures(self) -> Counter[str]:
        """Number of failed full snapshots, by reason."""
        return sum((each.failures for each in self._snapshots), Counter())

    def close(self) -> None:
        """Close the files and release the folder."""
        self._resources.close()

    # For the engine -------------------------------------------------------------------------------

    def file_of(self, stream: str) -> SideOutputFile:
        """Return the file of a stream."""
        return self._stream_tapes[stream]

    def add(self, stream: str, tables: list[pa.Table], *, durable: bool) -> None:
        """Record the records of a batch of a stream.

        Of one window, keys become known by them; else by being asked for.
        """
        self._stream_tapes[stream].add(tables, durable=durable)
        bound = self._bound
        if isinstance(bound, BoundWindowed) or bound.parts:
            return
        keys = {key for table in tables for key in _keys(bound.matcher, table)}
        terms = [terms_of_key(bound.plan.join_variables, key) for key in sorted(keys)]
        for asked, tape in zip(self._patterns, self.remotes, strict=True):
            if asked.giver is None:
                tape.meet(dict.fromkeys(each[asked.key] for each in terms), milliseconds(self.now))

    def of_remote(self, remote: Remote, asked: AskedPattern, quota: Quota) -> Remote:
        """Return a remote that records its solutions; full snapshots use it from now on."""
        tape = self.remotes[self._patterns.index(asked)]
        recorded = RecordedRemote(remote, tape, self.now)
        if self._budget is not None and not isinstance(asked.service.source, PushSource):
            self._snapshots.append(
                FullSnapshots(
                    self._budget,
                    recorded,
                    tape,
                    quota,
                    asked.service.timeout_seconds,
                    share=1 / len(self._patterns),
                )
            )
            self.now.snapshots = self._snapshots
        return recorded

    def of_feed(self, feed: Feed, asked: AskedPattern) -> Feed:
        """Return a feed that records its solutions."""
        return RecordedFeed(feed, self.remotes[self._patterns.index(asked)], self.now)

    # The catalog ----------------------------------------------------------------------------------

    def _write_catalog(self) -> None:
        text = catalog_text(self.catalog, self._streams, self._tables, self._graphs)
        _replace(self.folder / CATALOG, text)

    def _take_up_datatypes(self) -> None:
        services = Catalog.load(self.folder / CATALOG).services
        for file, table in self._tables.items():
            known = services.get(table.service.iri)
            if (
                known is None
                or not isinstance(known.source, TableSource)
                or not (self.folder / file).is_file()
            ):
                continue
            mapping = known.source.mapping
            for number, part in enumerate(table.parts):
                pattern = mapping.patterns.get(table.texts.get(number, ""))
                for column in part:
                    mapped = (
                        mapping.properties.get(column.predicate)
                        if pattern is None
                        else pattern.variables.get(column.variable or "")
                    )
                    column.datatype = mapped.datatype if mapped is not None else None


def _file(name: str, position: int) -> str:
    """Return the file of a stream or service, by its position among those of the query.

    >>> _file(REMOTE, 0), _file(REMOTE, 1)
    ('remote.jsonl', 'remote2.jsonl')
    """
    stem, suffix = name.split(".")
    return name if position == 0 else f"{stem}{position + 1}.{suffix}"


def _recordable(bound: Bound, file: str) -> BoundQuery | BoundWindowed:
    bound = bound.query if isinstance(bound, BoundCounted) else bound
    if isinstance(bound, BoundTable):
        raise UserError(f"{file}: the query has no stream, and so nothing that a recording replays")
    if not asked_patterns(bound):
        raise UserError(
            f"{file}: the query asks no remote: its stream can be kept as it is, without a "
            "recording"
        )
    for stream in bound.streams:
        if stream.connector == SPARK.name:
            hint = "let Spark write it to files, and record those"
            raise UserError(
                f"<{stream.iri}> is read by a source of Spark's, and not in this process\n"
                f"  hint: {hint}"
            )
    return bound


def _copied_graphs(folder: Path, bound: BoundQuery | BoundWindowed) -> list[StaticGraph]:
    """Copy a query's static graphs into a folder, unless it has them; return the copies."""
    copies: list[StaticGraph] = []
    for number, graph in enumerate(bound.graphs, start=1):
        file = f"{GRAPH}{number}{Path(graph.path).suffix}"
        if not (folder / file).exists():
            with explained(folder / file, "write the recording"):
                shutil.copyfile(graph.path, folder / file)
        copies.append(StaticGraph(graph.iri, file))
    return copies


def _check(folder: Path, query: str) -> None:
    """Raise :class:`UserError` for a folder with other contents."""
    hint = "name a new folder with --out"
    if (folder / QUERY).is_file():
        if (folder / QUERY).read_text("utf-8") != query:
            raise UserError(
                f"{folder} is a recording of another query: {QUERY} differs\n  hint: {hint}"
            )
        streams = [each for each in folder.iterdir() if _STREAM.fullmatch(each.name)]
        if any(each.stat().st_size for each in streams) and not (folder / STATE).is_dir():
            message = (
                f"{folder} cannot be gone on with: its folder {STATE}, which says how far it has "
                "come, is missing"
            )
            raise UserError(f"{message}\n  hint: {hint}")
    elif names := sorted(
        each.name
        for each in folder.iterdir()
        if each.name not in _WITHOUT_QUERY and not _REMOTE.fullmatch(each.name)
    ):
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
