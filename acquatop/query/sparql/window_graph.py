"""Content of a window as an RDF graph, updated from one close to the next."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.ingest.object_terms import terms_of
from acquatop.ingest.panes import Pane, PaneBuffer
from acquatop.ingest.solution_columns import GONE, IDENTITY
from acquatop.ingest.unscored import objects
from acquatop.query.schedule.cursor import Cursor
from acquatop.query.sparql.quad_store import QuadStore
from acquatop.topk.contract import AnyArray
from acquatop.topk.snapshot import (
    SnapshotError,
    State,
    pack,
    pack_parts,
    reading,
    unpack,
    unpack_parts,
)
from acquatop.windows import Windows
from connectors.coded import plain
from connectors.contract import RecordDecoder
from connectors.mapping import BAD, SUBJECT, TIME

_KIND, _VERSION = "window graph", 1


@dataclass(frozen=True)
class _Record:
    """Triples of one record, each as its line of N-Triples."""

    subject: str
    triples: tuple[str, ...]


class WindowGraph:
    """Graph of the triples of one window at a time, made from decoded records, in a store.

    Panes enter the graph when the first window that holds them closes, and leave it when no later
    one does. A triple goes when the last record in the window that states it has gone. If only the
    latest arrival of a subject counts (``latest_only``), a record replaces everything that an older
    one of the window states of its subject. At equal times the record with the greater terms
    counts, in the mapping's order; any term is greater than none. Neither the records' order nor
    their cut into batches matters, if no record comes after a window of its own has been shown.

    A close costs O(changes since the one before); memory grows with a window's records.
    """

    def __init__(
        self,
        store: QuadStore,
        name: str,
        windows: Windows,
        mapping: RecordDecoder,
        *,
        latest_only: bool = False,
    ) -> None:
        self.name = name
        self.cursor = Cursor(windows)
        self._store = store
        self._mapping = mapping
        self._latest_only = latest_only
        self._panes = PaneBuffer(windows)
        self._shown_panes: deque[tuple[int, list[_Record]]] = deque()
        self._current: dict[str, _Record] = {}
        self._counts: dict[str, int] = {}
        self._uncertain: set[int] = set()
        self._passed: int | None = None
        """Last window that was passed by before the first began."""

    # Records in -----------------------------------------------------------------------------------

    def add(self, records: pa.RecordBatch) -> int:
        """Add decoded records.

        Return the number of late ones, which are left out of all windows.
        """
        late = self._panes.add(self._statements(records))
        if len(late):
            firsts, lasts = self.cursor.windows.spans(late.column(TIME).to_numpy())
            for first, last in set(zip(firsts.tolist(), lasts.tolist(), strict=True)):
                # The shown window may be shown again, if other windows close before this graph's
                # next one.
                self._uncertain.update(
                    range(first if self.shown is None else max(first, self.shown), last + 1)
                )
        return len(late)

    def _statements(self, records: pa.RecordBatch) -> pa.Table:
        """Return good records as panes hold them: time, identity, and terms by predicate."""
        records = records.filter(pc.is_null(records.column(BAD)))
        objects = [
            terms_of(records.column(self._mapping.column(predicate)), each.datatype)
            for predicate, each in self._mapping.properties.items()
        ]
        subject = plain(records.column(SUBJECT))
        known = [pc.coalesce(each, "") for each in objects]
        return pa.table(
            {
                TIME: records.column(TIME),
                IDENTITY: subject
                if self._latest_only
                else pc.binary_join_element_wise(subject, *known, " "),
                SUBJECT: subject,
                GONE: _any_null(objects, len(records)),
                **{f"?{position}": each for position, each in enumerate(objects)},
            }
        )

    # Windows out ----------------------------------------------------------------------------------

    @property
    def shown(self) -> int | None:
        """Window that is shown: the last that has closed; None before the first close."""
        return self.cursor.closed

    @property
    def waiting(self) -> int:
        """Number of records that no window has shown yet."""
        return len(self._panes)

    @property
    def is_empty(self) -> bool:
        """True if the window that is shown is empty."""
        return not self._shown_panes

    @property
    def is_uncertain(self) -> bool:
        """True if the window that is shown, or was passed by, lacks a late record."""
        return (self._passed if self.shown is None else self.shown) in self._uncertain

    @property
    def earliest_ms(self) -> int | None:
        """Time of the oldest record that no window has shown; None if there is none."""
        return self._panes.earliest_ms()

    @property
    def next_record_ms(self) -> int | None:
        """Time of the oldest record that no window has shown; None if there is none."""
        return self._panes.earliest_ms()

    @property
    def last_close_ms(self) -> int | None:
        """Close of the last window that holds a record so far; None if there is none."""
        newest = self._panes.latest_ms()
        lasts = [] if newest is None else [self.cursor.windows.last(newest)]
        lasts += [self._shown_panes[-1][0]] if self._shown_panes else []
        return self.cursor.windows.bounds(max(lasts))[1] if lasts else None

    def close(self, window: int) -> None:
        """Change the graph to a window's content; call it once all its records are in."""
        before: dict[str, bool] = {}
        while self._shown_panes and self._shown_panes[0][0] < window:
            for record in self._shown_panes.popleft()[1]:
                self._leave(record, before)
        for pane in self._panes.take_until(self.cursor.windows.bounds(window)[1]):
            if pane.last >= window:
                self._enter(pane, before)
        self._change_graph(before)
        self._uncertain = {each for each in self._uncertain if each >= window}

    def pass_by(self, time_ms: int) -> None:
        """Note that the query has answered up to a time: if no window has begun, none goes back.

        A record up to that time is late from then on. None waits, or a window would have begun.
        """
        if self.cursor.next is None:
            self._panes.close_until(time_ms)
            passed = self._passed = self.cursor.windows.first(time_ms + 1) - 1
            self._uncertain = {each for each in self._uncertain if each >= passed}

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state, except the store's content."""
        settings = {
            "name": self.name,
            "shown": self.shown,
            "next": self.cursor.next,
            "uncertain": sorted(self._uncertain),
        }
        records = [record for _, several in self._shown_panes for record in several]
        tables: dict[str, dict[str, AnyArray]] = {
            "panes": {
                "lasts": np.array([last for last, _ in self._shown_panes], dtype=np.int64),
                "sizes": np.array(
                    [len(several) for _, several in self._shown_panes], dtype=np.int64
                ),
            },
            "records": {
                "subjects": objects([record.subject for record in records]),
                "sizes": np.array([len(record.triples) for record in records], dtype=np.int64),
                "current": np.array(
                    [self._is_current(record) for record in records], dtype=np.bool_
                ),
            },
            "triples": {"lines": objects([line for record in records for line in record.triples])},
        }
        return pack_parts(
            {
                "state": pack(_KIND, _VERSION, State(settings, tables)),
                "panes": self._panes.snapshot(),
            }
        )

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot, as the store must, too.

        Raises ``SnapshotError`` for any other bytes.
        """
        with reading():
            parts = unpack_parts(snapshot)
            state = unpack(_KIND, _VERSION, parts["state"])
            if state.settings["name"] != self.name:
                raise SnapshotError(
                    f"this is a snapshot of {state.settings['name']}, not of {self.name}"
                )
            self._resume_records(state)
            self.cursor.closed = state.settings["shown"]
            self.cursor.next = state.settings["next"]
            self._uncertain = set(state.settings["uncertain"])
            self._panes.resume(parts["panes"])

    def _resume_records(self, state: State) -> None:
        columns, lines = state.tables["records"], iter(state.tables["triples"]["lines"].tolist())
        records = [
            _Record(subject, tuple(islice(lines, size)))
            for subject, size in zip(
                columns["subjects"].tolist(), columns["sizes"].tolist(), strict=True
            )
        ]
        counting = [
            record
            for record, is_so in zip(records, columns["current"].tolist(), strict=True)
            if is_so
        ]
        self._current = {record.subject: record for record in counting} if self._latest_only else {}
        self._counts = dict(Counter(line for record in counting for line in record.triples))
        panes, rest = state.tables["panes"], iter(records)
        sizes = zip(panes["lasts"].tolist(), panes["sizes"].tolist(), strict=True)
        self._shown_panes = deque((last, list(islice(rest, size))) for last, size in sizes)

    def _is_current(self, record: _Record) -> bool:
        """Return True if a held record counts; False if it has been replaced."""
        return not self._latest_only or self._current.get(record.subject) is record

    # Panes in, panes out --------------------------------------------------------------------------

    def _enter(self, pane: Pane, before: dict[str, bool]) -> None:
        records = self._records(pane)
        for record in records:
            if self._latest_only:
                older = self._current.get(record.subject)
                self._count(older.triples if older else (), -1, before)
                self._current[record.subject] = record
            self._count(record.triples, 1, before)
        self._shown_panes.append((pane.last, records))

    def _leave(self, record: _Record, before: dict[str, bool]) -> None:
        if self._latest_only:
            if self._current.get(record.subject) is not record:
                return  # a newer one has replaced it
            del self._current[record.subject]
        self._count(record.triples, -1, before)

    def _count(self, triples: Iterable[str], change: int, before: dict[str, bool]) -> None:
        """Count triples up or down; ``before`` records which of them the graph still holds."""
        for triple in triples:
            count = self._counts.get(triple, 0)
            before.setdefault(triple, count > 0)
            self._counts[triple] = count + change
            if not self._counts[triple]:
                del self._counts[triple]

    def _change_graph(self, before: dict[str, bool]) -> None:
        gone = (triple for triple, held in before.items() if held and triple not in self._counts)
        new = (triple for triple, held in before.items() if not held and triple in self._counts)
        self._store.change(self.name, gone, new)

    def _records(self, pane: Pane) -> list[_Record]:
        subjects = pane.solutions.column(SUBJECT)
        lines = [
            pc.binary_join_element_wise(
                subjects, f"<{predicate}>", pane.solutions.column(f"?{position}"), ".", " "
            )
            for position, predicate in enumerate(self._mapping.properties)
        ]
        return [
            _Record(subject, tuple(line for line in said if line is not None))
            for subject, *said in zip(
                subjects.to_pylist(), *(each.to_pylist() for each in lines), strict=True
            )
        ]


def _any_null(columns: Iterable[pa.Array], length: int) -> pa.Array:
    """Return a mask of the rows that lack a value in some column."""
    found = pa.repeat(False, length)
    for column in columns:
        found = pc.or_(found, pc.is_null(column))
    return found
