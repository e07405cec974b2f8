"""A replica's present values as columns that can be sent to where the records are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.ingest.scoring import BoolArray
from acquatop.topk.contract import FloatArray, IntArray
from replica.number_size import NumberSize


@dataclass(frozen=True)
class ReplicaColumns:
    """Keys of a replica, and their numbers. Rows are positions; -1 for all other keys.

    ``types`` has by variable a mask of the keys for which it is an xsd:float or xsd:double, if
    asked for. ``sizes`` has the sizes of the whole replica's numbers.
    """

    keys: pa.StringArray
    columns: dict[str, FloatArray]
    types: dict[str, BoolArray]
    sizes: dict[str, NumberSize]

    def rows(self, keys: list[str] | pa.StringArray) -> IntArray:
        """Return each key's row. O(keys of both)."""
        texts = keys if isinstance(keys, pa.Array) else pa.array(keys, pa.string())
        found = pc.fill_null(pc.index_in(texts, value_set=self.keys), -1)
        return np.asarray(found.to_numpy(), dtype=np.int64)

    def numbers(self, variable: str, rows: IntArray) -> FloatArray:
        """Return a variable's values as numbers; NaN if there is none."""
        if not len(self.keys):
            return np.full(len(rows), np.nan)
        return np.where(rows >= 0, self.columns[variable][rows], np.nan)

    def size(self, variable: str) -> NumberSize:
        """Return the size of a variable's numbers."""
        return self.sizes[variable]

    def floating(self, variable: str, rows: IntArray) -> BoolArray:
        """Return a mask of the rows in which a variable is an xsd:float or xsd:double."""
        if not len(self.keys):
            return np.zeros(len(rows), dtype=np.bool_)
        mask: BoolArray = (rows >= 0) & self.types[variable][rows]
        return mask
