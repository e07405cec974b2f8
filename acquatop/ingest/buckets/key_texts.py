"""Texts of keys, read only for those that are asked for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from acquatop.topk.contract import AnyArray, IntArray


class KeyTexts:
    """Column of texts that lie in several arrays; ``positions`` count through all of these.

    The arrays may be mapped files: the pages of other texts are not read.

    >>> texts = KeyTexts([pa.array(["a", "b"]), pa.array(["c"])], np.array([2, 0]))
    >>> texts[np.array([0, 1])].tolist()
    ['c', 'a']
    """

    def __init__(self, arrays: Sequence[pa.Array], positions: IntArray) -> None:
        self._arrays = arrays
        self._starts = np.cumsum([0, *map(len, arrays)])
        self._positions = positions

    def __getitem__(self, at: IntArray) -> AnyArray:
        """Return some texts."""
        found: AnyArray = self.column(at).to_numpy(zero_copy_only=False)
        return found

    def __len__(self) -> int:
        return len(self._positions)

    def only(self, at: IntArray) -> KeyTexts:
        """Return the column of some texts; none is read."""
        return KeyTexts(self._arrays, self._positions[at])

    def column(self, at: IntArray) -> pa.Array:
        """Return some texts as an array."""
        positions = self._positions[at]
        which = np.searchsorted(self._starts, positions, side="right") - 1
        order = np.argsort(which, kind="stable")
        ends = np.searchsorted(which[order], np.arange(len(self._arrays) + 1))
        taken = [
            array.take(pa.array(positions[order[start:stop]] - self._starts[number]))
            for number, (array, start, stop) in enumerate(
                zip(self._arrays, ends[:-1].tolist(), ends[1:].tolist(), strict=True)
            )
            if stop > start
        ]
        if not taken:
            return pa.array([], pa.string())
        back = np.empty(len(order), dtype=np.int64)
        back[order] = np.arange(len(order))
        return pa.concat_arrays(taken).take(pa.array(back))
