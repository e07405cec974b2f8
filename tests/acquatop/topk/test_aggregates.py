"""Every way of ranking keys by an aggregate gives what summing all events of the window afresh
gives.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.topk.aggregates import aggregate_view, keyed_aggregate, keyed_content
from acquatop.topk.aggregates.aggregate_totals import AggregateKind
from acquatop.topk.aggregates.keyed_aggregate import KeyedAggregate
from acquatop.topk.aggregates.windowed_aggregate import Chooser, WindowedAggregate
from acquatop.topk.contract import AnyArray, FirstPart, FloatArray, IntArray, Rows, Top, TopK
from acquatop.topk.snapshot import SnapshotError, State, pack
from acquatop.windows import Windows
from benchmarks import core_aggregates
from tests.support.dense_aggregate import DenseAggregate
from tests.support.markers import THOROUGH
from tests.support.threshold_view import ThresholdView

KEYS = 12
WAYS = (DenseAggregate, ThresholdView, WindowedAggregate)
Event = tuple[int, int, float, int]
"""Time, key, value, and where on the windows' axis it is: its time, unless the windows are not by
time.
"""


@dataclass
class Remote:
    """A weight per key; NaN for none. Notes what it was asked for."""

    weights: FloatArray
    asked: list[IntArray] = field(default_factory=list)

    def merits(self, keys: AnyArray, parts: tuple[FloatArray, ...]) -> FloatArray:
        self.asked.append(keys)
        with np.errstate(invalid="ignore", over="ignore"):
            merits: FloatArray = parts[0] * self.weights[keys]
        return merits

    def reach(
        self, lows: tuple[float, ...], highs: tuple[float, ...], keys: AnyArray | None = None
    ) -> float:
        return math.inf


def rows_of(events: Sequence[Event | tuple[int, int, float]]) -> Rows:
    times, keys = (np.array([event[at] for event in events], dtype=np.int64) for at in (0, 1))
    return Rows(times, keys, keys, (np.array([event[2] for event in events], dtype=np.float64),))


def aggregate_of(aggregate: AggregateKind, values: list[float]) -> float:
    if aggregate is AggregateKind.COUNT:
        return float(len(values))
    if aggregate in (AggregateKind.MIN, AggregateKind.MAX):
        return (min(values) if aggregate is AggregateKind.MIN else max(values)) + 0.0
    endless = [value for value in values if math.isinf(value)]
    total = sum(endless) if endless else nearest_sum(values)
    return total / len(values) if aggregate is AggregateKind.AVG else total


def nearest_sum(values: list[float]) -> float:
    try:
        return math.fsum(values)
    except OverflowError:
        exact = sum(map(Fraction, values), Fraction(0))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def all_in_order(
    aggregate: AggregateKind, events: list[Event], weights: FloatArray
) -> list[tuple[float, int, int, float]]:
    """Return merit, time, key and aggregate of every key that is a solution, best first."""
    of_key: dict[int, list[Event]] = {}
    for event in events:
        if aggregate is AggregateKind.COUNT or not math.isnan(event[2]):
            of_key.setdefault(event[1], []).append(event)
    found = []
    for key, its in of_key.items():
        total = aggregate_of(aggregate, [event[2] for event in its])
        with np.errstate(invalid="ignore", over="ignore"):
            merit = float(np.float64(total) * weights[key])
        if not math.isnan(total) and not math.isnan(merit):
            found.append((merit, max(event[0] for event in its), key, total))
    return sorted(found, key=lambda row: (-row[0], -row[1], row[2]))


def listed(rows: Rows, merits: FloatArray) -> list[tuple[float, int, int, float]]:
    assert rows.identities.tolist() == rows.keys.tolist()
    return list(
        zip(
            merits.tolist(),
            rows.times.tolist(),
            rows.keys.tolist(),
            rows.parts[0].tolist(),
            strict=True,
        )
    )


def as_bytes(top: Top) -> tuple[bytes, ...]:
    return tuple(
        column.tobytes()
        for column in (top.rows.times, top.rows.keys, top.rows.parts[0], top.merits)
    )


def made(
    way: type[KeyedAggregate], k: int, aggregate: AggregateKind, remote: Remote, seed: int = 0
) -> KeyedAggregate:
    if way is not WindowedAggregate:
        return way(k, aggregate, remote)
    return WindowedAggregate(k, aggregate, remote, clock_of(seed))


def clock_of(seed: int) -> object:
    chance, now = random.Random(seed), [0.0]

    def clock() -> float:
        now[0] += chance.random() ** 4
        return now[0]

    return clock


plain = st.sampled_from([0.0, -0.0, 1.0, 2.0, -1.0, 3.0, 7.0])
odd = st.sampled_from(
    [0.1, 1e16, -1e16, 2.0**31, 2.0**53 + 2, -(2.0**62), 1e-300, 5e-324, 1.7e308, -1.7e308]
)
endless = st.sampled_from([math.inf, -math.inf, math.nan, 1.0])
values = st.sampled_from([plain, plain, odd, endless, st.floats()]).flatmap(lambda kind: kind)
weights = st.sampled_from([0.0, 1.0, 1.0, 2.0, -1.0, 0.5, math.nan, math.inf])


@st.composite
def scenarios(draw: st.DrawFn) -> dict[str, object]:
    slide = draw(st.integers(1, 9))
    width = draw(st.sampled_from([1, 2, 5, 9, 12, 2 * slide, 4 * slide, 6 * slide]))
    ends = draw(st.integers(5, 40)) if slide > 2 else 20
    kind = draw(st.sampled_from([plain, values, values]))
    scrambled = draw(st.sampled_from([0, 0, 1, 7]))
    event = st.tuples(st.integers(1, ends), st.integers(0, KEYS - 1), kind).map(
        lambda event: (
            event[0] * scrambled % 11 if scrambled else event[0],
            event[1],
            event[2],
            event[0],
        )
    )
    return {
        "windows": Windows(width, slide, 0),
        "last": ends // slide + 2,
        "events": draw(st.lists(event, min_size=draw(st.sampled_from([0, 30])), max_size=50)),
        "aggregate": draw(st.sampled_from(list(AggregateKind))),
        "k": draw(st.integers(1, KEYS + 2)),
        "weights": draw(st.lists(weights, min_size=KEYS, max_size=KEYS)),
        "changes": draw(
            st.lists(st.tuples(st.integers(0, 30), st.integers(0, KEYS + 1), weights), max_size=12)
        ),
        "seed": draw(st.integers(0, 2**32)),
    }


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make what is meant for many happen with few."""
    monkeypatch.setattr(keyed_content, "FOLD_AT", 4)
    monkeypatch.setattr(keyed_aggregate, "FEW", 2)
    monkeypatch.setattr(aggregate_view, "SLACK", 1)
    monkeypatch.setattr(aggregate_view, "OVERFULL", 1)


