"""Draw how many candidates are kept, and for how long, while scores rise, fall, or do neither."""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from acquatop.topk.contract import Rows
from acquatop.topk.pane_dominance import PaneDominance

PANES, SLIDE, K = 10, 1_000, 20
PHASES = (("in random order", 0.0), ("rising", 0.5), ("in random order", 0.0), ("falling", -0.5))
PHASE = 3 * PANES
IntArray = npt.NDArray[np.int64]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench kept", description=__doc__)
    default = Path(__file__).parents[1] / "docs" / "kept.svg"
    parser.add_argument(
        "--out", type=Path, default=default, help="where to write the picture (%(default)s)"
    )
    options = parser.parse_args()
    kept = run()
    draw(kept).savefig(options.out, metadata={"Date": None})
    law = K * sum(1 / age for age in range(1, PANES + 1))
    print(
        f"kept {kept[:, 0].min()} to {kept[:, 0].max()} of {PANES * SLIDE:,} events; "
        f"k·H({PANES}) is {law:.0f}"
    )


def run() -> IntArray:
    """Return per close the number of candidates in each open window, the closing one first."""
    chance = np.random.default_rng(7)
    held = PaneDominance(K, distinct=True, fixed=True)
    kept, level, position = [], 0.0, 0
    for pane, trend in enumerate(trend for _, trend in PHASES for _ in range(PHASE)):
        at = np.arange(position, position + SLIDE)
        scores = chance.random(SLIDE) + level + trend * np.arange(SLIDE) / SLIDE
        held.add(pane - PANES + 1, pane, Rows(at, at, at, (scores,)))
        window = pane - PANES + 1
        held.top(window)
        kept.append([len(held.covering(later)) for later in range(window, pane + 1)])
        held.close_before(window + 1)
        level, position = level + trend, position + SLIDE
    return np.array(kept)


def draw(kept: IntArray) -> Figure:
    """Return the picture: stacked areas of the candidates that each open window needs."""
    mpl.rcParams["svg.hashsalt"] = "kept"
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots()
    closes = np.arange(len(kept))
    colours = mpl.colormaps["viridis"](np.linspace(0.15, 0.95, PANES))
    for later in range(PANES):
        axes.fill_between(closes, kept[:, later], color=colours[later], linewidth=0)
    law = K * sum(1 / age for age in range(1, PANES + 1))
    axes.axhline(law, color="black", linewidth=0.8, linestyle="--")
    axes.annotate(f"k·H({PANES}) = {law:.0f}", (1, law + 3), fontsize=8)
    for number, (name, _) in enumerate(PHASES):
        axes.annotate(name, ((number + 0.5) * PHASE, K * PANES * 1.03), ha="center", fontsize=9)
        axes.axvline(number * PHASE, color="white", linewidth=0.8)
    axes.set(
        xlabel="windows closed",
        ylabel="candidates",
        xlim=(0, len(kept) - 1),
        ylim=(0, K * PANES * 1.12),
        title=f"Candidates kept of {PANES * SLIDE:,} events per window, k = {K}, {PANES} panes",
    )
    bar = figure.colorbar(
        mpl.cm.ScalarMappable(
            mpl.colors.BoundaryNorm(np.arange(0.5, PANES + 1), PANES),
            mpl.colors.ListedColormap(colours),
        ),
        ax=axes,
        ticks=[1, PANES],
    )
    bar.set_label("lying in at least so many windows to come")
    return figure


if __name__ == "__main__":
    main()
