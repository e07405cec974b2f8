"""A structure with holes, refilled from the windows' content, against brute force."""

from __future__ import annotations

import json
import math
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from acquatop.topk.contract import Certainty, Rows, Scoring, Top
from acquatop.topk.pane_dominance import PaneDominance
from acquatop.topk.papers.mintopk.super_mtkn import SuperMTKN
from acquatop.topk.refill.content import NEVER, WindowContent
from acquatop.topk.refill.controller import Controller, Tuning
from acquatop.topk.refill.refilled import Factory, Refilled
from acquatop.topk.snapshot import SnapshotError, State, pack, unpack

WIDTH = 3
INFINITY = math.inf


class Arrival(NamedTuple):
    """An arrival: its windows, time, identity, key, part, and serial number."""

    first: int
    last: int
    time: int
    identity: Any
    key: Any
    part: float
    serial: int


def rows(arrivals: list[Arrival], kind: Any = np.int64) -> Rows:
    return Rows(
        np.array([each.time for each in arrivals], dtype=np.int64),
        np.array([each.identity for each in arrivals], dtype=kind),
        np.array([each.key for each in arrivals], dtype=kind),
        (np.array([each.part for each in arrivals], dtype=float),),
        (np.array([each.serial for each in arrivals], dtype=np.int64),),
    )


@dataclass
class Remote:
    """Scores are the stream's part and the remote's value: no value, no score."""

    values: dict[Any, float] = field(default_factory=dict)

    def merits(self, keys: Any, parts: tuple[Any, ...]) -> Any:
        known = np.array([self.values.get(key, np.nan) for key in keys.tolist()], dtype=float)
        return np.asarray(parts[0] + known)

    def reach(self, lows: tuple[float, ...], highs: tuple[float, ...], keys: Any = None) -> float:
        if keys is None:
            return INFINITY
        known = [self.values.get(key, math.nan) for key in keys.tolist()]
        return max(
            (highs[0] + value for value in known if not math.isnan(value)), default=-INFINITY
        )


class Place(NamedTuple):
    """A rank with its merit, as :meth:`Resizable.lost` gives it."""

    order: tuple[float, int, Any]

    @property
    def merit(self) -> float:
        return -self.order[0]


