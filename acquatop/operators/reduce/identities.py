"""What identifies solutions, made into text only where ties are to be broken by it."""

from __future__ import annotations

from typing import overload

import pyarrow as pa

from acquatop.operators.match import Found
from acquatop.operators.waiting import objects
from acquatop.topk.contract import AnyArray, IntArray


class Identities:
    """The identities of what stands at some positions of what has been found: some of them as a column of text."""

    def __init__(self, found: Found, at: IntArray) -> None:
        self._found = found
        self._at = at

    @overload
    def __getitem__(self, chosen: slice) -> Identities: ...
    @overload
    def __getitem__(self, chosen: IntArray) -> AnyArray: ...
    def __getitem__(self, chosen: IntArray | slice) -> AnyArray | Identities:
        at = self._at[chosen]
        if isinstance(chosen, slice):
            return Identities(self._found, at)
        return objects(self._found.subjects.take(pa.array(at)).to_pylist())
