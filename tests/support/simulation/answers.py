"""Judge of single answers: compares what an answer claims with answers by brute force."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from rdflib import Literal

from tests.support.simulation import oracle
from tests.support.simulation.oracle import Ranked, Shown, Solution
from tests.support.simulation.remote import Said, SimulatedService, Value
from tests.support.simulation.scenario import QuerySpec, Record, StreamSpec
from tests.support.simulation.world import History, Told

SCORES_AGREE = 1e-9


@dataclass
class Judge:
    """Judge of one answer that claims to be right."""

    history: History
    told: Told
    query: QuerySpec
    reads: dict[str, int] = field(default_factory=dict)

    def problem(self) -> str | None:
        """Return what is wrong with the answer, if it is so by all that may have come before it."""
        problem = None
        for reads in self._readings():
            self.reads = reads
            problem = self._problem()
            if problem is None:
                return None
        return problem

    def _readings(self) -> Iterator[dict[str, int]]:
        """Yield how much of the streams may have been read before the window closed.

        Of one stream that is certain: up to the record with which its watermark passes the close.
        The clock, and other streams, may close a window later; and a record behind the watermark
        may bring the first window. A window whose evaluation was lost before had
        closed by then: it may be evaluated again after a restart.
        """
        least = {
            stream.iri: passing(stream, self.told.answer.closes_ms, self.told.read[stream.iri])
            for stream in map(self.stream, dict.fromkeys(self.query.streams))
        }
        yield least
        name, closes_ms = self.query.name, self.told.answer.closes_ms
        for lost in self.history.unanswered:
            if (lost.window.query, lost.window.closes_ms) == (name, closes_ms):
                yield lost.read
        streams = [self.stream(name) for name in self.query.streams]
        is_certain = len(streams) == 1 and streams[0].idle_ms is None
        if is_certain and self.told.step not in self._first_steps():
            return
        for first in range(least[streams[0].iri], self.told.read[streams[0].iri] + 1):
            for second in range(least[streams[-1].iri], self.told.read[streams[-1].iri] + 1):
                yield {streams[0].iri: first, streams[-1].iri: second}

    def _first_steps(self) -> set[int]:
        """Return the steps that answered the first window: several, if its state was damaged."""
        told = [each for each in self.history.told if each.answer.query == self.query.name]
        first = min(each.answer.window for each in told)
        return {each.step for each in told if each.answer.window == first}

    def _problem(self) -> str | None:
        rows = [shown(each) for each in self.bindings()]
        if self.query.kind == "pairs":
            return self._pairs(rows)
        stream = self.stream(self.query.streams[0])
        found = oracle.solutions(stream, self.content(stream), by_position=self.query.counts)
        for user in self.users(found):
            value = self.shown_value(rows, user)
            if value is not None and value not in self.possible(user):
                return f"{user} is shown with {value}, not with any of {self.possible(user)}"
        if self.query.kind == "whole":
            return self._whole(stream, found, rows)
        return self._ranked(stream, found, rows)

    def bindings(self) -> list[dict[str, object]]:
        return [
            {name: _plain(term) for name, term in each.bindings.items()}
            for each in self.told.answer.rows
        ]

    def stream(self, name: str) -> StreamSpec:
        return self.history.scenario.stream(name)

    def content(self, stream: StreamSpec) -> Sequence[Record]:
        answer = self.told.answer
        read = stream.records[: self.reads[stream.iri]]
        if self.query.counts:
            read = stream.records[: self.told.read[stream.iri]]
            late = _late_elements(stream)
            read = tuple(record for record in read if record.id not in late)
            last = (answer.window + 1) * self.query.slide
            return oracle.elements(stream, read, self.query.width, last)
        return within(read, answer.opens_ms, answer.closes_ms)

    def _pairs(self, rows: Sequence[Shown]) -> str | None:
        found, answer = [], self.told.answer
        for name, shown in zip(self.query.streams, ("w", "x"), strict=True):
            stream = self.stream(name)
            bounds = [
                (each.opens_ms, each.closes_ms)
                for each in answer.windows
                if each.window.endswith("/" + shown)
            ]
            read = stream.records[: self.reads[stream.iri]]
            # A window that has not begun has missed nothing of what the others show.
            opens, closes = bounds[0] if bounds else (answer.opens_ms, answer.closes_ms)
            inside = within(read, opens, closes)
            found.append(oracle.solutions(stream, inside))
        return _difference(Counter(rows), oracle.pairs(*found))

    def _whole(
        self, stream: StreamSpec, found: Sequence[Solution], rows: Sequence[Shown]
    ) -> str | None:
        if self.query.service is None:
            return _difference(Counter(rows), oracle.joined(stream, found, None))
        assigned: dict[str, Value] = {}
        for user in self.users(found):
            value = self.shown_value(rows, user)
            if value is None and None not in self.possible(user):
                return f"{user} is missing, with one of {self.possible(user)}"
            assigned[user] = value
        return _difference(Counter(rows), oracle.joined(stream, found, assigned.__getitem__))

    def _ranked(
        self, stream: StreamSpec, found: Sequence[Solution], rows: Sequence[Shown]
    ) -> str | None:
        """Compare with the ranking in which all that is not shown has its least possible merit."""
        query = self.query
        assigned: dict[str, Value] = {}
        for user in self.users(found):
            value = self.shown_value(rows, user)
            assigned[user] = self._least(user) if value is None else value
        right = oracle.ranked(query, stream, found, assigned.get)
        right = right[query.offset : query.offset + query.k]
        return _unequal(rows, [row.score for row in self.told.answer.rows], right, query)

    def _least(self, user: str) -> Value:
        """Return the possible value with the least merit; none is less than any."""
        possible = self.possible(user)
        if None in possible:
            return None
        known = [value for value in possible if value is not None]
        return min(known) if self.query.descending else max(known)

    def users(self, found: Sequence[Solution]) -> list[str]:
        return sorted({each.user for each in found}) if self.query.service else []

    def shown_value(self, rows: Sequence[Shown], user: str) -> Value:
        for each in map(dict, rows):
            if each.get("s") == user and isinstance(value := each.get("v"), int):
                return value
        return None

    def possible(self, user: str) -> set[Value]:
        """Return the values that a key may have in an answer of this status."""
        service = self.history.services[self.query.service or ""]
        key = user.rpartition("/")[2]
        if str(self.told.answer.status) == "exact":
            return _fetched(service, key, self.told.since, self.told.now)
        return _held(service, key, self.told) or service.spec.values(key, 0.0, self.told.now)


def _fetched(service: SimulatedService, key: str, since: float, until: float) -> set[Value]:
    """Return what the remote has said in an evaluation; what holds, if it was not asked."""
    said = {
        each.value
        for each in service.said.get(key, ())
        if since <= each.sent and each.arrived <= until
    }
    return said or service.spec.values(key, since, until)


def _held(service: SimulatedService, key: str, told: Told) -> set[Value]:
    """Return what the replica may hold of a key: the last that was said; all after a restart."""
    arrived = [each for each in service.said.get(key, ()) if each.arrived <= told.now]
    pushed = [each for each in service.pushed.get(key, ()) if each.sent <= told.now]
    if told.life > 0:
        return {each.value for each in [*arrived, *pushed]}
    # A step may evaluate several windows, each with what has arrived by then.
    before = [each for each in arrived if each.arrived <= told.since]
    newest = max((each.sent for each in before), default=-1.0)
    kept = [each for each in before if each.sent == newest]
    kept += [each for each in arrived if each.arrived > told.since]
    earlier = [each for each in pushed if each.sent <= told.since]
    kept += [each for each in earlier[-1:] if each.sent >= newest]
    kept += [each for each in pushed if each.sent > told.since]
    # A push is taken in by the next evaluation, which a reply may precede.
    kept += _overtaken(before, pushed, newest)
    if not before and not earlier:
        return {each.value for each in kept} | service.spec.values(key, 0.0, told.now)
    return {each.value for each in kept}


def _overtaken(arrived: Sequence[Said], pushed: Sequence[Said], newest: float) -> list[Said]:
    """Return the replies that were under way while a change was pushed, and that push."""
    last = [each for each in arrived if each.sent == newest]
    late = max((each.arrived for each in last), default=-1.0)
    return [each for each in pushed if newest <= each.sent <= late]


def within(records: Sequence[Record], opens_ms: int, closes_ms: int) -> list[Record]:
    return [each for each in records if each.t is not None and opens_ms < each.t <= closes_ms]


def passing(stream: StreamSpec, closes_ms: int, read: int) -> int:
    """Return how many records come until the watermark passes a time, that one included."""
    for number, record in enumerate(stream.records[:read], start=1):
        if record.t is not None and record.t - stream.lateness_ms - 1 >= closes_ms:
            return number
    return read


def _late_elements(stream: StreamSpec) -> set[int]:
    """Return the elements that come after the watermark."""
    late, watermark = set(), None
    for record in stream.records:
        if record.t is None:
            continue
        if watermark is not None and record.t <= watermark:
            late.add(record.id)
        reached = record.t - stream.lateness_ms - 1
        watermark = reached if watermark is None else max(reached, watermark)
    return late


def _plain(term: object) -> object:
    if not isinstance(term, Literal):
        return str(term)
    datatype = str(term.datatype or "")
    return int(term) if datatype.endswith("#integer") else str(term)


def shown(bindings: dict[str, object]) -> Shown:
    return oracle.row(**{name: each for name, each in bindings.items() if name != "score"})


def _difference(found: Counter[Shown], right: Counter[Shown]) -> str | None:
    if found == right:
        return None
    too_much, too_little = (found - right).elements(), (right - found).elements()
    return f"too much: {sorted(too_much)[:3]}, too little: {sorted(too_little)[:3]}"


def _projected(row: Shown, query: QuerySpec) -> Shown:
    shown = query.projection
    return row if shown is None else tuple(each for each in row if each[0] in shown)


def _unequal(
    rows: Sequence[Shown], scores: Sequence[float | None], right: Sequence[Ranked], query: QuerySpec
) -> str | None:
    right = [replace(each, shown=_projected(each.shown, query)) for each in right]
    expected = [each.score for each in right]
    if len(scores) != len(expected) or any(
        one is None or abs(one - other) > SCORES_AGREE
        for one, other in zip(scores, expected, strict=True)
    ):
        return f"scores {list(scores)}, but right are {expected}"
    if list(rows) != [each.shown for each in right]:
        return f"rows {list(rows)}, but right are {[each.shown for each in right]}"
    return None
