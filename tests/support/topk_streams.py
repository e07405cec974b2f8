"""Test kit of top-k structures: random streams, the truth by brute force, and runs of both."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from acquatop.topk.contract import AnyArray, Certainty, FloatArray, Rows, Scoring, Top
from acquatop.topk.order import ranking
from acquatop.topk.pane_dominance import PaneDominance
from acquatop.topk.papers.mintopk.mintopk import MinTopk
from acquatop.topk.papers.mintopk.pretopk import PreTopk
from acquatop.topk.papers.mintopk.super_mtkn import SuperMTKN
from acquatop.windows import Windows

NAN, INF = math.nan, math.inf


@dataclass(frozen=True)
class Structure:
    """A way to make a structure, with its features: changes and removals, repeated identities."""

    build: Callable[[int, int, Scoring], Any]
    changes: bool = True
    recurring: bool = True


STRUCTURES = {
    "super_mtkn": Structure(SuperMTKN),
    "super_mtkn_distinct": Structure(
        lambda k, n, of: SuperMTKN(k, n, of, distinct=True), recurring=False
    ),
    "mintopk": Structure(lambda k, n, of: MinTopk(k, of), changes=False, recurring=False),
    "pretopk": Structure(lambda k, n, of: PreTopk(k, of), changes=False, recurring=False),
    "pane_dominance": Structure(PaneDominance),
    "pane_dominance_distinct": Structure(
        lambda k, n, of: PaneDominance(k, n, of, distinct=True), recurring=False
    ),
    "pane_dominance_fixed": Structure(
        lambda k, n, of: PaneDominance(k, n, of, distinct=True, fixed=True),
        changes=False,
        recurring=False,
    ),
}
CHANGING = [name for name, structure in STRUCTURES.items() if structure.changes]
RECURRING = [name for name, structure in STRUCTURES.items() if structure.recurring]


# The world: arrivals, and a remote whose values change ------------------------------------------


@dataclass(frozen=True)
class Arrival:
    """One arrival. The merit is ``x - y`` plus the remote's value of the key."""

    time: int
    identity: Any
    key: Any
    x: float
    y: float = 0.0
    number: int = 0
    """The number of arrivals before it."""


@dataclass
class Joined:
    """Scoring that rises with one part and falls with another; keys without a value count as 0."""

    values: dict[Any, float] = field(default_factory=dict)

    def merits(self, keys: AnyArray, parts: tuple[FloatArray, ...]) -> FloatArray:
        with np.errstate(invalid="ignore"):
            return parts[0] - parts[1] + self._of(keys)

    def reach(
        self, lows: tuple[float, ...], highs: tuple[float, ...], keys: AnyArray | None = None
    ) -> float:
        if keys is None:
            return INF
        with np.errstate(invalid="ignore"):
            best = highs[0] - lows[1] + self._of(keys)
        # Where the corner of the ranges is infinity minus infinity,
        # all inside is minus infinity or nothing.
        return float(max([-INF, *best[~np.isnan(best)].tolist()]))

    def _of(self, keys: AnyArray) -> FloatArray:
        return np.array([self.values.get(key, 0.0) for key in keys.tolist()], dtype=np.float64)


def rows_of(arrivals: Iterable[Arrival]) -> Rows:
    each = list(arrivals)
    return Rows(
        np.array([arrival.time for arrival in each], dtype=np.int64),
        column(arrival.identity for arrival in each),
        column(arrival.key for arrival in each),
        (np.array([arrival.x for arrival in each]), np.array([arrival.y for arrival in each])),
        (
            np.array([arrival.number for arrival in each], dtype=np.int64),
            column(f"{arrival.identity}@{arrival.time}" for arrival in each),
        ),
    )


def column(values: Iterable[Any]) -> AnyArray:
    each = list(values)
    if each and isinstance(each[0], int):
        return np.array(each)
    objects = np.empty(len(each), dtype=object)
    objects[:] = each
    return objects


@dataclass
class Truth:
    """All arrivals by window: the answers by brute force."""

    windows: Windows
    scoring: Joined
    arrivals: list[Arrival] = field(default_factory=list)

    def best(self, window: int, k: int) -> tuple[Rows, FloatArray]:
        newest: dict[Any, Arrival] = {}
        for arrival in self.arrivals:
            if self.windows.first(arrival.time) <= window <= self.windows.last(arrival.time):
                older = newest.get(arrival.identity)
                if older is None or arrival.time >= older.time:
                    newest[arrival.identity] = arrival
        rows = rows_of(newest.values())
        merits = self.scoring.merits(rows.keys, rows.parts)
        scored = np.flatnonzero(~np.isnan(merits))
        rows, merits = rows.take(scored), merits[scored]
        order = ranking(merits, rows.times, rows.identities)[:k]
        return rows.take(order), merits[order]


