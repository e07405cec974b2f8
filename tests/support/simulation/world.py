"""Run of a scenario: lives of an engine in simulated time, and what is seen of them."""

from __future__ import annotations

import errno
import functools
import gc
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from acquatop import Engine
from acquatop.answer.answer import Answer
from acquatop.answer.sinks.registry import open_sink
from acquatop.answer.unanswered import Unanswered
from acquatop.catalog.catalog import Catalog
from acquatop.catalog.evaluation_limits import EvaluationLimits
from acquatop.catalog.remotes import FeedSource
from acquatop.engine.engine import RegisteredQuery
from acquatop.engine.observer import AnswerSeen, BatchSeen, Kept, QueryState, Silent, StateSeen
from acquatop.engine.state.folder import Folder
from acquatop.engine.surroundings import Surroundings
from acquatop.errors import AcquaTopError
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import Bound
from acquatop.query.sparql.content import StoreContent
from acquatop.query.sparql.engine import EngineFunction
from replica.clocks import Clock, MachineClock
from replica.feeds.contract import Feed
from replica.remotes.records import RecordReader
from tests.support.simulation import remote
from tests.support.simulation.disk import FailingSink, FaultySink, SimulatedFolder
from tests.support.simulation.remote import SimulatedService
from tests.support.simulation.runtime import SimulatedRuntime, Source
from tests.support.simulation.scenario import Kill, QuerySpec, Scenario, catalog_text, query_text
from tests.support.simulation.schedule import Killed, Schedule
from tests.support.simulation.sparql import SimulatedSparql
from tests.support.simulation.workers import SimulatedWorkers

MOST_LIVES = 12


@dataclass(frozen=True)
class Told:
    """Answer as it was delivered: by which life, in which step, after which records."""

    answer: Answer
    document: str
    life: int
    step: int
    since: float
    now: float
    read: dict[str, int]
    calls: dict[str, int]
    repeated: bool
    faults: frozenset[str]


@dataclass(frozen=True)
class Lost:
    """Window without an answer, as it was told, after which records."""

    window: Unanswered
    life: int
    read: dict[str, int]


@dataclass
class Step:
    """Step of the engine: what it was, and the calls of the remotes before and after it."""

    number: int
    life: int
    began: float
    calls: dict[str, int]
    is_whole: bool = False
    is_struck: bool = False
    after: dict[str, int] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    """Queries of which an evaluation was lost."""


@dataclass
class History:
    """Everything that was seen of a run from outside."""

    scenario: Scenario
    told: list[Told] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    batches: list[BatchSeen] = field(default_factory=list)
    services: dict[str, SimulatedService] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    side: dict[str, bytes] = field(default_factory=dict)
    ends: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    read: dict[str, int] = field(default_factory=dict)
    edges: dict[str, list[int]] = field(default_factory=dict)
    """Ends of the batches of each stream, those of the last reading."""
    unanswered: list[Lost] = field(default_factory=list)
    ended: dict[str, int] = field(default_factory=dict)
    """Queries that have ended by lost evaluations, and in which life: the next begins anew."""
    forward: set[int] = field(default_factory=set)
    """Lives in which the clock was set forward."""
    boots: list[int] = field(default_factory=list)
    """Number of the machine's boot in which each life ran."""
    in_parts: set[str] = field(default_factory=set)
    late_in_parts: set[str] = field(default_factory=set)
    """Streams of which a batch had several partitions, and those of which it had late records."""
    ahead: set[str] = field(default_factory=set)
    again: set[str] = field(default_factory=set)
    """Streams of which a batch was read before the last was taken, and of which in vain."""
    left: set[str] = field(default_factory=set)
    """Queries that have left, or have come back."""
    has_damage: bool = False

    def parted(self, query: QuerySpec) -> Iterator[str]:
        """Yield the kinds of batches that a query's streams came in."""
        for name in query.streams:
            iri = self.scenario.stream(name).iri
            if iri in self.late_in_parts:
                yield "batches: late records in several partitions"
            if iri in self.in_parts:
                yield "batches: several partitions"
            if iri in self.ahead:
                yield "batches: read ahead"
            if iri in self.again:
                yield "batches: read ahead in vain"

    def ends_within(self, step: Step) -> bool:
        """Return True if a fault struck in a step, or it is the start, which repeats answers."""
        return step.is_struck


