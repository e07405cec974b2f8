"""Records of the open windows, by their subjects: records of one subject answer together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

import numpy as np
import pyarrow as pa

from acquatop.ingest.key_codes import KeyCodes
from acquatop.ingest.panes import Pane
from acquatop.ingest.reduce.panes import by_pane
from acquatop.ingest.scoring import BoolArray
from acquatop.topk.contract import IntArray
from acquatop.topk.snapshot import pack_table, reading, unpack_table
from acquatop.windows import Windows
from connectors.mapping import SUBJECT, TIME

_RECORDS = "combined records"
_MOST_CHUNKS = 64
"""Number of panes' tables from which on they are copied into one."""


class Combined(Protocol):
    """Maker of solutions, pane by pane, of the records of one or several panes."""

    def closing(self, window: int, panes: Iterable[Pane]) -> Iterator[Pane]:
        """Yield what the close of a window changes.

        Records have gone before it; those of some panes come.
        """

    def open_from(self, window: int) -> None:
        """Release what lies only in earlier windows."""

    def snapshot(self) -> dict[str, bytes]:
        """Return the parts of the state."""

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Restore the parts of a snapshot."""


class HeldRecords:
    """Records in the order of their panes, and how many each subject has.

    Adding or releasing n records costs O(n). Memory is O(records of the open windows).
    """

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self.table: pa.Table | None = None
        """Records held."""
        self.subjects: IntArray = np.empty(0, dtype=np.int64)
        """Code of the subject of each record held."""
        self._codes = KeyCodes()
        self._counts: IntArray = np.empty(0, dtype=np.int64)
        """Number of records held, by the code of their subject."""
        self._lasts: IntArray = np.empty(0, dtype=np.int64)
        """Last window of each record held, ascending."""

    def __len__(self) -> int:
        """Return the number of records held."""
        return len(self.subjects)

    def come(self, said: pa.Table) -> tuple[IntArray, BoolArray]:
        """Return the codes of records' subjects, and a mask of those of which others are here."""
        codes = self._coded(said)
        together = self._counts[codes] > 0
        np.add.at(self._counts, codes, 1)
        together |= self._counts[codes] > 1
        return codes, together

    def of(self, codes: IntArray) -> BoolArray:
        """Return a mask of the records held of some subjects."""
        wanted = np.zeros(len(self._counts), dtype=np.bool_)
        wanted[codes] = True
        found: BoolArray = wanted[self.subjects]
        return found

    def stay(self, pane: Pane, codes: IntArray) -> None:
        """Hold the records of a pane."""
        self._hold(pane.solutions, codes, np.full(len(codes), pane.last))

    def close_before(self, window: int) -> IntArray:
        """Release the records that lie only in earlier windows; return their subjects' codes.

        Only the codes of subjects that have other records are returned.
        """
        gone = int(np.searchsorted(self._lasts, window))
        codes = self.subjects[:gone]
        if self.table is None or not gone:
            return codes
        self.subjects, self._lasts = self.subjects[gone:], self._lasts[gone:]
        self.table = self.table.slice(gone) if len(self.subjects) else None
        left = np.unique(codes)
        left = left[self._counts[left] > np.bincount(codes, minlength=left.max() + 1)[left]]
        self._forget(codes)
        return left

    def panes(self, solutions: pa.Table) -> Iterator[Pane]:
        """Yield solutions by the panes of their times."""
        return panes_of(solutions, self.windows)

    def _coded(self, said: pa.Table) -> IntArray:
        codes = self._codes.encode(said.column(SUBJECT).combine_chunks())
        if self._codes.size > len(self._counts):
            more = np.zeros(self._codes.size - len(self._counts), dtype=np.int64)
            self._counts = np.concatenate([self._counts, more])
        return codes

    def _hold(self, said: pa.Table, codes: IntArray, lasts: IntArray) -> None:
        held = said if self.table is None else pa.concat_tables([self.table, said])
        if held.column(TIME).num_chunks > _MOST_CHUNKS:
            held = held.combine_chunks()
        self.table = held
        self.subjects = np.concatenate((self.subjects, codes))
        self._lasts = np.concatenate((self._lasts, lasts))

    def _forget(self, codes: IntArray) -> None:
        np.subtract.at(self._counts, codes, 1)
        unused = np.unique(codes[self._counts[codes] == 0])
        if len(unused):
            self._codes.release(unused)

    def snapshot(self) -> dict[str, bytes]:
        """Return the parts of the state. O(records held)."""
        return {} if self.table is None else {_RECORDS: pack_table(self.table)}

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Restore the parts of a snapshot."""
        if _RECORDS in parts:
            with reading():
                held = unpack_table(parts[_RECORDS])
            codes, _ = self.come(held)
            self._hold(held, codes, self.windows.spans(held.column(TIME).to_numpy())[1])


def panes_of(solutions: pa.Table, windows: Windows) -> Iterator[Pane]:
    """Yield solutions by the panes of their times."""
    times = np.asarray(solutions.column(TIME).to_numpy(), dtype=np.int64)
    for first, last, at in by_pane(windows, times):
        rows = at if isinstance(at, slice) else np.sort(at)
        yield Pane(_rows(solutions, rows), first, last)


def _rows(table: pa.Table, at: IntArray | slice) -> pa.Table:
    if isinstance(at, slice):
        return table.slice(at.start, at.stop - at.start)
    return table.take(pa.array(at))


def in_order_of_coming(codes: IntArray) -> IntArray:
    """Return codes by the order in which subjects come, which a restart does not change.

    >>> in_order_of_coming(np.array([7, 3, 7, 5])).tolist()
    [0, 1, 0, 2]
    """
    _, firsts, those = np.unique(codes, return_index=True, return_inverse=True)
    places = np.empty_like(firsts)
    places[np.argsort(firsts)] = np.arange(len(firsts))
    found: IntArray = places[those]
    return found