# Random streams ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Add:
    arrivals: tuple[Arrival, ...]


@dataclass(frozen=True)
class Change:
    values: dict[Any, float]


@dataclass(frozen=True)
class Remove:
    identities: tuple[Any, ...]


@dataclass(frozen=True)
class Resize:
    n: int


@dataclass(frozen=True)
class Lose:
    """An arrival that never reaches the structure; it replaces nothing."""

    arrival: Arrival


@dataclass(frozen=True)
class Answer:
    """Step: the window is complete; ask for its best, then close it."""

    window: int


Step = Add | Change | Remove | Resize | Lose | Answer


@dataclass(frozen=True)
class Shape:
    """Parameters of a random stream."""

    seed: int
    windows: Windows
    k: int
    n: int
    levels: int = 1000
    lateness: int = 0
    counted: bool = False
    text: bool = False
    extremes: bool = False
    recurring: bool = False
    changes: bool = False
    keys: str = "own"
    """Keys of identities: one each, the same as the identity; or shared ones; or both."""
    size: int = 40

    def steps(self) -> list[Step]:
        return list(_Stream(self, random.Random(self.seed)).steps())


@dataclass
class _Stream:
    shape: Shape
    chance: random.Random
    now: int = 0
    batch: list[Arrival] = field(default_factory=list)
    next_window: int = 0

    def steps(self) -> Iterator[Step]:
        self.next_window = self.shape.windows.first(-self.shape.lateness)
        for number in range(self.shape.size):
            self._go_on()
            self.batch.append(self._arrival(number))
            if self.chance.random() < 0.3:
                yield from self._flush()
            if self.shape.changes and self.chance.random() < 0.2:
                yield from self._change()
            if self.chance.random() < 0.5:
                yield from self._answers(self.now - self.shape.lateness - 1)
        yield from self._answers(
            self.now + self.shape.windows.width_ms + self.shape.windows.slide_ms
        )

    def _go_on(self) -> None:
        if self.shape.counted:
            self.now += 1
        else:
            gap = (
                self.chance.randrange(3 * self.shape.windows.width_ms + 2)
                if self.chance.random() < 0.05
                else 0
            )
            self.now += self.chance.choice([0, 0, 1, 1, 2]) + gap

    def _arrival(self, number: int) -> Arrival:
        shape, chance = self.shape, self.chance
        name: Any = chance.randrange(7) if shape.recurring else number
        time = self.now - chance.randrange(shape.lateness + 1)
        return Arrival(
            time, self._name(name), self._key_of(name), self._number(), self._number(), number
        )

    def _key_of(self, name: int) -> Any:
        return self._name(
            {"own": name, "shared": 500 + name % 5, "mixed": name % 5}[self.shape.keys]
        )

    def _name(self, number: int) -> Any:
        return f"a{number:04}" if self.shape.text else number

    def _number(self) -> float:
        if self.shape.extremes and self.chance.random() < 0.15:
            return self.chance.choice([INF, -INF, NAN])
        return float(self.chance.randrange(self.shape.levels))

    def _flush(self) -> Iterator[Step]:
        if self.batch:
            yield Add(tuple(self.batch))
            self.batch = []

    def _change(self) -> Iterator[Step]:
        # What has arrived has been scored with the values of its time.
        yield from self._flush()
        names = [
            name
            for name in range(7 if self.shape.recurring else self.shape.size)
            if self.chance.random() < 0.3
        ]
        kind = self.chance.random()
        if kind < 0.1:
            yield Remove(tuple(self._name(name) for name in names[:2]))
        elif kind < 0.2:
            yield Resize(self.chance.choice([0, 1, self.shape.n, self.shape.n + 2]))
        elif kind < 0.3 and self.shape.keys != "mixed":
            name = 1000 + self.chance.randrange(1000)
            yield Lose(
                Arrival(
                    self.now,
                    self._name(name),
                    self._key_of(name),
                    self._number(),
                    self._number(),
                    name,
                )
            )
        else:
            yield Change(
                {
                    self._key_of(name): NAN if self.chance.random() < 0.2 else self._number()
                    for name in names
                }
            )

    def _answers(self, until: int) -> Iterator[Step]:
        yield from self._flush()
        while self.shape.windows.bounds(self.next_window)[1] <= until:
            yield Answer(self.next_window)
            self.next_window += 1


