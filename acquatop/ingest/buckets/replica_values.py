"""View of a replica's present values for the keys of one bucket, as columns to send to a task."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acquatop.ingest.buckets.partials import buckets_of
from acquatop.ingest.replica_columns import ReplicaColumns
from acquatop.ingest.scoring import BoolArray
from acquatop.topk.contract import IntArray
from replica.store import ReplicaStore


@dataclass(frozen=True)
class BucketView(ReplicaColumns):
    """Keys that were asked for, the remote's values of each, and those to be asked for ``again``.

    ``again`` marks keys that may be asked for again.
    ``means`` are those of the whole replica.
    """

    is_present: BoolArray
    again: BoolArray
    means: dict[str, float]

    @classmethod
    def of(
        cls,
        store: ReplicaStore,
        variables: tuple[str, ...],
        absent_before: float,
        typed: tuple[str, ...] = (),
    ) -> BucketView:
        """Return a view of a store's present values, and of the types of some. O(keys).

        Keys that the remote did not have, asked for at ``absent_before`` or earlier, may be asked
        for again.

        >>> BucketView.of(ReplicaStore("key", ["key", "value"]), ("value",), 0.0).rows(
        ...     ["a"]
        ... ).tolist()
        [-1]
        """
        rows = store.all_rows()
        is_present = store.present(rows)
        return cls(
            pa.array(store.keys(rows), pa.string()),
            {name: store.numbers(name, rows) for name in variables},
            {name: store.floating(name, rows) for name in typed},
            {name: store.size(name) for name in variables},
            is_present,
            ~is_present & (store.fetched_at(rows) <= absent_before),
            {name: store.mean(name) for name in variables},
        )

    def cut(self, count: int) -> list[BucketView]:
        """Return each bucket's part. O(keys)."""
        buckets = buckets_of(self.keys, count)
        ends = np.cumsum(np.bincount(buckets, minlength=count))
        return [self._take(at) for at in np.split(np.argsort(buckets, kind="stable"), ends[:-1])]

    def _take(self, at: IntArray) -> BucketView:
        columns = {name: column[at] for name, column in self.columns.items()}
        types = {name: mask[at] for name, mask in self.types.items()}
        return BucketView(
            self.keys.take(pa.array(at)),
            columns,
            types,
            self.sizes,
            self.is_present[at],
            self.again[at],
            self.means,
        )

    def present(self, rows: IntArray) -> BoolArray:
        """Return a mask of the rows whose key the remote had."""
        return self._are(self.is_present, rows)

    def may_be_asked_again(self, rows: IntArray) -> BoolArray:
        """Return a mask of the rows whose key the remote did not have, but may have by now."""
        return self._are(self.again, rows)

    def _are(self, column: BoolArray, rows: IntArray) -> BoolArray:
        if not len(self.keys):
            return np.zeros(len(rows), dtype=np.bool_)
        are: BoolArray = (rows >= 0) & column[rows]
        return are

    def mean(self, variable: str) -> float:
        """Return the mean of a variable's values; NaN if there is none."""
        return self.means[variable]

    def says_the_same(self, store: ReplicaStore, keys: list[str]) -> bool:
        """Return True if the replica still has the same values for some keys."""
        mine, its = self.rows(keys), store.rows(keys)
        if not np.array_equal(mine >= 0, its >= 0) or not np.array_equal(
            self.present(mine), _present(store, its)
        ):
            return False
        here = np.flatnonzero(self.present(mine))
        mine, its = mine[here], its[here]
        # Compare bits: the number NaN is not the NaN of a missing number.
        return all(
            np.array_equal(
                self.numbers(name, mine).view(np.int64), store.numbers(name, its).view(np.int64)
            )
            for name in self.columns
        ) and all(
            np.array_equal(self.floating(name, mine), store.floating(name, its))
            for name in self.types
        )


def _present(store: ReplicaStore, rows: IntArray) -> BoolArray:
    return (rows >= 0) & store.present(rows)
