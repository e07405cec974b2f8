"""Keys with changed values: which rows may matter now, for scores of any shape."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from acquatop.topk.contract import AnyArray, Certainty, FloatArray, Rows
from acquatop.topk.pane_dominance import PaneDominance
from acquatop.topk.refill.controller import Controller
from acquatop.topk.refill.lifted_keys import LiftedKeys
from acquatop.topk.refill.refilled import Refilled

Score = Callable[[FloatArray, FloatArray], FloatArray]
PANES = 4


def total(part: FloatArray, value: FloatArray) -> FloatArray:
    return part + value


def product(part: FloatArray, value: FloatArray) -> FloatArray:
    return part * value


def nearness(part: FloatArray, value: FloatArray) -> FloatArray:
    return -np.abs(part - value)


@dataclass
class Remote:
    """Scores of a stream's number and a remote's value of the key."""

    values: FloatArray
    score: Score

    def merits(self, keys: AnyArray, parts: tuple[FloatArray, ...]) -> FloatArray:
        return self.score(parts[0], self.values[keys])

    def reach(
        self, lows: tuple[float, ...], highs: tuple[float, ...], keys: AnyArray | None = None
    ) -> float:
        assert keys is not None
        known = self.values[keys][~np.isnan(self.values[keys])]
        if not len(known):
            return -math.inf
        corners = [
            float(self.score(np.array(part), np.array(value)))
            for part in (lows[0], highs[0])
            for value in (known.min(), known.max())
        ]
        overlap = lows[0] <= known.max() and known.min() <= highs[0]
        return 0.0 if self.score is nearness and overlap else max(corners)


def chosen_values(chance: random.Random, count: int, *, whole: bool) -> FloatArray:
    """Return numbers of which some are missing; whole ones are often equal."""
    drawn = [chance.randint(-8, 8) if whole else chance.gauss(0, 1) for _ in range(count)]
    return np.array([math.nan if chance.random() < 0.08 else float(each) for each in drawn])


@pytest.mark.parametrize("score", [total, product, nearness])
@pytest.mark.parametrize("seed", range(12))
def test_answers_are_the_windows_best_whatever_changes(seed: int, score: Score) -> None:
    chance = random.Random(seed)
    count, k, whole = chance.randint(5, 60), chance.randint(1, 5), chance.random() < 0.5
    remote = Remote(chosen_values(chance, count, whole=whole), score)
    held = Refilled(
        lambda n: PaneDominance(k, n, remote, distinct=True),
        remote,
        Controller(k, k + chance.randint(0, 4)),
        distinct=True,
        in_order=False,
    )
    panes: list[Rows] = []
    for pane in range(14):
        size = chance.randint(5, 100)
        at = np.arange(size) + pane * 100
        keys = np.array([chance.randrange(count) for _ in at])
        parts = np.nan_to_num(chosen_values(chance, size, whole=whole))
        panes.append(Rows(at, at, keys, (parts,)))
        held.add(max(0, pane - PANES + 1), pane, panes[-1])
        for _ in range(chance.randint(0, 2)):
            changed = np.array(chance.sample(range(count), chance.randint(1, count // 3 + 1)))
            remote.values[changed] = chosen_values(chance, len(changed), whole=whole)
            held.change(changed)
        if pane >= PANES - 1:
            window = pane - PANES + 1
            top = held.top(window)
            rows = Rows.together(panes[window:])
            merits = remote.merits(rows.keys, rows.parts)
            best = np.lexsort((rows.identities, -rows.times, -merits))
            best = best[~np.isnan(merits[best])][:k]
            assert top.certainty is Certainty.EXACT
            assert top.rows.identities.tolist() == rows.identities[best].tolist()
            held.close_before(window + 1)
            held._check()


def test_few_keys_are_looked_up_if_the_others_cannot_reach_a_merit() -> None:
    remote = Remote(np.arange(100.0), total)
    lifted = LiftedKeys(remote, np.arange(100)[::-1], (0.0,), (1.0,))
    some, bound = lifted.above(98.0, limit=99.0)
    assert (sorted(some.tolist()), bound) == ([97, 98, 99], 97.0)


def test_all_keys_are_looked_up_if_the_bound_tells_nothing() -> None:
    remote = Remote(np.array([-5.0, 0.5, 5.0]), nearness)
    # The corners promise little, but a row between them may be right beside a value.
    lifted = LiftedKeys(remote, np.arange(3), (-9.0,), (9.0,))
    some, bound = lifted.above(-1.0, limit=-0.5)
    assert (sorted(some.tolist()), bound) == ([0, 1, 2], -math.inf)


def test_a_key_without_a_value_is_never_ruled_out_by_a_guess() -> None:
    remote = Remote(np.array([1.0, math.nan]), partial(total))
    lifted = LiftedKeys(remote, np.arange(2), (0.0,), (1.0,))
    assert lifted.above(50.0, limit=60.0)[0].tolist() == [1]
