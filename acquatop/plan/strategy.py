"""Choice of the cheapest structure for queries over one stream, by workload and measured costs.

The choice is a pure function of a workload and a table of costs: no clock, no state, the same
choice for the same input.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from acquatop.catalog.vocabulary import Strategy
from acquatop.plugins import STRATEGIES, family_of
from acquatop.topk.shared.contract import TopKRequest
from acquatop.topk.strategies import Family

STRETCH = 16_384
"""Number of arrivals that the shared skyline merges at once."""


@dataclass(frozen=True)
class Workload:
    """Workload of one stream: queries that rank by the same score.

    ``rate`` is the number of arrivals per unit of the windows' time, ``batch`` the number of
    arrivals before time advances. With ``changes``, remote values change while windows are open.
    With ``recurring``, a newer arrival replaces an older one. ``may_retain`` says whether the
    windows' content may be kept, ``may_approximate`` whether an answer may be uncertain if it says
    so. With ``counts``, the windows' time is the number of arrivals.
    """

    asked: tuple[TopKRequest, ...]
    rate: float = 1.0
    batch: float = STRETCH
    changes: bool = False
    recurring: bool = False
    may_retain: bool = True
    may_approximate: bool = True
    counts: bool = False

    @property
    def is_steady(self) -> bool:
        """True if the scores of past arrivals never change."""
        return not self.changes and not self.recurring

    @property
    def counts_arrivals(self) -> bool:
        """True if all windows count arrivals, or slide at every arrival."""
        return self.counts or (
            self.rate == 1.0 and all(asked.windows.slide_ms == 1 for asked in self.asked)
        )


@dataclass(frozen=True)
class Costs:
    """Costs of steps in nanoseconds, measured by ``./run bench strategies --fit``.

    A query by itself pays for each arrival, for each pane, and for each candidate and result of a
    pane. The shared skyline pays for each arrival, for each stretch, for each candidate, for each
    answer, and for each row that it examines to find the answer. The block skyline pays for each
    arrival, for each block of half a window, and for each arrival in it that can change the answer.
    """

    each_arrival: float
    each_pane: float
    each_candidate: float
    shared_arrival: float
    shared_stretch: float
    shared_candidate: float
    shared_answer: float
    shared_row: float
    blocks_arrival: float
    blocks_block: float
    blocks_touched: float


MEASURED = Costs(
    each_arrival=16.8,
    each_pane=390_000.0,
    each_candidate=89.1,
    shared_arrival=84.0,
    shared_stretch=0.0,
    shared_candidate=442.0,
    shared_answer=99_700.0,
    shared_row=155.0,
    blocks_arrival=0.0,
    blocks_block=647_000.0,
    blocks_touched=20_300.0,
)
"""Costs measured on two busy cores with Python 3.11 and numpy 2.4; only their ratios count."""


@dataclass(frozen=True)
class Choice:
    """Strategy, the reason for it, and the expected cost per arrival of each possible strategy.

    Costs are in nanoseconds; there are none if costs do not decide.
    """

    strategy: str
    why: str
    expected: Mapping[Strategy, float]
    error: float | None = None
    """Share of the answers that may miss a result by chance."""

    @property
    def is_shared(self) -> bool:
        """True if one structure answers several queries."""
        return family_of(self.strategy) is Family.SHARED


class HintError(ValueError):
    """Hint that names no strategy, or one that cannot answer the queries."""


def choose(
    workload: Workload,
    costs: Costs | None = None,
    *,
    available: Collection[str] = tuple(Strategy),
    hint: str | None = None,
) -> Choice:
    """Return the best available strategy for a workload.

    A hint overrides the costs, but not the conditions for right answers: a hint against them raises
    :class:`HintError`.

    >>> from acquatop.windows import Windows
    >>> one = TopKRequest(Windows(1_000_000, 100_000), 100)
    >>> choose(Workload((one,))).strategy, choose(Workload((one,) * 1000)).strategy
    (<Strategy.EACH: 'pane-dominance'>, <Strategy.SHARED: 'shared-skyline'>)
    >>> choose(Workload((one,), changes=True, may_approximate=False)).why
    'scores change, every answer is to be exact, and the content may be kept'
    """
    if hint is not None:
        return _hinted(workload, hint, available)
    if not workload.is_steady:
        return _of_changing(workload)
    expected = {
        each: cost
        for each, cost in expectations(workload, costs or MEASURED).items()
        if each in available
    }
    strategy, *others = sorted(expected, key=expected.__getitem__)
    if not others:
        return Choice(strategy, "scores never change, so what is dropped is never missed", expected)
    count = len(workload.asked)
    queries = "one query" if count == 1 else f"{count} queries"
    taken, other = expected[strategy], expected[others[0]]
    why = f"{queries}: about {taken:,.0f} ns an arrival, otherwise {other:,.0f}"
    return Choice(strategy, why, expected)


def _of_changing(workload: Workload) -> Choice:
    what = "scores change" if workload.changes else "newer arrivals replace older ones"
    if workload.may_approximate and workload.changes:
        return Choice(Strategy.EACH, f"{what}, and an answer that is in doubt may say so", {})
    if workload.may_retain:
        return Choice(
            Strategy.REFILLED,
            f"{what}, every answer is to be exact, and the content may be kept",
            {},
        )
    return Choice(
        Strategy.EACH,
        f"{what}, and the content may not be kept: answers that are in doubt say so",
        {},
    )


def _hinted(workload: Workload, hint: str, available: Collection[str]) -> Choice:
    if hint not in [*available]:
        raise HintError(f'there is no strategy "{hint}" here: there are {", ".join(available)}')
    if not workload.is_steady and not _may_change(hint):
        raise HintError(
            f"{hint} is for scores that never change, of arrivals that replace none: "
            "take pane-dominance"
        )
    if family_of(hint) is Family.ELEMENTS and not workload.counts_arrivals:
        raise HintError(
            f"{hint} is for windows that count arrivals, or slide at every one: take pane-dominance"
        )
    if family_of(hint) is Family.NEAREST:
        raise HintError(f"{hint} is for queries that rank by a distance to a point of their own")
    if hint == Strategy.REFILLED and not workload.may_retain:
        raise HintError(f"{hint} keeps the windows' content, which may not be kept")
    named = Strategy(hint) if hint in [*Strategy] else hint
    return Choice(named, "a hint asks for it", {})


def _may_change(strategy: str) -> bool:
    """Return True if a strategy's rows may change their scores, or be replaced."""
    return strategy not in STRATEGIES or STRATEGIES[strategy].scores_change


