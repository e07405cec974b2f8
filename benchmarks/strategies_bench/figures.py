"""Results of the experiments: points along axes, as tables and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib as mpl
from matplotlib.figure import Figure
from rich.table import Table


@dataclass(frozen=True)
class Point:
    """Cost of one way at one point of an axis: nanoseconds per arrival, or per window."""

    experiment: str
    axis: str
    at: float
    way: str
    nanoseconds: float
    held: int | None = None
    """Number of candidates held at the end."""
    nbytes: int | None = None
    note: str = ""


def table(title: str, points: Sequence[Point]) -> Table:
    """Return the points as a table."""
    made = Table(title=title, title_justify="left")
    for heading in ("experiment", "axis", "at", "way", "ns", "held", "MB", ""):
        made.add_column(
            heading, justify="right" if heading in ("at", "ns", "held", "MB") else "left"
        )
    before = None
    for point in points:
        here = (point.experiment, point.axis, f"{point.at:,.0f}")
        held = "" if point.held is None else f"{point.held:,}"
        megabytes = "" if point.nbytes is None else f"{point.nbytes / 1e6:,.2f}"
        shown = ("", "", "") if here == before else here
        made.add_row(*shown, point.way, f"{point.nanoseconds:,.1f}", held, megabytes, point.note)
        before = here
    return made


def draw(points: Sequence[Point]) -> Figure:
    """Return a picture with a plot for each experiment and axis."""
    mpl.rcParams["svg.hashsalt"] = "strategies"
    mpl.rcParams["svg.fonttype"] = "none"
    plots = list(dict.fromkeys((point.experiment, point.axis) for point in points))
    ways = list(dict.fromkeys(point.way for point in points))
    colours = {way: mpl.colormaps["tab10"](at) for at, way in enumerate(ways)}
    columns = min(3, len(plots))
    rows = -(-len(plots) // columns)
    figure = Figure(figsize=(3.4 * columns, 3.0 * rows + 0.5), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for spare in panels[len(plots) :]:
        spare.remove()
    for axes, (experiment, axis) in zip(panels, plots, strict=False):
        here = [point for point in points if (point.experiment, point.axis) == (experiment, axis)]
        for way in ways:
            line = [point for point in here if point.way == way]
            if line:
                xs, ys = [point.at for point in line], [point.nanoseconds for point in line]
                axes.plot(xs, ys, marker="o", markersize=3, color=colours[way], label=way)
        unit = "window" if axis.startswith("response") else "arrival"
        axes.set(xscale="log", yscale="log", xlabel=axis, ylabel=f"ns per {unit}", title=experiment)
    handles = {
        label: handle
        for axes in figure.axes
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles), fontsize=8
    )
    return figure