def batches_of(
    windows: Windows, events: list[Event], chance: random.Random
) -> Iterator[tuple[int, int, list[Event]]]:
    """Cut events into panes, and these anywhere."""
    panes: dict[tuple[int, int], list[Event]] = {}
    for event in chance.sample(events, len(events)):
        panes.setdefault((windows.first(event[3]), windows.last(event[3])), []).append(event)
    for (first, last), inside in panes.items():
        if chance.random() < 0.5:
            inside.sort(key=lambda event: event[0])
        while inside:
            size = chance.choice([1, 2, len(inside)])
            yield first, last, inside[:size]
            inside = inside[size:]


@settings(max_examples=300, deadline=None)
@given(scenarios())
def test_every_window_is_what_it_is_afresh(scenario: dict[str, object]) -> None:
    Story(**scenario).run()  # type: ignore[arg-type]


class Story:
    """A stream, panes in any order that the contract allows, changes of the remote, pauses; and
    brute force beside.
    """

    def __init__(
        self,
        windows: Windows,
        last: int,
        events: list[Event],
        aggregate: AggregateKind,
        k: int,
        weights: list[float],
        changes: list[tuple[int, int, float]],
        seed: int,
    ) -> None:
        self.windows, self.last, self.aggregate, self.k, self.changes = (
            windows,
            last,
            aggregate,
            k,
            changes,
        )
        self.seed, self.chance = seed, random.Random(seed)
        self.remote = Remote(np.array([*weights, 1.0, 1.0]))
        self.ways = [made(way, k, aggregate, self.remote, seed) for way in WAYS]
        self.batches = list(batches_of(windows, events, self.chance))
        self.chance.shuffle(self.batches)
        self.delivered: list[Event] = []
        self.window: int | None = None
        self.counted: list[Event] = []
        """Events in the window last asked for, except those that are only in closed windows."""

    def run(self) -> None:
        window = 0
        while window <= self.last:
            self.deliver(window)
            self.change(window)
            if self.chance.random() < 0.2:
                self.restart()
            self.ask(window)
            if self.chance.random() < 0.3:
                self.change(window + 15)
                self.ask(window)
            if self.chance.random() < 0.1:
                self.remove()
            step = self.chance.choice([1, 1, 1, 2, 5])
            if self.chance.random() < 0.5:
                self.close_before(window + 1)
            window += step

    def deliver(self, window: int) -> None:
        """Deliver all that begins by this window, some of it late, and some that is to come."""
        kept = []
        for first, last, events in self.batches:
            due = first <= window and (self.chance.random() < 0.8 or last <= window)
            if due or self.chance.random() < 0.2:
                self.add(first, last, events)
            else:
                kept.append((first, last, events))
        self.batches = kept

    def add(self, first: int, last: int, events: list[Event]) -> None:
        closed = self.window is not None and first <= last < self.window
        rejected = [at for at, event in enumerate(events) if math.isnan(event[2])]
        for way in self.ways:
            if closed:
                with pytest.raises(ValueError, match="have closed"):
                    way.add(first, last, rows_of(events))
                continue
            before = way.rejected
            found = way.add(first, last, rows_of(events)).tolist()
            assert found == ([] if self.aggregate is AggregateKind.COUNT else rejected)
            assert way.rejected == before + len(found)
            way._check()
        if not closed:
            self.delivered += events

    def change(self, at: int) -> None:
        changes = [(key, weight) for when, key, weight in self.changes if when == at]
        for key, weight in changes:
            self.remote.weights[key] = weight
        keys = np.array([key for key, _ in changes] * 2 + [99], dtype=np.int64)
        solutions = {
            row[2] for row in all_in_order(self.aggregate, self.counted, self.remote.weights)
        }
        for way in self.ways:
            lost = way.change(keys)
            assert lost.keys.tolist() == sorted(
                {event[1] for event in self.counted} & {key for key, _ in changes} - solutions
            )
            for time, key, total in zip(
                lost.times.tolist(), lost.keys.tolist(), lost.parts[0].tolist(), strict=True
            ):
                its = [event for event in self.counted if event[1] == key]
                assert time == max(event[0] for event in its)
                assert math.isnan(total) or total == aggregate_of(
                    self.aggregate, [event[2] for event in its]
                )
            way._check()

    def restart(self) -> None:
        rejected = [way.rejected for way in self.ways]
        saved = [way.snapshot() for way in self.ways]
        self.ways = [made(way, self.k, self.aggregate, self.remote, self.seed) for way in WAYS]
        for way, snapshot in zip(self.ways, saved, strict=True):
            way.resume(snapshot)
        assert [way.rejected for way in self.ways] == rejected
        for way in self.ways:
            way._check()

    def remove(self) -> None:
        key = self.chance.randrange(KEYS)
        for way in self.ways:
            way.remove(np.array([key, 99]))
            way._check()
        self.delivered = [event for event in self.delivered if event[1] != key]
        self.counted = [event for event in self.counted if event[1] != key]

    def inside(self, window: int) -> list[Event]:
        opens, closes = self.windows.bounds(window)
        return [event for event in self.delivered if opens < event[3] <= closes]

    def close_before(self, window: int) -> None:
        for way in self.ways:
            way.close_before(window)
            way._check()
        self.counted = [event for event in self.counted if self.windows.last(event[3]) >= window]

    def ask(self, window: int) -> None:
        self.window = window
        counted = self.aggregate is AggregateKind.COUNT
        self.counted = [
            event for event in self.inside(window) if counted or not math.isnan(event[2])
        ]
        expected = all_in_order(self.aggregate, self.inside(window), self.remote.weights)
        tops = [way.top(window) for way in self.ways]
        assert len({as_bytes(top) for top in tops}) == 1
        for way, top in zip(self.ways, tops, strict=True):
            way._check()
            assert top.window == window
            assert listed(top.rows, top.merits) == expected[: self.k]
            assert way.held().keys.tolist() == [row[2] for row in expected]
            assert len(way) == len(expected)


