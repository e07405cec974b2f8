"""Recording of a stream and of remotes for replay: read once, checked, in time order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.catalog.catalog import Catalog, Service, Stream
from acquatop.catalog.remotes import SparqlSource, TableSource
from acquatop.errors import UserError
from acquatop.ingest.composite_keys import terms_of_key
from acquatop.lab.replay.plain_stream import (
    PlainFile,
    find_plain,
    is_iri,
    read_plain,
    records_of,
    whole_or_double,
)
from acquatop.lab.replay.recorded_stream import read_recorded
from acquatop.lab.replay.remote_history import RemoteHistory, read_history
from acquatop.lab.replay.replayed_catalog import load_catalog
from acquatop.plan.asked_patterns import AskedPattern, asked_patterns, joins_many
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import Bound, BoundCounted, BoundQuery, BoundWindowed
from acquatop.topk.contract import IntArray
from connectors.mapping import BAD, TIME, FieldMapping
from replica.remotes.records import Field, KeyTemplate, RecordMapping
from rspql import ast
from rspql.plan import TopKPlan

CATALOG = "catalog.toml"

MOST_WINDOWS = 100_000
"""Largest number of windows. With more, time has jumped, or the slide is far too short."""

_XSD = "http://www.w3.org/2001/XMLSchema#"


@dataclass(frozen=True)
class Trace:
    """A query bound to a recording: the stream's records in time order, and the remotes' histories.

    Each pattern that a service is asked for has a history. The remotes' values at ``start_ms`` are
    the replicas' initial ones. Windows that close after
    ``end_ms`` are ignored. ``notes`` counts the recording's anomalies by kind.
    """

    folder: Path
    bound: BoundQuery
    records: pa.RecordBatch
    histories: tuple[RemoteHistory, ...]
    start_ms: int
    end_ms: int
    notes: Mapping[str, int]

    @property
    def times(self) -> IntArray:
        """Time of each record, ascending."""
        return np.asarray(self.records.column(TIME).to_numpy(), dtype=np.int64)

    @property
    def has_one_solution(self) -> bool:
        """True if each solution of the stream is joined with one of one service at most."""
        return not any(joins_many(self.bound, each) for each in asked_patterns(self.bound))

    def windows(self) -> range:
        """Return the windows to answer: the first with a record to the last that closes in time."""
        windows = self.bound.windows
        first = 0 if windows.t0_ms is not None else windows.first(int(self.times[0]))
        return range(first, windows.last(self.end_ms - windows.width_ms + 1) + 1)


def open_trace(
    folder: str | Path, query: str, file: str = "<query>", *, items_per_request: int | None = None
) -> Trace:
    """Read a recording for a query whose results are ranked by a score alone.

    :class:`UserError` names unusable data and its place.

    A request carries ``items_per_request`` items, or as many as the catalog says. O(rows log rows);
    all of it is in memory.
    """
    folder = Path(folder)
    bound = asking(bind_query(query, catalog_in(folder), file=file), file)
    if not is_ranked_by_score(bound):
        raise ValueError(f"{file}: the query's answers are judged by their rows")
    return trace_of(folder, bound, items_per_request)


def asking(bound: Bound, file: str) -> Bound:
    """Return a query that asks a remote; raise :class:`UserError` for others."""
    if not asked_patterns(bound.query if isinstance(bound, BoundCounted) else bound):
        raise UserError(
            f"{file}: the query asks no remote, so there is nothing to choose a policy for"
        )
    return bound


def is_ranked_by_score(bound: Bound) -> TypeGuard[BoundQuery]:
    """Return True if a score alone ranks what one window of time joins with remotes, one by one."""
    return (
        isinstance(bound, BoundQuery)
        and not bound.parts
        and bound.plan.finish is None
        and bound.plan.roll_up is None
        and not bound.graphs
    )


def trace_of(folder: Path, bound: BoundQuery, items_per_request: int | None = None) -> Trace:
    """Read a recording for a query that is bound to its catalog, as :func:`open_trace` does."""
    services = recorded_services(bound, folder, items_per_request)
    bound = with_services(bound, services)
    records, odd = good_records(folder, bound, bound.stream)
    histories = tuple(_history(bound, each) for each in asked_patterns(bound))
    return _checked(folder, bound, records, histories, odd)


def catalog_in(folder: Path) -> Catalog:
    """Return a recording's catalog, whose services are asked as they were recorded."""
    if not (folder / CATALOG).is_file():
        hint = (
            f"a trace is a folder with {CATALOG}, and with stream.csv and remote.csv or what the "
            "catalog names"
        )
        raise UserError(f"{folder / CATALOG} is not there\n  hint: {hint}")
    return load_catalog(folder / CATALOG)


# The remote ---------------------------------------------------------------------------------------


