"""A replica's values for the keys of one bucket: files with the whole, and what has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acquatop.ingest.buckets.chunk_folder import ChunkFolder
from acquatop.ingest.buckets.sorted_hashes import union
from acquatop.ingest.identity_hash import Hashes
from acquatop.ingest.reduce.pane_partials import hashes_in
from acquatop.ingest.reduce.partial_columns import HEAD, TAIL
from acquatop.ingest.scoring import BoolArray
from acquatop.topk.contract import AnyArray, FloatArray, IntArray
from replica.number_size import NumberSize

GONE, ABSENT, PRESENT = 0, 1, 2
"""States of a key: not held any more, known not to be at the remote, and with values."""
_STATE = "state"

ValueChunk = tuple[str, int]
"""File name, and position in the file."""


@dataclass(frozen=True)
class ValueFacts:
    """Facts about the whole replica: the sizes and means of its numbers, and names of columns.

    ``typed`` are the variables of which types are stored.
    """

    variables: tuple[str, ...]
    typed: tuple[str, ...]
    sizes: Mapping[str, NumberSize]
    means: Mapping[str, float]


@dataclass(frozen=True)
class BucketValues:
    """Places of the values of a bucket's keys; later chunks replace the values of earlier ones.

    ``waiting`` are the hashes of keys that the remote did not have, and that must not be asked for
    again yet.
    """

    chunks: Sequence[ValueChunk]
    facts: ValueFacts
    waiting: Hashes

    def read(self, folder: ChunkFolder, keys: Hashes) -> BucketView:
        """Return the values of some keys with ascending heads."""
        parts = [folder.read(name, [at])[0] for name, at in self.chunks]
        both = union([keys, *map(hashes_in, parts), self.waiting])
        own, *codes, waiting = both.codes
        # Values of the key with each code: a chunk, and a row in it.
        chosen = np.full(len(both), -1)
        starts = np.cumsum([0, *map(len, parts)])
        for start, its in zip(starts.tolist(), codes, strict=False):
            chosen[its] = start + np.arange(len(its))
        rows = chosen[own]
        is_known = rows >= 0
        again = np.ones(len(both), dtype=np.bool_)
        again[waiting] = False

        def taken(name: str, empty: float | bool | np.int8) -> AnyArray:
            column = np.full(len(rows), empty)
            if parts:
                column[is_known] = _column(parts, name)[rows[is_known]]
            return column

        return BucketView(
            taken(_STATE, np.int8(GONE)),
            again[own],
            {name: taken(f"#{name}", np.nan) for name in self.facts.variables},
            {name: taken(f"?{name}", False) for name in self.facts.typed},
            self.facts,
        )


@dataclass(frozen=True)
class BucketView:
    """Values of a task's keys: a column each, in the keys' order. A key's row is its position."""

    states: AnyArray
    again: BoolArray
    columns: Mapping[str, FloatArray]
    types: Mapping[str, BoolArray]
    facts: ValueFacts

    def rows(self, keys: list[str]) -> IntArray:
        """Raise an error: keys are known by their positions."""
        raise NotImplementedError

    def known(self) -> IntArray:
        """Return each key's row; -1 for a key that the replica does not hold."""
        return np.where(self.states == GONE, -1, np.arange(len(self.states)))

    def numbers(self, variable: str, rows: IntArray) -> FloatArray:
        """Return a variable's values as numbers; NaN if there is none."""
        return np.where(rows >= 0, self.columns[variable][rows], np.nan)

    def floating(self, variable: str, rows: IntArray) -> BoolArray:
        """Return a mask of the rows in which a variable is an xsd:float or xsd:double."""
        mask: BoolArray = (rows >= 0) & self.types[variable][rows]
        return mask

    def runs(self, rows: IntArray, *, least: int = 0) -> None:
        """Return None: each row is its own place."""
        return

    def present(self, rows: IntArray) -> BoolArray:
        """Return a mask of the rows whose key the remote had."""
        mask: BoolArray = (rows >= 0) & (self.states[rows] == PRESENT)
        return mask

    def may_be_asked_again(self) -> BoolArray:
        """Return a mask of the keys that the remote did not have, but may have by now."""
        mask: BoolArray = (self.states == ABSENT) & self.again
        return mask

    def size(self, variable: str) -> NumberSize:
        """Return the size of a variable's numbers."""
        return self.facts.sizes[variable]

    def mean(self, variable: str) -> float:
        """Return the mean of a variable's values; NaN if there is none."""
        return self.facts.means[variable]


def value_rows(
    hashes: Hashes,
    states: AnyArray,
    numbers: Mapping[str, FloatArray],
    types: Mapping[str, BoolArray],
) -> pa.RecordBatch:
    """Return values as they are stored."""
    heads, tails = hashes
    return pa.record_batch(
        {
            HEAD: heads,
            TAIL: tails,
            _STATE: states,
            **{f"#{name}": column for name, column in numbers.items()},
            **{f"?{name}": pa.array(mask) for name, mask in types.items()},
        }
    )


def _column(parts: Sequence[pa.RecordBatch], name: str) -> AnyArray:
    columns = [part.column(name).to_numpy(zero_copy_only=False) for part in parts]
    return columns[0] if len(columns) == 1 else np.concatenate(columns)
