"""Pictures of small multiples: how each policy differs from one of them, the baseline."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from acquatop.catalog.services import DEFAULT_POLICY
from acquatop.lab.replay.bootstrap import interval
from acquatop.lab.replay.summary import Cell, ReplaySummary
from acquatop.lab.report.axes import View, place_text
from acquatop.lab.report.drawing import (
    COLOURS,
    INK,
    METRICS,
    Drawing,
    Picture,
    extent,
    mark_policy,
)


def baseline(policies: Sequence[str]) -> str:
    """Return the policy that others are compared with: the default, or else the first."""
    return DEFAULT_POLICY if DEFAULT_POLICY in policies else policies[0]


def along_picture(summary: ReplaySummary, view: View) -> Picture:
    """Draw each policy's difference to the baseline along an axis, with paired intervals."""
    base, others = _split(summary)
    drawing = Drawing.of(others)
    for axes, policy in zip(drawing.panels, others, strict=True):
        mark_policy(axes, policy)
        axes.axhline(0, color=INK, linewidth=0.8)
        for metric, name in METRICS.items():
            found = [
                interval(
                    summary.series(view.cell(policy, value), metric)
                    - summary.series(view.cell(base, value), metric)
                )
                for value in view.axis.values
            ]
            means, lows, highs = (np.array(column) for column in zip(*found, strict=True))
            colour = COLOURS[metric]
            axes.plot(view.axis.places, means, color=colour, linewidth=1.5, label=name)
            axes.fill_between(view.axis.places, lows, highs, color=colour, alpha=0.2, linewidth=0)
            for place, text, each in zip(view.axis.places, view.axis.texts(), found, strict=True):
                said = extent({f"{name} differs by": each.mean, "from": each.low, "to": each.high})
                drawing.point(axes, place, each.mean, colour, f"{policy} at {text}: {said}")
        axes.set_xticks(view.axis.places, view.axis.texts())
        axes.set_xlabel(view.axis.label)
    drawing.label_metrics()
    rest = f" at {view.rest}" if view.rest else ""
    caption = (
        f"Mean per window{rest}, less that of {base}, on the same windows and seeds; the bands are "
        f"95 % intervals of the difference. Below zero {base} is better."
    )
    title = f"Differences to {base} by {view.axis.label}{rest}"
    return drawing.finish(f"{view.name}-differences", title, caption)


def windows_picture(summary: ReplaySummary, at: Cell) -> Picture:
    """Draw each policy's error, added up over the windows, less the baseline's."""
    base, others = _split(summary)
    drawing = Drawing.of(others)
    for axes, policy in zip(drawing.panels, others, strict=True):
        mark_policy(axes, policy)
        axes.axhline(0, color=INK, linewidth=0.8)
        for metric, name in METRICS.items():
            own, bases = (
                summary.series(Cell(at.data, each, at.budget, at.k, at.n), metric).mean(axis=0)
                for each in (policy, base)
            )
            more = np.cumsum(bases - own)
            axes.plot(
                np.arange(1, len(more) + 1), more, color=COLOURS[metric], linewidth=1.5, label=name
            )
        axes.set_xlabel("windows")
    drawing.label_metrics()
    where = place_text(summary.experiment, at)
    caption = (
        f"What is missing to 1, added up window by window{', at ' + where if where else ''}, less "
        f"the same of {base}: above zero {base} is better."
    )
    return drawing.finish("errors", f"Errors over the windows, less those of {base}", caption)


def _split(summary: ReplaySummary) -> tuple[str, list[str]]:
    policies = summary.experiment.policies
    base = baseline(policies)
    return base, [each for each in policies if each != base] or [base]
