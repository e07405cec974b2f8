"""Picture of how often what the engine expects of its answers came true."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from acquatop.lab.replay.measure import EXPECTED
from acquatop.lab.replay.setting import can_win
from acquatop.lab.replay.summary import ReplaySummary
from acquatop.lab.report.drawing import COLOURS, INK, METRICS, Drawing, Picture, mark_policy

_BINS, _FEWEST = 10, 20
"""Number of groups of answers by what is expected, and how many answers make one worth showing."""


@dataclass(frozen=True)
class ExpectedGroup:
    """Answers of which about the same is expected: their number, and both means."""

    count: int
    expected: float
    real: float


def groups(summary: ReplaySummary, policy: str, metric: str) -> Iterator[ExpectedGroup]:
    """Yield groups of a policy's answers in all settings, by what was expected of them."""
    cells = [cell for cell in summary.cells if cell.policy == policy]
    expected = np.concatenate([summary.series(each, EXPECTED[metric]).ravel() for each in cells])
    real = np.concatenate([summary.series(each, metric).ravel() for each in cells])
    known = ~np.isnan(expected)
    group = np.minimum((expected[known] * _BINS).astype(np.int64), _BINS - 1)
    for number in range(_BINS):
        of_group = group == number
        count = int(of_group.sum())
        if count >= _FEWEST:
            means = (float(each[known][of_group].mean()) for each in (expected, real))
            yield ExpectedGroup(count, *means)


def reliability_picture(summary: ReplaySummary) -> Picture | None:
    """Draw what was expected against what came, for each policy; None if nothing was expected."""
    found = {
        policy: {metric: list(groups(summary, policy, metric)) for metric in METRICS}
        for policy in summary.experiment.policies
        if can_win(policy)
    }
    found = {policy: each for policy, each in found.items() if any(each.values())}
    if not found:
        return None
    drawing = Drawing.of(list(found))
    for axes, (policy, of_metrics) in zip(drawing.panels, found.items(), strict=True):
        mark_policy(axes, policy)
        axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8)
        for metric, name in METRICS.items():
            several = of_metrics[metric]
            axes.plot(
                [each.expected for each in several],
                [each.real for each in several],
                color=COLOURS[metric],
                linewidth=1.5,
                label=name,
            )
            for each in several:
                tip = (
                    f"{policy}: {name} {each.expected:.3f} expected, {each.real:.3f} came, "
                    f"{each.count:,} answers"
                )
                drawing.point(axes, each.expected, each.real, COLOURS[metric], tip)
        axes.set(xlabel="expected", ylabel="came")
    drawing.label_metrics()
    caption = (
        f"Answers of all settings in groups of at least {_FEWEST}, by the accuracy that the engine "
        "expected of them; below the line it expected too much."
    )
    return drawing.finish("reliability", "What was expected, and what came", caption)