@pytest.mark.parametrize("way", WAYS)
def test_follows_the_contract(way: type[KeyedAggregate]) -> None:
    structure: TopK = way(1, "count", FirstPart())
    assert structure.k == 1
    assert len(structure.top(0)) == 0


@pytest.mark.parametrize("way", WAYS)
def test_what_is_gone_leaves_nothing_behind_in_a_sum(way: type[KeyedAggregate]) -> None:
    chance = random.Random(3)
    sums = way(1, "sum", FirstPart())
    recent: list[float] = []
    for window in range(2_000):
        values = [chance.choice([0.1, 1e16, -1e16, 1 / 3, 1e-9]) for _ in range(3)]
        recent = [*recent, *values][-6:]
        sums.add(window, window + 1, rows_of([(window, 0, value) for value in values]))
        assert sums.top(window).merits.tolist() == [math.fsum(recent)]
    sums.add(2_001, 2_001, rows_of([(2_001, 0, 0.1), (2_001, 0, 0.2)]))
    assert sums.top(2_001).merits.tolist() == [math.fsum([0.1, 0.2])]
    sums._check()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("aggregate", ["sum", "avg"])
def test_infinities_of_both_signs_have_no_sum_until_one_is_gone(
    way: type[KeyedAggregate], aggregate: str
) -> None:
    sums = way(2, aggregate, FirstPart())
    sums.add(0, 0, rows_of([(1, 0, math.inf), (1, 1, 5.0)]))
    sums.add(0, 1, rows_of([(2, 0, -math.inf)]))
    sums.add(1, 2, rows_of([(3, 0, 1.0)]))
    assert sums.top(0).rows.keys.tolist() == [1]
    assert sums.change(np.array([0, 1])).keys.tolist() == [0]
    assert sums.top(1).merits.tolist() == [-math.inf]
    assert sums.top(2).merits.tolist() == [1.0]


