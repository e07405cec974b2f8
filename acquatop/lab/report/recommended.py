"""Recommended setting: the fewest items with nearly the best accuracy of all that was tried."""

from __future__ import annotations

from acquatop.lab.replay.setting import can_win
from acquatop.lab.replay.summary import Cell, ReplaySummary
from acquatop.lab.report.axes import View

NEAR = 0.02
"""Shortfall from the best nDCG that the recommended setting may have."""


def recommended(summary: ReplaySummary, view: View) -> Cell | None:
    """Return the cell with the fewest items whose mean nDCG is near the best; None if none can be.

    Of several with as many items, the best.
    """
    policies = [each for each in summary.experiment.policies if can_win(each)]
    cells = [view.cell(policy, value) for policy in policies for value in view.axis.values]
    means = {cell: summary.interval(cell, "ndcg").mean for cell in cells}
    if not means or view.axis.name != "budget":
        return None
    enough = [cell for cell, mean in means.items() if mean >= max(means.values()) - NEAR]
    return min(enough, key=lambda cell: (cell.budget, -means[cell]))
