"""The Super-MTK+N list proposes: what can still be a result, and nothing else."""

from __future__ import annotations

from acquatop.ingest.panes import Pane
from acquatop.refresh.proposers.contract import Proposed
from acquatop.topk.snapshot import State, pack, unpack

_VERSION = 1


class SuperMTKN:
    """Proposes the candidates that are held anyway. O(1)."""

    looks_at_panes = False
    looks_beyond_candidates = False
    kind = "proposer of candidates"
    """What its snapshots are called."""

    def add_pane(self, pane: Pane) -> None:
        """Nothing is to be noted: the list has it."""

    def propose(self, window: int, held: Proposed) -> Proposed:
        """Return the candidates."""
        return held

    def close_before(self, window: int) -> None:
        """Nothing is kept."""

    def snapshot(self) -> bytes:
        """Return that there is nothing to remember."""
        return pack(self.kind, _VERSION, State({}, {}))

    def resume(self, snapshot: bytes) -> None:
        """Check that a snapshot is one's own; raises ``SnapshotError`` if it is not."""
        unpack(self.kind, _VERSION, snapshot)
