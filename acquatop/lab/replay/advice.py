"""Search for the cheapest setting that reaches a wanted accuracy, by replaying a recording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from acquatop.lab.replay.bootstrap import ConfidenceInterval
from acquatop.lab.replay.experiment import Experiment
from acquatop.lab.replay.runner import Told, run
from acquatop.lab.replay.summary import Cell, ReplaySummary

LADDER = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750, 1000)
"""Default budgets to try, the cheapest first."""

_AT_ONCE = 3
"""Number of budgets replayed before the results are checked."""


@dataclass(frozen=True)
class AdvisedChoice:
    """A policy with a budget and an N, its accuracy, and its costs per evaluation."""

    policy: str
    budget: int
    n: int
    metric: ConfidenceInterval
    fetches: float
    requests: float


@dataclass(frozen=True)
class Advice:
    """Recommended choice for a target; None if nothing that was tried reaches it.

    A choice reaches the target if the lower end of its interval does. ``next_step`` is the best
    with the next greater budget, ``best`` the best of all that was tried, ``ceiling`` the metric if
    everything is fetched.
    """

    metric: str
    target: float
    choice: AdvisedChoice | None
    next_step: AdvisedChoice | None
    best: AdvisedChoice
    ceiling: ConfidenceInterval


def advise(
    experiment: Experiment,
    metric: str,
    target: float,
    folder: Path,
    *,
    processes: int | None = None,
    told: Told | None = None,
) -> Advice:
    """Return the choice with the smallest budget that reaches a target.

    Ties are broken by the smallest N, then by the best mean. The experiment's budgets are tried in
    ascending order, a few at a time, until one has been tried beyond the first that is enough.
    """
    tried: list[AdvisedChoice] = []
    for budgets in _steps(experiment.budgets):
        summary = ReplaySummary(
            run(replace(experiment, budgets=budgets), folder, processes=processes, told=told)
        )
        tried += _choices(summary, budgets, metric)
        if _enough(tried, target):
            break
    choice = _cheapest(tried, target)
    return Advice(
        metric,
        target,
        choice,
        None if choice is None else _next(tried, choice),
        max(tried, key=lambda each: each.metric.mean),
        _ceiling(experiment, metric, folder, processes),
    )


def _steps(budgets: Sequence[int]) -> Iterator[tuple[int, ...]]:
    ascending = sorted(set(budgets))
    for at in range(0, len(ascending), _AT_ONCE):
        yield tuple(ascending[at : at + _AT_ONCE])


def _choices(
    summary: ReplaySummary, budgets: Sequence[int], metric: str
) -> Iterator[AdvisedChoice]:
    run = summary.experiment
    (data,), (k,) = run.data, run.ks
    for policy, budget, n in product(run.policies, budgets, run.ns):
        cell = Cell(data.name, policy, budget, k, n)
        costs = (summary.interval(cell, name).mean for name in ("fetches", "requests"))
        yield AdvisedChoice(policy, budget, n, summary.interval(cell, metric), *costs)


def _enough(tried: Sequence[AdvisedChoice], target: float) -> bool:
    """Return true if a budget is enough, and a greater one has been tried too."""
    choice = _cheapest(tried, target)
    return choice is not None and any(each.budget > choice.budget for each in tried)


def _cheapest(tried: Sequence[AdvisedChoice], target: float) -> AdvisedChoice | None:
    reaching = [each for each in tried if each.metric.low >= target]
    return min(reaching, key=lambda each: (each.budget, each.n, -each.metric.mean), default=None)


def _next(tried: Sequence[AdvisedChoice], choice: AdvisedChoice) -> AdvisedChoice | None:
    beyond = min((each.budget for each in tried if each.budget > choice.budget), default=None)
    some = [each for each in tried if each.budget == beyond]
    return max(some, key=lambda each: (each.metric.mean, -each.n), default=None)


def _ceiling(
    experiment: Experiment, metric: str, folder: Path, processes: int | None
) -> ConfidenceInterval:
    """Return the metric if everything that the window joins with is fetched."""
    everything = replace(experiment, policies=("WSJ-ASM",), budgets=(0,), ns=(max(experiment.ns),))
    summary = ReplaySummary(run(everything, folder / "ceiling", processes=processes))
    return summary.interval(summary.cells[0], metric)
