"""Snapshots of all state: a restored copy, here or in another process, continues unchanged."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdflib import Literal

from acquatop.answer.answer import Answer, Row
from acquatop.answer.expected_quality import ContentOfStream
from acquatop.answer.relation_to_stream import RelationToStream
from acquatop.answer.window_sample import WindowSample
from acquatop.ingest.identity_hash import IdentityHash
from acquatop.ingest.key_codes import KeyCodes
from acquatop.ingest.panes import Pane, PaneBuffer
from acquatop.ingest.reduce.shared_best import Panes as Parted
from acquatop.ingest.solution_columns import GONE, IDENTITY, KEY, number_column, term_column
from acquatop.ingest.unscored import Unscored, WaitingSolutions, objects
from acquatop.query.aggregates.deduplicated import Deduplicated, SolutionColumns
from acquatop.query.counters import WindowCounters
from acquatop.query.lateness import AnsweredWindows, ArrivalWatermarks
from acquatop.query.schedule.cursor import Cursor
from acquatop.query.schedule.non_empty_windows import NonEmptyWindows
from acquatop.query.shared.late_solutions import LateSolutions
from acquatop.query.shared.pane_log import PaneLog
from acquatop.query.sparql import quad_store
from acquatop.query.sparql.engine import LocalEngine
from acquatop.query.sparql.quad_store import QuadStore
from acquatop.query.sparql.window_graph import WindowGraph
from acquatop.refresh.order import RefreshOrder
from acquatop.refresh.proposers import PROPOSERS, Proposed, proposer_of
from acquatop.refresh.proposers.window_join import WindowJoin
from acquatop.topk.contract import NO_ROWS, AnyArray, FloatArray, Rows, Scoring, Top
from acquatop.topk.pane_dominance import PaneDominance
from acquatop.topk.pane_top import Scored
from acquatop.topk.refill.controller import Controller
from acquatop.topk.refill.refilled import Refilled
from acquatop.topk.shared.contract import TopKRequest
from acquatop.topk.shared.shared_skyline import SharedSkyline
from acquatop.topk.snapshot import (
    SnapshotError,
    pack_parts,
    pack_table,
    random_settings,
    set_random,
    unpack_parts,
    unpack_table,
)
from acquatop.windows import Windows
from connectors.mapping import BAD, TIME
from replica.rankers import DEFAULT_RANKERS
from replica.store import ReplicaStore
from tests.support.empty_answer import NOTHING
from tests.support.fed import Fed
from tests.support.markers import THOROUGH
from tests.support.queries.whole_windows import Replay, Shape, shapes
from tests.support.windowed import Record, at_work, batch, bound

Chance = random.Random
WINDOWS = Windows(width_ms=9, slide_ms=3)
TEXTS = [f"<urn:{'long/' * size}{name}>" for size in (0, 1, 9, 60) for name in "abcé"]


class Thing:
    """Something with state that does steps by chance and says what came of each."""

    def __init__(self) -> None:
        self.held: Any = self.make()

    def make(self) -> Any:
        """Return it as it begins."""
        raise NotImplementedError

    def step(self, at: int, chance: Chance) -> object:
        """Do something and return what can be seen of it."""
        raise NotImplementedError

    def snapshot(self) -> bytes:
        snapshot: bytes = self.held.snapshot()
        return snapshot

    def go_on_from(self, snapshot: bytes) -> None:
        self.held = self.make()
        self.held.resume(snapshot)


def some(chance: Chance, most: int = 6) -> list[str]:
    return [chance.choice(TEXTS) for _ in range(chance.randint(0, most))]


class Panes(Thing):
    def make(self) -> PaneBuffer:
        return PaneBuffer(WINDOWS)

    def step(self, at: int, chance: Chance) -> object:
        count = chance.randint(0, 5)
        times = pa.array([chance.randint(at - 6, at + 9) for _ in range(count)], pa.int64())
        names, terms = (
            pa.array([chance.choice(each) for _ in range(count)], pa.string())
            for each in ("ab", (None, "x"))
        )
        gone = pa.array([chance.random() < 0.2 for _ in range(count)], pa.bool_())
        late = self.held.add(pa.table({TIME: times, IDENTITY: names, GONE: gone, "?v": terms}))
        taken = list(self.held.take_until(at)) if chance.random() < 0.5 else []
        panes = [(pane.first, pane.last, pane.solutions.to_pylist()) for pane in taken]
        return late.to_pylist(), panes, self.held.earliest_ms(), self.held.latest_ms()


class Occupied(Thing):
    def make(self) -> NonEmptyWindows:
        return NonEmptyWindows(Cursor(WINDOWS))

    def step(self, at: int, chance: Chance) -> object:
        times = np.array(
            [chance.randint(at, 3 * at + 9) for _ in range(chance.randint(0, 3))], np.int64
        )
        self.held.note(np.column_stack(WINDOWS.spans(times)), min(times.tolist(), default=None))
        if chance.random() < 0.5:
            self.held.close(at)
        return self.held.earliest_ms, self.held.is_empty, self.held.next, self.held.last_close_ms


class Codes(Thing):
    def make(self) -> KeyCodes:
        return KeyCodes()

    def step(self, at: int, chance: Chance) -> object:
        found = self.held.encode(some(chance)).tolist()
        self.held.release(
            np.array(
                [code for code in self.held.used().tolist() if chance.random() < 0.2], np.int64
            )
        )
        return found, self.held.used().tolist(), self.held.size


class Solved(Thing):
    def make(self) -> Deduplicated:
        return Deduplicated((True, False), IdentityHash(b"0123456789abcdef"))

    def step(self, at: int, chance: Chance) -> object:
        texts = list(dict.fromkeys(f"{name}{chance.randint(0, 99)}" for name in some(chance, 40)))
        identities = self.held.identities(texts)
        popped = self.held.pop(identities)
        lasts = np.array([chance.randint(at, at + 3) for _ in texts], np.int64)
        parts = (2**60 + lasts, lasts / 7)
        self.held.put(identities, SolutionColumns(lasts, lasts % 5, lasts + at, parts))
        self.held.close_before(at)
        self.held._check()
        return len(self.held), values(popped), values(self.held.of_keys(np.array([1, 3]), 5))


def values(solutions: SolutionColumns | None) -> object:
    if solutions is None:
        return None
    columns = solutions.lasts, solutions.keys, solutions.times, *solutions.parts
    return [column.tolist() for column in columns]


class Waits(Thing):
    numbers = 2

    def make(self) -> Unscored:
        return Unscored()

    def step(self, at: int, chance: Chance) -> object:
        names = list(dict.fromkeys(some(chance)))
        numbers, terms = (0.1 * at, float("nan"))[: self.numbers], (f'"{at}"', "é")[: self.numbers]
        count = len(names)
        more = Rows(
            np.full(count, at),
            objects(names),
            objects([chance.choice(TEXTS) for _ in names]),
            tuple(np.full(count, number) for number in numbers),
            tuple(objects([term] * count) for term in terms),
        )
        shed = self.held.put(more, np.full(count, at), np.full(count, at + 2))
        taken = self.held.take(set(some(chance, 1)))
        self.held.close_before(at)
        return repr([self._told(each) for each in (shed, taken, self.held.all)])

    @staticmethod
    def _told(waiting: WaitingSolutions) -> object:
        return listed(waiting.rows), waiting.firsts.tolist(), waiting.lasts.tolist()


class WaitsForNothing(Waits):
    numbers = 0


def rows(chance: Chance, at: int, count: int) -> Rows:
    keys = objects([chance.choice(TEXTS) for _ in range(count)])
    identities = objects([f"{key}{chance.randint(0, 9)}" for key in keys.tolist()])
    parts = (np.array([float(chance.randint(0, 20)) for _ in range(count)]),)
    carried = (objects([f'"{at}"' for _ in range(count)]),)
    return Rows(np.arange(count) + 1000 * at, identities, keys, parts, carried)


def listed(found: Rows) -> object:
    columns = (found.times, found.identities, found.keys, *found.parts, *found.carried)
    return [column.tolist() for column in columns if len(column)]


class Sample(Thing):
    def make(self) -> WindowSample:
        return WindowSample(np.random.default_rng(3), room=5)

    def step(self, at: int, chance: Chance) -> object:
        arrived = rows(chance, at, chance.randint(0, 12))
        chosen = self.held.chosen(len(arrived))
        gone = np.array([chance.random() < 0.2 for _ in chosen], np.bool_)
        self.held.add(at, at + 2, arrived.take(chosen), gone, len(arrived))
        self.held.close_before(at - 1)
        others, count = self.held.of(at, arrived.identities[:2])
        return chosen.tolist(), listed(others), count


class OfStream(Thing):
    def make(self) -> ContentOfStream:
        return ContentOfStream(("n",), panes=100)

    def step(self, at: int, chance: Chance) -> object:
        found = rows(chance, at, chance.randint(1, 20))
        table = pa.table(
            {
                TIME: found.times,
                IDENTITY: pa.array(found.identities.tolist()),
                KEY: pa.array(found.keys.tolist()),
                GONE: pa.array([chance.random() < 0.2 for _ in range(len(found))]),
                number_column("n"): found.parts[0],
                term_column("t"): pa.array(found.carried[0].tolist()),
            }
        )
        self.held.add_pane(Pane(table, at, at + 2))
        self.held.close_before(at - 1)
        content = self.held.of(at, found.take(np.arange(1)), [])
        return listed(content.held), listed(content.others), content.count


class Stream(Thing):
    output = "ISTREAM"

    def make(self) -> RelationToStream:
        return RelationToStream(self.output)

    def step(self, at: int, chance: Chance) -> object:
        found = (
            Row(rank, {"x": Literal(text)}, 0.5 * rank, None, 1.5)
            for rank, text in enumerate(some(chance))
        )
        return self.held(replace(NOTHING, window=at, rows=tuple(found)))


class Gone(Stream):
    output = "DSTREAM"


class All(Stream):
    output = "RSTREAM"


class Counted(Thing):
    def make(self) -> WindowCounters:
        return WindowCounters()

    def step(self, at: int, chance: Chance) -> object:
        bad = pa.array(
            [chance.choice([None, "no time", "no subject"]) for _ in range(3)], pa.string()
        )
        self.held.count(pa.record_batch({BAD: bad}))
        self.held.late += chance.randint(0, 2)
        self.held.skipped += chance.randint(0, 2)
        return self.held.take() if chance.random() < 0.3 else None


class Ordered(Thing):
    def make(self) -> RefreshOrder:
        store = ReplicaStore("k", ["v"])
        store.put(TEXTS, [{"k": text, "v": "<urn:v>"} for text in TEXTS], now=1.0)
        return RefreshOrder(
            store, DEFAULT_RANKERS["RND"](), slide_ms=1000, random=np.random.default_rng(5)
        )

    def step(self, at: int, chance: Chance) -> object:
        proposed = Proposed(tuple(TEXTS), np.full(len(TEXTS), np.nan), np.full(len(TEXTS), at))
        return self.held([], proposed, [], window=at, k=1, now=2.0)


class Joined(Thing):
    def make(self) -> WindowJoin:
        return WindowJoin()

    def step(self, at: int, chance: Chance) -> object:
        keys = pa.array(some(chance), pa.string())
        self.held.add_pane(
            Pane(pa.table({KEY: keys, GONE: pa.array([False] * len(keys), pa.bool_())}), at, at + 3)
        )
        self.held.close_before(at)
        proposed = self.held.propose(at, Proposed((), np.empty(0), np.empty(0, np.int64)))
        return proposed.keys, proposed.lasts.tolist()


GRAPH = bound("SELECT ?s FROM NAMED WINDOW :w ON :a [RANGE 1ms] WHERE { WINDOW :w { ?s :p ?p } }")


class Graph(Thing):
    """A window's graph and its store: what is in it and in which order it is read."""

    latest_only = False

    def make(self) -> Any:
        store, window = QuadStore(), GRAPH.windows[0]
        mapping = window.stream.mapping
        return WindowGraph(
            store, window.name, WINDOWS, mapping, latest_only=self.latest_only
        ), store

    def snapshot(self) -> bytes:
        return pack_parts({str(at): each.snapshot() for at, each in enumerate(self.held)})

    def go_on_from(self, snapshot: bytes) -> None:
        parts = unpack_parts(snapshot)
        for at, each in enumerate(self.held):
            each.resume(parts.get(str(at), b""))

    def step(self, at: int, chance: Chance) -> object:
        graph, store = self.held
        found = [
            Record(
                chance.randint(max(0, at - 2), at + 12),
                chance.choice("kl"),
                chance.choice([None, 1, 2]),
                chance.choice([None, 0.1, 0.7]),
            )
            for _ in range(chance.randint(0, 4))
        ]
        late = graph.add(batch(GRAPH, GRAPH.streams[0].iri, found))
        cursor = graph.cursor
        cursor.begin(graph.earliest_ms, at)
        while cursor.next_close_ms is not None and cursor.next_close_ms <= at:
            graph.close(cursor.close())
        known = graph.shown, cursor.next, graph.is_empty, graph.is_uncertain, graph.last_close_ms
        engine = store.engine
        assert isinstance(engine, LocalEngine)
        return late, known, [str(quad) for quad in engine.store]


