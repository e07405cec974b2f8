"""Maxima and minima over panes that come and go, in whichever order."""

from __future__ import annotations

import random

import numpy as np
import pytest

from acquatop.topk.aggregates.extremes import Extremes
from acquatop.topk.aggregates.partials import Partial

KEYS = 5


def partial_of(extremes: Extremes, values: dict[int, float], *, dense: bool) -> Partial:
    keys = np.array(sorted(values), dtype=np.int64)
    column = np.array([values[key] for key in keys.tolist()])
    if dense:
        return Partial(slice(0, KEYS), keys[:0], keys[:0], extremes.fold(keys, KEYS, column))
    return Partial(keys, keys[:0], keys[:0], extremes.fold(np.arange(len(keys)), len(keys), column))


@pytest.mark.parametrize("smallest", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_every_window_has_the_extremes_of_what_is_left(seed: int, smallest: bool) -> None:
    chance = random.Random(seed)
    extremes = Extremes(smallest=smallest)
    extremes.grow(KEYS)
    inside: list[tuple[int, dict[int, float]]] = []
    falling = chance.choice([0, 1, -1])
    for window in range(40):
        gone = [each for each in inside if each[0] < window]
        inside = [each for each in inside if each[0] >= window]
        extremes.leave(window, [partial_of(extremes, values, dense=False) for _, values in gone])
        for last in chance.choice(
            [[window + 6], [window + 6], [window + 3, window + 8], [window, window + 6], []]
        ):
            keys = chance.sample(range(KEYS), chance.randint(1, KEYS))
            values = {key: float(chance.randint(0, 9) - falling * 3 * window) for key in keys}
            inside.append((last, values))
            extremes.enter(last, partial_of(extremes, values, dense=chance.random() < 0.5))
        alive = sorted({key for _, values in inside for key in values})
        best = min if smallest else max
        expected = [best(values[key] for _, values in inside if key in values) for key in alive]
        assert extremes.read(np.array(alive, dtype=np.int64)).tolist() == expected


def test_a_pane_that_comes_in_order_is_stacked_once() -> None:
    """The work over a pane's life does not depend on how many others there are."""
    extremes = Extremes()
    extremes.grow(KEYS)
    for window in range(100):
        extremes.leave(window, [])
        extremes.enter(window + 9, partial_of(extremes, {window % KEYS: 1.0}, dense=False))
    assert 0 < extremes.stackings <= 100
