"""Many queries over one stream: each way of answering them against sorting everything, query by
query.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.topk.contract import Rows, Top
from acquatop.topk.order import ranking
from acquatop.topk.pane_top import Scored
from acquatop.topk.papers.mtops.mtop_band import MTopBand
from acquatop.topk.papers.mtops.mtop_list import MTopList
from acquatop.topk.shared import skyline
from acquatop.topk.shared.contract import TopKRequest
from acquatop.topk.shared.meta_query import MetaQuery
from acquatop.topk.shared.periodic_times import (
    BEFORE_ALL,
    PeriodicTimes,
    between,
    first_from,
    last_before,
)
from acquatop.topk.shared.shared_skyline import SharedSkyline
from acquatop.topk.shared.skyline import (
    best_of_panes,
    undominated,
    undominated_within,
    youngest_best,
)
from acquatop.windows import Windows
from tests.support.independent import Independent
from tests.support.topk_streams import INF, NAN, Arrival, Joined, Truth, plain, rows_of, windows

WAYS: dict[str, Callable[..., Any]] = {
    "independent": Independent,
    "mtop_band": MTopBand,
    "mtop_list": MTopList,
    "shared_skyline": SharedSkyline,
    "shared_skyline_in_small_steps": partial(SharedSkyline, stretch=1, room=4),
}
EACH = pytest.mark.parametrize("way", WAYS)
EACH_SHARED = pytest.mark.parametrize("way", [way for way in WAYS if way != "independent"])


@dataclass
class World:
    """One way of answering, and beside it the truth of each query."""

    held: Any
    since: int = 0
    queries: dict[str, TopKRequest] = field(default_factory=dict)
    firsts: dict[str, int] = field(default_factory=dict)
    arrivals: list[Arrival] = field(default_factory=list)
    answers: list[tuple[str, int, list[Any]]] = field(default_factory=list)
    rejected: int = 0

    def join(self, name: str, asked: TopKRequest) -> None:
        self.queries[name], self.firsts[name] = asked, self.held.join(name, asked)
        self.held._check()

    def leave(self, name: str) -> None:
        self.held.leave(name)
        del self.queries[name]
        self.held._check()

    def add(self, arrivals: list[Arrival]) -> None:
        rejected = self.held.add(rows_of(arrivals))
        assert rejected.tolist() == [
            at for at, each in enumerate(arrivals) if np.isnan(each.x - each.y)
        ]
        self.arrivals += arrivals
        self.rejected += len(rejected)
        assert self.held.rejected == self.rejected
        self.held._check()

    def advance(self, until: int) -> None:
        last = (self.held.meta.now, -1)
        joined = list(self.firsts)
        for name, top in self.held.advance(until):
            self._assert_right(name, top)
            moment = (self.queries[name].windows.bounds(top.window)[1], joined.index(name))
            assert last < moment <= (until, len(joined)), "answers come out of order"
            last = moment
            self.answers.append((name, top.window, plain(top.rows)))
        self.held._check()

    def _assert_right(self, name: str, top: Top) -> None:
        asked = self.queries[name]
        assert top.window == self.firsts[name], "a window is left out, or answered twice"
        self.firsts[name] += 1
        rows, merits = Truth(asked.windows, Joined(), self.arrivals).best(top.window, asked.k)
        assert plain(top.rows) == plain(rows)
        assert top.merits.tolist() == merits.tolist()


@dataclass(frozen=True)
class Shape:
    """Parameters of a random stream and its queries."""

    seed: int
    asked: tuple[TopKRequest, ...]
    levels: int
    lateness: int
    extremes: bool
    text: bool
    comings: bool
    gap: int
    size: int = 60


def play(shape: Shape, world: World) -> World:
    """Let queries come and go, arrivals come, and time go on."""
    chance, now, waiting = random.Random(shape.seed), 0, list(enumerate(shape.asked))
    for _ in range(len(waiting) if not shape.comings else 1):
        number, asked = waiting.pop(0)
        world.join(f"q{number}", asked)
    batch: list[Arrival] = []
    for number in range(shape.size):
        now += chance.choice([0, 1, 1, 2]) + (
            chance.randrange(shape.gap + 1) if chance.random() < 0.05 else 0
        )
        time = max(world.held.meta.now + 1, now - chance.randrange(shape.lateness + 1))
        batch.append(
            Arrival(time, *_names(number, shape.text), _number(chance, shape), 0.0, number)
        )
        if chance.random() < 0.3:
            world.add(batch)
            batch = []
            if chance.random() < 0.6:
                world.advance(max(world.held.meta.now, now - chance.choice([0, shape.lateness, 9])))
            if waiting and chance.random() < 0.4:
                coming, asked = waiting.pop(0)
                world.join(f"q{coming}", asked)
            if shape.comings and len(world.queries) > 1 and chance.random() < 0.15:
                world.leave(chance.choice(sorted(world.queries)))
    if batch:
        world.add(batch)
    world.advance(now + 40)
    return world


def _names(number: int, text: bool) -> tuple[Any, Any]:
    name = f"a{number:04}" if text else number
    return name, name


def _number(chance: random.Random, shape: Shape) -> float:
    if shape.extremes and chance.random() < 0.15:
        return chance.choice([INF, -INF, NAN])
    return float(chance.randrange(shape.levels))


def shapes() -> st.SearchStrategy[Shape]:
    asked = st.builds(TopKRequest, windows(), st.integers(1, 5))
    return st.builds(
        Shape,
        seed=st.integers(0, 2**32),
        asked=st.lists(asked, min_size=1, max_size=6).map(tuple),
        levels=st.sampled_from([1, 3, 1000]),
        lateness=st.sampled_from([0, 5]),
        extremes=st.booleans(),
        text=st.booleans(),
        comings=st.booleans(),
        gap=st.sampled_from([0, 60]),
    )


@EACH
@settings(max_examples=30, deadline=None)
@given(shape=shapes(), steps=st.sampled_from([2, 32]))
def test_every_answer_of_every_query_is_right(way: str, shape: Shape, steps: int) -> None:
    with patch.object(skyline, "STEPS", steps):
        play(shape, World(WAYS[way](0, Joined())))


@EACH
@settings(max_examples=12, deadline=None)
@given(shape=shapes())
def test_an_answer_does_not_depend_on_the_other_queries(way: str, shape: Shape) -> None:
    asked = shape.asked[0]
    alone, among = World(WAYS[way](0, Joined())), World(WAYS[way](0, Joined()))
    chance = random.Random(shape.seed)
    for world in (alone, among):
        world.join("mine", asked)
    for number, other in enumerate(shape.asked[1:]):
        among.join(f"other {number}", other)
    for start in range(1, shape.size, 6):
        arrivals = [Arrival(start + at, start + at, 0, _number(chance, shape)) for at in range(6)]
        for world in (alone, among):
            world.add(arrivals)
            world.advance(start + 5)
        if chance.random() < 0.3 and len(among.queries) > 1:
            among.leave(next(name for name in among.queries if name != "mine"))
    assert [each for each in among.answers if each[0] == "mine"] == alone.answers


# What is particular -----------------------------------------------------------------------------


def arrivals_of(*pairs: tuple[int, float]) -> list[Arrival]:
    return [Arrival(time, number, number, x, 0.0, number) for number, (time, x) in enumerate(pairs)]


def tops(world: World, until: int) -> list[tuple[str, int, list[float]]]:
    found = [(name, top.window, top.merits.tolist()) for name, top in world.held.advance(until)]
    world.held._check()
    return found


def world_of(way: str, **asked: tuple[int, int, int]) -> World:
    world = World(WAYS[way](0))
    for name, (width, slide, k) in asked.items():
        world.join(name, TopKRequest(Windows(width, slide, 0), k))
    return world


@EACH
def test_a_view_in_between_may_not_hold_what_its_neighbours_do(way: str) -> None:
    # The views that open at 0, 2 and 4: k is 3, 1 and 3. What comes third is in the first and the
    # last only.
    world = world_of(way, often=(8, 4, 3), seldom=(8, 2, 1))
    world.add(arrivals_of((5, 9.0), (6, 8.0), (7, 7.0)))
    assert tops(world, 12) == [
        ("often", 0, [9.0, 8.0, 7.0]),
        ("seldom", 0, [9.0]),
        ("seldom", 1, [9.0]),
        ("often", 1, [9.0, 8.0, 7.0]),
        ("seldom", 2, [9.0]),
    ]


@EACH
def test_the_view_that_ends_is_often_not_the_oldest(way: str) -> None:
    world = world_of(way, wide=(12, 12, 2), narrow=(2, 2, 2))
    world.add(arrivals_of((1, 1.0), (2, 2.0), (3, 9.0), (4, 3.0), (11, 4.0)))
    assert tops(world, 6) == [
        ("narrow", 0, [2.0, 1.0]),
        ("narrow", 1, [9.0, 3.0]),
        ("narrow", 2, []),
    ]
    assert tops(world, 12)[-2:] == [("wide", 0, [9.0, 4.0]), ("narrow", 5, [4.0])]


@EACH_SHARED
def test_a_view_keeps_no_more_than_is_still_asked_for(way: str) -> None:
    # Both windows open at 0; once the narrow one is answered, one is enough.
    world = world_of(way, wide=(8, 8, 1), narrow=(4, 8, 3))
    world.add(arrivals_of((1, 3.0), (2, 2.0), (3, 1.0)))
    assert [top for _, _, top in tops(world, 4)] == [[3.0, 2.0, 1.0]]
    assert len(world.held) == 1


@EACH
def test_who_joins_is_answered_from_what_is_to_come_and_who_leaves_is_no_more(way: str) -> None:
    world = world_of(way, one=(4, 2, 1))
    world.add(arrivals_of((1, 5.0), (7, 6.0)))
    assert tops(world, 5) == [("one", 0, [5.0])]
    assert world.held.join("two", TopKRequest(Windows(4, 3, 0), 9)) == 3, (
        "what opens at 9: 7 has come"
    )
    with pytest.raises(ValueError, match="a query two already"):
        world.held.join("two", TopKRequest(Windows(4, 3, 0), 9))
    world.held.leave("one")
    with pytest.raises(KeyError):
        world.held.leave("one")
    world.add([Arrival(10, 10, 10, 1.0), Arrival(11, 11, 11, 2.0)])
    assert tops(world, 13) == [("two", 3, [2.0, 1.0])]
    world.held.leave("two")
    assert tops(world, 50) == []


@EACH
def test_a_query_may_leave_while_answers_come_out(way: str) -> None:
    world = world_of(way, one=(2, 2, 1), two=(2, 2, 1))
    world.add(arrivals_of((1, 5.0)))
    found = []
    for name, top in world.held.advance(6):
        found.append((name, top.window))
        if top.window == 1:
            world.held.leave("two" if name == "one" else name)
    assert found == [("one", 0), ("two", 0), ("one", 1), ("one", 2)]


@EACH
def test_a_query_may_join_while_answers_come_out(way: str) -> None:
    world = world_of(way, one=(2, 2, 1))
    world.add(arrivals_of((1, 5.0)))
    found = []
    for name, top in world.held.advance(8):
        found.append((name, top.window))
        if found == [("one", 0)]:
            assert world.held.join("two", TopKRequest(Windows(2, 4, 0), 1)) == 2, (
                "what opens at 8: time goes on to there"
            )
    world.held._check()
    assert found == [("one", 0), ("one", 1), ("one", 2), ("one", 3)]
    assert [name for name, _ in world.held.advance(10)] == ["one", "two"]


@EACH
def test_without_queries_nothing_is_kept(way: str) -> None:
    world = world_of(way, one=(4, 2, 2))
    world.add(arrivals_of((1, 5.0), (2, 6.0)))
    tops(world, 2)
    world.held.leave("one")
    tops(world, 3)
    world.add([Arrival(4, 4, 4, 1.0)])
    world.held.join("two", TopKRequest(Windows(2, 2, 0), 1))
    assert tops(world, 6) == [("two", 2, [])]
    assert len(world.held) == 0


@EACH_SHARED
def test_of_equal_scores_the_newer_are_kept_and_no_more_than_k(way: str) -> None:
    world = World(WAYS[way](0))
    for name, asked in (
        ("one", TopKRequest(Windows(400, 100), 3)),
        ("two", TopKRequest(Windows(300, 50), 2)),
    ):
        world.join(name, asked)
    for start in range(1, 1001, 100):
        world.add([Arrival(start + at, start + at, 0, 1.0) for at in range(100)])
        last = list(world.held.advance(start + 99))[-1]
        assert last[1].rows.times.tolist() == [start + 99, start + 98]
        assert len(world.held) <= (4 if way.startswith("shared") else 3)


@EACH
def test_what_time_has_gone_past_is_refused(way: str) -> None:
    world = world_of(way, one=(4, 4, 1))
    tops(world, 4)
    with pytest.raises(
        ValueError, match=r"1 of 2 arrivals are late, first 0 at 4: time has gone on to 4"
    ):
        world.held.add(rows_of(arrivals_of((4, 1.0), (5, 1.0))))
    assert len(world.held.add(rows_of([]))) == 0


@EACH
def test_k_is_checked(way: str) -> None:
    with pytest.raises(ValueError, match="k must be"):
        world_of(way, one=(4, 4, 0))


@pytest.mark.parametrize("way", ["mtop_band", "mtop_list"])
def test_the_papers_structures_hold_the_fewest_that_are_enough(way: str) -> None:
    world = world_of(way, a=(8, 4, 2), b=(6, 3, 2), c=(4, 2, 2))
    chance = random.Random(3)
    for start in range(1, 250, 12):
        # At a moment at which windows of all three close, all that has come is in the views.
        world.add(
            [Arrival(start + at, start + at, 0, float(chance.randrange(50))) for at in range(12)]
        )
        world.advance(start + 11)
        needed = set()
        for asked in world.queries.values():
            now = world.held.meta.now
            for window in range(asked.windows.first(now + 1), asked.windows.last(now) + 1):
                rows, _ = Truth(asked.windows, Joined(), world.arrivals).best(window, asked.k)
                needed |= set(rows.times.tolist())
        held = set(world.held.held().times.tolist())
        assert held == needed


def test_what_has_been_handed_in_early_is_thinned_out() -> None:
    held = SharedSkyline(0, room=10)
    held.join("one", TopKRequest(Windows(1000, 500, 0), 2))
    for start in range(1, 901, 30):
        at = np.arange(start, start + 30)
        held.add(rows_of([Arrival(time, time, 0, float(time % 7)) for time in at.tolist()]))
        held._check()
        assert len(held) < 50
    ((_, top),) = held.advance(1000)
    assert top.rows.times.tolist() == [895, 888]
    assert held.nbytes < 10_000


# The meta query ---------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(
    asked=st.lists(st.builds(TopKRequest, windows(), st.integers(1, 9)), min_size=1, max_size=5),
    since=st.integers(-20, 20),
    steps=st.lists(st.integers(0, 30), max_size=5),
)
def test_the_meta_query_is_all_queries(
    asked: list[TopKRequest], since: int, steps: list[int]
) -> None:
    meta, now = MetaQuery(since), since
    for number, each in enumerate(asked):
        meta.join(str(number), each)
    for step in steps:
        due = [(each.closes, each.order, each.opens, each.window) for each in meta.take(now + step)]
        meta.go_on(now + step)
        meta._check()
        assert due == sorted(_closing(asked, now, now + step))
        opens = {opens for each in asked for opens, _ in _bounds(each, since)}
        both = opens | {closes for each in asked for _, closes in _bounds(each, since)}
        now += step
        assert meta.openings(now, now + 30).tolist() == sorted(
            at for at in opens if now < at <= now + 30
        )
        cuts = between(meta.boundaries(), now, now + 30)
        assert cuts.tolist() == sorted(at for at in both if now < at <= now + 30)
        times = np.arange(now + 1, now + 20)
        before = [
            max([at for at in opens if at < time], default=BEFORE_ALL) for time in times.tolist()
        ]
        assert meta.labels(times).tolist() == before
        assert meta.ends(times).tolist() == [
            min(at for at in both if at >= time) for time in times.tolist()
        ]
        moments, ks = meta.demand()
        assert all(earlier <= later for earlier, later in pairwise(moments.tolist()))
        for opens_at in moments.tolist():
            looking = [each.k for each in asked if _next_opening(each, since, now) <= opens_at]
            assert ks[np.searchsorted(moments, opens_at, side="right") - 1] == max(looking)


@settings(max_examples=100, deadline=None)
@given(
    several=st.lists(
        st.builds(PeriodicTimes, st.integers(-9, 9), st.integers(1, 9), st.integers(-9, 30)),
        min_size=1,
    ),
    steps=st.lists(st.sampled_from([0, 1, 2, 5, 40, 1000]), min_size=1, max_size=9),
)
def test_moments_are_found_however_far_times_are_apart(
    several: list[PeriodicTimes], steps: list[int]
) -> None:
    times = np.cumsum(steps)
    moments = {
        at
        for each in several
        for at in range(-60, 9999)
        if at >= each.since and (at - each.at) % each.step == 0
    }
    assert first_from(several, times).tolist() == [
        min(at for at in moments if at >= time) for time in times.tolist()
    ]
    before = [
        max((at for at in moments if at < time and at > -60), default=BEFORE_ALL)
        for time in times.tolist()
    ]
    assert last_before(several, times).tolist() == before
    meta = MetaQuery(0)
    for number, each in enumerate(several):
        meta.join_at(str(number), TopKRequest(Windows(7, each.step, each.at % each.step), 1), 0)
    together = meta.labels(times).tolist()
    meta.leave("0")
    meta.join_at(
        "0", TopKRequest(Windows(7, several[0].step, several[0].at % several[0].step), 1), 0
    )
    assert together == [meta.labels(np.array([time])).item() for time in times.tolist()]


@settings(max_examples=200, deadline=None)
@given(
    merits=st.lists(st.integers(0, 6), max_size=40),
    gaps=st.lists(st.integers(0, 2), min_size=40, max_size=40),
    k=st.integers(1, 4),
    pane=st.integers(1, 4),
)
def test_what_is_left_of_a_stretch_is_the_best_of_every_window_that_is_no_narrower(
    merits: list[int], gaps: list[int], k: int, pane: int
) -> None:
    times = np.cumsum(gaps[: len(merits)])
    all_of, ends = np.array(merits, dtype=float), -(-times // pane)
    left = undominated_within(all_of, ends, k)
    left = left[best_of_panes(k, all_of[left], times[left], left, ends[left])]
    span = -(-int(times[-1] - times[0]) // pane) if len(times) else 0
    for opens in range(-2, int(ends.max(initial=0)) + 1):
        for closes in range(opens + max(1, span), opens + span + 4):
            within = np.flatnonzero((ends > opens) & (ends <= closes))
            some = left[(ends[left] > opens) & (ends[left] <= closes)]
            right = within[ranking(all_of[within], times[within], within)][:k]
            assert some[ranking(all_of[some], times[some], some)][:k].tolist() == right.tolist()


def _bounds(asked: TopKRequest, since: int) -> Iterator[tuple[int, int]]:
    for window in range(-60, 200):
        opens, closes = asked.windows.bounds(window)
        if closes > since and (asked.windows.t0_ms is None or window >= 0):
            yield opens, closes


def _closing(
    asked: list[TopKRequest], after: int, until: int
) -> Iterator[tuple[int, int, int, int]]:
    for order, each in enumerate(asked):
        for opens, closes in _bounds(each, after):
            if closes <= until:
                yield closes, order, opens, each.windows.first(closes)


def _next_opening(asked: TopKRequest, since: int, now: int) -> int:
    return min(opens for opens, closes in _bounds(asked, since) if closes > now)


# The skyline ------------------------------------------------------------------------------------


def dominators_of(merits: list[float], labels: list[int]) -> list[int]:
    """Return how many are better, of the same merit the newer, and leave no earlier; rows in the
    order of time.
    """
    order = ranking(np.array(merits), np.arange(len(merits)), np.arange(len(merits))).tolist()
    counts = [0] * len(merits)
    for place, at in enumerate(order):
        counts[at] = sum(labels[better] >= labels[at] for better in order[:place])
    return counts


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.sampled_from([0.0, 1.0, 2.0, 3.0, INF, -INF]), st.integers(0, 1)), max_size=40
    ),
    k=st.integers(1, 4),
)
def test_nothing_that_fewer_than_k_dominate_is_let_go(
    rows: list[tuple[float, int]], k: int
) -> None:
    merits = [merit for merit, _ in rows]
    labels = np.cumsum([step for _, step in rows], dtype=np.int64)
    counts = dominators_of(merits, labels.tolist())
    needed = {at for at, count in enumerate(counts) if count < k}
    at = np.arange(len(rows))
    scored = Scored(
        np.array(merits, dtype=np.float64), rows_of([Arrival(t, t, t, 0.0) for t in at.tolist()])
    )
    found = youngest_best(scored, labels, k).tolist()
    assert found == sorted(set(found))
    assert needed <= set(found)
    order = ranking(scored.merits, at, at)
    kept = order[undominated(labels[order], np.array([0]), np.array([k]))].tolist()
    assert set(kept) == needed if len(set(labels.tolist())) <= 32 else needed <= set(kept)


def test_the_skyline_is_small_in_random_order() -> None:
    size, k = 100_000, 100
    merits, at = np.random.default_rng(5).random(size), np.arange(size)
    scored = Scored(merits, Rows(at, at, at, ()))
    found = youngest_best(scored, at, k)
    assert k * (1 + np.log(size / k)) < len(found) < 1.6 * k * (2 + np.log2(size / k))
    order = ranking(merits[found], found, found)
    kept = undominated(found[order], np.array([0]), np.array([k]))
    assert len(kept) < 1.2 * k * (1 + np.log(size / k))