class LatestGraph(Graph):
    latest_only = True


@dataclass
class Values:
    """A scoring with a value per key, which changes."""

    of: dict[str, float] = field(default_factory=lambda: dict.fromkeys(TEXTS[3:], 0.0))

    def merits(self, keys: AnyArray, parts: tuple[FloatArray, ...]) -> FloatArray:
        return parts[0] + np.array([self.of.get(key, np.nan) for key in keys.tolist()])

    def reach(
        self, lows: tuple[float, ...], highs: tuple[float, ...], keys: AnyArray | None = None
    ) -> float:
        return highs[0] + (
            100.0
            if keys is None
            else max((self.of.get(key, 0.0) for key in keys.tolist()), default=0)
        )


class Dominance(Thing):
    options: Mapping[str, bool] = MappingProxyType({})

    def __init__(self) -> None:
        self.scoring = Values()
        super().__init__()

    def make(self) -> Any:
        return PaneDominance(2, 1, self.scoring, **self.options)

    def step(self, at: int, chance: Chance) -> object:
        arrived = rows(chance, at, chance.choice([0, 3, 30]))
        if self.options:
            names = objects([f"{at}/{number}" for number in range(len(arrived))])
            arrived = replace(arrived, identities=names)
        rejected = self.held.add(at + 1, at + 3, arrived).tolist()
        if not self.options.get("fixed"):
            changed = sorted(set(some(chance, 2)))
            self.scoring.of.update((key, float(chance.randint(-9, 9))) for key in changed)
            self.held.change(objects(changed))
            self.held.remove(arrived.identities[:1])
            self.held.note_lost(at, at + 1, 3.0, (1.0,), (2.0,))
        self.held._check()
        top = self.held.top(at)
        self.held.close_before(at + 1)
        return (
            rejected,
            listed(top.rows),
            top.merits.tolist(),
            top.certainty,
            top.bound,
            self.held.rejected,
        )


