"""Panes that hold far more than can matter: what they let go must never be missed by an answer that
is called exact.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.topk.contract import AnyArray, Certainty, FirstPart, FloatArray, Rows, Scoring, Top
from acquatop.topk.pane_dominance import PaneDominance
from acquatop.topk.papers.mintopk.mintopk import MinTopk
from acquatop.topk.papers.mintopk.pretopk import PreTopk
from acquatop.topk.papers.mintopk.super_mtkn import SuperMTKN
from acquatop.topk.refill.content import WindowContent
from acquatop.topk.refill.controller import Controller
from acquatop.topk.refill.refilled import Refilled
from acquatop.topk.snapshot import SnapshotError

WIDTH = 3  # windows in which a pane lies


@dataclass
class Remote:
    """A value per key, added to the stream's part; a key without one has no merit."""

    values: dict[int, float] = field(default_factory=dict)

    def merits(self, keys: AnyArray, parts: tuple[FloatArray, ...]) -> FloatArray:
        return parts[0] + np.array([self.values.get(key, math.nan) for key in keys.tolist()])

    def reach(
        self, lows: tuple[float, ...], highs: tuple[float, ...], keys: AnyArray | None = None
    ) -> float:
        known = (
            [math.inf]
            if keys is None
            else [self.values[key] for key in keys.tolist() if key in self.values]
        )
        return highs[0] + max(known, default=-math.inf)


def refilled(k: int, n: int, scoring: Scoring, *, distinct: bool, in_order: bool) -> Refilled:
    def make(n: int) -> PaneDominance:
        return PaneDominance(k, n, scoring, distinct=distinct)

    ticks = iter(range(10**9))
    return Refilled(
        make,
        scoring,
        Controller(k, k + n),
        distinct=distinct,
        in_order=in_order,
        clock=lambda: float(next(ticks)),
    )


WAYS: dict[str, Callable[[int, int, Scoring], PaneDominance | Refilled]] = {
    "distinct": lambda k, n, of: PaneDominance(k, n, of, distinct=True),
    "recurring": PaneDominance,
    "refilled": lambda k, n, of: refilled(k, n, of, distinct=False, in_order=False),
    "refilled in order": lambda k, n, of: refilled(k, n, of, distinct=False, in_order=True),
    "refilled, distinct": lambda k, n, of: refilled(k, n, of, distinct=True, in_order=False),
    "refilled, distinct, in order": lambda k, n, of: refilled(
        k, n, of, distinct=True, in_order=True
    ),
}


@dataclass
class World:
    """A structure beside all that has ever arrived."""

    way: str
    k: int
    n: int
    chance: random.Random
    remote: Remote = field(default_factory=lambda: Remote(dict.fromkeys(range(8), 0.0)))
    arrived: dict[int, list[tuple[int, int, int, int, float]]] = field(default_factory=dict)
    time: int = 0

    def __post_init__(self) -> None:
        self.held = WAYS[self.way](self.k, self.n, self.remote)

    @property
    def recurs(self) -> bool:
        return "distinct" not in self.way

    def arrive(self, pane: int) -> None:
        """Let many arrivals of a pane come, in batches of any size; sometimes overwrite what was
        handed in.
        """
        count = self.chance.choice([0, 1, 5, 60, 150])
        rows = []
        for _ in range(count):
            self.time += 1
            key = self.chance.randrange(8)
            # None is also a key: such a key would belong to one arrival only.
            identity = 100 + (self.chance.randrange(40) if self.recurs else self.time)
            rows.append((self.time, identity, key, pane, float(self.chance.randrange(30))))
        self.arrived[pane] = self.arrived.get(pane, []) + rows
        size = self.chance.choice([1, 7, 1000])
        for start in range(0, len(rows), size):
            times, names, keys, _, parts = map(
                np.array, zip(*rows[start : start + size], strict=True)
            )
            handed = Rows(times, names, keys, (parts,))
            assert not len(self.held.add(pane - WIDTH + 1, pane, handed))
            for column in (times, names, keys, parts):
                column[:] = 0

    def disturb(self) -> None:
        """Change values, take something out, hold more or fewer, go on from a snapshot: or nothing
        of that.
        """
        what = self.chance.choice(["change", "change", "remove", "resize", "restore", ""])
        if what == "change":
            keys = self.chance.sample(range(8), self.chance.randrange(1, 4))
            self.remote.values.update((key, float(self.chance.randrange(-40, 40))) for key in keys)
            self.held.change(np.array(keys))
        elif what == "remove":
            alive = [row[1] for rows in self.arrived.values() for row in rows]
            gone = set(self.chance.sample(alive, min(len(alive), 3)))
            self.held.remove(np.array(sorted(gone), dtype=np.int64))
            for pane, rows in self.arrived.items():
                self.arrived[pane] = [row for row in rows if row[1] not in gone]
        elif what == "resize" and isinstance(self.held, PaneDominance):
            self.held.resize(self.chance.randrange(4))
        elif what == "restore":
            saved = self.held.snapshot()
            self.held = WAYS[self.way](self.k, self.n, self.remote)
            self.held.resume(saved)
        self.held._check()

    def right(self, window: int) -> list[tuple[int, float]]:
        inside = [
            row for pane in range(window, window + WIDTH) for row in self.arrived.get(pane, [])
        ]
        newest = {row[1]: row for row in sorted(inside)}
        places = sorted(
            (-(row[4] + self.remote.values[row[2]]), -row[0], row[1]) for row in newest.values()
        )
        return [(identity, -minus) for minus, _, identity in places[: self.k]]

    def judge(self, top: Top) -> None:
        right = self.right(top.window)
        shown = list(zip(top.rows.identities.tolist(), top.merits.tolist(), strict=True))
        if isinstance(self.held, Refilled):
            assert top.certainty is Certainty.EXACT
        if top.certainty is Certainty.EXACT:
            assert shown == right
        else:
            assert top.bound is not None
            assert all(
                merit <= top.bound for identity, merit in right if (identity, merit) not in shown
            )


