"""The window's join proposes: every key that a solution of the window joins with."""

from __future__ import annotations

import numpy as np

from acquatop.operators.key_codes import KeyCodes
from acquatop.operators.match import GONE, KEY
from acquatop.operators.panes import Pane
from acquatop.operators.proposers.contract import Proposed
from acquatop.topk.contract import IntArray

_CLOSED = -(2**63)


class WindowJoin:
    """Proposes all keys of the window, the candidates first.

    Memory is O(keys of the open windows), a pane costs O(its solutions), a proposal O(keys). What
    a newer arrival has replaced is proposed until its window ends.
    """

    def __init__(self) -> None:
        self._codes = KeyCodes()
        self._lasts: IntArray = np.empty(0, dtype=np.int64)

    def add_pane(self, pane: Pane) -> None:
        """Note the keys of one pane's solutions."""
        keys = pane.solutions.filter(np.logical_not(pane.solutions.column(GONE).to_numpy())).column(KEY)
        codes = self._codes.encode(keys.unique().to_pylist())
        if self._codes.size > len(self._lasts):
            more = np.full(self._codes.size - len(self._lasts), _CLOSED)
            self._lasts = np.concatenate([self._lasts, more])
        self._lasts[codes] = np.maximum(self._lasts[codes], pane.last)

    def propose(self, window: int, held: Proposed) -> Proposed:
        """Return the candidates, and then all other keys of the windows that are open, in the order of their text."""
        codes = self._codes.used()
        codes = codes[self._lasts[codes] >= window]
        texts = self._codes.texts(codes)
        order = np.argsort(texts)
        return held.and_then(texts[order].tolist(), self._lasts[codes[order]])

    def close_before(self, window: int) -> None:
        """Let go of keys that lie only in windows before this one."""
        codes = self._codes.used()
        gone = codes[self._lasts[codes] < window]
        self._codes.release(gone)
        self._lasts[gone] = _CLOSED