def expectations(workload: Workload, costs: Costs) -> dict[Strategy, float]:
    """Return the expected nanoseconds per arrival by strategy, for scores that never change."""
    return {strategy: _dot(steps, costs) for strategy, steps in steps_of(workload).items()}


def steps_of(workload: Workload) -> dict[Strategy, dict[str, float]]:
    """Return the number of steps of each kind per arrival, for each strategy that applies."""
    steps = {Strategy.EACH: each_steps(workload), Strategy.SHARED: shared_steps(workload)}
    if workload.counts_arrivals:
        steps[Strategy.BLOCKS] = blocks_steps(workload)
    return steps


def each_steps(workload: Workload) -> dict[str, float]:
    """Return the number of steps of each kind per arrival, for queries on their own."""
    steps = dict.fromkeys(("each_arrival", "each_pane", "each_candidate"), 0.0)
    for asked in workload.asked:
        width, slide, k = _sizes(asked, workload.rate)
        # If the slide does not divide the width, windows open and close at different times.
        panes = (1 if asked.windows.width_ms % asked.windows.slide_ms == 0 else 2) / slide
        steps["each_arrival"] += 1
        steps["each_pane"] += panes
        steps["each_candidate"] += panes * (k + _candidates(k, width, 1 / panes))
    return steps


def shared_steps(workload: Workload) -> dict[str, float]:
    """Return the number of steps of each kind per arrival, for the shared skyline."""
    sizes = [_sizes(asked, workload.rate) for asked in workload.asked]
    widest, most = max(width for width, _, _ in sizes), max(k for _, _, k in sizes)
    answers = sum(1 / slide for _, slide, _ in sizes)
    stretch = max(min(workload.batch, max(STRETCH, 4 * most)), 1 / answers)
    fresh = min(stretch, most * (2 + math.log2(max(1.0, stretch / most))))
    return {
        "shared_arrival": 1.0,
        "shared_stretch": 1 / stretch,
        "shared_candidate": (fresh + _candidates(most, widest, 1 / answers)) / stretch,
        "shared_answer": answers,
        "shared_row": sum(k * widest / width / slide for width, slide, k in sizes),
    }


def blocks_steps(workload: Workload) -> dict[str, float]:
    """Return the number of steps of each kind per arrival, for a block skyline per query."""
    sizes = [_sizes(asked, workload.rate) for asked in workload.asked]
    return {
        "blocks_arrival": float(len(sizes)),
        "blocks_block": sum(2 / (width + 1) for width, _, _ in sizes),
        "blocks_touched": sum(2 * k / (width + 1) for width, _, k in sizes),
    }


def _sizes(asked: TopKRequest, rate: float) -> tuple[float, float, float]:
    """Return a window's width and slide in arrivals, and its k, which the width limits."""
    width, slide = (
        max(1.0, length * rate) for length in (asked.windows.width_ms, asked.windows.slide_ms)
    )
    return width, slide, min(asked.k, width)


def _candidates(k: float, width: float, pane: float) -> float:
    """Return the number of candidates in random order: k·H(panes) for panes of k and more."""
    return k * (1 + math.log(max(1.0, width / max(k, pane))))


def _dot(steps: Mapping[str, float], costs: Costs) -> float:
    return sum(float(getattr(costs, name)) * times for name, times in steps.items())