class Lossy:
    """The simplest structure that keeps the contract: each window's best k+n in a list, and what it
    has dropped.
    """

    def __init__(self, k: int, n: int, scoring: Scoring) -> None:
        self.k, self.n, self.scoring = k, n, scoring
        self.rejected = 0
        self.current = -(10**9)
        self.windows: dict[int, dict[Any, tuple[float, Arrival]]] = {}
        self.dropped: dict[int, tuple[tuple[float, int, Any], float]] = {}
        self.kind: Any = np.int64

    @staticmethod
    def place(entry: tuple[float, Arrival]) -> tuple[float, int, Any]:
        return (-entry[0], -entry[1].time, entry[1].identity)

    def add(self, first: int, last: int, arrivals: Rows) -> Any:
        assert last >= max(first, self.current)
        self.kind = arrivals.identities.dtype
        merits = self.scoring.merits(arrivals.keys, arrivals.parts).tolist()
        columns = (
            arrivals.times,
            arrivals.identities,
            arrivals.keys,
            arrivals.parts[0],
            arrivals.carried[0],
        )
        came = [
            Arrival(first, last, *each)
            for each in zip(*(each.tolist() for each in columns), strict=True)
        ]
        for window in range(max(first, self.current), last + 1):
            held = self.windows.setdefault(window, {})
            for merit, arrival in zip(merits, came, strict=True):
                older = held.get(arrival.identity)
                if older is None or older[1].time <= arrival.time:
                    held[arrival.identity] = (merit, arrival)
        for window in range(max(first, self.current), last + 1):
            self.prune(window)
        rejected = np.flatnonzero(np.isnan(merits))
        self.rejected += len(rejected)
        return rejected

    def prune(self, window: int) -> None:
        held = self.windows.get(window, {})
        for identity in [identity for identity, (merit, _) in held.items() if math.isnan(merit)]:
            del held[identity]
        for entry in sorted(held.values(), key=self.place)[self.k + self.n :]:
            del held[entry[1].identity]
            best, high = self.dropped.get(window, ((INFINITY, 0, None), -INFINITY))
            self.dropped[window] = (min(best, self.place(entry)), max(high, entry[1].part))

    def change(self, keys: Any) -> Rows:
        changed, gone = set(keys.tolist()), {}
        for held in self.windows.values():
            for identity, (merit, arrival) in list(held.items()):
                if arrival.key in changed:
                    new = float(
                        self.scoring.merits(np.array([arrival.key]), (np.array([arrival.part]),))[0]
                    )
                    held[identity] = (new, arrival)
                    if math.isnan(new) and not math.isnan(merit):
                        gone[arrival.serial] = arrival
        for window, (best, high) in self.dropped.items():
            reach = self.scoring.reach((high,), (high,), keys)
            self.dropped[window] = (min(best, (-reach, -(2**62), -1)), high)
        return rows(list(gone.values()), self.kind)

    def remove(self, identities: Any) -> None:
        for held in self.windows.values():
            for identity in identities.tolist():
                held.pop(identity, None)

    def best(self, window: int) -> list[tuple[float, Arrival]]:
        self.prune(window)
        return sorted(self.windows.get(window, {}).values(), key=self.place)

    def top(self, window: int) -> Top:
        best = self.best(window)[: self.k]
        answer = rows([arrival for _, arrival in best], self.kind)
        merits = np.array([merit for merit, _ in best])
        lost = self.dropped.get(window)
        if lost is None or (len(best) == self.k and self.place(best[-1]) < lost[0]):
            return Top(window, answer, merits)
        return Top(window, answer, merits, Certainty.APPROXIMATE, "a hole", -lost[0][0])

    def lost(self, window: int) -> tuple[Any, tuple[float, ...], tuple[float, ...]] | None:
        lost = self.dropped.get(window)
        return None if lost is None else (Place(lost[0]), (), (lost[1],))

    def covering(self, window: int) -> Rows:
        return rows([arrival for _, arrival in self.best(window)], self.kind)

    def resize(self, n: int) -> None:
        self.n = n

    def close_before(self, window: int) -> None:
        self.current = max(self.current, window)
        self.windows = {index: held for index, held in self.windows.items() if index >= window}
        self.dropped = {index: lost for index, lost in self.dropped.items() if index >= window}

    def held(self) -> Rows:
        found = {
            entry[1].serial: entry for held in self.windows.values() for entry in held.values()
        }
        return rows([arrival for _, arrival in sorted(found.values(), key=self.place)], self.kind)

    def __len__(self) -> int:
        return len(self.held())

    def snapshot(self) -> bytes:
        state = {
            "k": self.k,
            "n": self.n,
            "rejected": self.rejected,
            "current": self.current,
            "kind": np.dtype(self.kind).str,
            "windows": [[window, list(held.values())] for window, held in self.windows.items()],
            "dropped": list(self.dropped.items()),
        }
        return pack("lossy", 1, State(state, {}))

    def resume(self, snapshot: bytes) -> None:
        state = unpack("lossy", 1, snapshot).settings
        self.k, self.n = state["k"], state["n"]
        self.rejected, self.current = state["rejected"], state["current"]
        self.kind = np.dtype(state["kind"])
        for window, held in state["windows"]:
            self.windows[window] = {each[3]: (merit, Arrival(*each)) for merit, each in held}
        self.dropped = {window: (tuple(best), high) for window, (best, high) in state["dropped"]}  # type: ignore[misc]

    def _check(self) -> None:
        assert all(window >= self.current for window in self.windows)