@pytest.mark.parametrize("way", WAYS)
def test_a_key_that_sums_to_nothing_is_alive(way: type[KeyedAggregate]) -> None:
    sums = way(2, "sum", FirstPart())
    sums.add(0, 0, rows_of([(1, 0, 5.0), (2, 0, -5.0)]))
    assert listed(sums.top(0).rows, sums.top(0).merits) == [(0.0, 2, 0, 0.0)]
    assert len(sums.top(1)) == 0


def test_a_scoring_that_makes_something_of_no_aggregate_is_not_believed() -> None:
    class Always(FirstPart):
        def merits(self, keys: AnyArray, parts: tuple[FloatArray, ...]) -> FloatArray:
            return np.ones(len(keys))

    sums = ThresholdView(2, "sum", Always())
    sums.add(0, 0, rows_of([(1, 0, math.inf), (1, 0, -math.inf), (1, 1, 0.0)]))
    assert sums.top(0).rows.keys.tolist() == [1]


@pytest.mark.parametrize("way", WAYS)
def test_counts_need_no_values(way: type[KeyedAggregate]) -> None:
    counts = way(1, "count", FirstPart())
    keys = np.array([3, 3, 1])
    counts.add(0, 0, Rows(np.array([5, 4, 6]), keys, keys, ()))
    assert listed(counts.top(0).rows, counts.top(0).merits) == [(2.0, 5, 3, 2.0)]