def windows() -> st.SearchStrategy[Windows]:
    """Windows of every kind: overlapping evenly or not, side by side, with gaps;
    with a start and without.
    """
    return st.builds(
        Windows, st.integers(1, 20), st.integers(1, 12), st.sampled_from([None, 0, -7, 3])
    )


def shapes(**fixed: Any) -> st.SearchStrategy[Shape]:
    drawn: dict[str, Any] = {
        "seed": st.integers(0, 2**32),
        "windows": windows(),
        "k": st.integers(1, 5),
        "n": st.integers(0, 4),
        "levels": st.sampled_from([1, 3, 1000]),
        "lateness": st.sampled_from([0, 0, 5, 15]),
        "counted": st.booleans(),
        "text": st.booleans(),
        "extremes": st.booleans(),
        "keys": st.sampled_from(["own", "own", "shared", "mixed"]),
    }
    return st.builds(Shape, **drawn | {name: st.just(value) for name, value in fixed.items()})


# A run ------------------------------------------------------------------------------------------


@dataclass
class Run:
    """Run of one structure over one stream, with the truth beside it.

    ``cut`` splits each batch into random pieces. ``save`` at times replaces the structure by a copy
    that was restored from a snapshot. ``peek`` at times makes requests that must have no effect.
    """

    structure: Any
    scoring: Joined
    windows: Windows
    cut: random.Random | None = None
    save: random.Random | None = None
    peek: bool = False
    loses: bool = True
    """True to include the steps that lose something for good."""
    prunes: bool = False
    """True to hand in only the best of what arrives together, as executors do."""
    tops: list[Top] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.empty = copy.deepcopy(self.structure, {id(self.scoring): self.scoring})
        self.truth = Truth(self.windows, self.scoring)
        self.waiting: set[int] = set()
        self.current = -(10**9)
        self.rejected = 0

    def over(self, steps: Iterable[Step]) -> list[Top]:
        for step in steps:
            if isinstance(step, Lose | Resize) and not self.loses:
                continue
            getattr(self, f"_{type(step).__name__.lower()}")(step)
            self.structure._check()
            assert self.structure.rejected == self.rejected
            if self.peek:
                self._look_around()
            if self.save and self.save.random() < 0.3:
                saved = self.structure.snapshot()
                self.structure = copy.deepcopy(self.empty, {id(self.scoring): self.scoring})
                self.structure.resume(saved)
                self.structure._check()
        return self.tops

    def _add(self, step: Add) -> None:
        self.truth.arrivals += step.arrivals
        self._give(step.arrivals)

    def _give(self, arrivals: Iterable[Arrival]) -> None:
        panes: dict[tuple[int, int], list[Arrival]] = {}
        for arrival in arrivals:
            span = (
                max(self.current, self.windows.first(arrival.time)),
                self.windows.last(arrival.time),
            )
            if span[0] <= span[1]:
                panes.setdefault(span, []).append(arrival)
        for span, each in panes.items():
            for piece in self._pieces(self._pruned(span, each) if self.prunes else each):
                rejected = self.structure.add(*span, rows_of(piece))
                self.rejected += len(rejected)
                self.waiting |= {piece[at].number for at in rejected.tolist()}

    def _pruned(self, span: tuple[int, int], arrivals: list[Arrival]) -> list[Arrival]:
        """Return the best k + n, and those without a merit; tell the structure of the others."""
        rows = rows_of(arrivals)
        merits = self.scoring.merits(rows.keys, rows.parts)
        scored = np.flatnonzero(~np.isnan(merits))
        some = rows.take(scored)
        order = ranking(merits[scored], some.times, some.identities)
        left_out = scored[order[self.structure.k + self.structure.n :]]
        if len(left_out):
            lows, highs = (tuple(map(of, rows.parts)) for of in (np.min, np.max))
            self.structure.note_pruned(*span, lows, highs)
        return [each for at, each in enumerate(arrivals) if at not in set(left_out.tolist())]

    def _pieces(self, arrivals: list[Arrival]) -> Iterator[list[Arrival]]:
        start = 0
        while start < len(arrivals):
            stop = start + self.cut.randrange(1, 4) if self.cut else len(arrivals)
            yield arrivals[start:stop]
            start = stop

    def _change(self, step: Change) -> None:
        self.scoring.values.update(step.values)
        left = self.structure.change(column(step.values))
        if len(left):
            self.waiting |= set(left.carried[0].tolist())
        self._give(
            [each for each in self.truth.arrivals if self._comes_back(each, set(step.values))]
        )

    def _comes_back(self, arrival: Arrival, keys: set[Any]) -> bool:
        """Say whether an arrival that waits has a merit by now;
        one that has been replaced waits no more.
        """
        if arrival.number not in self.waiting:
            return False
        if self._is_replaced(arrival):
            self.waiting.discard(arrival.number)
            return False
        rows = rows_of([arrival])
        comes_back = (
            arrival.key in keys and not np.isnan(self.scoring.merits(rows.keys, rows.parts)).any()
        )
        if comes_back:
            self.waiting.discard(arrival.number)
        return comes_back

    def _is_replaced(self, arrival: Arrival) -> bool:
        """Say whether a newer arrival is in all open windows that an arrival is in."""
        oldest = max(self.current, self.windows.first(arrival.time))
        return any(
            each.identity == arrival.identity
            and (each.time, each.number) > (arrival.time, arrival.number)
            and self.windows.first(each.time) <= oldest
            for each in self.truth.arrivals
        )

    def _remove(self, step: Remove) -> None:
        self.structure.remove(column(step.identities))
        self.truth.arrivals = [
            each for each in self.truth.arrivals if each.identity not in step.identities
        ]

    def _resize(self, step: Resize) -> None:
        self.structure.resize(step.n)

    def _lose(self, step: Lose) -> None:
        rows = rows_of([step.arrival])
        parts = (step.arrival.x, step.arrival.y)
        merit = float(self.scoring.merits(rows.keys, rows.parts)[0])
        span = (
            max(self.current, self.windows.first(step.arrival.time)),
            self.windows.last(step.arrival.time),
        )
        if span[0] <= span[1] and not any(map(math.isnan, parts)):
            self.truth.arrivals.append(step.arrival)
            self.structure.note_lost(*span, -INF if math.isnan(merit) else merit, parts, parts)

    def _answer(self, step: Answer) -> None:
        top = self.structure.top(step.window)
        self.structure._check()
        assert_right(top, *self.truth.best(step.window, self.structure.k), self.structure.k)
        self.tops.append(top)
        self.current = step.window + 1
        self.structure.close_before(self.current)
        self.truth.arrivals = [
            each for each in self.truth.arrivals if self.windows.last(each.time) >= self.current
        ]

    def _look_around(self) -> None:
        held = self.structure.held()
        assert len(held) <= len(self.structure)
        if hasattr(self.structure, "predicted") and self.truth.arrivals:
            newest = self.windows.last(max(each.time for each in self.truth.arrivals))
            for window in range(max(self.current, newest - 3), newest + 1):
                top = self.structure.predicted(window)
                assert_right(top, *self.truth.best(window, self.structure.k), self.structure.k)
                assert not len(top) or set(top.rows.carried[0].tolist()) <= set(
                    held.carried[0].tolist()
                )