class Truth:
    """Brute force: everything that came, and each window's answer from all of it."""

    def __init__(self, k: int, remote: Remote) -> None:
        self.k, self.remote = k, remote
        self.came: list[Arrival] = []

    def top(self, window: int) -> list[tuple[int, float]]:
        newest: dict[Any, Arrival] = {}
        for each in self.came:
            if each.first <= window <= each.last and (
                each.identity not in newest or newest[each.identity].time <= each.time
            ):
                newest[each.identity] = each
        scored = [
            (each.part + self.remote.values.get(each.key, math.nan), each)
            for each in newest.values()
        ]
        ranked = sorted(
            (-merit, -each.time, each.identity, each.serial)
            for merit, each in scored
            if merit == merit
        )
        return [(serial, -minus) for minus, _, _, serial in ranked[: self.k]]

    def remove(self, identities: list[Any]) -> None:
        self.came = [each for each in self.came if each.identity not in identities]


def answer_of(top: Top) -> list[tuple[int, float]]:
    if not len(top):
        return []
    return list(zip(top.rows.carried[0].tolist(), top.merits.tolist(), strict=True))


def ticks() -> Callable[[], float]:
    """A clock that goes on a bit, never twice by the same."""
    state = [0.0, 0]

    def tick() -> float:
        state[1] += 1
        state[0] += 0.001 * (1 + state[1] * 7919 % 13)
        return state[0]

    return tick


# Programs -------------------------------------------------------------------------------------

KEYS = 4
"""Identities are from here on, so that no key is an identity."""
Step = tuple[str, Any]


VALUES = st.sampled_from([-2.0, 0.0, 1.0, 3.0, math.nan])
KINDS = {"in order": "aaaaaaaaccrwww", "ahead": "aaaabbbbccrwww", "late": "aaaabbxxccrwwwl"}


@st.composite
def programs(draw: st.DrawFn) -> list[Step]:
    """A stream cut by windows: arrivals, some of them late, changed values, removals, losses."""
    steps: list[Step] = []
    window, names = 0, draw(st.sampled_from([4, 12, 100]))
    letters = KINDS[draw(st.sampled_from(sorted(KINDS)))]
    for serial in range(draw(st.integers(1, 50))):
        what = draw(st.sampled_from(letters))
        if what in "abx":
            panes = {"a": (0, 0), "b": (0, 2), "x": (1 - WIDTH, 0)}[what]
            count = draw(st.integers(1, 5))
            steps.append(
                (
                    "add",
                    [_arrival(draw, window, panes, names, serial * 10 + at) for at in range(count)],
                )
            )
        elif what == "c":
            values = draw(st.dictionaries(st.integers(0, KEYS - 1), VALUES, min_size=1, max_size=2))
            steps.append(("change", values))
        elif what == "r":
            steps.append(
                (
                    "remove",
                    draw(st.lists(st.integers(KEYS, KEYS + names - 1), min_size=1, max_size=2)),
                )
            )
        elif what == "l":
            steps.append(("lost", (window, window + draw(st.integers(0, 1)))))
        else:
            steps.append(("top", window))
            window += 1
    return [*steps, *(("top", each) for each in range(window, window + WIDTH))]


def _arrival(
    draw: st.DrawFn, window: int, panes: tuple[int, int], names: int, serial: int
) -> Arrival:
    """An arrival in the windows from its pane's number on: its time is the pane's."""
    pane = window + draw(st.integers(*panes))
    return Arrival(
        first=pane,
        last=pane + WIDTH - 1,
        time=pane * 10 + draw(st.integers(0, 9)),
        identity=draw(st.integers(KEYS, KEYS + names - 1)),
        key=draw(st.integers(0, KEYS - 1)),
        part=float(draw(st.integers(0, 6))),
        serial=serial,
    )


def lossy(k: int, scoring: Scoring) -> Factory:
    return lambda n: Lossy(k, n, scoring)


def by_pane(k: int, scoring: Scoring) -> Factory:
    return lambda n: PaneDominance(k, n, scoring)


def by_pane_in_order(k: int, scoring: Scoring) -> Factory:
    return by_pane(k, scoring)


def by_list(k: int, scoring: Scoring) -> Factory:
    return lambda n: SuperMTKN(k, n, scoring)