@pytest.mark.parametrize("way", WAYS)
def test_what_the_caller_does_with_its_arrays_afterwards_does_not_matter(
    way: type[KeyedAggregate],
) -> None:
    sums = way(1, "sum", FirstPart())
    rows = rows_of([(1, 0, 5.0)])
    sums.add(0, 0, rows)
    rows.parts[0][:], rows.times[:], rows.keys[:] = 7.0, 9, 3
    assert listed(sums.top(0).rows, sums.top(0).merits) == [(5.0, 1, 0, 5.0)]


def test_only_touched_keys_are_scored_by_the_view() -> None:
    remote = Remote(np.ones(100))
    sums = ThresholdView(1, "sum", remote)
    sums.add(0, 5, rows_of([(1, key, float(key)) for key in range(100)]))
    sums.top(0)
    sums.add(1, 1, rows_of([(2, 7, 1.0)]))
    sums.add(1, 2, rows_of([(3, 8, 1.0)]))
    remote.asked.clear()
    sums.top(1)
    assert sorted(np.concatenate(remote.asked).tolist()) == [7, 8]
    remote.asked.clear()
    sums.top(2)
    assert np.concatenate(remote.asked).tolist() == [7]
    remote.asked.clear()
    remote.weights[55] = 9.0
    sums.change(np.array([55]))
    assert sums.top(3).rows.keys.tolist() == [55]
    assert set(np.concatenate(remote.asked).tolist()) == {8, 55}


def test_a_view_lets_its_bar_down_seldom() -> None:
    chance = np.random.default_rng(5)
    sums = ThresholdView(5, "sum", Remote(np.ones(2_000)))
    for window in range(100):
        keys = chance.integers(0, 2_000, 20)
        times = np.full(20, window)
        sums.add(window, window + 9, Rows(times, keys, keys, (chance.random(20),)))
        sums.top(window)
    assert sums.refills < 20
    assert sums.members < 100


def test_the_cheaper_way_is_gone_and_the_other_tried_now_and_then() -> None:
    chooser = Chooser(2)
    assert chooser.choose([1, 1]) == 0
    chooser.note(0, 9_000, 10.0)
    assert chooser.choose([1, 1]) == 1
    chooser.note(1, 9_000, 1.0)
    ways = []
    for _ in range(1_000):
        way = chooser.choose([9_000, 9_000])
        ways.append(way)
        chooser.note(way, 9_000, 10.0 if way == 0 else 1.0)
    assert 1 <= ways.count(0) <= 4
    for _ in range(100):
        chooser.note(1, 9_000, 100.0)
    assert [chooser.choose([9_000, 1_000]) for _ in range(2)] == [1, 0], (
        "a trial, and no other at once"
    )


def test_both_ways_are_gone_at_run_time() -> None:
    now = [0.0]

    class Noted(WindowedAggregate):
        gone: list[str]

        def _score_all(self) -> None:
            now[0] += 1.0
            self.gone.append("all")
            super()._score_all()

        def _score_touched(self, touched: list[object]) -> None:  # type: ignore[override]
            now[0] += 100.0
            self.gone.append("touched")
            super()._score_touched(touched)  # type: ignore[arg-type]

    sums = Noted(1, "sum", FirstPart(), lambda: now[0])
    sums.gone = []
    for window in range(6):
        sums.add(window, window, rows_of([(window, 0, 1.0)]))
        sums.top(window)
    assert sums.gone[:3] == ["all", "touched", "all"]


