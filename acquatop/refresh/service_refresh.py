"""Refresh of a query's remotes before it is evaluated: keys needed now, within the budgets."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Protocol

from acquatop.answer.certificate import Certificate
from acquatop.refresh.allocation import Bid
from acquatop.refresh.pool_lane import PoolLane, fetch_of, lanes_of, pack_lanes, resume_lanes
from acquatop.refresh.service_join import ReplicaJoin, depths
from acquatop.topk.snapshot import State, pack, pack_parts, reading, unpack, unpack_parts
from replica.budget import Budget, Spending
from replica.clocks import Clock
from replica.maintainer import Refreshed
from replica.store import WHOLE
from rspql.ast import Group, ServicePattern, Values

_KIND, _VERSION = "remotes", 1

KeysOf = Callable[[str, Group, Mapping[ServicePattern, Values], int], list[str]]
"""Function that returns the terms of a variable in a pattern at a time, given other answers."""


@dataclass
class RefreshResult:
    """Answers of the replicas for one evaluation, and their cost.

    ``missing`` counts by service the keys that are still unknown; ``is_stale`` is true if something
    needed was not fetched now.
    """

    answers: dict[ServicePattern, Values] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)
    is_stale: bool = False
    fetched: dict[ReplicaJoin, frozenset[str]] = field(default_factory=dict)
    spent: Spending = field(default_factory=Spending)
    failure: str | None = None
    seconds: float = 0.0
    rejected: Counter[str] = field(default_factory=Counter)
    without_past: dict[str, int] = field(default_factory=dict)
    """Number of keys by service of which no value is known from the time looked back to."""
    looks_back: bool = False
    certificate: Certificate | None = None
    """Certificate of the answer, if it does not follow from the rest."""

    @property
    def spending(self) -> Spending:
        """Spending on all remotes together, and the time it took."""
        return replace(self.spent, seconds=self.seconds)

    @property
    def refreshed(self) -> list[str]:
        """Keys that were fetched now, sorted."""
        return sorted({key for keys in self.fetched.values() for key in keys if key != WHOLE})

    def note(self, join: ReplicaJoin, keys: Sequence[str], refreshed: Refreshed) -> None:
        """Note the answers of a part's replica for its keys, after it has been refreshed."""
        service = join.part.iri.value
        self.answers[join.part.pattern] = join.values(keys)
        self.missing[service] = self.missing.get(service, 0) + join.unknown(keys)
        if join.looks_back:
            self.looks_back = True
            self.without_past[service] = self.without_past.get(service, 0) + join.without_past(keys)
        self.is_stale |= not refreshed.fetched.issuperset(keys)
        self.fetched[join] = refreshed.fetched
        self.failure = self.failure or refreshed.failure
        self.rejected.update(refreshed.rejected)


@dataclass
class _Begun:
    """Refresh that has begun: its time, the parts in turn, and the keys of those asked first."""

    at_ms: int
    in_turn: Sequence[ReplicaJoin]
    wanted: list[tuple[ReplicaJoin, list[str]]] = field(default_factory=list)
    result: RefreshResult = field(default_factory=RefreshResult)


