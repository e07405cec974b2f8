"""Pictures of an experiment's results."""

from __future__ import annotations

from collections.abc import Iterator

from acquatop.lab.replay.summary import ReplaySummary
from acquatop.lab.report.axes import middle, views
from acquatop.lab.report.budget_picture import budget_picture
from acquatop.lab.report.difference_picture import along_picture, windows_picture
from acquatop.lab.report.drawing import Picture
from acquatop.lab.report.reliability import reliability_picture


def pictures(summary: ReplaySummary) -> Iterator[Picture]:
    """Yield the pictures: accuracy by budget, differences, errors over windows, reliability."""
    along = [view for view in views(summary.experiment) if len(view.axis.values) > 1]
    for view in along:
        if view.axis.name == "budget":
            yield budget_picture(summary, view)
    if len(summary.experiment.policies) > 1:
        for view in along:
            yield along_picture(summary, view)
        yield windows_picture(summary, middle(summary.experiment))
    reliability = reliability_picture(summary)
    if reliability is not None:
        yield reliability
