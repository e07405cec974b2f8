"""Records of the open windows by subject: those of one subject make solutions together.

Nearly always a subject comes once. Its record is kept, as a later one may say the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from acquatop.ingest.combining import CombiningMatcher
from acquatop.ingest.key_codes import KeyCodes
from acquatop.ingest.panes import Pane
from acquatop.ingest.reduce.panes import by_pane
from acquatop.ingest.scoring import BoolArray
from acquatop.ingest.star_join import StarSolutions, star_solutions, value_codes
from acquatop.topk.contract import IntArray
from acquatop.topk.snapshot import pack_table, reading, unpack_table
from acquatop.windows import Windows
from connectors.mapping import SUBJECT, TIME

_RECORDS = "combined records"
_MOST_CHUNKS = 64
"""Number of panes' tables from which on they are copied into one."""


class CombinedRecords:
    """Maker of a star's solutions, pane by pane, of the records of one or several panes.

    A solution lies in the windows that hold all its parts. As earlier windows have closed, its time
    is that of its oldest part. If newer records say the same, it comes again with a later time.

    A pane of n records costs O(n), and O(records held) if subjects come again, besides its
    solutions. Memory is O(records of the open windows).
    """

    def __init__(self, matcher: CombiningMatcher, windows: Windows) -> None:
        self._matcher = matcher
        self._windows = windows
        self._codes = KeyCodes()
        self._counts: IntArray = np.empty(0, dtype=np.int64)
        """Number of records held, by the code of their subject."""
        self._held: pa.Table | None = None
        self._subjects: IntArray = np.empty(0, dtype=np.int64)
        """Code of the subject of each record held."""
        self._lasts: IntArray = np.empty(0, dtype=np.int64)
        """Last window of each record held, ascending."""

    def __len__(self) -> int:
        """Return the number of records held."""
        return len(self._subjects)

    def solutions(self, pane: Pane) -> Iterator[Pane]:
        """Yield the solutions that a pane's records make, by the panes of their oldest parts."""
        self.close_before(pane.first)
        said = pane.solutions
        codes = self._coded(said)
        together = self._counts[codes] > 0
        np.add.at(self._counts, codes, 1)
        together |= self._counts[codes] > 1
        alone = np.flatnonzero(~together)
        if len(alone):
            times = np.asarray(said.column(TIME).to_numpy())[alone]
            rows = (alone,) * len(self._matcher.said)
            yield from self._panes(said, StarSolutions(rows, times))
        if len(alone) < len(codes):
            yield from self._together(said, codes, together)
        if pane.last > pane.first or self._windows.width_ms % self._windows.slide_ms:
            self._hold(said, codes, np.full(len(codes), pane.last))
        else:
            self._forget(codes)

    def _together(self, said: pa.Table, codes: IntArray, together: BoolArray) -> Iterator[Pane]:
        """Yield the solutions of subjects that several records are about."""
        wanted = np.zeros(len(self._counts), dtype=np.bool_)
        wanted[codes[together]] = True
        is_held = wanted[self._subjects]
        some = [said.filter(pa.array(together))]
        if self._held is not None:
            some.insert(0, self._held.filter(pa.array(is_held)))
        every = pa.concat_tables(some).combine_chunks()
        subjects = np.concatenate((self._subjects[is_held], codes[together]))
        times = np.asarray(every.column(TIME).to_numpy(), dtype=np.int64)
        fresh = np.arange(len(subjects)) >= int(is_held.sum())
        values = [value_codes(every.column(name)) for name in self._matcher.said]
        for found in star_solutions(_in_order_of_coming(subjects), times, fresh, values):
            yield from self._panes(every, found)

    def _panes(self, said: pa.Table, found: StarSolutions) -> Iterator[Pane]:
        solutions = self._matcher.solutions(said, found)
        times = np.asarray(solutions.column(TIME).to_numpy(), dtype=np.int64)
        for first, last, at in by_pane(self._windows, times):
            rows = at if isinstance(at, slice) else np.sort(at)
            yield Pane(_rows(solutions, rows), first, last)

    # Records come and go --------------------------------------------------------------------------

    def _coded(self, said: pa.Table) -> IntArray:
        codes = self._codes.encode(said.column(SUBJECT).combine_chunks())
        if self._codes.size > len(self._counts):
            more = np.zeros(self._codes.size - len(self._counts), dtype=np.int64)
            self._counts = np.concatenate([self._counts, more])
        return codes

    def _hold(self, said: pa.Table, codes: IntArray, lasts: IntArray) -> None:
        held = said if self._held is None else pa.concat_tables([self._held, said])
        if held.column(TIME).num_chunks > _MOST_CHUNKS:
            held = held.combine_chunks()
        self._held = held
        self._subjects = np.concatenate((self._subjects, codes))
        self._lasts = np.concatenate((self._lasts, lasts))

    def close_before(self, window: int) -> None:
        """Release the records that lie only in earlier windows: those that came first."""
        gone = int(np.searchsorted(self._lasts, window))
        if self._held is not None and gone:
            self._forget(self._subjects[:gone])
            self._subjects, self._lasts = self._subjects[gone:], self._lasts[gone:]
            self._held = self._held.slice(gone) if len(self._subjects) else None

    def _forget(self, codes: IntArray) -> None:
        np.subtract.at(self._counts, codes, 1)
        unused = np.unique(codes[self._counts[codes] == 0])
        if len(unused):
            self._codes.release(unused)

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, bytes]:
        """Return the parts of the state. O(records held)."""
        return {} if self._held is None else {_RECORDS: pack_table(self._held)}

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Restore the parts of a snapshot."""
        if _RECORDS in parts:
            with reading():
                held = unpack_table(parts[_RECORDS])
            codes = self._coded(held)
            np.add.at(self._counts, codes, 1)
            self._hold(held, codes, self._windows.spans(held.column(TIME).to_numpy())[1])


def _rows(table: pa.Table, at: IntArray | slice) -> pa.Table:
    if isinstance(at, slice):
        return table.slice(at.start, at.stop - at.start)
    return table.take(pa.array(at))


def _in_order_of_coming(codes: IntArray) -> IntArray:
    """Return codes by the order in which subjects come, which a restart does not change."""
    _, firsts, those = np.unique(codes, return_index=True, return_inverse=True)
    places = np.empty_like(firsts)
    places[np.argsort(firsts)] = np.arange(len(firsts))
    return places[those]