class ServiceAnswers(Protocol):
    """Answers to the SERVICE patterns of a query, for one evaluation after the other."""

    @property
    def joins(self) -> Sequence[ReplicaJoin]:
        """Parts that replicas answer."""

    @property
    def budget(self) -> Budget:
        """Budget of one evaluation for all remotes together."""

    def refresh(
        self, at_ms: int, results: Mapping[str, Sequence[str]], longest_wait: float
    ) -> RefreshResult:
        """Return the answers at a time."""

    def snapshot(self) -> bytes:
        """Return the whole state."""

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot."""


class ServiceRefresh:
    """Parts of a query that remotes answer.

    A part whose keys come from others' answers is asked after these; the others are asked at the
    same time. Each service's budget is that of its lane, in ``lanes`` by IRI, which the ``query``
    is in with its ``weight``; without one it is the query's own. Parts take turns in bidding first.
    """

    def __init__(
        self,
        joins: Sequence[ReplicaJoin],
        keys_of: KeysOf,
        clock: Clock = time.monotonic,
        *,
        lanes: Mapping[str, PoolLane] = {},
        query: str = "",
        weight: float = 1.0,
    ) -> None:
        self.joins = tuple(joins)
        keepers = [join.flow.maintainer for join in joins]
        found = lanes_of([join.part.iri.value for join in joins], keepers, lanes)
        self._lanes = dict(zip(self.joins, found, strict=True))
        self._keys_of = keys_of
        self._clock = clock
        self._query = query
        self._weight = weight
        self._depths = depths([join.part for join in joins])
        self._turn = 0
        self._begun: _Begun | None = None

    @property
    def budget(self) -> Budget:
        """Budget of one evaluation for all remotes together."""
        accounts = {
            id(join.flow.maintainer.account): join.flow.maintainer.budget for join in self.joins
        }
        return sum(accounts.values(), Budget(0, 0, 0.0))

    def refresh(
        self, at_ms: int, results: Mapping[str, Sequence[str]], longest_wait: float
    ) -> RefreshResult:
        """Ask for the keys that the windows' content needs now.

        ``results`` are the keys of the last answer, by variable, best first. All waiting together
        takes at most ``longest_wait`` seconds.
        """
        started = self._clock()
        if self._begun is None:
            self.offer(at_ms, results)
        begun, self._begun = self._begun, None
        assert begun is not None
        result, until = begun.result, started + longest_wait
        for depth, several in groupby(begun.in_turn, key=self._depth):
            level = list(several)
            wanted = begun.wanted if not depth else self._offer_level(level, begun, results)
            lanes = [(self._lanes[join], join.flow.maintainer) for join, _ in wanted]
            found = fetch_of(lanes, until)
            for (join, keys), refreshed in zip(wanted, found, strict=True):
                join.forget_rows(refreshed.changed)
                join.note_looks({**dict.fromkeys(keys), **dict.fromkeys(refreshed.changed)})
                result.note(join, keys, refreshed)
            # All parts of one lane report what was spent for all.
            by_lane = {id(lane): each for (lane, _), each in zip(lanes, found, strict=True)}
            result.spent = sum((each.spending for each in by_lane.values()), result.spent)
        result.seconds = self._clock() - started
        return result

    def offer(self, at_ms: int, results: Mapping[str, Sequence[str]]) -> None:
        """Bid for the keys that the windows' content needs now, of services that are asked first.

        Those that are asked later are told that more follows.
        """
        for join in self.joins:
            join.flow.begin(at_ms)
        begun = _Begun(at_ms, self._in_turn())
        for join in self.joins:
            if self._depth(join):
                self._lanes[join].announce(at_ms, self._query, self._weight)
        first = [join for join in begun.in_turn if not self._depth(join)]
        begun.wanted = self._offer_level(first, begun, results)
        self._begun = begun

    def _offer_level(
        self, joins: Sequence[ReplicaJoin], begun: _Begun, results: Mapping[str, Sequence[str]]
    ) -> list[tuple[ReplicaJoin, list[str]]]:
        """Bid for the keys of some parts; return them."""
        wanted = [(join, self._keys(join, begun.result.answers, begun.at_ms)) for join in joins]
        for join, keys in wanted:
            join.note_looks(keys)
            if join.flow.evicts:
                join.flow.touch(keys)
            lane = self._lanes[join]
            share = lane.share(self._weight, self._weight)
            order = join.appraised(keys, results.get(join.part.key or "", ()), share)
            bid = Bid(self._query, self._weight, order.keys, order.worths.tolist())
            lane.offer(begun.at_ms, join.flow.maintainer, [bid])
        return wanted

    def _depth(self, join: ReplicaJoin) -> int:
        return self._depths[join.part.pattern]

    def snapshot(self) -> bytes:
        """Return the whole state, with the replicas."""
        parts = {f"join{at}": join.snapshot() for at, join in enumerate(self.joins)}
        state = pack(_KIND, _VERSION, State({"turn": self._turn}, {}))
        return pack_parts({"state": state, **parts, **pack_lanes([*self._lanes.values()])})

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot; raises ``SnapshotError`` for any other bytes."""
        with reading():
            parts = unpack_parts(snapshot)
            self._turn = unpack(_KIND, _VERSION, parts["state"]).settings["turn"]
            for at, join in enumerate(self.joins):
                join.resume(parts[f"join{at}"])
            resume_lanes([*self._lanes.values()], parts)

    def _in_turn(self) -> list[ReplicaJoin]:
        first = self._turn % max(1, len(self.joins))
        self._turn += 1
        return sorted(self.joins[first:] + self.joins[:first], key=self._depth)

    def _keys(
        self, join: ReplicaJoin, answers: Mapping[ServicePattern, Values], at_ms: int
    ) -> list[str]:
        if join.part.key is None or join.part.key_source is None:
            return [WHOLE]
        return self._keys_of(join.part.key, join.part.key_source, answers, at_ms)
