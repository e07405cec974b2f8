"""View of a replica's present values, as columns that can be sent to where the records are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acquatop.ingest.replica_columns import ReplicaColumns
from acquatop.topk.contract import IntArray
from replica.store import ReplicaStore


@dataclass(frozen=True)
class ReplicaView(ReplicaColumns):
    """Keys that the remote has, and their numbers."""

    @classmethod
    def of(
        cls, store: ReplicaStore, variables: tuple[str, ...], typed: tuple[str, ...] = ()
    ) -> ReplicaView:
        """Return a view of a store's present values, and of the types of some. O(keys)."""
        rows = store.all_rows()
        rows = rows[store.present(rows)]
        numbers = {name: store.numbers(name, rows) for name in variables}
        types = {name: store.floating(name, rows) for name in typed}
        sizes = {name: store.size(name) for name in variables}
        return cls(pa.array(store.keys(rows), pa.string()), numbers, types, sizes)

    def present(self, rows: IntArray) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows that the remote has."""
        is_there: npt.NDArray[np.bool_] = rows >= 0
        return is_there

    def mean(self, variable: str) -> float:
        """Return the mean of a variable's values; NaN if there is none."""
        values = self.columns[variable]
        return float(np.nanmean(values)) if bool((~np.isnan(values)).any()) else np.nan
