"""Remotes of a simulation: values that change, faults, and an account of all requests."""

from __future__ import annotations

import bisect
import itertools
import json
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from replica.clocks import Clock
from replica.feeds.contract import ChangeSink
from replica.feeds.record_forwarder import RecordForwarder
from replica.remotes import RemoteError
from replica.remotes.records import RecordReader
from tests.support.simulation.schedule import Schedule

Value = int | None
Timeline = Mapping[str, tuple[tuple[float, Value], ...]]
"""Changes of each key, with their times."""
_NUMBERS = itertools.count()
PROFILES = ("well", "slow", "failing", "partial", "limited", "wrong", "hanging")


@dataclass(frozen=True)
class ServiceSpec:
    """Service of a scenario: its values over time, its manners, and what may be spent."""

    name: str
    timeline: Timeline
    profiles: tuple[tuple[float, str], ...] = ((0.0, "well"),)
    items: int = 4
    requests: int = 2
    bank: tuple[int, int] = (0, 0)
    deadline: float = 0.2
    block_size: int = 3
    concurrency: int = 2
    limits: tuple[tuple[int, str, float], ...] = ()
    strict: bool = False
    has_feed: bool = False
    policy: str = "AT-TSM"
    is_instant: bool = False
    is_minimal: bool = False
    """True if the catalog says nothing that has a default."""
    is_push: bool = False
    """True if it only pushes changes, and is never asked."""
    capacity: int | None = None

    def value(self, key: str, at: float) -> Value:
        """Return what holds for a key at a time."""
        changes = self.timeline.get(key, ())
        number = bisect.bisect_right(changes, at, key=lambda each: each[0])
        return changes[number - 1][1] if number else None

    def values(self, key: str, since: float, until: float) -> set[Value]:
        """Return all that holds for a key in a stretch of time."""
        changes = self.timeline.get(key, ())
        return {self.value(key, since)} | {value for at, value in changes if since < at <= until}

    def profile(self, at: float) -> str:
        """Return the manners at a time."""
        return [name for since, name in self.profiles if since <= at][-1]


@dataclass(frozen=True)
class Said:
    """Reply about a key: sent, arrived, and its value, none if it says that there is none."""

    sent: float
    arrived: float
    value: Value


@dataclass(frozen=True)
class Call:
    """Request as the remote has seen it."""

    sent: float
    keys: tuple[str, ...]
    life: int
    number: int
    """Number among the requests of all services."""


@dataclass
class SimulatedService:
    """Remote at work. It answers at once; :attr:`latency` says when the answer arrives."""

    spec: ServiceSpec
    schedule: Schedule
    random: Random
    on_call: Callable[[], None] = lambda: None
    life: int = 0
    latency: float = 0.0
    calls: list[Call] = field(default_factory=list)
    said: dict[str, list[Said]] = field(default_factory=dict)
    pushed: dict[str, list[Said]] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    _feeds: list[SimulatedFeed] = field(default_factory=list)

    def lookup(self, ids: list[str]) -> Any:
        """Return records by id, or fail, as the manners of the moment have it."""
        now, random = self.schedule.now, self.random
        self.calls.append(Call(now, tuple(ids), self.life, next(_NUMBERS)))
        profile = "well" if random.random() < 0.3 else self.spec.profile(now)
        self.latency = self._latency(profile)
        self.schedule.tell(f"ask {self.spec.name} {profile} {','.join(ids)} {self.latency:.4f}")
        if profile != "well":
            self.faults[profile] = self.faults.get(profile, 0) + 1
        self.on_call()
        match profile:
            case "failing":
                raise RemoteError("it is out of order")
            case "limited":
                raise RemoteError("too many requests", retry_after=random.choice([0.05, 0.4]))
            case "hanging":
                raise RemoteError("it hangs", timed_out=True)
        served = now + self.latency * random.random()
        values = {id_: self.spec.value(id_, served) for id_ in ids}
        if profile == "partial":
            values = {
                id_: None if random.random() < 0.5 else value for id_, value in values.items()
            }
        wrong = {id_ for id_ in ids if profile == "wrong" and random.random() < 0.5}
        arrived = now + self.latency
        for id_, value in values.items():
            said = Said(now, arrived, None if id_ in wrong else value)
            self.said.setdefault(id_, []).append(said)
        return {
            id_: {"n": "wrong"} if id_ in wrong else {"n": value}
            for id_, value in values.items()
            if value is not None or id_ in wrong
        }

    def _latency(self, profile: str) -> float:
        if self.spec.is_instant:
            return 0.0
        quick = self.random.uniform(0.0, 0.02)
        if profile == "slow":
            return quick + self.random.uniform(0.0, 3 * self.spec.deadline)
        return 2.0 if profile == "hanging" else quick

    # The feed -------------------------------------------------------------------------------------

    def feed(self, reader: RecordReader, clock: Clock) -> SimulatedFeed:
        """Return a feed of the changes from now on."""
        feed = SimulatedFeed(RecordForwarder(reader, "deleted", clock))
        self._feeds.append(feed)
        return feed

    def plan_pushes(self) -> None:
        """Plan to push each change that is still to come."""
        if not self.spec.has_feed:
            return
        for key, changes in self.spec.timeline.items():
            for at, value in changes:
                if at > self.schedule.now:
                    delay = at - self.schedule.now + self.random.choice([0.0, 0.01, 0.1])
                    self.schedule.after(delay, self._push(key, value), network=True)

    def _push(self, key: str, value: Value) -> Callable[[], None]:
        def push() -> None:
            now = self.schedule.now
            self.schedule.tell(f"push {self.spec.name} {key} {value}")
            self.pushed.setdefault(key, []).append(Said(now, now, value))
            record = {"id": key} if value is None else {"id": key, "n": value}
            for feed in self._feeds:
                feed.tell(json.dumps(record).encode())

        return push

    def end_life(self) -> None:
        """Forget the feeds of an engine that has ended."""
        self._feeds.clear()
        self.life += 1

    def most_in(self, unit: str, seconds: float, *, lives: Collection[int]) -> int:
        """Return the most requests or items in any stretch of time so long, of some lives."""
        calls = [call for call in self.calls if call.life in lives]
        sizes = [1 if unit == "requests" else len(call.keys) for call in calls]
        most, first, total = 0, 0, 0
        for call, size in zip(calls, sizes, strict=True):
            total += size
            while calls[first].sent <= call.sent - seconds + math.ulp(call.sent):
                total -= sizes[first]
                first += 1
            most = max(most, total)
        return most


class SimulatedFeed:
    """Feed that tells what the simulation hands it."""

    failure: str | None = None

    def __init__(self, forwarder: RecordForwarder) -> None:
        self._forwarder = forwarder

    def start(self, sink: ChangeSink) -> None:
        """Begin to tell."""
        self._forwarder.start(sink)

    def stop(self) -> None:
        """Tell nothing more."""
        self._forwarder.stop()

    def tell(self, line: bytes) -> None:
        """Tell one change."""
        self._forwarder.forward([line])


CURRENT: dict[str, SimulatedService] = {}
"""Services of the run under way, by name: catalogs name functions of this module."""


def s0(ids: list[str]) -> Any:
    """Look up in the first service."""
    return CURRENT["s0"].lookup(ids)


def s1(ids: list[str]) -> Any:
    """Look up in the second service."""
    return CURRENT["s1"].lookup(ids)


def s2(ids: list[str]) -> Any:
    """Look up in the third service."""
    return CURRENT["s2"].lookup(ids)