class DistinctDominance(Dominance):
    options = MappingProxyType({"distinct": True})


class FixedDominance(Dominance):
    options = MappingProxyType({"distinct": True, "fixed": True})


class Refills(Dominance):
    """A structure that is refilled, whose work is counted in rows scored."""

    def clock(self) -> float:
        self.ticks = getattr(self, "ticks", 0) + 1
        return float(self.ticks)

    def factory(self, n: int) -> PaneDominance:
        return PaneDominance(2, n, self.scoring)

    def make(self) -> Any:
        scoring: Scoring = self.scoring
        return Refilled(self.factory, scoring, Controller(2, 3), in_order=False, clock=self.clock)


class Shares(Thing):
    """A structure that queries share, which join again by themselves."""

    ASKED = MappingProxyType(
        {"wide": TopKRequest(WINDOWS, 3), "narrow": TopKRequest(Windows(4, 5, 1), 2)}
    )

    def make(self) -> SharedSkyline:
        held = SharedSkyline(0, stretch=2, room=8)
        for name, asked in self.ASKED.items():
            held.meta.join_at(name, asked, 0)
        return held

    def step(self, at: int, chance: Chance) -> object:
        times = np.array(
            sorted(chance.randint(3 * at + 1, 3 * at + 12) for _ in range(chance.randint(0, 6))),
            np.int64,
        )
        merits = np.array([float(chance.randint(0, 5)) for _ in times])
        names = objects([f"{at} {number}" for number in range(len(times))])
        self.held.add(Rows(times, names, names, (merits,)))
        said = [
            (name, top.window, top.rows.identities.tolist())
            for name, top in self.held.advance(3 * at)
        ]
        self.held._check()
        return said, self.held.held().identities.tolist()

    def snapshot(self) -> bytes:
        windows = {name: str(self.held.meta.window(name)).encode() for name in self.ASKED}
        return pack_parts({"structure": self.held.snapshot(), **windows})

    def go_on_from(self, snapshot: bytes) -> None:
        parts = unpack_parts(snapshot)
        if "structure" not in parts:
            raise SnapshotError("no structure")
        self.held = SharedSkyline(0, stretch=2, room=8)
        self.held.resume(parts["structure"])
        for name, asked in self.ASKED.items():
            self.held.meta.join_at(name, asked, int(parts[name]), 0)


