"""All rows of the open windows: any number of the best, judged by sorting them all."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.topk.contract import Certainty, Rows, Top
from acquatop.topk.retained import Retained
from acquatop.topk.snapshot import SnapshotError


@dataclass
class Remote:
    """Scoring of a row by its part and its key's present value; no value, no merit."""

    values: dict[str, float] = field(default_factory=dict)

    def merits(self, keys: np.ndarray, parts: tuple[np.ndarray, ...]) -> np.ndarray:
        return parts[0] + np.array([self.values.get(key, math.nan) for key in keys.tolist()])

    def reach(self, lows: object, highs: object, keys: object = None) -> float:
        return math.inf


def rows(arrivals: list[tuple[int, str, str, int]]) -> Rows:
    times, identities, keys, parts = zip(*arrivals, strict=True)
    return Rows(
        np.array(times),
        np.array(identities, dtype=object),
        np.array(keys, dtype=object),
        (np.array(parts, dtype=float),),
        (np.array([f'"{each}"' for each in identities], dtype=object),),
    )


def shown(top: Top) -> list[tuple[float, int, str]]:
    columns = (top.merits.tolist(), top.rows.times.tolist(), top.rows.identities.tolist())
    return list(zip(*columns, strict=True))


@settings(max_examples=80)
@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 9), st.booleans())
def test_the_best_and_what_ties_with_them(seed: int, k: int, count: int, is_new: bool) -> None:
    chance, remote = random.Random(seed), Remote(dict.fromkeys("abc", 0.0))
    structure = Retained(k, remote)
    held: dict[str, tuple[int, int, str, int]] = {}
    for window in range(12):
        names = [f"i{chance.randrange(6)}" for _ in range(chance.randint(0, 6))]
        pane = [
            (10 * window + at, name, chance.choice("abcd"), chance.randint(0, 3))
            for at, name in enumerate(names)
        ]
        if pane:
            structure.add(window, window + 2, rows(pane))
            held |= {name: (time, window + 2, key, part) for time, name, key, part in pane}
        if chance.random() < 0.3:
            gone = f"i{chance.randrange(6)}"
            structure.remove(np.array([gone], dtype=object))
            held.pop(gone, None)
        if chance.random() < 0.5:
            key = chance.choice("abc")
            remote.values[key] = float(chance.randint(0, 2))
            structure.change(np.array([key], dtype=object))
        if is_new and chance.random() < 0.3:
            resumed = Retained(k, remote)
            resumed.resume(structure.snapshot())
            structure = resumed
        structure.settle(window)
        right = sorted(
            (-(part + remote.values[key]), -time, name)
            for name, (time, last, key, part) in held.items()
            if last >= window and key in remote.values
        )
        bar = right[count - 1][0] if len(right) >= count else math.inf
        expected = [(-minus, -time, name) for minus, time, name in right if minus <= bar]
        assert shown(structure.best(window, count)) == expected
        assert len(structure.top(window)) >= min(k, len(right))
        structure.close_before(window + 1)
        assert len(structure) == sum(
            last > window and key in remote.values for _, last, key, _ in held.values()
        )


@settings(max_examples=80)
@given(st.integers(0, 2**32), st.integers(1, 3), st.booleans())
def test_what_is_thinned_out_is_never_missed(seed: int, count: int, is_new: bool) -> None:
    chance, remote = random.Random(seed), Remote({"a": 0.0})
    thinned, whole = Retained(count, remote), Retained(count, remote)
    columns = chance.choice([[], [0], [0, 1]])
    for window in range(10):
        arrivals = repeatable(chance, window)
        for each in (thinned, whole):
            each.add(window, window + 2, arrivals)
        thinned.thin_out(count, columns)
        if is_new:
            resumed = Retained(count, remote)
            resumed.resume(thinned.snapshot())
            thinned = resumed
        found = shown(thinned.best_of_groups(window, count, columns))
        assert found == shown(whole.best_of_groups(window, count, columns))
        held = {name: (name.split(), merit) for merit, _, name in shown(whole.best(window, 999))}
        better = {
            name: sum(
                other > merit and all(theirs[each] == mine[each] for each in columns)
                for theirs, other in held.values()
            )
            for name, (mine, merit) in held.items()
        }
        assert {name for *_, name in found} == {name for name in better if better[name] < count}
        for each in (thinned, whole):
            each.close_before(window + 1)


def repeatable(chance: random.Random, window: int) -> Rows:
    """Return a pane's arrivals, which say the same whenever they come again."""
    count = chance.randint(0, 9)
    names = [f"{chance.choice('xy')} {chance.choice('uv')} {at}" for at in range(count)]
    parts = [float(chance.randint(0, 3)) for _ in names]
    texts = [f"{name} {part}" for name, part in zip(names, parts, strict=True)]
    columns = zip(*(name.split() for name in names), strict=True) if names else [[], [], []]
    return Rows(
        np.arange(10 * window, 10 * window + count),
        np.array(texts, dtype=object),
        np.array(["a"] * count, dtype=object),
        (np.array(parts),),
        tuple(np.array(column, dtype=object) for column in columns),
    )


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 3))
def test_of_equal_merits_the_first_by_another_order_are_never_missed(seed: int, count: int) -> None:
    chance, remote = random.Random(seed), Remote({"a": 0.0})
    thinned, whole = Retained(count, remote), Retained(count, remote)
    for window in range(10):
        arrivals = repeatable(chance, window)
        for each in (thinned, whole):
            each.add(window, window + 2, arrivals)
        # Of equal merits, x is before y.
        thinned.thin_out(count, [], lambda column: (column(0) == "x").astype(float))
        kept, every = (
            sorted((-merit, name[0]) for merit, _, name in shown(each.best(window, 999)))
            for each in (thinned, whole)
        )
        assert kept[:count] == every[:count]
        last = every[:count][-1:]
        assert kept.count(*last) == every.count(*last) if last else not kept
        for each in (thinned, whole):
            each.close_before(window + 1)


def test_memory_is_bounded_by_what_can_be_best() -> None:
    structure, chance = Retained(3, Remote({"a": 0.0})), random.Random(7)
    for window in range(20):
        parts = [chance.randrange(10**9) for _ in range(100)]
        pane = [(100 * window + at, f"{window} {at}", "a", part) for at, part in enumerate(parts)]
        structure.add(window, window + 9, rows(pane))
        structure.thin_out(3, ())
        structure.close_before(window + 1)
    # A pane's best three are the only ones of it that can be.
    assert 3 <= len(structure) <= 3 * 9


def test_what_is_lost_makes_equal_scores_uncertain() -> None:
    structure = Retained(1, Remote({"a": 0.0}))
    structure.add(0, 1, rows([(1, "x", "a", 5)]))
    structure.note_lost(0, 0, 5.0, (5.0,), (5.0,))
    assert structure.top(0).certainty is Certainty.APPROXIMATE
    assert structure.top(1).certainty is Certainty.EXACT
    structure.note_lost(1, 1, 4.0, (4.0,), (4.0,))
    assert structure.top(1).certainty is Certainty.EXACT


def test_other_bytes_are_refused() -> None:
    with pytest.raises(SnapshotError):
        Retained(1, Remote()).resume(b"nothing")