@pytest.mark.parametrize("way", WAYS)
def test_what_can_not_be_is_refused(way: type[KeyedAggregate]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        way(0, "sum", FirstPart())
    with pytest.raises(ValueError, match="median"):
        way(1, "median", FirstPart())
    sums = way(1, "sum", FirstPart())
    with pytest.raises(ValueError, match="from zero, not -4"):
        sums.add(0, 0, rows_of([(1, -4, 1.0)]))
    sums.top(3)
    with pytest.raises(ValueError, match="window 2 has closed"):
        sums.top(2)
    with pytest.raises(ValueError, match="windows 1 to 2 have closed"):
        sums.add(1, 2, rows_of([]))
    assert sums.add(2, 1, rows_of([(1, 0, math.nan), (1, 1, 1.0)])).tolist() == [0]
    assert len(sums.top(3)) == 0


@pytest.mark.parametrize("way", WAYS)
def test_other_bytes_are_no_snapshot(way: type[KeyedAggregate]) -> None:
    sums = way(1, "sum", FirstPart())
    sums.add(0, 3, rows_of([(1, 2, 0.1)]))
    packed = sums.snapshot()
    again = way(1, "sum", FirstPart())
    again.resume(packed)
    assert again.top(0).merits.tolist() == [0.1]
    for wrong in (
        b"",
        packed[:-20],
        pack("aggregate", 1, State({}, {})),
        pack("list", 1, State({}, {})),
        way(1, "avg", FirstPart()).snapshot(),
    ):
        with pytest.raises(SnapshotError):
            way(1, "sum", FirstPart()).resume(wrong)


@pytest.mark.parametrize("aggregate", list(AggregateKind))
@pytest.mark.parametrize("way", WAYS)
def test_how_arrivals_are_cut_and_ordered_changes_no_byte(
    way: type[KeyedAggregate], aggregate: AggregateKind
) -> None:
    chance = random.Random(11)
    pool = [0.0, -0.0, 0.1, 1e16, -1e16, 0.3, 1e-200]
    panes = [
        [(chance.randrange(9), chance.randrange(6), chance.choice(pool)) for _ in range(40)]
        for _ in range(12)
    ]
    seen = set()
    for size in (1, 3, 40):
        structure = way(6, aggregate, FirstPart())
        answers: list[bytes] = []
        for window, pane in enumerate(panes):
            shuffled = chance.sample(pane, len(pane))
            for start in range(0, len(pane), size):
                structure.add(window, window + 3, rows_of(shuffled[start : start + size]))
            answers += as_bytes(structure.top(window))
        seen.add(tuple(answers))
    assert len(seen) == 1


@pytest.mark.parametrize("aggregate", list(AggregateKind))
@pytest.mark.parametrize("way", WAYS)
def test_many_keys_that_become_more(
    way: type[KeyedAggregate], aggregate: AggregateKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    chance = np.random.default_rng(13)
    remote = Remote(chance.random(5_000))
    structure = way(20, aggregate, remote)
    events: list[tuple[int, Rows]] = []
    for window in range(14):
        count = int(chance.choice([10, 400, 40_000]))
        keys = chance.integers(0, 300 * (window + 1), count)
        values = np.round(chance.normal(size=count) * 100, int(chance.integers(0, 3)))
        rows = Rows(chance.integers(window * 9, window * 9 + 9, count), keys, keys, (values,))
        events = [*events, (window, rows)][-4:]
        structure.add(window, window + 3, rows)
        changed = chance.integers(0, 5_000, 30)
        remote.weights[changed] = np.where(chance.random(30) < 0.2, np.nan, chance.random(30))
        structure.change(changed)
        top = structure.top(window)
        structure._check()
        all_keys = np.concatenate([each.keys for _, each in events])
        all_values = np.concatenate([each.parts[0] for _, each in events])
        in_order = np.argsort(all_keys, kind="stable")
        ends = np.searchsorted(all_keys[in_order], np.arange(1, 5_000))
        by_key = np.split(all_values[in_order], ends)
        afresh = np.array(
            [
                aggregate_of(aggregate, of_key.tolist()) if len(of_key) else np.nan
                for of_key in by_key
            ]
        )
        merits = afresh * remote.weights
        expected = np.sort(merits[~np.isnan(merits)])[::-1][:20]
        assert top.merits.tolist() == expected.tolist()
        assert top.rows.parts[0].tolist() == afresh[top.rows.keys].tolist()


def test_the_benchmark_compares_what_gives_the_same_answers() -> None:
    costs = core_aggregates.figures(3, (core_aggregates.Case("small", 300, 500, 5),))
    assert {cost.aggregate for cost in costs} == {"count", "sum", "avg", "max"}
    assert {"dense", "threshold view", "chosen at run time", "numpy recompute"} <= {
        cost.way for cost in costs
    }


SEVERAL = (
    AggregateKind.SUM,
    AggregateKind.COUNT,
    AggregateKind.MAX,
    AggregateKind.AVG,
    AggregateKind.MIN,
)


class Sum:
    """Scores several aggregates: each must have its own column."""

    def merits(self, keys: AnyArray, parts: tuple[FloatArray, ...]) -> FloatArray:
        with np.errstate(invalid="ignore", over="ignore"):
            merits: FloatArray = parts[0] - 2 * parts[-1]
        return merits

    def reach(
        self, lows: tuple[float, ...], highs: tuple[float, ...], keys: AnyArray | None = None
    ) -> float:
        return math.inf


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(SEVERAL), min_size=1, max_size=5),
    st.lists(
        st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), plain | odd), max_size=9),
        max_size=9,
    ),
)
def test_several_aggregates_are_each_what_it_is_alone(
    aggregates: list[AggregateKind], panes: list[list[tuple[int, int, float]]]
) -> None:
    for way in WAYS:
        together = way(99, aggregates, Sum())
        alone = [way(99, each, FirstPart()) for each in aggregates]
        for window, pane in enumerate(panes):
            rows = rows_of(pane)
            together.add(
                window,
                window + 2,
                Rows(rows.times, rows.keys, rows.keys, rows.parts * len(aggregates)),
            )
            for each in alone:
                each.add(window, window + 2, rows)
            top = together.top(window)
            together._check()
            keys = together.inside()
            for column, each in zip(together.aggregates(keys), alone, strict=True):
                each.top(window)
                assert column.tobytes() == each.aggregates(keys)[0].tobytes()
            assert top.merits.tolist() == together.merits(top.rows.keys).tolist()
            if window % 3 == 2:
                saved = together.snapshot()
                together = way(99, aggregates, Sum())
                together.resume(saved)


