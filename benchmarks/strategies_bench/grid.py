"""Grid of workloads: the cost of each strategy, and how often the chosen one is nearly the best."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from rich.table import Table

from acquatop.catalog.vocabulary import Strategy
from acquatop.plan.strategy import Costs, Workload, choose, steps_of
from acquatop.topk.contract import FloatArray
from acquatop.topk.shared.contract import TopKRequest
from acquatop.topk.shared.shared_skyline import SharedSkyline
from acquatop.topk.sliding.block_skyline import BlockSkyline
from acquatop.windows import Windows
from benchmarks.strategies_bench.many import run
from benchmarks.strategies_bench.streams import trades
from tests.support.independent import Independent

WIDTHS, BATCH = (10_000, 100_000), 10_000
SHARES = (1, 10, 100, 1_000, 0)
"""Slides: the width divided by each; 0 for a slide of one arrival."""
MADE = {Strategy.EACH: Independent, Strategy.SHARED: SharedSkyline}
STRATEGIES = (*MADE, Strategy.BLOCKS)
NEARLY = 1.5
_SHORT = {Strategy.EACH: "panes", Strategy.SHARED: "shared", Strategy.BLOCKS: "blocks"}
_COLOURS = {Strategy.EACH: "#cfe3f5", Strategy.SHARED: "#fde2c0", Strategy.BLOCKS: "#d5ecd0"}
_PROBE, _PATIENCE = 1_000, 6.0
"""Arrivals tried first, and most seconds for all of them."""


@dataclass(frozen=True)
class Cell:
    """A workload, and each strategy's nanoseconds per arrival, or a lower bound of them."""

    width: int
    queries: int
    slide: int
    k: int
    workload: Workload
    took: Mapping[Strategy, float]
    at_least: frozenset[Strategy]

    @property
    def chosen(self) -> Strategy:
        """Strategy that would be chosen."""
        return Strategy(choose(self.workload).strategy)

    @property
    def times_the_best(self) -> float:
        """Cost of the choice, as a multiple of the fastest."""
        return self.took[self.chosen] / min(self.took.values())