@dataclass
class Run:
    """A program being run on a refilled structure, next to brute force."""

    k: int
    n: int
    make: Callable[[int, Scoring], Factory]
    batch: int = 10
    kind: Any = np.int64
    remote: Remote = field(default_factory=lambda: Remote({0: 0.0, 1: 1.0}))
    answers: list[list[tuple[int, float]]] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)
    clock: Callable[[], float] = field(default_factory=lambda: ticks())

    def __post_init__(self) -> None:
        self.truth = Truth(self.k, self.remote)
        controller = Controller(self.k, self.k + self.n)
        make, in_order = self.make(self.k, self.remote), self.make in (by_pane_in_order, by_list)
        self.refilled = Refilled(
            make, self.remote, controller, in_order=in_order, clock=lambda: self.clock()
        )

    def name(self, number: int) -> Any:
        return number if self.kind is np.int64 else f"{number:04}"

    def column(self, numbers: Any) -> Any:
        return np.array([self.name(each) for each in numbers], dtype=self.kind)

    def do(self, step: Step) -> None:
        what, argument = step
        getattr(self, f"do_{what}")(argument)
        self.refilled._check()

    def do_add(self, arrivals: list[Arrival]) -> None:
        named = [
            each._replace(identity=self.name(each.identity), key=self.name(each.key))
            for each in arrivals
        ]
        for pane in sorted({each.first for each in named}):
            together = [each for each in named if each.first == pane]
            self.truth.came += together
            for start in range(0, len(together), self.batch):
                part = together[start : start + self.batch]
                without = [
                    at
                    for at, each in enumerate(part)
                    if math.isnan(self.remote.values.get(each.key, math.nan))
                ]
                found = self.refilled.add(part[0].first, part[0].last, rows(part, self.kind))
                assert found.tolist() == without

    def do_change(self, values: dict[int, float]) -> None:
        self.remote.values.update({self.name(key): value for key, value in values.items()})
        self.refilled.change(self.column(values))

    def do_remove(self, identities: list[int]) -> None:
        self.truth.remove([self.name(each) for each in identities])
        self.refilled.remove(self.column(identities))

    def do_lost(self, span: tuple[int, int]) -> None:
        self.refilled.note_lost(*span)
        self.lost.update(range(span[0], span[1] + 1))

    def do_top(self, window: int) -> None:
        answer = self.refilled.top(window)
        assert answer_of(answer) == self.truth.top(window)
        assert (answer.certainty is Certainty.EXACT) == (window not in self.lost)
        assert (
            (answer.reason is None)
            == (answer.bound is None)
            == (answer.certainty is Certainty.EXACT)
        )
        self.answers.append(answer_of(answer))
        self.refilled.close_before(window + 1)


@settings(max_examples=60, deadline=None)
@given(program=programs(), k=st.integers(1, 4), n=st.integers(0, 3), text=st.booleans())
def test_every_answer_is_exact_and_right(program: list[Step], k: int, n: int, text: bool) -> None:
    run = Run(k, n, lossy, kind=object if text else np.int64)
    if text:
        run.remote.values.update({"0000": 0.0, "0001": 1.0})
    for step in program:
        run.do(step)


@pytest.mark.parametrize("make", [by_pane, by_pane_in_order, by_list])
@settings(max_examples=60, deadline=None)
@given(program=programs(), k=st.integers(1, 4), n=st.integers(0, 3))
def test_every_answer_is_exact_and_right_with_real_structures(
    make: Callable[[int, Scoring], Factory], program: list[Step], k: int, n: int
) -> None:
    run = Run(k, n, make)
    for step in program:
        run.do(step)


@settings(max_examples=60, deadline=None)
@given(program=programs(), k=st.integers(1, 4))
def test_rows_depend_neither_on_n_nor_on_how_arrivals_are_cut(program: list[Step], k: int) -> None:
    runs = [Run(k, n, lossy, batch) for n, batch in [(0, 10), (2, 1), (50, 2)]]
    for run in runs:
        for step in program:
            run.do(step)
    assert runs[0].answers == runs[1].answers == runs[2].answers


