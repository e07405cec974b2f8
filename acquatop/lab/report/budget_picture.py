"""Picture of accuracy by budget: the best policy of each, and the recommended setting."""

from __future__ import annotations

import numpy as np

from acquatop.catalog.services import DEFAULT_POLICY
from acquatop.lab.replay.setting import can_win
from acquatop.lab.replay.summary import ReplaySummary
from acquatop.lab.report.axes import View
from acquatop.lab.report.drawing import COLOURS, INK, METRICS, MUTED, Drawing, Picture, extent
from acquatop.lab.report.recommended import NEAR, recommended


def budget_picture(summary: ReplaySummary, view: View) -> Picture:
    """Draw each metric of the default policy by budget, between the other policies' curves."""
    policies = summary.experiment.policies
    shown = DEFAULT_POLICY if DEFAULT_POLICY in policies else policies[0]
    drawing = Drawing.of(list(METRICS.values()), scale=1.6)
    choice = recommended(summary, view)
    for axes, (metric, name) in zip(drawing.panels, METRICS.items(), strict=True):
        for policy in policies:
            found = [
                summary.interval(view.cell(policy, value), metric) for value in view.axis.values
            ]
            means, lows, highs = (np.array(column) for column in zip(*found, strict=True))
            if policy != shown:
                line = "-" if can_win(policy) else ":"
                axes.plot(view.axis.places, means, line, color=MUTED, linewidth=0.9, alpha=0.7)
            else:
                axes.plot(
                    view.axis.places, means, color=COLOURS[metric], linewidth=2.2, label=policy
                )
                axes.fill_between(
                    view.axis.places, lows, highs, color=COLOURS[metric], alpha=0.18, linewidth=0
                )
            for place, mean, text in zip(view.axis.places, means, view.axis.texts(), strict=True):
                colour = COLOURS[metric] if policy == shown else MUTED
                drawing.point(
                    axes, place, mean, colour, f"{policy}, {text} items: {extent({name: mean})}"
                )
        if choice is not None:
            mean = summary.interval(choice, metric).mean
            axes.plot([choice.budget], [mean], "o", color=INK, markersize=10, fillstyle="none")
        axes.set_xlabel(view.axis.label)
        axes.set_xticks(view.axis.places, view.axis.texts())
    caption = (
        f"Mean per window. In colour {shown} with its 95 % interval, in grey the others, dotted "
        "what shows how much better they could be."
    )
    if choice is not None:
        caption += (
            f" The ring is {choice.policy} with {choice.budget} items: the fewest with an nDCG "
            f"within {NEAR:g} of the best."
        )
    return drawing.finish(view.name, f"Accuracy by {view.axis.label}", caption)
