"""Proposer of the Super-MTK+N list: keys that can still be results, and no others."""

from __future__ import annotations

from acquatop.ingest.panes import Pane
from acquatop.refresh.proposers.contract import Proposed
from acquatop.topk.snapshot import State, pack, unpack

_VERSION = 1


class SuperMTKNProposer:
    """Proposer of the candidates that are held anyway. O(1)."""

    looks_at_panes = False
    includes_dropped = False
    kind = "proposer of candidates"
    """Kind of its snapshots."""

    def add_pane(self, pane: Pane) -> None:
        """Do nothing: the list has the solutions."""

    def propose(self, window: int, candidates: Proposed) -> Proposed:
        """Return the candidates."""
        return candidates

    def close_before(self, window: int) -> None:
        """Do nothing: nothing is kept."""

    def snapshot(self) -> bytes:
        """Return a snapshot without content: nothing is kept."""
        return pack(self.kind, _VERSION, State({}, {}))

    def resume(self, snapshot: bytes) -> None:
        """Check that a snapshot is of this kind; raises ``SnapshotError`` if it is not."""
        unpack(self.kind, _VERSION, snapshot)