class Straggles(Thing):
    ANSWERED = AnsweredWindows(WINDOWS, 0)

    def make(self) -> LateSolutions:
        return LateSolutions()

    def step(self, at: int, chance: Chance) -> object:
        size = chance.randint(0, 3)
        times = np.array([chance.randint(at, at + 9) for _ in range(size)], np.int64)
        names, merits = (
            objects(some(chance, 9)[:size] + ["x"] * size)[:size],
            np.arange(size) + chance.random(),
        )
        self.held.add(
            Scored(merits, Rows(times, names, names, (merits,), (names,))),
            ArrivalWatermarks.at(at, -99, size),
        )
        self.held.release(at - 5)
        top = self.held.among(Top(at // 3, NO_ROWS, np.empty(0)), self.ANSWERED, 2)
        return len(self.held), top.rows.identities.tolist(), top.merits.tolist()


class Logs(Thing):
    ANSWERED = AnsweredWindows(WINDOWS, 1)

    def make(self) -> PaneLog:
        return PaneLog()

    def step(self, at: int, chance: Chance) -> object:
        times = np.array(
            sorted(chance.randint(at, at + 9) for _ in range(chance.randint(0, 3))), np.int64
        )
        counts = np.array([chance.randint(0, 2) for _ in times], np.int64)
        self.held.add(
            Parted(times, counts, counts, counts), ArrivalWatermarks.at(at, -99, len(times))
        )
        if chance.random() < 0.3:
            self.held.release(at - 5)
        answered, span = self.ANSWERED, WINDOWS.bounds(at // 3)
        known = (
            self.held.newest(answered),
            self.held.first_after(answered, at),
            self.held.is_empty(answered, *span),
        )
        counted = self.held.unscored(answered, *span), self.held.is_exact(answered, *span)
        return len(self.held), known, counted


THINGS: list[type[Thing]] = [
    *(Shares, Straggles, Logs),
    *(
        Panes,
        Occupied,
        Codes,
        Solved,
        Waits,
        WaitsForNothing,
        Sample,
        OfStream,
        Stream,
        Gone,
        All,
        Counted,
        Ordered,
    ),
    *(Joined, Graph, LatestGraph, Dominance, DistinctDominance, FixedDominance, Refills),
]


@pytest.mark.parametrize("kind", THINGS)
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32), cut=st.integers(0, 30))
def test_it_goes_on_wherever_it_is_cut(kind: type[Thing], seed: int, cut: int) -> None:
    whole = kind()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quad_store, "RENEWAL", 20)
        for at in range(cut):
            whole.step(at, Chance(seed + at))
        other = kind()
        if isinstance(whole, Dominance) and isinstance(other, Dominance):
            other.scoring.of.update(whole.scoring.of)
        snapshot = whole.snapshot()
        other.go_on_from(snapshot)
        assert other.snapshot() == snapshot
        for at in range(cut, cut + 12):
            assert repr(other.step(at, Chance(seed + at))) == repr(
                whole.step(at, Chance(seed + at))
            )
        assert other.snapshot() == whole.snapshot()


