"""Recording for a query of any shape, whose answers are judged by their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from acquatop.answer.answer import Answer
from acquatop.catalog.catalog import Catalog
from acquatop.catalog.remotes import TableSource
from acquatop.errors import UserError
from acquatop.ingest.reduce.job import reduced
from acquatop.ingest.reduce.records import RECORDS
from acquatop.lab.replay.judged_query import JudgedQuery, judged_query
from acquatop.lab.replay.remote_history import RemoteHistory, read_history
from acquatop.lab.replay.trace import (
    MOST_WINDOWS,
    Trace,
    asking,
    catalog_in,
    good_records,
    is_ranked_by_score,
    recorded_services,
    trace_of,
    with_services,
)
from acquatop.plan.asked_patterns import asked_patterns
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import Bound, BoundCounted, BoundQuery, BoundWindowed
from acquatop.plan.remote_query import RemoteQuery
from acquatop.plan.whole_windows import whole_windows_of
from acquatop.query.contract import Evaluation, Tick
from acquatop.query.cut import LimitCut
from acquatop.query.element_positions import Positions
from acquatop.topk.contract import IntArray
from connectors.mapping import TIME


@dataclass(frozen=True)
class RowTrace:
    """A query bound to a recording of any number of streams, and the same over whole windows.

    ``judged`` is the query that gives the right rows, ``whole`` what is bound to it; each of its
    remotes has a history. Windows that close after ``end_ms`` are ignored.

    If windows count elements, the records' times are positions, and so is each close; ``elements``
    are then the elements' times by position.
    """

    folder: Path
    bound: BoundQuery | BoundWindowed
    whole: BoundWindowed
    judged: JudgedQuery
    records: Mapping[str, pa.RecordBatch]
    histories: tuple[RemoteHistory, ...]
    start_ms: int
    end_ms: int
    notes: Mapping[str, int]
    elements: IntArray | None = None

    def instant(self, closes_ms: int) -> int:
        """Return the time of a close."""
        return closes_ms if self.elements is None else int(self.elements[closes_ms - 1])

    @property
    def instants(self) -> list[int]:
        """Time of each close, ascending."""
        return [self.instant(each) for each in self.closes_ms]

    @property
    def k(self) -> int:
        """Number of results that the query asks for; 0 for all."""
        if isinstance(self.bound, BoundQuery):
            return self.bound.plan.k
        return self.bound.plan.query.limit or 0

    @property
    def n(self) -> int:
        """Number of further candidates that the catalog says."""
        return asked_patterns(self.bound)[0].service.refresh.n

    def cut(self, k: int) -> LimitCut | None:
        """Return the cut behind the first k right rows; None if all are right."""
        return LimitCut(k, self.judged.offset, self.judged.with_ties) if k else None

    @cached_property
    def closes_ms(self) -> list[int]:
        """Times or positions at which a window closes, ascending."""
        found: set[int] = set()
        end = self.end_ms if self.elements is None else len(self.elements)
        for each in self.whole.windows:
            windows, times = each.windows, self._times(each.stream.iri)
            first = 0 if windows.t0_ms is not None else windows.first(int(times[0]))
            numbers = range(first, windows.last(end - windows.width_ms + 1) + 1)
            found.update(windows.bounds(number)[1] for number in numbers)
        return sorted(found)

    def answers(self, evaluation: Evaluation) -> Iterator[Answer]:
        """Yield an evaluation's answers to the recorded streams, up to the recording's end."""
        for begin, closes_ms in zip([None, *self.closes_ms], self.closes_ms, strict=False):
            for stream in self.records:
                records = self._between(stream, begin, closes_ms)
                if len(records):
                    parts = list(reduced(records, evaluation.reducers(stream)))
                    evaluation.add(stream, parts, evaluation.names)
            for stream in self.records:
                for answer in evaluation.advance(Tick(stream, closes_ms, 0.0)):
                    if isinstance(answer, Answer):
                        yield answer
        evaluation.close()

    def _between(self, stream: str, after_ms: int | None, until_ms: int) -> pa.RecordBatch:
        times = self._times(stream)
        begin = 0 if after_ms is None else int(np.searchsorted(times, after_ms, side="right"))
        end = int(np.searchsorted(times, until_ms, side="right"))
        batch: pa.RecordBatch = self.records[stream].slice(begin, end - begin)
        return batch

    def _times(self, stream: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.asarray(self.records[stream].column(TIME).to_numpy(), dtype=np.int64)


def open_recorded(
    folder: str | Path, query: str, file: str = "<query>", *, items_per_request: int | None = None
) -> Trace | RowTrace:
    """Read a recording for a query of any shape that asks a remote.

    :class:`UserError` names unusable data and its place. A request carries ``items_per_request``
    items, or as many as the catalog says. All of the recording is in memory.
    """
    folder = Path(folder)
    catalog = catalog_in(folder)
    bound = asking(bind_query(query, catalog, file=file), file)
    if is_ranked_by_score(bound):
        return trace_of(folder, bound, items_per_request)
    return row_trace_of(folder, bound, catalog, items_per_request)


def row_trace_of(
    folder: Path,
    said: Bound,
    catalog: Catalog,
    items_per_request: int | None = None,
) -> RowTrace:
    """Read a recording for a query that is bound to its catalog, as :func:`open_recorded` does."""
    bound = said.query if isinstance(said, BoundCounted) else said
    services = recorded_services(bound, folder, items_per_request)
    whole = whole_windows_of(bound, catalog) if isinstance(bound, BoundQuery) else bound
    by_iri = {each.iri: each for each in services}
    remotes = tuple(replace(each, service=by_iri[each.service.iri]) for each in whole.remotes)
    judged = judged_query(whole, bound)
    whole = replace(whole, plan=judged.plan, remotes=remotes)
    bound = (
        with_services(bound, services)
        if isinstance(bound, BoundQuery)
        else replace(bound, remotes=remotes)
    )
    records, notes = {}, Counter[str]()
    for stream in bound.streams:
        records[stream.iri], odd = good_records(folder, bound, stream)
        notes.update(odd)
    histories = tuple(_histories(whole, bound))
    firsts = [int(each.column(TIME)[0].as_py()) for each in records.values()]
    lasts = [int(each.column(TIME)[-1].as_py()) for each in records.values()]
    starts = [each.windows.t0_ms for each in whole.windows if each.windows.t0_ms is not None]
    elements = None
    if isinstance(said, BoundCounted):
        iri, starts = said.stream.iri, []
        records[iri], elements = _positioned(records[iri], said.stream.start_ms)
    trace = RowTrace(
        folder,
        bound,
        whole,
        judged,
        records,
        histories,
        min([*firsts, *starts]),
        max([*lasts, *(each.ends_ms for each in histories)]),
        {},
        elements,
    )
    _check_span(trace)
    notes.update(_notes(trace))
    return replace(trace, notes=+notes)


def _positioned(records: pa.RecordBatch, since_ms: int | None) -> tuple[pa.RecordBatch, IntArray]:
    """Return the elements in their order, with positions as times, and their times."""
    positions = Positions(len(records), since_ms)
    for batch in RECORDS.reduce(records, None).to_batches():
        positions.add(batch)
    elements = positions.take_until(None)
    if elements is None:
        raise UserError(f"no event of the recording comes after the stream's start, {since_ms} ms")
    times = [positions.time_of(position) for position in range(1, len(elements) + 1)]
    return elements, np.array(times, dtype=np.int64)


def _histories(whole: BoundWindowed, bound: BoundQuery | BoundWindowed) -> Iterator[RemoteHistory]:
    """Yield the history of each remote, read by the key by which the query itself asks it."""
    keys = {(each.service.iri, each.question.text): each.key for each in asked_patterns(bound)}
    for each in whole.remotes:
        source, group = each.service.source, each.part.pattern.group
        assert isinstance(source, TableSource)
        question = RemoteQuery(group, each.part.variables, each.part.key)
        key = keys.get((each.service.iri, question.text), each.part.key)
        star = replace(question, key=key).star(source.mapping)
        yield read_history(source, star, is_many=True)


def _check_span(trace: RowTrace) -> None:
    if not trace.closes_ms:
        lasts = f"from {trace.start_ms} to {trace.end_ms} ms"
        raise UserError(f"no window closes within the recording, which lasts {lasts}")
    if len(trace.closes_ms) > MOST_WINDOWS:
        raise UserError(
            f"the recording spans {len(trace.closes_ms):,} windows, more than {MOST_WINDOWS:,}"
        )
    begins_ms = min(each.begins_ms for each in trace.histories)
    if begins_ms > trace.instants[-1]:
        raise UserError(
            f"the remote's recording begins at {begins_ms} ms, when all windows have closed\n"
            "  hint: begin the remote's recording before the stream's"
        )


def _notes(trace: RowTrace) -> dict[str, int]:
    """Count the anomalies of the files together."""
    begins_ms = min(each.begins_ms for each in trace.histories)
    early = sum(at_ms < begins_ms for at_ms in trace.instants)
    return {
        "windows that close before the remote's recording begins": early,
        "rows of the remote that say what held already": sum(each.same for each in trace.histories),
    }
