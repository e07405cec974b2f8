"""Proposer of all keys that the replica holds, whether a window has them or not."""

from __future__ import annotations

import numpy as np

from acquatop.ingest.panes import Pane
from acquatop.refresh.proposers.contract import Proposed
from acquatop.topk.snapshot import State, pack, unpack
from replica.store import JoinedStore

_KIND, _VERSION = "proposer of everything", 1


class Everything:
    """Proposer of all keys of the replica, the candidates first. O(keys of the replica)."""

    looks_at_panes = False
    includes_dropped = False

    def __init__(self, store: JoinedStore) -> None:
        self._store = store

    def add_pane(self, pane: Pane) -> None:
        """Do nothing: the replica has the keys."""

    def propose(self, window: int, candidates: Proposed) -> Proposed:
        """Return the candidates, then all keys of the replica, in its order.

        Each key is assumed to be needed now.
        """
        keys = self._store.keys(self._store.all_rows())
        return candidates.and_then(keys, np.full(len(keys), window))

    def close_before(self, window: int) -> None:
        """Do nothing: nothing is kept."""

    def snapshot(self) -> bytes:
        """Return a snapshot without content: nothing is kept."""
        return pack(_KIND, _VERSION, State({}, {}))

    def resume(self, snapshot: bytes) -> None:
        """Check that a snapshot is of this kind; raises ``SnapshotError`` if it is not."""
        unpack(_KIND, _VERSION, snapshot)
