"""Identities of solutions, made into text only if ties are to be broken by it."""

from __future__ import annotations

from typing import Protocol, overload

import numpy as np

from acquatop.ingest.reduce.panes import Positions, within
from acquatop.topk.contract import AnyArray, IntArray


class Identified(Protocol):
    """Solutions that have identities."""

    def identities_at(self, at: IntArray) -> AnyArray:
        """Return the identities at some positions; only these are made."""


class TieIdentities:
    """Identities of solutions at some positions; indexing returns some of them as text."""

    def __init__(self, solutions: Identified, at: Positions) -> None:
        self._solutions = solutions
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
            return TieIdentities(self._solutions, at[chosen])
        return self._solutions.identities_at(within(self._at, chosen))
