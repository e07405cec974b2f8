"""Records of the open windows, by the terms that link them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from acquatop.ingest.combining_graph_matcher import plain_column
from acquatop.ingest.key_codes import KeyCodes
from acquatop.ingest.linked_groups import linked_groups
from acquatop.ingest.panes import Pane
from acquatop.ingest.scoring import BoolArray
from acquatop.topk.contract import IntArray
from acquatop.topk.snapshot import pack_table, reading, unpack_table
from acquatop.windows import Windows
from connectors.mapping import TIME

_RECORDS = "combined records"
_MOST_CHUNKS = 64
"""Number of panes' tables from which on they are copied into one."""


class LinkedRecords:
    """Records in the order of their panes, and the groups of those that are linked.

    Groups are found anew whenever records come or go: O(records held), by whole columns. Memory is
    O(records of the open windows).
    """

    def __init__(self, windows: Windows, links: Sequence[str]) -> None:
        self.windows = windows
        self.table: pa.Table | None = None
        """Records held."""
        self.groups: IntArray = np.empty(0, dtype=np.int64)
        """Number of the group of each record held."""
        self._links = links
        self._terms: IntArray = np.empty((0, len(links)), dtype=np.int64)
        """Codes of the terms that link each record held; -1 for none."""
        self._lasts: IntArray = np.empty(0, dtype=np.int64)
        """Last window of each record held, ascending."""
        self._codes = KeyCodes()
        self._counts: IntArray = np.empty(0, dtype=np.int64)
        """Number of times that records held have a term, by its code."""

    def __len__(self) -> int:
        """Return the number of records held."""
        return len(self._lasts)

    def come(self, panes: Sequence[Pane]) -> BoolArray:
        """Hold the records of some panes, behind all others.

        Return a mask of all records now held, which of them are new or linked with new ones.
        """
        before = len(self)
        if not panes:
            return np.zeros(before, dtype=np.bool_)
        for pane in panes:
            self._hold(pane.solutions, np.full(len(pane.solutions), pane.last))
        self.groups = linked_groups(self._terms)
        is_touched = np.zeros(1 + int(self.groups.max(initial=-1)), dtype=np.bool_)
        is_touched[self.groups[before:]] = True
        return is_touched[self.groups]

    def close_before(self, window: int) -> BoolArray:
        """Release the records that lie only in earlier windows.

        Return a mask of those that are left and were linked with one of them.
        """
        gone = int(np.searchsorted(self._lasts, window))
        if self.table is None or not gone:
            return np.zeros(len(self), dtype=np.bool_)
        has_lost = np.zeros(1 + int(self.groups.max()), dtype=np.bool_)
        has_lost[self.groups[:gone]] = True
        left = has_lost[self.groups[gone:]]
        self._forget(self._terms[:gone])
        self._terms, self._lasts = self._terms[gone:], self._lasts[gone:]
        self.table = self.table.slice(gone) if len(self._lasts) else None
        self.groups = linked_groups(self._terms)
        return left

    def _hold(self, said: pa.Table, lasts: IntArray) -> None:
        held = said if self.table is None else pa.concat_tables([self.table, said])
        if held.column(TIME).num_chunks > _MOST_CHUNKS:
            held = held.combine_chunks()
        self.table = held
        self._terms = np.concatenate((self._terms, self._coded(said)))
        self._lasts = np.concatenate((self._lasts, lasts))

    def _coded(self, said: pa.Table) -> IntArray:
        terms = np.full((len(said), len(self._links)), -1)
        for at, name in enumerate(self._links):
            column = plain_column(said.column(name))
            there = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
            terms[there, at] = self._codes.encode(column.drop_null())
        if self._codes.size > len(self._counts):
            more = np.zeros(self._codes.size - len(self._counts), dtype=np.int64)
            self._counts = np.concatenate([self._counts, more])
        np.add.at(self._counts, terms[terms >= 0], 1)
        return terms

    def _forget(self, terms: IntArray) -> None:
        codes = terms[terms >= 0]
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
            self._hold(held, self.windows.spans(held.column(TIME).to_numpy())[1])
            self.groups = linked_groups(self._terms)