def recorded_services(
    bound: BoundQuery | BoundWindowed, folder: Path, items_per_request: int | None
) -> list[Service]:
    """Return the recorded service of each pattern that a query asks, for its replay."""
    patterns = asked_patterns(bound)
    live = {each.service.iri for each in patterns if not _is_recorded(each.service)}
    plain = find_plain(folder, "remote") if live else None
    services: dict[str, Service] = {}
    for each in patterns:
        service = each.service
        if service.iri in live:
            service = _from_plain(bound, each, plain if len(live) == 1 else None)
        services[service.iri] = replace(service, block_size=items_per_request or service.block_size)
    return [services[each.service.iri] for each in patterns]


def with_services(bound: BoundQuery, services: Sequence[Service]) -> BoundQuery:
    """Return a query with other services for its patterns."""
    return replace(bound, service=services[0], services=tuple(services) if bound.plan.join else ())


def _is_recorded(service: Service) -> bool:
    return isinstance(service.source, TableSource) and service.source.time is not None


def _from_plain(
    bound: BoundQuery | BoundWindowed, asked: AskedPattern, plain: Path | None
) -> Service:
    """Return a service for replay from the plain file, if it replaces this one alone."""
    service = asked.service
    if plain is None:
        hint = (
            "put remote.csv into the folder for one service, or let the catalog call it remote = "
            '"table" with a time'
        )
        raise UserError(
            f"<{service.iri}> is no recording: what it had when is not known\n  hint: {hint}"
        )
    mapping = _record_mapping(bound, asked, read_plain(plain))
    source = TableSource(str(plain), mapping, "time_ms")
    return replace(service, remote="table", source=source, feed=None, load=True, solutions="one")


def _record_mapping(
    bound: BoundQuery | BoundWindowed, asked: AskedPattern, file: PlainFile
) -> RecordMapping:
    """Return the mapping of a plain row to RDF.

    Its subject is made by the catalog's templates; its value is the only property.
    """
    service, elements = asked.service, asked.question.group.elements
    predicates = [
        each.predicate.value
        for each in elements
        if isinstance(each, ast.TriplePattern) and isinstance(each.predicate, ast.Iri)
    ]
    if len(predicates) != len(elements) or len(predicates) != 1:
        message = (
            f"{file.path} has one value per row, but <{service.iri}> is asked for more than one "
            "property"
        )
        raise UserError(message)
    known = {} if isinstance(service.source, SparqlSource) else service.source.mapping.properties
    mapped = known.get(predicates[0])
    datatype = mapped.datatype if mapped else _XSD + whole_or_double(file)
    key = _subjects_of(_template(bound.streams[0], service), file)
    return RecordMapping(key, {predicates[0]: Field("value", datatype)})


def _subjects_of(known: KeyTemplate | None, file: PlainFile) -> KeyTemplate:
    are_iris = {is_iri(each) for each in file.subjects.unique().to_pylist()}
    if len(are_iris) > 1:
        raise UserError(
            f"{file.path} has both plain ids and IRIs as subjects\n"
            "  hint: write all of them in one way"
        )
    template = KeyTemplate("", "subject", "") if True in are_iris else known
    if template is None:
        hint = (
            'give the service a mapping with a key such as "http://example.org/user/{subject}", '
            "or write IRIs"
        )
        raise UserError(
            f"{file.path}: the catalog does not say what the subjects' IRIs are\n  hint: {hint}"
        )
    return KeyTemplate(template.prefix, "subject", template.suffix)


def _template(stream: Stream, service: Service) -> KeyTemplate | None:
    """Return the template that makes IRIs of plain ids: the service's, or else the stream's."""
    mapping = stream.mapping
    if not isinstance(service.source, SparqlSource) and service.source.mapping.key.prefix:
        return service.source.mapping.key
    if isinstance(mapping, FieldMapping) and mapping.subject.prefix:
        return KeyTemplate(mapping.subject.prefix, "subject", mapping.subject.suffix)
    return None


def _history(bound: BoundQuery, asked: AskedPattern) -> RemoteHistory:
    source = asked.service.source
    assert isinstance(source, TableSource)
    star = asked.question.star(source.mapping)
    return read_history(source, star, is_many=joins_many(bound, asked))


# The stream ---------------------------------------------------------------------------------------


def good_records(
    folder: Path, bound: BoundQuery | BoundWindowed, stream: Stream
) -> tuple[pa.RecordBatch, dict[str, int]]:
    """Return a stream's good records in time order, and the number of odd rows by kind.

    A plain file is the query's stream, if it has one alone.
    """
    plain, repeated = find_plain(folder, "stream"), 0
    if plain is not None and len(bound.streams) == 1:
        file = read_plain(plain)
        template = _template(stream, asked_patterns(bound)[0].service)
        table = records_of(file, stream.mapping, _used(bound), template)
        repeated = file.repeated
    else:
        table = read_recorded(stream)
    good = table.filter(pc.is_null(table.column(BAD)))
    if not len(good):
        where = plain or stream.options.get("path", stream.connector)
        raise UserError(f"{where} has no event that can be used")
    times = np.asarray(good.column(TIME).to_numpy())
    odd = {
        "events that cannot be used": len(table) - len(good),
        "events behind later ones, taken in the order of their times": int(
            (times < np.maximum.accumulate(times)).sum()
        ),
        "events that are the same as another": repeated,
    }
    order = pa.array(np.argsort(times, kind="stable"))
    return good.take(order).combine_chunks().to_batches()[0], odd


