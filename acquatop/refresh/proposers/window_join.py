"""Proposer of the window's join: every key that a solution of the window joins with."""

from __future__ import annotations

import numpy as np

from acquatop.ingest.key_codes import KeyCodes
from acquatop.ingest.panes import Pane
from acquatop.ingest.solution_columns import GONE, KEY
from acquatop.refresh.proposers.contract import Proposed
from acquatop.topk.contract import IntArray
from acquatop.topk.snapshot import State, pack, pack_parts, reading, unpack, unpack_parts

_KIND, _VERSION = "proposer of the window's join", 1
_CLOSED = -(2**63)


class WindowJoin:
    """Proposer of all keys of the window, the candidates first.

    Memory is O(keys of the open windows). A pane costs O(its solutions), a proposal O(n log n) for
    n keys, which are sorted. A key whose solution a newer arrival has replaced is proposed until
    its window ends.
    """

    looks_at_panes = True
    includes_dropped = False

    def __init__(self) -> None:
        self._codes = KeyCodes()
        self._lasts: IntArray = np.empty(0, dtype=np.int64)

    def add_pane(self, pane: Pane) -> None:
        """Note the keys of one pane's solutions."""
        keys = pane.solutions.filter(np.logical_not(pane.solutions.column(GONE).to_numpy())).column(
            KEY
        )
        codes = self._codes.encode(keys.unique())
        if self._codes.size > len(self._lasts):
            more = np.full(self._codes.size - len(self._lasts), _CLOSED)
            self._lasts = np.concatenate([self._lasts, more])
        self._lasts[codes] = np.maximum(self._lasts[codes], pane.last)

    def propose(self, window: int, candidates: Proposed) -> Proposed:
        """Return the candidates, then all other keys of the open windows, in text order."""
        codes = self._codes.used()
        codes = codes[self._lasts[codes] >= window]
        texts = self._codes.texts(codes)
        order = np.argsort(texts)
        return candidates.and_then(texts[order].tolist(), self._lasts[codes[order]])

    def close_before(self, window: int) -> None:
        """Release keys that lie only in earlier windows."""
        codes = self._codes.used()
        gone = codes[self._lasts[codes] < window]
        self._codes.release(gone)
        self._lasts[gone] = _CLOSED

    def snapshot(self) -> bytes:
        """Return the whole state."""
        lasts = pack(_KIND, _VERSION, State({}, {"keys": {"lasts": self._lasts}}))
        return pack_parts({"lasts": lasts, "codes": self._codes.snapshot()})

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot; raises ``SnapshotError`` for any other bytes."""
        with reading():
            parts = unpack_parts(snapshot)
            lasts = unpack(_KIND, _VERSION, parts["lasts"]).tables["keys"]["lasts"]
            self._codes.resume(parts["codes"])
            self._lasts = lasts