@pytest.mark.parametrize("kind", THINGS)
def test_damage_is_noticed(kind: type[Thing]) -> None:
    thing, chance = kind(), Chance(1)
    for at in range(9):
        thing.step(at, Chance(at))
    snapshot = thing.snapshot()
    for wrong in (b"", b"x", snapshot[:-1], pack_parts({}), pack_table(pa.table({"x": [1]}))):
        with pytest.raises(SnapshotError):
            kind().go_on_from(wrong)
    for at in (chance.randrange(len(snapshot)) for _ in range(20)):
        with pytest.raises(SnapshotError):
            kind().go_on_from(
                snapshot[:at]
                + bytes([snapshot[at] ^ 1 << chance.randrange(8)])
                + snapshot[at + 1 :]
            )


def test_proposers_know_their_own_snapshots() -> None:
    made = {name: proposer_of(f"{name}-LRU", ReplicaStore("k", ["v"])) for name in PROPOSERS}
    for name, proposer in made.items():
        for other in PROPOSERS:
            if name == other:
                proposer.resume(made[other].snapshot())
            else:
                with pytest.raises(SnapshotError):
                    proposer.resume(made[other].snapshot())


def test_another_output_does_not_go_on_from_an_answer() -> None:
    with pytest.raises(SnapshotError, match="of an ISTREAM, not of an DSTREAM"):
        RelationToStream("DSTREAM").resume(RelationToStream("ISTREAM").snapshot())