def _used(bound: BoundQuery | BoundWindowed) -> frozenset[str]:
    plan = bound.plan
    windowed = plan.windowed if isinstance(plan, TopKPlan) else plan
    names = {each.name for each in windowed.windows}
    nodes = (
        inner
        for each in ast.walk(windowed.query)
        if isinstance(each, ast.GraphPattern) and each.graph in names
        for inner in ast.walk(each.group)
    )
    predicates = (each.predicate for each in nodes if isinstance(each, ast.TriplePattern))
    return frozenset(each.value for each in predicates if isinstance(each, ast.Iri))


# Both ---------------------------------------------------------------------------------------------


def _checked(
    folder: Path,
    bound: BoundQuery,
    records: pa.RecordBatch,
    histories: tuple[RemoteHistory, ...],
    odd: Mapping[str, int],
) -> Trace:
    times = np.asarray(records.column(TIME).to_numpy(), dtype=np.int64)
    t0 = bound.windows.t0_ms
    start = int(times[0]) if t0 is None else t0
    end = max(int(times[-1]), *(each.ends_ms for each in histories))
    trace = Trace(folder, bound, records, histories, start, end, {})
    _check_span(trace)
    notes = {**odd, **_notes(trace)}
    return replace(trace, notes={what: count for what, count in notes.items() if count})


def _check_span(trace: Trace) -> None:
    windows, bounds, times = trace.windows(), trace.bound.windows, trace.times
    asked = zip(asked_patterns(trace.bound), trace.histories, strict=True)
    # What another's answers ask for need not have been known before.
    begins_ms = max(each.begins_ms for pattern, each in asked if pattern.giver is None)
    if begins_ms > trace.start_ms:
        hint = (
            "the rows at or before the start are the initial replica: begin the remote's "
            "recording before the stream's"
        )
        message = (
            f"the remote's recording begins at {begins_ms} ms, the replay at {trace.start_ms} ms"
        )
        raise UserError(f"{message}\n  hint: {hint}")
    if not len(windows):
        lasts = f"from {trace.start_ms} to {trace.end_ms} ms"
        raise UserError(
            f"no window of {bounds.width_ms} ms closes within the recording, which lasts {lasts}"
        )
    if len(windows) > MOST_WINDOWS:
        gap = int(np.argmax(np.diff(times, prepend=trace.start_ms)))
        before = trace.start_ms if gap == 0 else int(times[gap - 1])
        hint = (
            f"the longest gap between events is from {before} to {times[gap]} ms: was a clock "
            "wrong there?"
        )
        raise UserError(
            f"the recording spans {len(windows):,} windows, more than {MOST_WINDOWS:,}\n"
            f"  hint: {hint}"
        )


def _notes(trace: Trace) -> dict[str, int]:
    """Count the anomalies of the two files together."""
    windows, times = trace.bound.windows, trace.times
    closes = np.array([windows.bounds(window)[1] for window in trace.windows()])
    begins = np.searchsorted(times, closes - windows.width_ms, side="right")
    return {
        "windows without events": int(
            (np.searchsorted(times, closes, side="right") == begins).sum()
        ),
        "events before the start": int((times <= trace.start_ms).sum())
        if trace.bound.windows.t0_ms is not None
        else 0,
        **_notes_of_remotes(trace),
    }


def _notes_of_remotes(trace: Trace) -> dict[str, int]:
    inputs = trace.bound.plan.join_variables
    keys = set(trace.bound.matcher.keys_in(trace.records).to_pylist()) - {None}
    terms = [terms_of_key(inputs, key) for key in keys]
    notes: Counter[str] = Counter()
    for asked, history in zip(asked_patterns(trace.bound), trace.histories, strict=True):
        notes["rows of the remote behind later ones, taken in the order of their times"] += (
            history.unsorted
        )
        notes["rows of the remote that say what held already"] += history.same
        if asked.giver is not None:
            continue
        subjects = {each[asked.key] for each in terms}
        firsts = dict(zip(history.keys, history.first_times().tolist(), strict=True))
        notes["subjects of the stream that the remote never has"] += len(subjects - firsts.keys())
        notes["subjects of the stream that the remote has only later"] += sum(
            firsts.get(key, trace.start_ms) > trace.start_ms for key in subjects
        )
    return notes