@THOROUGH
@settings(max_examples=40, deadline=None)
@given(st.data(), st.integers(1, 9))
def test_what_is_withdrawn_is_as_if_it_had_never_come(data: st.DataObject, seed: int) -> None:
    chance = random.Random(seed)
    event = st.tuples(st.integers(0, 9), st.integers(0, KEYS - 1), plain | odd)
    ways = [way(3, SEVERAL, Sum()) for way in WAYS]
    held: list[tuple[int, tuple[int, int, float]]] = []
    for window in range(6):
        held = [each for each in held if each[0] >= window]
        for last in (window, window + 2, window + 2):
            pane = data.draw(st.lists(event, max_size=6))
            for way in ways:
                way.add(window, last, fivefold(rows_of(pane)))
            held += [(last, each) for each in pane]
        for way in ways:
            way.top(window)
        gone = chance.sample(held, chance.randint(0, len(held)))
        for each in gone:
            held.remove(each)

        def left(
            last: int, keys: IntArray, held: list[tuple[int, tuple[int, int, float]]] = held
        ) -> Rows:
            return fivefold(
                rows_of([row for at, row in held if at == last and row[1] in keys.tolist()])
            )

        rows = fivefold(rows_of([row for _, row in gone]))
        afresh = DenseAggregate(3, SEVERAL, Sum())
        for last, row in held:
            afresh.add(window, last, fivefold(rows_of([row])))
        expected = as_bytes(afresh.top(window))
        for way in ways:
            way.withdraw(
                np.array([last for last, _ in gone], dtype=np.int64), rows.keys, rows.parts, left
            )
            way._check()
            assert as_bytes(way.top(window)) == expected


def fivefold(rows: Rows) -> Rows:
    return Rows(rows.times, rows.keys, rows.keys, rows.parts * len(SEVERAL))


def test_equals_stand_in_the_order_of_what_their_keys_stand_for() -> None:
    names = np.array(list("dbacfe"), dtype=object)
    for way in (DenseAggregate, ThresholdView):
        counts = way(2, "count", FirstPart(), names.__getitem__)
        keys = np.arange(6)
        counts.add(0, 3, Rows(np.zeros(6, dtype=np.int64), keys, keys, ()))
        for window in range(3):
            assert names[counts.top(window).rows.keys].tolist() == ["a", "b"]
            counts.change(keys[window:])
            counts._check()
        assert names[counts.held().keys].tolist() == list("abcdef")