# Whole queries ------------------------------------------------------------------------------------


@dataclass
class Cut:
    """A query over a replay of two streams, resumed from a snapshot before some of its batches."""

    replay: Replay
    cuts: set[int]

    def run(self, seed: int) -> list[object]:
        query, chance, seen = self.begin(), Chance(seed), []
        pending = {
            stream: sorted(records, key=lambda each: each.t)
            for stream, records in self.replay.streams.items()
        }
        for number in range(10**6):
            if not pending:
                return seen
            if number in self.cuts:
                before = query.snapshot()
                query = self.begin()
                query.resume(before)
                # A stream may go on after a restart, so those at their end have to end again.
                for ended in self.replay.streams.keys() - pending.keys():
                    assert list(query.finish(ended)) == []
            stream = chance.choice(sorted(pending))
            due = [
                pending[stream].pop(0)
                for _ in range(min(len(pending[stream]), chance.randint(1, 9)))
            ]
            if due:
                query.add(stream, batch(self.replay.bound, stream, due))
                answers = list(query.advance(stream, due[-1].t - 1))
            else:
                del pending[stream]
                answers = list(query.finish(stream))
            seen += [shown(answer) for answer in answers]
            if answers:
                self.replay.befriend(chance.choice("klmn"), chance.choice("klmn"))
        raise AssertionError("this never ends")

    def begin(self) -> Fed:
        return at_work(self.replay.bound, self.replay.remote, load=self.replay.shape.load)[0]


def shown(answer: Answer) -> object:
    """Return what does not depend on time."""
    spent = replace(answer.spending, seconds=0.0)
    return (
        answer.canonical(),
        spent,
        answer.refreshed,
        answer.counts,
        [row.refreshed for row in answer.rows],
    )