@settings(max_examples=120)
@given(
    way=st.sampled_from(sorted(WAYS)),
    k=st.integers(1, 3),
    n=st.integers(0, 2),
    seed=st.integers(0, 2**32),
)
def test_an_exact_answer_misses_nothing_that_was_let_go(
    way: str, k: int, n: int, seed: int
) -> None:
    world = World(way, k, n, random.Random(seed))
    for pane in range(10):
        world.disturb()
        world.arrive(pane)
        world.disturb()
        if pane >= WIDTH - 1:
            # Sometimes the next pane begins before the window is asked for.
            if world.chance.random() < 0.3:
                world.arrive(pane + 1)
            world.disturb()
            window = pane - WIDTH + 1
            world.judge(world.held.top(window))
            world.held.close_before(window + 1)


def a_pane(merits: list[float], keys: list[int] | None = None) -> Rows:
    at = np.arange(len(merits))
    return Rows(at, at, at if keys is None else np.array(keys), (np.array(merits),))


def test_a_change_lifts_what_a_pane_that_waits_has_let_go() -> None:
    remote = Remote(dict.fromkeys(range(200), 0.0))
    held = PaneDominance(1, 0, remote, distinct=True)
    held.add(0, 2, a_pane([float(each) for each in range(200)]))
    remote.values[50] = 1000.0
    held.change(np.array([50]))
    top = held.top(0)
    assert (top.certainty, top.bound) == (Certainty.APPROXIMATE, 1199.0)


@pytest.mark.parametrize("restored", [False, True])
def test_a_pane_that_has_lost_all_that_it_held_still_knows_what_it_let_go(restored: bool) -> None:
    held = PaneDominance(1, 0, FirstPart(), distinct=True)
    held.add(0, 2, a_pane([float(each) for each in range(200)]))
    held.remove(np.arange(150, 200))
    if restored:
        saved = held.snapshot()
        held = PaneDominance(1, 0, FirstPart(), distinct=True)
        held.resume(saved)
    held.resize(3)
    top = held.top(0)
    assert len(top) == 0
    assert top.certainty is Certainty.APPROXIMATE


def test_what_a_change_lifts_is_brought_back_though_a_later_pane_holds_its_identity() -> None:
    remote = Remote({1: 0.0, 2: 0.0, 30: 0.0})
    held = refilled(1, 0, remote, distinct=False, in_order=False)
    held.add(
        0, 1, Rows(np.array([1, 2]), np.array([1, 2]), np.array([1, 2]), (np.array([9.0, 8.0]),))
    )
    assert held.top(0).rows.identities.tolist() == [1]
    held.close_before(1)
    held.add(2, 3, Rows(np.array([30]), np.array([2]), np.array([30]), (np.array([0.0]),)))
    remote.values[2] = 100.0
    held.change(np.array([2]))
    top = held.top(1)
    assert (top.rows.identities.tolist(), top.merits.tolist()) == ([2], [108.0])


def test_what_is_removed_and_never_comes_again_is_forgotten() -> None:
    content = WindowContent()
    for window in range(20_000):
        content.append(window, window, a_pane([1.0]))
        content.remove(np.array([10**6 + window]))
        content.close_before(window)
    assert content.pending_removals <= 1_002


@pytest.mark.parametrize("structure", [SuperMTKN(3, 0), MinTopk(3), PreTopk(3), PaneDominance(3)])
def test_a_column_s_type_may_differ_from_batch_to_batch(
    structure: SuperMTKN | MinTopk | PreTopk | PaneDominance,
) -> None:
    structure.add(
        0,
        0,
        Rows(np.array([1]), np.array([1]), np.array([1]), (np.array([2.7]),), (np.array([1.5]),)),
    )
    structure.add(
        0, 0, Rows(np.array([2]), np.array([2]), np.array([2]), (np.array([2]),), (np.array([1]),))
    )
    top = structure.top(0)
    assert [top.rows.parts[0].tolist(), top.rows.carried[0].tolist()] == [[2.7, 2.0], [1.5, 1.0]]


def test_small_integers_are_scores_like_others() -> None:
    held = PaneDominance(3, distinct=True, fixed=True)
    held.add(
        0,
        0,
        Rows(np.arange(3), np.arange(3), np.arange(3), (np.array([128, 5, 3], dtype=np.uint8),)),
    )
    assert held.top(0).merits.tolist() == [128.0, 5.0, 3.0]


def test_any_flipped_bit_is_noticed() -> None:
    held = PaneDominance(2, 1)
    held.add(0, 2, a_pane([3.0, 1.0, 2.0]))
    held.top(0)
    snapshot = held.snapshot()
    for at in range(0, len(snapshot), 3):
        damaged = bytearray(snapshot)
        damaged[at] ^= 1 << at % 8
        with pytest.raises(SnapshotError):
            PaneDominance(1).resume(bytes(damaged))