def workload(width: int, queries: int, slide: int, k: int, seed: int = 5) -> Workload:
    """Return queries with width, slide and k from half to all of the given values.

    A single query has exactly these values.
    """
    chance = np.random.default_rng(seed)

    def about(most: int) -> int:
        return (
            most if queries == 1 or most == 1 else int(chance.integers(max(1, most // 2), most + 1))
        )

    asked = tuple(
        TopKRequest(Windows(about(width), about(slide)), about(k)) for _ in range(queries)
    )
    return Workload(asked, batch=BATCH)


def cells(quick: bool) -> Iterator[Cell]:
    """Yield the cells of the grid that at least one strategy completes."""
    for width, queries, share, k in itertools.product(
        WIDTHS[-1:] if quick else WIDTHS,
        (1, 10) if quick else (1, 3, 10, 30, 100),
        (10, 100) if quick else SHARES,
        (100,) if quick else (10, 100, 1_000),
    ):
        cell = _cell(width, queries, width // share if share else 1, k)
        # If no strategy completes a cell, there is nothing to choose.
        if len(cell.at_least) < len(cell.took):
            yield cell


def _cell(width: int, queries: int, slide: int, k: int) -> Cell:
    of = workload(width, queries, slide, k)
    scores = trades(width + max(3 * BATCH, 2 * slide))
    took, at_least = {}, set()
    for strategy, made in MADE.items():
        # The cost of a few arrivals is a lower bound: the structure has yet to grow.
        few = min(_PROBE, 30 * slide)
        found = run(made(0), list(of.asked), scores[:few], warm=0, batch=few)
        if found.nanoseconds * len(scores) > 1e9 * _PATIENCE:
            at_least.add(strategy)
        else:
            found = run(made(0), list(of.asked), scores, warm=width, batch=BATCH)
        took[strategy] = found.nanoseconds
    if of.counts_arrivals:
        took[Strategy.BLOCKS] = _in_blocks(of, scores, width)
    return Cell(width, queries, slide, k, of, took, frozenset(at_least))


def _in_blocks(of: Workload, scores: FloatArray, width: int) -> float:
    """Return the nanoseconds per arrival of block skylines, one per query."""
    held = [BlockSkyline(asked.k, asked.windows.width_ms) for asked in of.asked]
    for each in held:
        each.add(scores[:width])
    started = time.perf_counter()
    for start in range(width, len(scores), BATCH):
        for each in held:
            each.add(scores[start : start + BATCH])
            each.top()
    return 1e9 * (time.perf_counter() - started) / (len(scores) - width)


def fitted(grid: Sequence[Cell]) -> Costs:
    """Return the step costs that minimise the squared relative errors over the cells."""
    costs: dict[str, float] = {}
    for strategy in STRATEGIES:
        known = [cell for cell in grid if strategy in cell.took and strategy not in cell.at_least]
        steps = [steps_of(cell.workload)[strategy] for cell in known]
        took = np.array([cell.took[strategy] for cell in known])
        matrix = np.array([[*step.values()] for step in steps]) / took[:, None]
        found = _not_negative(matrix, np.ones(len(took))).tolist()
        costs |= {name: float(f"{each:.3g}") for name, each in zip(steps[0], found, strict=True)}
    return Costs(**costs)


def _not_negative(matrix: FloatArray, wanted: FloatArray) -> FloatArray:
    """Return the least-squares solution without negative weights, by coordinate descent."""
    weights = np.zeros(matrix.shape[1])
    squares = (matrix**2).sum(axis=0)
    for _ in range(20_000):
        for at in range(len(weights)):
            rest = wanted - matrix @ weights + matrix[:, at] * weights[at]
            weights[at] = max(0.0, float(matrix[:, at] @ rest) / squares[at])
    return weights


def table(grid: Sequence[Cell]) -> Table:
    """Return the grid as a table; its caption has the share of nearly optimal choices."""
    made = Table(title="what each strategy takes, ns per arrival", title_justify="left")
    for heading in ("width", "queries", "slide", "k", *STRATEGIES, "chosen", "× best"):
        made.add_column(heading, justify="left" if heading == "chosen" else "right")
    for cell in grid:
        times = [_shown(cell, each) for each in STRATEGIES]
        sizes = (f"{cell.width:,}", f"{cell.queries}", f"{cell.slide:,}", f"{cell.k:,}")
        made.add_row(*sizes, *times, cell.chosen, f"{cell.times_the_best:.2f}")
    made.caption = summary(grid)
    return made


def summary(grid: Sequence[Cell]) -> str:
    """Return the share of nearly optimal choices as a sentence."""
    near = sum(cell.times_the_best <= NEARLY for cell in grid)
    return f"within {NEARLY} of the best in {near} of {len(grid)} cells, {near / len(grid):.0%}"


def draw(grid: Sequence[Cell]) -> Figure:
    """Return a picture: for each width and k the choice by queries and slide, and how good it is.

    A cell names the choice and says how many times the time of the best it takes.
    """
    mpl.rcParams["svg.hashsalt"] = "strategies"
    mpl.rcParams["svg.fonttype"] = "none"
    widths, ks = (sorted({getattr(cell, name) for cell in grid}) for name in ("width", "k"))
    figure = Figure(figsize=(3.6 * len(ks), 3.0 * len(widths) + 0.4), layout="constrained")
    panels = figure.subplots(len(widths), len(ks), squeeze=False)
    for (row, width), (column, k) in itertools.product(enumerate(widths), enumerate(ks)):
        here = [cell for cell in grid if (cell.width, cell.k) == (width, k)]
        _draw_panel(panels[row, column], here, f"windows of {width:,}, k = {k:,}")
    figure.suptitle(f"Chosen, and its time as a multiple of the quickest: {summary(grid)}")
    return figure


def _draw_panel(axes: Axes, cells: Sequence[Cell], title: str) -> None:
    counts = sorted({cell.queries for cell in cells})
    slides = sorted({cell.slide for cell in cells}, reverse=True)
    axes.set(title=title, xlabel="slide", ylabel="queries")
    axes.set_xticks(range(len(slides)), [f"{slide:,}" for slide in slides])
    axes.set_yticks(range(len(counts)), [str(count) for count in counts])
    axes.set(xlim=(-0.5, len(slides) - 0.5), ylim=(-0.5, len(counts) - 0.5))
    for cell in cells:
        at = slides.index(cell.slide), counts.index(cell.queries)
        weight = "normal" if cell.times_the_best <= NEARLY else "bold"
        axes.add_patch(Rectangle((at[0] - 0.5, at[1] - 0.5), 1, 1, facecolor=_COLOURS[cell.chosen]))
        text = f"{_SHORT[cell.chosen]}\n{cell.times_the_best:.2f}"
        axes.text(*at, text, ha="center", va="center", fontsize=7, fontweight=weight)


def _shown(cell: Cell, strategy: Strategy) -> str:
    if strategy not in cell.took:
        return ""
    return f"{'≥ ' if strategy in cell.at_least else ''}{cell.took[strategy]:,.0f}"
