"""Identities of solutions, made into text only if ties are to be broken by it."""

from __future__ import annotations

from typing import overload

import numpy as np
import pyarrow as pa

from acquatop.ingest.match import Found
from acquatop.ingest.reduce.panes import Positions, within
from acquatop.ingest.unscored import objects
from acquatop.topk.contract import AnyArray, IntArray


class TieIdentities:
    """Identities of found records at some positions; indexing returns some of them as text."""

    def __init__(self, found: Found, at: Positions) -> None:
        self._found = found
        self._at = at

    @overload
    def __getitem__(self, chosen: slice) -> TieIdentities: ...
    @overload
    def __getitem__(self, chosen: IntArray) -> AnyArray: ...
    def __getitem__(self, chosen: IntArray | slice) -> AnyArray | TieIdentities:
        if isinstance(chosen, slice):
            at = (
                np.arange(self._at.start, self._at.stop)
                if isinstance(self._at, slice)
                else self._at
            )
            return TieIdentities(self._found, at[chosen])
        at = within(self._at, chosen)
        return objects(self._found.subjects.take(pa.array(at)).to_pylist())