@THOROUGH
@settings(max_examples=20)
@given(shapes, st.sets(st.integers(0, 12), min_size=1, max_size=3))
def test_a_query_that_is_evaluated_anew_goes_on_wherever_it_is_cut(
    shape: Shape, cuts: set[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quad_store, "RENEWAL", 10)
        assert Cut(Replay(shape), cuts).run(shape.seed) == Cut(Replay(shape), set()).run(shape.seed)


def test_the_snapshot_of_another_query_is_refused() -> None:
    text = "SELECT ?s {} WHERE {{ WINDOW :{} {{ ?s :p ?p }} }}"
    one, other = (
        at_work(bound(text.format(f"FROM NAMED WINDOW :{name} ON :a [RANGE 1ms]", name)))[0]
        for name in "vw"
    )
    with pytest.raises(SnapshotError, match="not of"):
        other.resume(one.snapshot())
    with pytest.raises(SnapshotError):
        other.resume(one.snapshot()[:-1])


# Hashes -------------------------------------------------------------------------------------------

OTHER_PROCESS = """
import sys
from pathlib import Path
from acquatop.query.aggregates.deduplicated import Deduplicated
retained = Deduplicated((False,))
retained.resume(Path(sys.argv[1]).read_bytes())
found = retained.pop(retained.identities(sys.argv[2:]))
print(*sorted(found.times.tolist()), len(retained))
"""


def test_another_process_finds_what_is_retained(tmp_path: Path) -> None:
    retained = Deduplicated((False,))
    texts = [f"{text}{number}" for text in TEXTS for number in range(9)]
    times = np.arange(len(texts))
    retained.put(retained.identities(texts), SolutionColumns(times, times, times, (times / 2,)))
    (tmp_path / "state").write_bytes(retained.snapshot())
    wanted = [texts[at] for at in (3, 30, 143)]
    command = [sys.executable, "-c", OTHER_PROCESS, str(tmp_path / "state"), *wanted]
    environment = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == ["3", "30", "143", str(len(texts) - 3)]


hash_texts = st.lists(
    st.text("ab\0é", max_size=40) | st.text("ab\0", min_size=250, max_size=260), max_size=40
)


@given(hash_texts, st.integers(0, 9), st.integers(0, 9))
def test_equal_texts_have_equal_hashes_and_others_have_others(
    texts: list[str], at: int, start: int
) -> None:
    hashes = IdentityHash(b"secret")
    heads, tails = hashes.of(texts)
    of = dict(zip(texts, zip(heads.tolist(), tails.tolist(), strict=True), strict=True))
    assert (
        len(set(of.values()))
        == len({head for head, _ in of.values()})
        == len({tail for _, tail in of.values()})
    )
    assert len(of) == len(set(of.values()))
    chunks = pa.chunked_array(
        [pa.array(texts[:at], pa.string()), pa.array(texts, pa.string())[start:]]
    )
    again = zip(*(column.tolist() for column in hashes.of(chunks)), strict=True)
    assert list(again) == [of[text] for text in chunks.to_pylist()]
    if texts:
        other = IdentityHash(b"another").of(texts)
        assert other[0][0] != heads[0] or not texts[0]


def test_what_stands_behind_a_text_does_not_count() -> None:
    hashes = IdentityHash(bytes(16))
    alone = [hashes.of([text])[0][0] for text in TEXTS]
    assert (
        hashes.of(TEXTS)[0].tolist()
        == hashes.of(pa.array(TEXTS).dictionary_encode())[0].tolist()
        == alone
    )
    assert [len(column) for column in hashes.of([])] == [0, 0]


# What snapshots are made of -----------------------------------------------------------------------


def test_parts_are_as_long_as_they_say() -> None:
    packed = pack_parts({"a": b"12", "b": b"3"})
    assert unpack_parts(packed) == {"a": b"12", "b": b"3"}
    with pytest.raises(SnapshotError, match="checksum"):
        unpack_parts(packed + b"4")


def test_a_table_comes_back_with_its_types() -> None:
    types = pa.schema(
        [("a", pa.int64()), ("b", pa.large_string()), ("c", pa.dictionary(pa.int32(), pa.string()))]
    )
    table = pa.table([[1, None, 3], ["x", None, "é"], ["u", "u", None]], types)
    for each in (table, table.slice(1), table.slice(3), pa.concat_tables([table, table])):
        assert unpack_table(pack_table(each)).equals(each)
        assert unpack_table(pack_table(each)).schema == each.schema


@pytest.mark.parametrize(
    "kind", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64]
)
def test_chance_goes_on(kind: Callable[[int], Any]) -> None:
    one, other = np.random.Generator(kind(1)), np.random.Generator(kind(2))
    one.integers(0, 9, 5)
    set_random(other, random_settings(one))
    assert one.random(9).tolist() == other.random(9).tolist()
    with pytest.raises(SnapshotError):
        set_random(other, {"bit_generator": "none"})