@settings(max_examples=60, deadline=None)
@given(
    program=programs(),
    k=st.integers(1, 4),
    n=st.integers(0, 3),
    at=st.integers(0, 30),
    array=st.booleans(),
)
def test_it_goes_on_from_a_snapshot_as_if_nothing_had_been(
    program: list[Step], k: int, n: int, at: int, array: bool
) -> None:
    make = by_pane if array else lossy
    whole, cut = Run(k, n, make), Run(k, n, make)
    for number, step in enumerate(program):
        if number == at:
            whole.clock, cut.clock = ticks(), ticks()
            saved, controller = cut.refilled.snapshot(), Controller(k, k + n)
            cut.refilled = Refilled(
                make(k, cut.remote), cut.remote, controller, clock=lambda: cut.clock()
            )
            cut.refilled.resume(saved)
            cut.refilled._check()
        whole.do(step)
        cut.do(step)
        assert cut.refilled.controller.state() == whole.refilled.controller.state()
    assert cut.answers == whole.answers
    for name in ("refills", "n", "rejected", "updates"):
        assert getattr(cut.refilled, name) == getattr(whole.refilled, name)


# What is distinct -----------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    program=programs(),
    k=st.integers(1, 4),
    n=st.integers(0, 3),
    again=st.booleans(),
    in_order=st.booleans(),
)
def test_where_every_arrival_counts_what_is_added_again_counts_once(
    program: list[Step], k: int, n: int, again: bool, in_order: bool
) -> None:
    def make(k: int, scoring: Scoring) -> Factory:
        return lambda n: PaneDominance(k, n, scoring, distinct=True)

    run = Run(k, n, make)
    run.refilled = Refilled(
        make(k, run.remote),
        run.remote,
        Controller(k, k + n, Tuning(limit=50)),
        distinct=True,
        in_order=in_order,
        clock=ticks(),
    )
    waiting: list[Arrival] = []
    current = 0
    for what, argument in program:
        if what == "remove":
            continue
        if what == "add":
            argument = [each._replace(identity=each.serial) for each in argument]
            waiting += [
                each for each in argument if math.isnan(run.remote.values.get(each.key, math.nan))
            ]
        run.do((what, argument))
        current += what == "top"
        if what == "change" and again:
            known = [
                each
                for each in waiting
                if not math.isnan(run.remote.values.get(each.key, math.nan))
            ]
            waiting = [each for each in waiting if each not in known]
            for each in known:
                if each.last >= current:
                    assert not len(run.refilled.add(each.first, each.last, rows([each])))


# Single things --------------------------------------------------------------------------------


def arrival(pane: int, identity: int, part: float, key: int = 1, at: int = 0) -> Arrival:
    return Arrival(
        pane,
        pane + WIDTH - 1,
        pane * 10 + at,
        identity,
        key,
        part,
        identity * 1000 + pane * 10 + at,
    )


def test_a_hole_is_refilled_once_and_counted() -> None:
    run = Run(2, 0, by_pane)
    run.do_add([arrival(0, 10 + at, float(at)) for at in range(6)])
    run.do_top(0)
    assert (run.refilled.refills, run.refilled.n) == (0, 0)
    run.do_add([arrival(1, 15, 0.5)])
    run.do_top(1)
    assert run.answers == [[(15000, 6.0), (14000, 5.0)], [(14000, 5.0), (13000, 4.0)]]
    assert run.refilled.refills == 1
    assert run.refilled.updates == 0


def test_what_had_no_merit_comes_in_when_it_has_one() -> None:
    run = Run(1, 0, by_pane)
    run.do_add([arrival(0, 10, 5.0, key=3), arrival(0, 11, 1.0)])
    run.do_top(0)
    run.do_change({3: 7.0})
    run.do_top(1)
    assert run.answers == [[(11000, 2.0)], [(10000, 12.0)]]


def test_a_loss_without_a_limit_leaves_nothing_certain() -> None:
    run = Run(1, 1, by_pane)
    run.do_add([arrival(0, 10, 5.0)])
    run.refilled.note_lost(-1, 1)
    answer = run.refilled.top(0)
    assert answer.certainty is Certainty.APPROXIMATE
    assert answer.bound == INFINITY
    assert answer.reason is not None
    run.refilled.close_before(1)
    assert run.refilled.top(1).certainty is Certainty.APPROXIMATE
    run.refilled.close_before(2)
    assert run.refilled.top(2).certainty is Certainty.EXACT