class World(Silent):
    """Run under way: its schedule, its disk, its remotes, and the engine of the present life."""

    def __init__(
        self, scenario: Scenario, folder: Path, schedule_seed: str, wrap: Wrap | None = None
    ) -> None:
        self.scenario = scenario
        self.schedule = Schedule(Random(schedule_seed))
        self.history = History(scenario)
        self.life = -1
        self._folder = folder
        self._wrap = wrap or (lambda surroundings: surroundings)
        self._random = Random(f"{schedule_seed} world")
        self._catalog_text = catalog_text(scenario, str(folder))
        self._sources = {spec.iri: Source(spec, scenario.queries) for spec in scenario.streams}
        self._cuts: dict[tuple[int, str, int], int] = {}
        self._kill: Kill | None = None
        self._counts: Counter[str] = Counter()
        self._began = 0.0
        self._has_struck = False
        self._folders: list[SimulatedFolder] = []
        self._timers: list[SimulatedTimer] = []
        self._requests: list[SimulatedWorkers] = []
        self._runtime: SimulatedRuntime | None = None
        self._queries: dict[str, RegisteredQuery] = {}
        self._engine: Engine | None = None
        self._step: Step | None = None
        self._recent: set[str] = set()
        self._opened = 0
        self._boot, self._booted_at = 0, 0.0
        for spec in scenario.services:
            service = SimulatedService(spec, self.schedule, Random(f"{scenario.seed} {spec.name}"))
            service.on_call = lambda: self._reach("kill at request")
            self.history.services[spec.name] = service

    # The run --------------------------------------------------------------------------------------

    def run(self) -> History:
        """Live, die and live again until the streams have ended, or enough has been seen."""
        for name in ("state", "out", "side"):
            shutil.rmtree(self._folder / name, ignore_errors=True)
        for file in self._folder.glob("ledger.sqlite*"):
            file.unlink()
        (self._folder / "out").mkdir(parents=True)
        remote.CURRENT.clear()
        remote.CURRENT.update(self.history.services)
        for service in self.history.services.values():
            service.plan_pushes()
        kills = list(self.scenario.kills)
        for self.life in range(MOST_LIVES):
            self._kill = kills.pop(0) if kills else None
            self.history.boots.append(self._boot)
            end = self._live()
            if self._has_struck and any(spec.strict for spec in self.scenario.services):
                gc.collect()  # closes the ledger of the engine that is gone
            self.history.ends.append(end)
            self.schedule.tell(f"life {self.life}: {end}")
            if end == "end":
                break
        else:
            self.history.problems.append("it never came to its end")
        self._read_files()
        return self.history

    def _live(self) -> str:
        self._counts.clear()
        self._has_struck = False
        self._began = self.schedule.now
        self._runtime = SimulatedRuntime(self._sources, self.schedule, self._random_at)
        try:
            failed = self._live_on()
            self._stop()
        except Killed:
            return "killed"
        except AcquaTopError as error:
            self.history.errors.append(str(error))
            if not self._has_struck:
                self.history.problems.append(f"life {self.life} failed: {error}")
            with suppress(Killed):
                self._stop()
            return "failed"
        finally:
            self._bury()
        return "failed" if failed else "end"

    def _live_on(self) -> bool:
        """Live until nothing is left to do; return True if the run has failed."""
        durable = self.scenario.durable
        around = Surroundings(
            clock=self._clock(),
            wall_clock=self.schedule.wall_clock,
            machine=self._machine(),
            random=Random(f"{self.scenario.seed} {self.life} engine"),
            workers=self._workers,
            timer=self._timer,
            open_feed=self._open_feed,
            state_folder=self._state_folder,
            open_sparql=self._open_sparql,
        )
        self._engine = Engine(
            _catalog(self._catalog_text, str(self._folder)),
            runtime=self._runtime,
            until_end=self.scenario.recording,
            observer=self,
            state=self._folder / "state" if durable else None,
            autostart=False,
            surroundings=self._wrap(around),
        )
        for spec in self.scenario.queries:
            if spec.from_start or durable:
                self._register(spec)
            else:
                self.schedule.after(
                    self._random.uniform(0.5, 3.0),
                    functools.partial(self._act, "join", self._come, spec),
                )
        self._act("start", self._engine.start)
        for stream in self.scenario.streams:
            self.schedule.after(0.0, functools.partial(self._poll, stream.iri))
        if self.scenario.clock_jumps:
            self.schedule.after(self._random.choice([0.1, 1.0, 2.0, 3.0]), self._jump)
        while not self._is_done():
            self._go_on()
        return any(query.error is not None for query in self._queries.values()) and durable

    def _go_on(self) -> None:
        """Let the next thing happen: an event, or a timer that is due."""
        due = [
            (at, number) for number, each in enumerate(self._timers) if (at := each.at) is not None
        ]
        event = self.schedule.next_at()
        if due and (event is None or min(due)[0] < event):
            at, number = min(due)
            self.schedule.now = max(self.schedule.now, at)
            self.schedule.tell(f"timer {number}")
            self._act("timer", self._timers[number].act)
        else:
            assert event is not None, "nothing is left to do, and it has not ended"
            self.schedule.step()

    def _is_done(self) -> bool:
        assert self._runtime is not None
        carriers = [each for some in self._runtime.carriers.values() for each in some]
        if all(query.stopped for query in self._queries.values()) and carriers:
            return True
        if self.scenario.recording:
            return bool(carriers) and all(each.has_ended for each in carriers)
        last = max(record.at for stream in self.scenario.streams for record in stream.records)
        return self.schedule.now > max(last + 1.5, self._began + 2.0)

    def _poll(self, iri: str) -> None:
        assert self._runtime is not None
        for carrier in list(self._runtime.carriers.get(iri, ())):
            self._act(f"poll {iri[-1]}", carrier.poll)
        pause = 0.0 if self.scenario.recording else self._random.choice([0.005, 0.02, 0.1, 0.3])
        self.schedule.after(pause, functools.partial(self._poll, iri))

    def _jump(self) -> None:
        seconds = self._random.choice([-3600.0, -1.0, 1.0, 3600.0])
        self.schedule.tell(f"the wall clock jumps by {seconds}")
        self.schedule.wall_offset += seconds
        kind = f"clock set {'forward' if seconds > 0 else 'back'}"
        if seconds > 0:
            self.history.forward.add(self.life)
        self.history.faults[kind] += 1
        self._recent.add(kind)
        if self._random.random() < 0.5:
            self.schedule.after(self._random.uniform(0.2, 2.0), self._jump)

    def _come(self, spec: QuerySpec) -> None:
        """Let a query come late, and perhaps leave and come back."""
        self._register(spec)
        if self._random.random() < 0.5:
            self.schedule.after(
                self._random.uniform(0.2, 1.5),
                functools.partial(self._act, "leave", self._leave, spec),
            )

    def _leave(self, spec: QuerySpec) -> None:
        self._queries[spec.name].stop()
        self.schedule.tell(f"{spec.name} leaves")
        self.history.faults["query left"] += 1
        self.history.left.add(spec.name)
        del self._queries[spec.name]
        if self._random.random() < 0.5:
            self.schedule.after(
                self._random.uniform(0.05, 1.0),
                functools.partial(self._act, "come back", self._come, spec),
            )

    def _register(self, spec: QuerySpec) -> None:
        assert self._engine is not None
        text = query_text(spec, {each.name: each for each in self.scenario.streams})
        sinks = [self._sink(f"canonical:{self._folder}/out/lines")]
        if spec.kind != "pairs":
            sinks.append(self._sink(f"csv:{self._folder}/out/tables"))
        if spec.fails:
            sinks.append(FailingSink(3))
        if spec.reads is not None:
            self._queries[spec.name] = self._engine.register(text, name=spec.name, sinks=sinks)
            return
        bound = _bound(text, spec.name, self._catalog_text, str(self._folder))
        self._queries[spec.name] = self._engine.run(bound, sinks=sinks)

    def _sink(self, kind: str) -> FaultySink:
        return FaultySink(open_sink(kind), self._sink_step, self._tear)

    def _stop(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            with suppress(AcquaTopError):
                self._act("stop", engine.stop)

    def _bury(self) -> None:
        """Clear away what the system clears away when a process ends."""
        struck, self._engine = self._has_struck, None
        if self._step is not None and not self._step.after:
            self._end_step()
        self.schedule.clear(network=False)
        self._timers.clear()
        for workers in self._requests:
            workers.end()
        self._requests.clear()
        self._queries.clear()
        self._runtime = None
        for service in self.history.services.values():
            service.end_life()
        for folder in self._folders:
            folder.abandon()
        kind = "" if self._kill is None or not struck else self._kill.kind
        if kind == "power loss":
            self._folders[-1].after_power_loss(self._random)
            self._boot, self._booted_at = self._boot + 1, self.schedule.now
        if kind == "damage":
            self._damage()
        self._folders.clear()
        self.schedule.now += self._random.choice([0.0, 0.1, 1.0])

    def _damage(self) -> None:
        """Damage the newest snapshot, if there is one before it."""
        snapshots = sorted((self._folder / "state").glob("snapshot-*"))
        if len(snapshots) > 1:
            content = bytearray(snapshots[-1].read_bytes())
            content[self._random.randrange(len(content))] ^= 0xFF
            snapshots[-1].write_bytes(content)
            self.history.has_damage = True
            self.schedule.tell("damage")
            self._recent.add("damage")

    # Steps and faults -----------------------------------------------------------------------------

    def _act(self, what: str, action: Callable[..., None], *arguments: object) -> None:
        """Let the engine do something."""
        if self._step is not None and not self._step.after:
            self._end_step()
        self._step = Step(len(self.history.steps), self.life, self.schedule.now, self._calls())
        self.history.steps.append(self._step)
        self._reach("kill at batch")
        action(*arguments)
        self._reach("kill at batch")
        self._end_step()
        self._step.is_whole = True

    def _end_step(self) -> None:
        assert self._step is not None
        self._step.after = self._calls()
        self._step.read = {iri: source.consumed for iri, source in self._sources.items()}

    def _calls(self) -> dict[str, int]:
        return {name: len(each.calls) for name, each in self.history.services.items()}

    def _reach(self, kind: str) -> None:
        """Strike if this is where to strike; whoever is dead already gets no further."""
        if self._has_struck and self._is_dead:
            raise Killed
        if self._kill is None or self._kill.kind != kind:
            return
        self._counts[kind] += 1
        if self._counts[kind] == self._kill.nth:
            self._strike()

    def _strike(self) -> None:
        assert self._kill is not None
        self._has_struck = True
        self.schedule.tell(f"strike: {self._kill.kind}")
        self.history.faults[self._kill.kind] += 1
        self._recent.add(self._kill.kind)
        if self._step is not None:
            self._step.is_struck = True
        if self._is_dead:
            raise Killed
        number = errno.EIO if self._kill.kind == "EIO" else errno.ENOSPC
        raise OSError(number, os.strerror(number))

    @property
    def _is_dead(self) -> bool:
        return self._kill is not None and self._kill.kind not in ("ENOSPC", "EIO", "sink ENOSPC")

    def _disk_step(self, step: str) -> None:
        for kind in ("kill at disk", "power loss", "damage"):
            self._reach(kind)
        if step not in ("remove", "cut"):
            for kind in ("ENOSPC", "EIO"):
                self._reach(kind)

    def _sink_step(self, step: str) -> None:
        self._reach(f"kill {step}")
        if step == "within sink":
            self._reach("sink ENOSPC")

    def _tear(self, queries: set[str]) -> None:
        """Leave only a part of the lines that were written last."""
        for query in sorted(queries):
            file = self._folder / "out" / "lines" / f"{query}.ndjson"
            content = file.read_bytes()
            last = content.rstrip(b"\n").rfind(b"\n") + 1
            kept = self._random.randint(last, len(content))
            file.write_bytes(content[:kept])

    # What surrounds the engine --------------------------------------------------------------------

    def _clock(self) -> Clock:
        """Return a monotonic clock of one life, with an origin of its own."""
        origin = 1000.0 * (self.life + 1)
        return lambda: self.schedule.now + origin

    def _machine(self) -> MachineClock:
        """Return the clock of the present boot."""
        booted_at = self._booted_at
        return MachineClock(f"boot {self._boot}", lambda: self.schedule.now - booted_at)

    def _workers(self, most: int) -> SimulatedWorkers:
        def latency() -> float:
            name = max(self.history.services, key=self._last_call)
            return self.history.services[name].latency

        self._requests.append(SimulatedWorkers(most, self.schedule, latency))
        return self._requests[-1]

    def _last_call(self, name: str) -> tuple[float, int]:
        calls = self.history.services[name].calls
        return (calls[-1].sent, calls[-1].number) if calls else (-1.0, -1)

    def _timer(self, due: Callable[[], float | None], act: Callable[[], None]) -> SimulatedTimer:
        timer = SimulatedTimer(due, act, self.schedule, self._random)
        return timer.among(self._timers)

    def _open_feed(self, source: FeedSource, reader: RecordReader, now: Clock, _: Random) -> Feed:
        return self.history.services[Path(source.path).stem].feed(reader, now)

    def _state_folder(self, path: Path) -> Folder:
        self._folders.append(SimulatedFolder(path, self._disk_step))
        return self._folders[-1]

    def _open_sparql(
        self,
        content: Callable[[], StoreContent],
        functions: Mapping[str, EngineFunction],
        limits: EvaluationLimits,
    ) -> SimulatedSparql:
        self._opened += 1
        return SimulatedSparql(
            content,
            functions,
            limits,
            random=Random(f"{self.scenario.seed} {self.life} {self._opened} sparql"),
            share=self.scenario.losses,
            ends_queries=self.scenario.losses_end_queries,
            on_loss=self._lose,
        )

    def _lose(self, reason: str) -> None:
        self.schedule.tell(f"lost: {reason}")
        self.history.faults[f"lost: {reason}"] += 1
        self._recent.add(f"lost: {reason}")

    def _random_at(self, iri: str, offset: int) -> Random:
        """Return what decides on the cut of a stream from a place on."""
        life = self.life if self.scenario.moves_cuts else 0
        return Random(f"{self.scenario.seed} {life} {iri} {offset}")

    # The observer ---------------------------------------------------------------------------------

    def answer(self, seen: AnswerSeen) -> None:
        """Note an answer."""
        assert self._step is not None
        document = json.dumps(seen.answer.canonical(), sort_keys=True)
        self.schedule.tell(f"answer {document}")
        faults = {kind for each in self.history.services.values() for kind in each.faults}
        self.history.told.append(
            Told(
                seen.answer,
                document,
                self.life,
                self._step.number,
                self._step.began,
                self.schedule.now,
                {iri: source.consumed for iri, source in self._sources.items()},
                self._calls(),
                seen.repeated,
                frozenset(faults | self._recent),
            )
        )

    def unanswered(self, window: Unanswered) -> None:
        """Note a window that has no answer."""
        self.schedule.tell(f"no answer of {window.query} ({window.closes_ms}): {window.reason}")
        read = {iri: source.consumed for iri, source in self._sources.items()}
        self.history.unanswered.append(Lost(window, self.life, read))
        if self._step is not None:
            self._step.lost.add(window.query)

    def batch(self, seen: BatchSeen) -> None:
        """Note a batch, or a tick of the clock."""
        self.history.batches.append(seen)

    def kept(self, seen: StateSeen) -> None:
        """Note an operation on the state."""
        if seen.kind in (Kept.RECOVERED, Kept.DAMAGED):
            # What is said of damage names a folder.
            said = seen.detail if seen.kind is Kept.RECOVERED else ""
            self.schedule.tell(f"{seen.kind} {said}")

    def query(self, name: str, state: QueryState) -> None:
        """Note a query's state."""
        self.schedule.tell(f"query {name} {state}")

    def failed(self, where: str, error: BaseException) -> None:
        """Note an error."""
        self.history.errors.append(f"{where}: {type(error).__name__}: {error}")
        self.schedule.tell(f"failed {where.split(' ')[0]}: {type(error).__name__}")
        is_lost = self.scenario.losses_end_queries and "in a row have no answer" in str(error)
        if is_lost:
            name = where.removeprefix("query ")
            self.history.ended.setdefault(name, self.life)
            self.history.left.add(name)
            if self._step is not None:
                self._step.lost.add(name)
        is_expected = self._has_struck or is_lost or "the sink is broken" in str(error)
        if not is_expected and not isinstance(error, Killed):
            self.history.problems.append(f"{where} failed: {type(error).__name__}: {error}")

    def _read_files(self) -> None:
        for name in ("out", "side"):
            found = self.history.files if name == "out" else self.history.side
            for file in sorted((self._folder / name).rglob("*")):
                if file.is_file() and not file.name.startswith("."):
                    found[str(file.relative_to(self._folder / name))] = file.read_bytes()
        self.history.in_parts = {iri for iri, each in self._sources.items() if each.in_parts}
        self.history.late_in_parts = {
            iri for iri, each in self._sources.items() if each.late_in_parts
        }
        self.history.ahead = {iri for iri, each in self._sources.items() if each.was_ahead}
        self.history.again = {iri for iri, each in self._sources.items() if each.was_again}
        self.history.edges = {iri: source.edges for iri, source in self._sources.items()}
        self.history.read = {iri: source.consumed for iri, source in self._sources.items()}


Wrap = Callable[[Surroundings], Surroundings]


class SimulatedTimer:
    """Timer of one stream in simulated time, a little late as threads are."""

    def __init__(
        self,
        due: Callable[[], float | None],
        act: Callable[[], None],
        schedule: Schedule,
        random: Random,
    ) -> None:
        self.act = act
        self._due = due
        self._schedule = schedule
        self._random = random
        self._is_running = False
        self._lag = 0.001
        self._all: list[SimulatedTimer] = []

    def among(self, timers: list[SimulatedTimer]) -> SimulatedTimer:
        """Add it to the timers of a life."""
        timers.append(self)
        return self

    def start(self, name: str) -> None:
        """Start."""
        self._is_running = True

    def wake(self) -> None:
        """Draw how late it will be the next time."""
        self._lag = self._random.choice([0.001, 0.001, 0.02, 0.2])

    def stop(self) -> None:
        """Stop."""
        self._is_running = False

    @property
    def at(self) -> float | None:
        """Time at which it acts next."""
        seconds = self._due() if self._is_running else None
        return None if seconds is None else self._schedule.now + max(0.0, seconds) + self._lag


@functools.lru_cache(maxsize=8)
def _catalog(text: str, folder: str) -> Catalog:
    return Catalog.parse(text, file=Path(folder, "catalog.toml"), variables={})


@functools.lru_cache(maxsize=32)
def _bound(text: str, name: str, catalog: str, folder: str) -> Bound:
    return bind_query(text, _catalog(catalog, folder), name=name)
