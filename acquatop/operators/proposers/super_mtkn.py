"""The Super-MTK+N list proposes: what can still be a result, and nothing else."""

from __future__ import annotations

from acquatop.operators.panes import Pane
from acquatop.operators.proposers.contract import Proposed


class SuperMTKN:
    """Proposes the candidates that are held anyway. O(1)."""

    def add_pane(self, pane: Pane) -> None:
        """Nothing is to be noted: the list has it."""

    def propose(self, window: int, held: Proposed) -> Proposed:
        """Return the candidates."""
        return held

    def close_before(self, window: int) -> None:
        """Nothing is kept."""