def test_a_loss_with_a_limit_matters_where_it_could_be_among_the_best() -> None:
    run = Run(1, 1, by_pane)
    run.do_add([arrival(0, 10, 5.0)])
    run.refilled.note_lost(0, 2, 3.0, (2.0,), (2.0,))
    assert run.refilled.top(0).certainty is Certainty.EXACT
    run.refilled.close_before(1)
    run.refilled.note_lost(1, 1, 3.0, (1.0,), (3.0,))
    run.remote.values[2] = 4.0
    run.refilled.change(np.array([2]))
    answer = run.refilled.top(1)
    assert (answer.certainty, answer.bound) == (Certainty.APPROXIMATE, 7.0)
    run.refilled.close_before(2)
    assert run.refilled.top(2).bound == 6.0
    run.refilled.note_lost(0, 1)
    assert run.refilled.top(2).bound == 6.0


def test_windows_without_anything() -> None:
    run = Run(3, 0, by_pane)
    for window in range(3):
        run.do_top(window)
    assert run.answers == [[], [], []]


class Doubtful(Lossy):
    """Never certain."""

    def top(self, window: int) -> Top:
        answer = super().top(window)
        return Top(window, answer.rows, answer.merits, Certainty.APPROXIMATE, "doubt", INFINITY)


@settings(max_examples=50, deadline=None)
@given(program=programs())
def test_a_structure_that_is_never_certain_is_answered_for(program: list[Step]) -> None:
    run = Run(2, 0, lambda k, scoring: lambda n: Doubtful(k, n, scoring))
    for step in program:
        run.do(step)


def test_what_lies_in_closed_windows_only_is_refused() -> None:
    run = Run(1, 0, by_pane)
    run.do_top(5)
    content = WindowContent()
    content.close_before(6)
    with pytest.raises(ValueError, match="are closed"):
        run.refilled.add(3, 5, rows([arrival(3, 10, 1.0)]))
    with pytest.raises(ValueError, match="no open window"):
        content.append(3, 5, rows([arrival(3, 10, 1.0)]))


def test_k_is_the_controllers() -> None:
    remote = Remote()
    with pytest.raises(ValueError, match="k is 2"):
        Refilled(by_pane(2, remote), remote, Controller(3, 3))


def test_other_bytes_are_refused() -> None:
    run = Run(1, 0, by_pane)
    for wrong in (b"", b"x", by_pane(1, run.remote)(0).snapshot()):
        with pytest.raises(SnapshotError):
            Run(1, 0, by_pane).refilled.resume(wrong)
    with pytest.raises(SnapshotError):
        Run(1, 0, by_pane).refilled.resume(pack("refilled", 1, State({}, {})))
    with pytest.raises(SnapshotError):
        WindowContent().resume(pack("content", 1, State({}, {})))


def test_it_settles_on_a_size_where_scores_keep_falling() -> None:
    """Re-arrivals at lower scores make holes: with a size that adapts they are refilled now and
    then only.
    """
    random = np.random.default_rng(3)
    now = [0.0]
    remote = Remote({1: 0.0})

    class Timed(PaneDominance):
        """A structure that is costly to make anew, and cheap to keep up."""

        def __init__(self, k: int, n: int) -> None:
            super().__init__(k, n, remote)
            now[0] += 100.0

        def add(self, first: int, last: int, arrivals: Rows) -> Any:
            now[0] += len(arrivals)
            return super().add(first, last, arrivals)

    refilled = Refilled(lambda n: Timed(5, n), remote, Controller(5, 5), clock=lambda: now[0])
    for pane in range(120):
        came = [
            arrival(pane, int(identity), float(random.random()), at=1)
            for identity in random.integers(9, 500, 20)
        ]
        refilled.add(pane, pane + 9, rows(came))
        assert refilled.top(pane).certainty is Certainty.EXACT
        refilled.close_before(pane + 1)
    assert 0 < refilled.refills < 60
    assert 0 < refilled.n <= 200


# The content ----------------------------------------------------------------------------------


