"""Comparison of two runs of an evaluation: paired differences of what both have."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from acquatop.errors import UserError
from acquatop.lab.replay.bootstrap import ConfidenceInterval, interval
from acquatop.lab.replay.summary import Cell
from acquatop.topk.contract import FloatArray

MEASURES = {"ndcg": "nDCG", "precision": "precision", "fetches": "items asked for"}
"""Measures that are compared, and their headings; of the last one less is better."""

AXES = ("data", "policy", "budget", "k", "n")
RESULTS_FILE, RIGHT_FILE = "results.csv", "right.csv"

Answered = Mapping[tuple[int, int], Mapping[str, float]]
"""Measures of the answers of one cell, by seed and close."""


@dataclass(frozen=True)
class Difference:
    """Difference of one measure between two runs at one setting, on the windows that both have.

    ``windows`` counts them over all seeds.
    """

    old: Cell
    new: Cell
    measure: str
    windows: int
    before: float
    after: float
    difference: ConfidenceInterval

    @property
    def verdict(self) -> str:
        """Return whether the new run is better or worse beyond noise; empty if neither."""
        sign = -1 if self.measure == "fetches" else 1
        low, high = sorted((sign * self.difference.low, sign * self.difference.high))
        return "better" if low > 0 else "worse" if high < 0 else ""

    def to_json(self) -> dict[str, Any]:
        """Return the difference as JSON."""
        numbers = {"old": self.before, "new": self.after, **self.difference._asdict()}
        numbers["difference"] = numbers.pop("mean")
        return {
            **{axis: getattr(self.new, axis) for axis in AXES},
            "measure": self.measure,
            "windows": self.windows,
            **{name: round(value, 6) for name, value in numbers.items()},
            "verdict": self.verdict,
        }


class EvaluatedRun:
    """Results that ``acquatop evaluate --out`` has written into a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cells = _cells_of(folder)
        self.best = _best_of(folder)
        """Best right result by data, seed and close, as far as the run has written them."""

    def values(self, axis: str) -> list[Any]:
        """Return the values of one axis, in order."""
        return sorted({getattr(cell, axis) for cell in self.cells})


class RunComparison:
    """Comparison of two runs, at every setting of both.

    An axis on which each run has one value, another one, is what they differ in: its settings are
    compared all the same.
    """

    def __init__(self, old: EvaluatedRun, new: EvaluatedRun) -> None:
        self.old = old
        self.new = new
        self.differing = {
            axis: (old.values(axis)[0], new.values(axis)[0])
            for axis in AXES[1:]
            if len(old.values(axis)) == len(new.values(axis)) == 1
            and old.values(axis) != new.values(axis)
        }
        """Axes on which each run has another value, with both."""

    @cached_property
    def pairs(self) -> Sequence[tuple[Cell, Cell]]:
        """Cells of the old run, each with the one of the new."""
        changed = {axis: after for axis, (_, after) in self.differing.items()}
        every = ((cell, replace(cell, **changed)) for cell in sorted(self.old.cells))
        return [(old, new) for old, new in every if new in self.new.cells]

    @property
    def is_of_one_question(self) -> bool:
        """False if another result was right in a window of both: other data, or another query."""
        shared = self.old.best.keys() & self.new.best.keys()
        return all(self.old.best[each] == self.new.best[each] for each in shared)

    @property
    def only_in_one(self) -> Mapping[str, tuple[list[Any], list[Any]]]:
        """Values of the other axes that only the old run has, and only the new."""
        found = {}
        for axis in AXES:
            old, new = set(self.old.values(axis)), set(self.new.values(axis))
            if axis not in self.differing and old != new:
                found[axis] = sorted(old - new), sorted(new - old)
        return found

    @cached_property
    def differences(self) -> Sequence[Difference]:
        """Differences of all measures of all pairs, in their order.

        Raises :class:`~acquatop.errors.UserError` if the runs have no window in common.
        """
        found = list(self._differences())
        if not found:
            raise UserError(
                f"{self.old.folder} and {self.new.folder} have no setting and window in common\n"
                "  hint: compare runs on the same recording that share a policy and a budget, or "
                "have one of each"
            )
        return found

    def _differences(self) -> Iterator[Difference]:
        for old, new in self.pairs:
            before, after = self.old.cells[old], self.new.cells[new]
            places = _common(before, after)
            for measure in MEASURES if places.size else ():
                series = [_series(each, places, measure) for each in (before, after)]
                yield Difference(
                    old,
                    new,
                    measure,
                    places.shape[0] * places.shape[1],
                    float(series[0].mean()),
                    float(series[1].mean()),
                    interval(series[1] - series[0]),
                )


def _common(old: Answered, new: Answered) -> np.ndarray[Any, Any]:
    """Return the seeds and closes that both have: a row per seed, all with the same windows."""
    closes: dict[int, set[int]] = defaultdict(set)
    for seed, close in old.keys() & new.keys():
        closes[seed].add(close)
    if not closes:
        return np.empty((0, 0, 2), np.int64)
    shared = sorted(set.intersection(*closes.values()))
    places = [[(seed, close) for close in shared] for seed in sorted(closes)]
    return np.array(places, np.int64).reshape(len(closes), len(shared), 2)


def _series(answered: Answered, places: np.ndarray[Any, Any], measure: str) -> FloatArray:
    rows = [[answered[seed, close][measure] for seed, close in row] for row in places.tolist()]
    return np.array(rows, np.float64)


def _cells_of(folder: Path) -> Mapping[Cell, Answered]:
    """Return the measures of each cell of a run, by seed and close."""
    files = [folder / RESULTS_FILE, *sorted(folder.glob(f"*/{RESULTS_FILE}"))]
    files = [file for file in files if file.is_file()]
    if not files:
        raise UserError(
            f"{folder} holds no {RESULTS_FILE}\n"
            "  hint: name the folders that acquatop evaluate --out has written"
        )
    cells: dict[Cell, dict[tuple[int, int], Mapping[str, float]]] = defaultdict(dict)
    for file in files:
        name = "" if file.parent == folder else file.parent.name
        try:
            with file.open(encoding="utf-8", newline="") as lines:
                _take(csv.DictReader(lines), name, cells)
        except (KeyError, ValueError, OSError, csv.Error) as error:
            raise UserError(f"{file} is no table of results: {error}") from error
    return cells


def _best_of(folder: Path) -> Mapping[tuple[str, str, str], str]:
    best = {}
    for file in [folder / RIGHT_FILE, *sorted(folder.glob(f"*/{RIGHT_FILE}"))]:
        if file.is_file():
            name = "" if file.parent == folder else file.parent.name
            with file.open(encoding="utf-8", newline="") as lines:
                for row in csv.DictReader(lines):
                    if row.get("place") == "1":
                        best[name, row["seed"], row["close_ms"]] = row["result"]
    return best


def _take(
    rows: Iterable[Mapping[str, str]],
    data: str,
    cells: Mapping[Cell, dict[tuple[int, int], Mapping[str, float]]],
) -> None:
    for row in rows:
        cell = Cell(data, row["policy"], int(row["budget"]), int(row["k"]), int(row["n"]))
        place = int(row["seed"]), int(row["close_ms"])
        cells[cell][place] = {name: float(row[name]) for name in MEASURES}
