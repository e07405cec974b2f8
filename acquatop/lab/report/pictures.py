"""Pictures of an experiment's results, drawn by matplotlib (needed for nothing else)."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from acquatop.errors import EnvironmentProblem
from acquatop.lab.replay.summary import Cell, ReplaySummary
from acquatop.lab.report.axes import View, middle, place_text, views
from replica.rankers import DEFAULT_RANKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = {"ndcg": "nDCG", "precision": "precision"}
"""Metrics that each picture shows side by side, with their titles."""

_LINES = {"AT": "-", "ANY": "-", "WSJ": "--", "ALL": ":"}
_MARKS = {"AT": "o", "ANY": "D", "WSJ": "s", "ALL": "^"}
_COLOURS = (
    "#e0662f",
    "#b8860b",
    "#3b82d6",
    "#159a8c",
    "#a05fc4",
    "#808a99",
    "#5d6673",
    "#d1457f",
    "#3f9b3f",
    "#8c5a3c",
)
_KNOWN = ("TSM", "BSM", "LRU", "WBM", "RND", "WST", "ASM")
_INK, _GRID = "#20242b", "#8a93a040"
_SIZE, _DOTS = (11.0, 4.2), 120


@dataclass(frozen=True)
class Picture:
    """A picture with its title and caption."""

    name: str
    title: str
    caption: str
    svg: str
    png: bytes

    def write(self, folder: Path) -> None:
        """Write it into a folder, in both forms."""
        (folder / f"{self.name}.svg").write_text(self.svg, "utf-8")
        (folder / f"{self.name}.png").write_bytes(self.png)

    @property
    def inline(self) -> str:
        """The SVG as a part of a page: on the page's background, in its text colour."""
        svg = self.svg[self.svg.index("<svg") :].replace(_INK, "currentColor")
        return svg.replace("<svg ", '<svg role="img" ', 1)


def check_drawing() -> None:
    """Raise :class:`EnvironmentProblem` if matplotlib is not installed."""
    try:
        import matplotlib as _  # noqa: F401
    except ImportError:
        hint = "pip install matplotlib, or leave the pictures out with --no-plots"
        raise EnvironmentProblem(
            f"the pictures need matplotlib, which is not installed\n  hint: {hint}"
        ) from None


def pictures(summary: ReplaySummary) -> Iterator[Picture]:
    """Yield an experiment's pictures: errors over the windows, then each metric along its views."""
    yield _errors(summary)
    for view in views(summary.experiment):
        if len(view.axis.values) > 1:
            yield _along(summary, view)


def _errors(summary: ReplaySummary) -> Picture:
    at = middle(summary.experiment)
    cells = {
        policy: Cell(at.data, policy, at.budget, at.k, at.n)
        for policy in summary.experiment.policies
    }
    figure, panels = _panels()
    ends: dict[str, float] = {}
    for axes, metric in zip(panels, PANELS, strict=True):
        for policy, cell in cells.items():
            errors = np.cumsum(1 - summary.series(cell, metric).mean(axis=0))
            axes.plot(np.arange(1, len(errors) + 1), errors, **_style(policy), linewidth=1.6)
            ends.setdefault(policy, float(errors[-1]))
        axes.set(title=f"cumulated error of {PANELS[metric]}", xlabel="windows", ylim=(0, None))
    _legend(figure, panels[0], sorted(ends, key=lambda policy: -ends[policy]))
    where = place_text(summary.experiment, at)
    caption = (
        f"What is missing to 1, added up window by window{', at ' + where if where else ''}; the "
        "lower the better."
    )
    return _picture(figure, "errors", "Cumulated error over the windows", caption)


def _along(summary: ReplaySummary, view: View) -> Picture:
    figure, panels = _panels()
    policies, places = summary.experiment.policies, np.array(view.axis.places)
    ends: dict[str, float] = {}
    # Offset bars so that they do not overlap: by a small part of the least distance, and of all.
    distances = np.diff(np.sort(places))
    step = min(0.5 * float(distances.min()) / len(policies), 0.008 * float(distances.sum()))
    for axes, metric in zip(panels, PANELS, strict=True):
        for number, policy in enumerate(policies):
            cells = [view.cell(policy, value) for value in view.axis.values]
            windows = summary.series(cells[0], metric).shape[1]
            found = [summary.interval(cell, metric) for cell in cells]
            means, lows, highs = (windows * np.array(column) for column in zip(*found, strict=True))
            at = places + step * (number - (len(policies) - 1) / 2)
            # A mean of unequal windows may lie a little outside of the interval.
            bars = np.maximum(0, [means - lows, highs - means])
            axes.errorbar(
                at,
                means,
                bars,
                **_style(policy, marks=True),
                linewidth=1.6,
                elinewidth=0.8,
                capsize=2,
            )
            ends.setdefault(policy, float(means[-1]))
        axes.set(title=f"cumulated {PANELS[metric]}", xlabel=view.axis.label)
        axes.set_xticks(places, view.axis.texts())
    _legend(figure, panels[0], sorted(ends, key=lambda policy: -ends[policy]))
    rest = f" at {view.rest}" if view.rest else ""
    caption = (
        f"Added up over {windows} windows{rest}: mean over the data sets, with 95 % intervals; "
        "the higher the better."
    )
    return _picture(figure, view.name, f"Accuracy by {view.axis.label}{rest}", caption)


def _panels() -> tuple[Figure, Sequence[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained")
    panels = figure.subplots(1, len(PANELS))
    for axes in panels:
        axes.grid(color=_GRID, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.patch.set_visible(False)
        axes.tick_params(colors=_INK, labelsize=9)
        for side, spine in axes.spines.items():
            spine.set_visible(side in ("left", "bottom"))
            spine.set_color(_INK)
        for text in (axes.title, axes.xaxis.label, axes.yaxis.label):
            text.set_color(_INK)
            text.set_fontsize(10)
    return figure, panels


def _legend(figure: Figure, axes: Axes, order: Sequence[str]) -> None:
    """Label the lines beside the panels, in the order of their ends in the first panel."""
    handles, labels = axes.get_legend_handles_labels()
    by_label = dict(zip(labels, handles, strict=True))
    figure.legend(
        [by_label[each] for each in order],
        order,
        loc="outside right center",
        frameon=False,
        fontsize=9,
        labelcolor=_INK,
        handlelength=2.8,
    )


def _style(policy: str, *, marks: bool = False) -> Mapping[str, Any]:
    """Return the style of a policy's line: dashes by its proposer, colour by its ranker."""
    proposer, _, ranker = policy.partition("-")
    known = list(dict.fromkeys([*_KNOWN, *DEFAULT_RANKERS, ranker]))
    style = {
        "label": policy,
        "color": _COLOURS[known.index(ranker) % len(_COLOURS)],
        "linestyle": _LINES.get(proposer, "-."),
    }
    return {**style, "marker": _MARKS.get(proposer, "d"), "markersize": 4} if marks else style


def _picture(figure: Figure, name: str, title: str, caption: str) -> Picture:
    import matplotlib as mpl

    # The same ids and no date in every run. Text stays text and takes the page's fonts.
    with mpl.rc_context(
        {"svg.hashsalt": name, "svg.fonttype": "none", "font.family": "sans-serif"}
    ):
        svg, png = io.StringIO(), io.BytesIO()
        figure.patch.set_alpha(0)
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        figure.patch.set_alpha(1)
        figure.savefig(png, format="png", dpi=_DOTS, metadata={"Software": None})
    return Picture(name, title, caption, svg.getvalue(), png.getvalue())