def everything(content: WindowContent) -> Iterator[tuple[int, int]]:
    for pane in content.panes():
        yield from ((pane.first, serial) for serial in pane.rows.carried[0].tolist())


@settings(max_examples=60, deadline=None)
@example(program=[("add", [arrival(0, 5, 1.0), arrival(0, 5, 2.0)]), ("top", 0)], wide=10**12)
@given(program=programs(), wide=st.sampled_from([1, 10**12]))
def test_the_content_is_what_came_and_is_left(program: list[Step], wide: int) -> None:
    """With identities close together and far apart."""
    content, truth = WindowContent(), Truth(10**6, Remote())
    current = 0
    for what, argument in program:
        if what == "add":
            for each in argument:
                each = each._replace(identity=each.identity * wide)
                newer = [
                    other.first
                    for other in truth.came
                    if other.identity == each.identity
                    and other.last >= current
                    and other.time > each.time
                ]
                hidden = content.hidden_from(each.first, rows([each]))
                assert hidden.tolist() == [min(newer, default=NEVER)]
                content.append(each.first, each.last, rows([each]))
                truth.came.append(each)
        elif what == "remove":
            content.remove(np.array(argument) * wide)
            truth.remove([each * wide for each in argument])
        elif what == "top":
            for window in range(argument, argument + WIDTH):
                expected = {
                    each.identity: 0 for each in truth.came if each.first <= window <= each.last
                }
                newest = content.newest(window)
                names = [name for pane in newest for name in pane.rows.identities.tolist()]
                assert sorted(names) == sorted(expected)
                times = {
                    name: time
                    for pane in newest
                    for name, time in zip(
                        pane.rows.identities.tolist(), pane.rows.times.tolist(), strict=True
                    )
                }
                for each in truth.came:
                    assert (
                        not each.first <= window <= each.last or times[each.identity] >= each.time
                    )
            current = argument + 1
            content.close_before(current)
        content._check()
    truth.came = [each for each in truth.came if each.last >= current]
    assert sorted(everything(content)) == sorted((each.first, each.serial) for each in truth.came)
    restored = WindowContent()
    restored.resume(content.snapshot())
    restored._check()
    assert list(everything(restored)) == list(everything(content))
    assert restored.snapshot() == content.snapshot()


def test_the_content_takes_what_its_columns_take() -> None:
    content = WindowContent()
    batch = rows([arrival(0, at, 1.0, at=at % 7) for at in range(1000)])
    for start in range(1000):
        content.append(0, 2, batch.take(slice(start, start + 1)))
    assert len(content) == 1000
    assert content.nbytes == 1000 * 5 * 8
    assert content.chunks <= 11
    given = [weakref.ref(column) for column in (batch.times, batch.identities, batch.keys)]
    del batch
    assert [each() for each in given] == [None] * 3


def test_snapshots_are_read_as_data_only() -> None:
    run = Run(1, 0, lossy)
    run.do_add([arrival(0, 10, 5.0)])
    line = run.refilled.snapshot().split(b"\n")[2]
    assert json.loads(line)["settings"]["controller"]["k"] == 1


@pytest.mark.parametrize("kind", [np.int64, object])
def test_what_joins_with_some_keys_is_found_whatever_stands_between(kind: type) -> None:
    def column(*values: int) -> Any:
        return np.array(values, dtype=kind)

    content = WindowContent()
    content.append(0, 1, Rows(np.array([1, 2, 3, 4]), column(7, 8, 7, 9), column(1, 2, 1, 3), ()))
    content.append(1, 2, Rows(np.array([5, 6]), column(7, 6), column(2, 2), ()))
    wanted = column(1, 2, 5)

    def newest() -> list[list[int]]:
        return [content.newest_with_keys(span, wanted).times.tolist() for span in content.spans()]

    assert [pane.rows.times.tolist() for pane in content.with_keys(wanted)] == [[1, 2, 3], [5, 6]]
    # Of each identity the newest in its pane.
    assert newest() == [[2, 3], [5, 6]]
    content.append(1, 2, Rows(np.array([7]), column(6), column(1), ()))
    content.remove(column(8))
    assert newest() == [[3], [5, 7]]
