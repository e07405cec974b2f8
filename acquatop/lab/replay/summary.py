"""Summary of an experiment's results per setting over its data sets, and of the improvements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from acquatop.catalog.services import DEFAULT_POLICY
from acquatop.lab.replay.bootstrap import ConfidenceInterval, interval
from acquatop.lab.replay.experiment import Printed
from acquatop.lab.replay.measure import METRICS, Measured
from acquatop.lab.replay.runner import Results
from acquatop.topk.contract import FloatArray


@dataclass(frozen=True, order=True)
class Cell:
    """A setting on recordings of one name, for all seeds."""

    data: str
    policy: str
    budget: int
    k: int
    n: int


@dataclass(frozen=True)
class Improvement:
    """Percentage by which one policy exceeds another in a metric.

    The best and the worst of an experiment, and those that a paper prints for it, if any.
    """

    new: str
    old: str
    metric: str
    most: float
    at_most: Cell
    least: float
    at_least: Cell
    printed: Printed | None = None


class ReplaySummary:
    """Results, by cell."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.experiment = results.experiment

    @cached_property
    def cells(self) -> Sequence[Cell]:
        """All cells, in the order of the experiment."""
        run = self.experiment
        names = [data.name for data in run.data]
        return [Cell(*each) for each in product(names, run.policies, run.budgets, run.ks, run.ns)]

    @cached_property
    def _of_cells(self) -> Mapping[Cell, list[Sequence[Measured]]]:
        found: dict[Cell, list[Sequence[Measured]]] = {cell: [] for cell in self.cells}
        for (name, setting), measured in self.results.measured.items():
            found[Cell(name, setting.policy, setting.budget, setting.k, setting.n)].append(measured)
        return found

    def series(self, cell: Cell, name: str) -> FloatArray:
        """Return the measures, a row per seed and a column per window that all seeds have."""
        several = self._of_cells[cell]
        windows = min(map(len, several))
        return np.array(
            [[getattr(each, name) for each in measured[:windows]] for measured in several],
            np.float64,
        )

    def cumulated(self, cell: Cell, name: str) -> FloatArray:
        """Return the sum over all windows, per seed."""
        return np.asarray(np.nansum(self.series(cell, name), axis=1))

    def interval(self, cell: Cell, name: str) -> ConfidenceInterval:
        """Return the mean per window and its interval; windows without a number are ignored."""
        series = self.series(cell, name)
        if not np.isnan(series).any():
            return interval(series)
        known = series[~np.isnan(series)]
        return interval(known[None, :])

    def statuses(self, cell: Cell) -> Mapping[str, int]:
        """Return the numbers of exact, certified and approximate answers, over all seeds."""
        found = {"exact": 0, "certified": 0, "approximate": 0}
        for measured in self._of_cells[cell]:
            for each in measured:
                found[each.status] += 1
        return found

    def improvements(self) -> Iterator[Improvement]:
        """Yield the improvements of new over old policies, and of the default over all others.

        They are computed from the medians over the data sets.
        """
        run = self.experiment
        every = [*product(run.new, run.old), *product([DEFAULT_POLICY], run.policies)]
        pairs = [
            (new, old)
            for new, old in dict.fromkeys(every)
            if new != old and {new, old} <= set(run.policies)
        ]
        for (new, old), metric in product(pairs, METRICS):
            gains = {
                cell: self._gain(cell, old, metric) for cell in self.cells if cell.policy == new
            }
            gains = {cell: gain for cell, gain in gains.items() if not np.isnan(gain)}
            if gains:
                best, worst = max(gains, key=gains.__getitem__), min(gains, key=gains.__getitem__)
                printed = run.printed.get((new, old, metric))
                yield Improvement(new, old, metric, gains[best], best, gains[worst], worst, printed)

    def _gain(self, cell: Cell, old: str, metric: str) -> float:
        of_old = Cell(cell.data, old, cell.budget, cell.k, cell.n)
        before = float(np.median(self.cumulated(of_old, metric)))
        after = float(np.median(self.cumulated(cell, metric)))
        return 100 * (after - before) / before if before else float("nan")
