"""Drawing of pictures by matplotlib, which is needed for nothing else."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from acquatop.errors import EnvironmentProblem

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METRICS = {"ndcg": "nDCG", "precision": "precision"}
"""Metrics that pictures show, with their titles."""

COLOURS = {"ndcg": "#e0662f", "precision": "#3b82d6"}
"""Colour of each metric."""

INK, MUTED = "#20242b", "#808a99"
_GRID = "#8a93a040"
_COLUMNS, _PANEL, _DOTS = 4, (2.75, 2.3), 120


@dataclass(frozen=True)
class Picture:
    """A picture with its title and caption.

    In ``svg`` each panel of a policy is a group with ``data-policy``, and points have tooltips.
    """

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
        svg = self.svg[self.svg.index("<svg") :].replace(INK, "currentColor")
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


@dataclass
class Drawing:
    """A figure of panels under way, with the tooltips of its points."""

    figure: Figure
    panels: Sequence[Axes]
    _tips: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, titles: Sequence[str], *, columns: int = _COLUMNS, scale: float = 1.0) -> Drawing:
        """Return a figure with a panel for each title, which share their axes."""
        from matplotlib.figure import Figure

        columns = min(columns, len(titles))
        rows = -(-len(titles) // columns)
        size = scale * columns * _PANEL[0], scale * rows * _PANEL[1]
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        panels = list(grid.flat)
        for axes, title in zip(panels, titles, strict=False):
            _set_up(axes, title)
        for axes in panels[len(titles) :]:
            axes.set_axis_off()
        for axes in panels[max(0, len(titles) - columns) : len(titles)]:
            axes.tick_params(labelbottom=True)
        return cls(figure, panels[: len(titles)])

    def point(self, axes: Axes, x: float, y: float, colour: str, tip: str) -> None:
        """Draw a point with a tooltip."""
        (drawn,) = axes.plot([x], [y], "o", color=colour, markersize=3.5)
        drawn.set_gid(f"tip-{len(self._tips)}")
        self._tips.append(tip)

    def label_metrics(self) -> None:
        """Label the metrics' colours below the panels."""
        handles, labels = self.panels[0].get_legend_handles_labels()
        self.figure.legend(
            *(handles, labels),
            loc="outside lower center",
            ncols=len(labels),
            frameon=False,
            fontsize=9,
            labelcolor=INK,
        )

    def finish(self, name: str, title: str, caption: str) -> Picture:
        """Return the picture: the same bytes for the same content."""
        import matplotlib as mpl

        # The same ids and no date in every run. Text stays text and takes the page's fonts.
        with mpl.rc_context(
            {"svg.hashsalt": name, "svg.fonttype": "none", "font.family": "sans-serif"}
        ):
            svg, png = io.StringIO(), io.BytesIO()
            self.figure.patch.set_alpha(0)
            self.figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
            self.figure.patch.set_alpha(1)
            self.figure.savefig(png, format="png", dpi=_DOTS, metadata={"Software": None})
        return Picture(
            name, title, caption, _interactive(svg.getvalue(), self._tips), png.getvalue()
        )


def mark_policy(axes: Axes, policy: str) -> None:
    """Let a panel be one policy's."""
    axes.set_gid(f"policy-{policy}")


def _set_up(axes: Axes, title: str) -> None:
    axes.set_title(title)
    axes.grid(color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.patch.set_visible(False)
    axes.tick_params(colors=INK, labelsize=8)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(INK)
    for text in (axes.title, axes.xaxis.label, axes.yaxis.label):
        text.set_color(INK)
        text.set_fontsize(9)


def _interactive(svg: str, tips: Sequence[str]) -> str:
    """Return a picture with its tooltips, and the names of policies in place of ids."""

    def tip(match: re.Match[str]) -> str:
        return f"<g><title>{escape(tips[int(match[1])])}</title>"

    svg = re.sub(r'<g id="tip-(\d+)">', tip, svg)
    return re.sub(r'<g id="policy-([^"]+)">', r'<g data-policy="\1">', svg)


def extent(values: Mapping[str, float]) -> str:
    """Return values as the text of a tooltip.

    >>> extent({"nDCG": 0.91234, "items": 7})
    'nDCG 0.912, items 7'
    """
    return ", ".join(f"{name} {value:.3g}" for name, value in values.items())
