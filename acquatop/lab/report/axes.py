"""Selection of the dimensions along which an experiment is shown, and of values for the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from acquatop.lab.replay.experiment import Experiment
from acquatop.lab.replay.summary import Cell

_NAMES = {"budget": "items per evaluation", "k": "K", "n": "N"}
_FEW = 2


@dataclass(frozen=True)
class Axis:
    """A dimension that varies: its name in cells, its label, and its values with their places."""

    name: str
    label: str
    values: Sequence[object]
    places: Sequence[float]

    def texts(self) -> list[str]:
        """Return the values as text."""
        if self.name == "data":
            return [f"{place:g}" for place in self.places]
        return [str(value) for value in self.values]


@dataclass(frozen=True)
class View:
    """The cells along an axis, with all else as in ``at``; ``rest`` describes that."""

    axis: Axis
    at: Cell
    rest: str

    def cell(self, policy: str, value: object) -> Cell:
        """Return the cell of a policy at one of the axis' values."""
        return replace(self.at, policy=policy, **{self.axis.name: value})  # type: ignore[arg-type]

    @property
    def name(self) -> str:
        """Unique name of the view, fit for a file's name."""
        return "-".join([self.axis.name, *self.rest.replace(", ", "-").split()])


def views(experiment: Experiment) -> list[View]:
    """Return the views of an experiment: along each dimension with many values, else the longest.

    A dimension with few values is shown at each of them, one with many at the middle.
    """
    dimensions = _dimensions(experiment)
    most = max(dimensions, key=lambda axis: len(axis.values))
    shown = [axis for axis in dimensions if len(axis.values) > _FEW] or [most]
    return [view for axis in shown for view in _along(axis, dimensions, experiment)]


def middle(experiment: Experiment) -> Cell:
    """Return the cell in the middle of all dimensions, of the first policy."""
    at = {axis.name: axis.values[(len(axis.values) - 1) // 2] for axis in _dimensions(experiment)}
    return Cell(policy=experiment.policies[0], **at)  # type: ignore[arg-type]


def place_text(experiment: Experiment, cell: Cell, but: str = "") -> str:
    """Return a cell's place in the varying dimensions except one, such as ``budget 7, k 5``."""
    varying = [
        axis for axis in _dimensions(experiment) if len(axis.values) > 1 and axis.name != but
    ]
    return ", ".join(_said(axis, getattr(cell, axis.name)) for axis in varying)


def _said(axis: Axis, value: object) -> str:
    return str(value).replace("-", " ") if axis.name == "data" else f"{axis.name} {value}"


def _dimensions(experiment: Experiment) -> list[Axis]:
    names = [data.name for data in experiment.data]
    numbers = {"budget": experiment.budgets, "k": experiment.ks, "n": experiment.ns}
    axes = [
        Axis(name, _NAMES[name], values, list(map(float, values)))
        for name, values in numbers.items()
    ]
    return [*axes, _data_axis(experiment, names)]


def _data_axis(experiment: Experiment, names: Sequence[str]) -> Axis:
    varied = [data.varied for data in experiment.data]
    if all(len(each) == 1 for each in varied):
        (label,) = varied[0]
        return Axis("data", label, names, [float(each[label]) for each in varied])
    return Axis("data", "data", names, [float(place) for place in range(1, len(names) + 1)])


def _along(axis: Axis, dimensions: Sequence[Axis], experiment: Experiment) -> Iterator[View]:
    others = [each for each in dimensions if each is not axis]
    few = [each for each in others if 1 < len(each.values) <= _FEW]
    for values in product(*(each.values for each in few)):
        some: dict[str, Any] = dict(zip((each.name for each in few), values, strict=True))
        at = replace(middle(experiment), **some)
        yield View(axis, at, place_text(experiment, at, but=axis.name))