def run(name: str, shape: Shape, **ways: Any) -> list[Top]:
    """Run a structure over a stream, and return its answers; those that it says are exact are."""
    structure = STRUCTURES[name]
    if not structure.changes:
        shape = replace(shape, changes=False)
    if not structure.recurring:
        shape = replace(shape, recurring=False)
    scoring = Joined()
    held = structure.build(shape.k, shape.n, scoring)
    return Run(held, scoring, shape.windows, **ways).over(shape.steps())


# What must be true of answers -------------------------------------------------------------------


def assert_right(top: Top, rows: Rows, merits: FloatArray, k: int) -> None:
    """Assert that an answer is right if it says so,
    and that nothing is missing above its bound if not.
    """
    assert len(top) <= k
    assert ranking(top.merits, top.rows.times, top.rows.identities).tolist() == list(
        range(len(top))
    )
    if top.certainty is Certainty.EXACT:
        assert (top.reason, top.bound) == (None, None)
        assert plain(top.rows) == plain(rows)
        assert top.merits.tolist() == merits.tolist()
    else:
        assert top.reason
        assert top.bound is not None
        there = set(zip(*plain(top.rows)[:2], strict=True))
        missing = [
            at for at, row in enumerate(zip(*plain(rows)[:2], strict=True)) if row not in there
        ]
        assert all(merits[at] <= top.bound for at in missing)


def plain(rows: Rows) -> list[list[Any]]:
    columns = (rows.times, rows.identities, rows.keys, *rows.parts, *rows.carried)
    return [each.tolist() for each in columns] if len(rows) else []


def same(top: Top) -> tuple[Any, ...]:
    """Return all of an answer in a form that compares."""
    return (top.window, plain(top.rows), top.merits.tolist(), top.certainty, top.reason, top.bound)
