"""Conformance test of strategies: call ``check_strategy(MINE)`` in a test of your own strategy."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator

import numpy as np

from acquatop.topk.candidate_list import CandidateList, open_list
from acquatop.topk.contract import FirstPart, Rows, Top
from acquatop.topk.pane_dominance import PaneDominance
from acquatop.topk.sliding.block_skyline import BlockSkyline
from acquatop.topk.strategies import Family, TopKStrategy
from acquatop.windows import Windows

_KS = (1, 3, 40)
_WINDOWS = (Windows(6, 2), Windows(7, 3), Windows(2, 5), Windows(20, 1))
_LEVELS = (1, 4, 1000)


class StrategyError(Exception):
    """Strategy that answers otherwise than it must."""


def check_strategy(strategy: TopKStrategy) -> None:
    """Run a strategy on random streams, beside the project's own; takes about a second.

    There are ties, rows without a score, windows that overlap, that do not, and that leave gaps.
    Now and then it is continued from a snapshot. Raises :class:`StrategyError` at the first answer
    that differs.
    """
    if strategy.family is Family.ELEMENTS:
        for k, n, levels in itertools.product(_KS, (1, 5, 60), _LEVELS):
            _check_elements(strategy, k, n, levels)
        return
    for k, windows, levels in itertools.product(_KS, _WINDOWS, _LEVELS):

        def empty(k: int = k) -> CandidateList:
            return open_list(strategy, k, 0, FirstPart(), distinct=True, fixed=True)

        own = PaneDominance(k, distinct=True, fixed=True)
        right_ones = _tops(functools.partial(_itself, own), windows, levels, 0.0)
        for found, right in zip(_tops(empty, windows, levels), right_ones, strict=True):
            if _plain(found) != _plain(right):
                raise StrategyError(
                    f"{strategy.name} with k = {k} answers {_plain(found)} for window "
                    f"{right.window} of {windows}, where {_plain(right)} is right"
                )


def _tops(
    empty: Callable[[], CandidateList], windows: Windows, levels: int, saves: float = 0.3
) -> Iterator[Top]:
    """Yield the answers of a list, over a stream that is always the same."""
    random, saving = np.random.default_rng(levels), np.random.default_rng(1 + levels)
    held, number = empty(), 0
    for window in range(windows.first(0), windows.first(0) + 30):
        opens, closes = windows.bounds(window)
        for time in range(max(opens, closes - windows.slide_ms) + 1, closes + 1):
            count = int(random.integers(0, 6))
            merits = random.integers(0, levels, count).astype(np.float64)
            merits[random.random(count) < 0.1] = np.nan
            at = np.arange(number, number + count)
            rows = Rows(np.full(count, time), at, at, (merits,))
            held.add(windows.first(time), windows.last(time), rows)
            number += count
        if saving.random() < saves:
            saved, held = held.snapshot(), empty()
            held.resume(saved)
        yield held.top(window)
        held.close_before(window + 1)


def _itself(held: CandidateList) -> CandidateList:
    return held


def _plain(top: Top) -> list[list[float]]:
    return [top.rows.identities.tolist(), top.merits.tolist()]


def _check_elements(strategy: TopKStrategy, k: int, n: int, levels: int) -> None:
    random = np.random.default_rng(levels)
    held, right = strategy.load()(k, n), BlockSkyline(k, n)
    before = right.top()
    for _ in range(40):
        merits = random.integers(0, levels, int(random.integers(0, 12))).astype(np.float64)
        merits[random.random(len(merits)) < 0.1] = np.nan
        changes = held.add(merits)
        right.add(merits)
        found = changes.applied(before, right.position - 1), held.top()
        before = right.top()
        for each in found:
            if each.positions.tolist() != before.positions.tolist():
                raise StrategyError(
                    f"{strategy.name} with k = {k} and n = {n} has {each.positions.tolist()} after "
                    f"{right.position} events, where {before.positions.tolist()} is right"
                )
