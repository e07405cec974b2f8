"""View of a replica's present values, as columns that can be sent to where the records are."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.topk.contract import FloatArray, IntArray
from replica.store import ReplicaStore


@dataclass(frozen=True)
class ReplicaView:
    """Keys that the remote has, and their numbers. Rows are positions; -1 for all other keys."""

    keys: pa.StringArray
    columns: dict[str, FloatArray]
    types: dict[str, npt.NDArray[np.bool_]] = field(default_factory=dict)
    """By variable a mask of the keys for which it is an xsd:float or xsd:double, if asked for."""

    @classmethod
    def of(
        cls, store: ReplicaStore, variables: tuple[str, ...], typed: tuple[str, ...] = ()
    ) -> ReplicaView:
        """Return a view of a store's present values, and of the types of some. O(keys)."""
        rows = store.all_rows()
        rows = rows[store.present(rows)]
        numbers = {name: store.numbers(name, rows) for name in variables}
        types = {name: store.floating(name, rows) for name in typed}
        return cls(pa.array(store.keys(rows), pa.string()), numbers, types)

    def rows(self, keys: list[str] | pa.StringArray) -> IntArray:
        """Return each key's row; -1 if the remote does not have the key, or the key is unknown."""
        texts = keys if isinstance(keys, pa.Array) else pa.array(keys, pa.string())
        found = pc.fill_null(pc.index_in(texts, value_set=self.keys), -1)
        return np.asarray(found.to_numpy(), dtype=np.int64)

    def numbers(self, variable: str, rows: IntArray) -> FloatArray:
        """Return a variable's values as numbers; NaN if there is none."""
        if not len(self.keys):
            return np.full(len(rows), np.nan)
        return np.where(rows >= 0, self.columns[variable][rows], np.nan)

    def floating(self, variable: str, rows: IntArray) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows in which a variable is an xsd:float or xsd:double."""
        if not len(self.keys):
            return np.zeros(len(rows), dtype=np.bool_)
        mask: npt.NDArray[np.bool_] = (rows >= 0) & self.types[variable][rows]
        return mask

    def present(self, rows: IntArray) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows that the remote has."""
        is_there: npt.NDArray[np.bool_] = rows >= 0
        return is_there

    def mean(self, variable: str) -> float:
        """Return the mean of a variable's values; NaN if there is none."""
        values = self.columns[variable]
        return float(np.nanmean(values)) if bool((~np.isnan(values)).any()) else np.nan
