"""Merits of records for several scores, block by block.

A block's columns stay in the processor's cache until all scores have been computed of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from acquatop.ingest.found import Found
from acquatop.ingest.reduce.panes import Positions
from acquatop.ingest.reduce.replica_view import ReplicaView
from acquatop.ingest.scoring import BoolArray, ReplicaScoring
from acquatop.topk.contract import FloatArray, IntArray

BLOCK = 1 << 15
"""Number of records of a block."""


class BlockValues:
    """Numbers of some records, and the replica's values of their keys, read once for all scores."""

    def __init__(self, found: Found, numbers: tuple[str, ...], view: ReplicaView | None) -> None:
        self.parts = tuple(found.numbers(name) for name in numbers)
        self.rows: IntArray | None = None
        self.absent: BoolArray | None = None
        """Mask of the records whose key the remote has not; None if there are none."""
        self.has_runs = False
        """True if a key may have several values."""
        self._view = view
        self._numbers: dict[str, FloatArray] = {}
        self._floating: dict[str, BoolArray] = {}
        if view is not None:
            self.rows = view.rows(found.keys.dictionary)[found.keys.indices.to_numpy()]
            self.has_runs = view.runs(self.rows[:0]) is not None
            absent = ~view.present(self.rows)
            self.absent = absent if absent.any() else None

    def blocks(self, at: Positions, count: int) -> Iterator[tuple[int, Block]]:
        """Yield the blocks of a pane's records, and the place of each in the pane."""
        for start in range(0, count, BLOCK):
            stop = min(count, start + BLOCK)
            if isinstance(at, slice):
                yield start, Block(self, slice(at.start + start, at.start + stop), stop - start)
            else:
                yield start, Block(self, at[start:stop], stop - start)

    def numbers(self, variable: str) -> FloatArray:
        """Return each record's number of the remote."""
        if variable not in self._numbers:
            assert self._view is not None
            assert self.rows is not None
            self._numbers[variable] = self._view.numbers(variable, self.rows)
        return self._numbers[variable]

    def floating(self, variable: str) -> BoolArray:
        """Return a mask of the records for which the remote has an xsd:float or xsd:double."""
        if variable not in self._floating:
            assert self._view is not None
            assert self.rows is not None
            self._floating[variable] = self._view.floating(variable, self.rows)
        return self._floating[variable]


class Block:
    """Some records."""

    def __init__(self, values: BlockValues, at: Positions, count: int) -> None:
        self._values = values
        self._at = at
        self._count = count
        self._parts = tuple(part[at] for part in values.parts)
        self._absent = None if values.absent is None else values.absent[at]
        self._numbers: dict[str, FloatArray] = {}

    def merits(self, scoring: ReplicaScoring) -> FloatArray:
        """Return each record's merit; NaN if it has none."""
        values = self._values
        if values.has_runs:
            assert values.rows is not None
            return scoring.merits_at(values.rows[self._at], self._parts)
        remote = self._remote(scoring.remote_variables) if values.rows is not None else {}
        merits = scoring.merits_given(
            remote, self._parts, self._count, lambda name: values.floating(name)[self._at]
        )
        if self._absent is not None:
            merits[self._absent] = np.nan
        return merits

    def _remote(self, names: tuple[str, ...]) -> Mapping[str, FloatArray]:
        for name in names:
            if name not in self._numbers:
                self._numbers[name] = self._values.numbers(name)[self._at]
        return {name: self._numbers[name] for name in names}
