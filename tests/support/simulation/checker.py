"""Checker: judges a history of what was seen from outside, by brute force."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rdflib import Literal

from acquatop.answer.answer import Answer
from tests.support.simulation import oracle
from tests.support.simulation.oracle import Ranked, Shown, Solution
from tests.support.simulation.remote import Said, SimulatedService, Value
from tests.support.simulation.scenario import QuerySpec, Record, Scenario, StreamSpec
from tests.support.simulation.world import History, Told

_SCORES_AGREE = 1e-9


@dataclass
class Verdict:
    """Judgement of a history: what is wrong, and how much has really been judged."""

    problems: list[str] = field(default_factory=list)
    judged: Counter[str] = field(default_factory=Counter)
    under: Counter[str] = field(default_factory=Counter)
    """Answers judged by kind of fault that had struck before."""
    checks: Counter[str] = field(default_factory=Counter)

    def expect(self, kind: str, holds: bool, said: str) -> None:
        """Note a check, and a problem if it does not hold."""
        self.checks[kind] += 1
        if not holds:
            self.problems.append(f"{kind}: {said}")

    def add(self, other: Verdict) -> None:
        """Add what another verdict has found and counted."""
        self.problems += other.problems
        self.judged += other.judged
        self.under += other.under
        self.checks += other.checks


def judge(history: History, reference: History | None = None) -> Verdict:
    """Return the verdict on a history; ``reference`` is the same run without faults."""
    verdict = Verdict(problems=list(history.problems))
    _judge_answers(history, verdict)
    _judge_files(history, verdict)
    _judge_repeated(history, verdict)
    _judge_spending(history, verdict)
    _judge_counts(history, verdict)
    if reference is not None:
        _compare(history, reference, verdict)
    return verdict


# Answers ------------------------------------------------------------------------------------------


def _judge_answers(history: History, verdict: Verdict) -> None:
    for told in history.told:
        answer = told.answer
        query = _query(history.scenario, answer.query)
        if told.repeated:
            continue
        status = str(answer.status)
        if status == "approximate":
            verdict.expect("approximate says why", bool(answer.reason), _named(answer))
            verdict.judged[status] += 1
            continue
        problem = _Judge(history, told, query).problem()
        verdict.judged[status] += 1
        for fault in told.faults:
            verdict.under[fault] += 1
        verdict.expect(f"{status} is right", problem is None, f"{_named(answer)}: {problem}")


def _query(scenario: Scenario, name: str) -> QuerySpec:
    return next(each for each in scenario.queries if each.name == name)


def _named(answer: Answer) -> str:
    return f"{answer.query} window {answer.window} (closes {answer.closes_ms}, {answer.status})"


@dataclass
class _Judge:
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
        The clock, and other streams, may close a window later; and a late record may bring the
        first window, if none has been answered yet.
        """
        least = {
            stream.iri: _passing(stream, self.told.answer.closes_ms, self.told.read[stream.iri])
            for stream in map(self._stream, dict.fromkeys(self.query.streams))
        }
        yield least
        streams = [self._stream(name) for name in self.query.streams]
        first_step = next(
            each.step for each in self.history.told if each.answer.query == self.query.name
        )
        if len(streams) == 1 and streams[0].idle_ms is None and self.told.step > first_step:
            return
        for first in range(least[streams[0].iri], self.told.read[streams[0].iri] + 1):
            for second in range(least[streams[-1].iri], self.told.read[streams[-1].iri] + 1):
                yield {streams[0].iri: first, streams[-1].iri: second}

    def _problem(self) -> str | None:
        rows = [_shown(each) for each in self._bindings()]
        if self.query.kind == "pairs":
            return self._pairs(rows)
        stream = self._stream(self.query.streams[0])
        found = oracle.solutions(stream, self._content(stream), by_position=self.query.counts)
        for user in self._users(found):
            value = self._shown_value(rows, user)
            if value is not None and value not in self._possible(user):
                return f"{user} is shown with {value}, not with any of {self._possible(user)}"
        if self.query.kind == "whole":
            return self._whole(stream, found, rows)
        return self._ranked(stream, found, rows)

    def _bindings(self) -> list[dict[str, object]]:
        return [
            {name: _plain(term) for name, term in each.bindings.items()}
            for each in self.told.answer.rows
        ]

    def _stream(self, name: str) -> StreamSpec:
        return self.history.scenario.stream(name)

    def _content(self, stream: StreamSpec) -> Sequence[Record]:
        answer = self.told.answer
        read = stream.records[: self.reads[stream.iri]]
        if self.query.counts:
            read = stream.records[: self.told.read[stream.iri]]
            late = _late_elements(stream)
            read = tuple(record for record in read if record.id not in late)
            last = (answer.window + 1) * self.query.slide
            return oracle.elements(stream, read, self.query.width, last)
        return _within(read, answer.opens_ms, answer.closes_ms)

    def _pairs(self, rows: Sequence[Shown]) -> str | None:
        found = []
        for name, shown in zip(self.query.streams, ("w", "x"), strict=True):
            stream = self._stream(name)
            bounds = [
                (each.opens_ms, each.closes_ms)
                for each in self.told.answer.windows
                if each.window.endswith("/" + shown)
            ]
            read = stream.records[: self.reads[stream.iri]]
            inside = _within(read, *bounds[0]) if bounds else ()
            found.append(oracle.solutions(stream, inside))
        return _difference(Counter(rows), oracle.pairs(*found))

    def _whole(
        self, stream: StreamSpec, found: Sequence[Solution], rows: Sequence[Shown]
    ) -> str | None:
        if self.query.service is None:
            return _difference(Counter(rows), oracle.joined(stream, found, None))
        assigned: dict[str, Value] = {}
        for user in self._users(found):
            value = self._shown_value(rows, user)
            if value is None and None not in self._possible(user):
                return f"{user} is missing, with one of {self._possible(user)}"
            assigned[user] = value
        return _difference(Counter(rows), oracle.joined(stream, found, assigned.__getitem__))

    def _ranked(
        self, stream: StreamSpec, found: Sequence[Solution], rows: Sequence[Shown]
    ) -> str | None:
        """Compare with the ranking in which all that is not shown has its least possible merit."""
        query = self.query
        assigned: dict[str, Value] = {}
        for user in self._users(found):
            value = self._shown_value(rows, user)
            assigned[user] = self._least(user) if value is None else value
        right = oracle.ranked(query, stream, found, assigned.get)
        right = right[query.offset : query.offset + query.k]
        return _unequal(rows, [row.score for row in self.told.answer.rows], right, query)

    def _least(self, user: str) -> Value:
        """Return the possible value with the least merit; none is less than any."""
        possible = self._possible(user)
        if None in possible:
            return None
        known = [value for value in possible if value is not None]
        return min(known) if self.query.descending else max(known)

    def _users(self, found: Sequence[Solution]) -> list[str]:
        return sorted({each.user for each in found}) if self.query.service else []

    def _shown_value(self, rows: Sequence[Shown], user: str) -> Value:
        for each in map(dict, rows):
            if each.get("s") == user and isinstance(value := each.get("v"), int):
                return value
        return None

    def _possible(self, user: str) -> set[Value]:
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


def _within(records: Sequence[Record], opens_ms: int, closes_ms: int) -> list[Record]:
    return [each for each in records if each.t is not None and opens_ms < each.t <= closes_ms]


def _passing(stream: StreamSpec, closes_ms: int, read: int) -> int:
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


def _shown(bindings: dict[str, object]) -> Shown:
    return oracle.row(**{name: each for name, each in bindings.items() if name != "score"})


def _difference(found: Counter[Shown], right: Counter[Shown]) -> str | None:
    if found == right:
        return None
    too_much, too_little = (found - right).elements(), (right - found).elements()
    return f"too much: {sorted(too_much)[:3]}, too little: {sorted(too_little)[:3]}"


def _unequal(
    rows: Sequence[Shown], scores: Sequence[float | None], right: Sequence[Ranked], query: QuerySpec
) -> str | None:
    expected = [each.score for each in right]
    if len(scores) != len(expected) or any(
        one is None or abs(one - other) > _SCORES_AGREE
        for one, other in zip(scores, expected, strict=True)
    ):
        return f"scores {list(scores)}, but right are {expected}"
    if list(rows) != [each.shown for each in right]:
        return f"rows {list(rows)}, but right are {[each.shown for each in right]}"
    return None


# Files --------------------------------------------------------------------------------------------


def _judge_files(history: History, verdict: Verdict) -> None:
    """Check that each window has one answer in each file, in order, without a gap."""
    told: dict[tuple[str, int], str] = {}
    for each in history.told:
        told[each.answer.query, each.answer.window] = each.document
    for query in history.scenario.queries:
        if query.fails:
            continue
        name = f"lines/{query.name}.ndjson"
        lines = history.files.get(name, b"").splitlines()
        documents = [json.loads(line) for line in lines]
        indices = [each["window"]["index"] for each in documents]
        verdict.expect("lines are in order", indices == sorted(set(indices)), f"{name}: {indices}")
        known = sorted(window for owner, window in told if owner == query.name)
        if history.has_damage:
            # Lines after those of the older snapshot come again.
            known = known[: len(indices)]
        verdict.expect("all told is in the file", indices == known, f"{name}: {indices}, {known}")
        for document, index in zip(documents, indices, strict=True):
            right = told.get((query.name, index))
            same = right == json.dumps(document, sort_keys=True)
            verdict.expect("a line is what was told", same, f"{name} {index}")
        if query.kind != "pairs" and not history.has_damage:
            _expect_no_gap(history, query, indices, verdict)
            tables = sum(1 for file in history.files if file.startswith(f"tables/{query.name}/"))
            verdict.expect("a table per window", tables == len(indices), f"{query.name}: {tables}")


def _expect_no_gap(
    history: History, query: QuerySpec, indices: Sequence[int], verdict: Verdict
) -> None:
    name = query.name
    if indices and name not in history.left:
        whole = list(range(indices[0], indices[-1] + 1))
        verdict.expect("no window is left out", indices == whole, f"{name}: {indices}")
    stream = history.scenario.stream(query.streams[0])
    good = [record.t for record in stream.records if record.t is not None]
    if query.counts or not history.scenario.recording or not good:
        return
    last = -(-max(good) // query.slide) - 1
    ends = indices[-1] if indices else None
    verdict.expect("it goes on to the end", ends == last, f"{name}: {ends} instead of {last}")
    if stream.is_orderly:
        first = -((query.width - min(good)) // query.slide)
        begins = indices[0] if indices else None
        verdict.expect("it begins at the start", begins == first, f"{name}: {begins} and {first}")


def _judge_repeated(history: History, verdict: Verdict) -> None:
    """Check that an answer that is given again is the same; not if a snapshot was damaged."""
    seen: dict[tuple[str, int], str] = {}
    for each in history.told:
        key = each.answer.query, each.answer.window
        if key in seen and not history.has_damage and each.answer.query not in history.left:
            verdict.expect("given again, it is the same", seen[key] == each.document, f"{key}")
        seen[key] = each.document
    once = Counter((each.answer.query, each.answer.window, each.life) for each in history.told)
    twice = [key for key, count in once.items() if count > 1 and key[0] not in history.left]
    verdict.expect("once per life", not twice, f"{twice}")


def _compare(history: History, reference: History, verdict: Verdict) -> None:
    for name in sorted({*history.files, *reference.files}):
        found, right = history.files.get(name), reference.files.get(name)
        verdict.expect("files are equal", found == right, f"{name}: {_first_unequal(found, right)}")
    for name in sorted({*history.side, *reference.side}):
        if history.scenario.moves_cuts and name.endswith(".late"):
            continue
        found, right = history.side.get(name), reference.side.get(name)
        verdict.expect("side outputs are equal", found == right, f"{name}: {found!r} {right!r}")


def _first_unequal(found: bytes | None, right: bytes | None) -> str:
    pairs = zip((found or b"").splitlines(), (right or b"").splitlines(), strict=False)
    return str(next(((one, other) for one, other in pairs if one != other), "in length"))


# Spending -----------------------------------------------------------------------------------------


def _judge_spending(history: History, verdict: Verdict) -> None:
    for name, service in history.services.items():
        queries = [each for each in history.scenario.queries if each.service == name]
        for query in queries:
            _judge_steps(history, service, query, verdict)
        for count, unit, seconds in service.spec.limits:
            lives = [None] if service.spec.strict else list(range(service.life + 1))
            for life in lives:
                most = service.most_in(unit, seconds, life=life)
                said = f"{name}: {most} {unit} in {seconds} s, of {count}"
                verdict.expect("limits over time hold", most <= count, said)
        if service.spec.strict and queries:
            _judge_strict(history, service, queries[0], verdict)
            _judge_repeated_evaluations(history, service, queries[0], verdict)


def _judge_steps(
    history: History, service: SimulatedService, query: QuerySpec, verdict: Verdict
) -> None:
    """Check that the requests in each step are those that its answers report, and allowed."""
    by_step: defaultdict[int, list[Told]] = defaultdict(list)
    for told in history.told:
        if told.answer.query == query.name and not told.repeated:
            by_step[told.step].append(told)
    name = service.spec.name
    for step in history.steps:
        if not step.is_whole or history.ends_within(step):
            continue
        calls = service.calls[step.calls[name] : step.after[name]]
        answers = [told.answer for told in by_step[step.number]]
        items, requests = sum(len(call.keys) for call in calls), len(calls)
        reported = (
            sum(each.spending.items for each in answers),
            sum(each.spending.requests for each in answers),
        )
        said = f"{query.name}, step {step.number}: {items} items, {requests} requests, {reported}"
        verdict.expect("spending is reported", (items, requests) == reported, said)
        most_items = service.spec.items * len(answers) + service.spec.bank[0]
        most_requests = service.spec.requests * len(answers) + service.spec.bank[1]
        holds = items <= most_items and requests <= most_requests
        verdict.expect("the budget holds", holds, f"{said} of {most_items}, {most_requests}")
        for each in answers:
            within = (
                each.spending.items <= service.spec.items + service.spec.bank[0]
                and each.spending.requests <= service.spec.requests + service.spec.bank[1]
            )
            verdict.expect("an evaluation's budget holds", within, f"{_named(each)}")


def _judge_strict(
    history: History, service: SimulatedService, query: QuerySpec, verdict: Verdict
) -> None:
    """Check that all lives together have spent what their windows allow."""
    windows = {told.answer.window for told in history.told if told.answer.query == query.name}
    count = len(windows) + (0 if history.scenario.recording else 1)
    items = sum(len(call.keys) for call in service.calls)
    most = (
        count * service.spec.items + service.spec.bank[0],
        count * service.spec.requests + service.spec.bank[1],
    )
    said = f"{service.spec.name}: {items} items, {len(service.calls)} requests in all, of {most}"
    holds = items <= most[0] and len(service.calls) <= most[1]
    verdict.expect("strict budgets hold over crashes", holds, said)


def _judge_repeated_evaluations(
    history: History, service: SimulatedService, query: QuerySpec, verdict: Verdict
) -> None:
    """Check that what was spent before a fault counts when its windows are evaluated again."""
    stream = history.scenario.stream(query.streams[0])
    if stream.idle_ms is not None or history.has_damage:
        return
    name = service.spec.name
    answered: set[int] = set()
    windows: defaultdict[int, set[int]] = defaultdict(set)
    for told in history.told:
        if told.answer.query == query.name:
            windows[told.step].add(told.answer.window)
    until, items, requests, count, life = None, 0, 0, 0, 0
    for step in history.steps:
        if step.is_struck and not until:
            until, items, requests, count = 0, 0, 0, 0
        new = windows[step.number] - answered
        answered |= new
        if until is None:
            continue
        calls = service.calls[step.calls[name] : step.after[name]]
        items += sum(len(call.keys) for call in calls)
        requests, count = requests + len(calls), count + len(new)
        if step.is_struck:
            until, life = max(until, step.read[stream.iri]), step.life
        elif step.life > life and step.read[stream.iri] >= until:
            most_items = count * service.spec.items + service.spec.bank[0]
            most_requests = count * service.spec.requests + service.spec.bank[1]
            said = f"{name}: {items} items, {requests} requests of {most_items}, {most_requests}"
            holds = items <= most_items and requests <= most_requests
            verdict.expect("a repeated evaluation spends once", holds, said)
            until = None


# Counters -----------------------------------------------------------------------------------------


def _judge_counts(history: History, verdict: Verdict) -> None:
    if len(history.ends) == 1 and not history.errors:
        for stream in history.scenario.streams:
            seen = [each for each in history.batches if each.stream == stream.iri]
            read = stream.records[: history.read[stream.iri]]
            if not seen or not _is_always_read(history, stream):
                continue
            events = sum(each.events for each in seen)
            verdict.expect("events add up", events == len(read), f"{events} of {len(read)}")
            bad = sum(sum(each.bad.values()) for each in seen)
            right = sum(record.t is None for record in read)
            verdict.expect("bad items add up", bad == right, f"{bad} of {right}")
            if stream.side_outputs:
                late = sum(each.late for each in seen)
                lines = history.side.get(f"{stream.name}.late", b"").count(b"\n")
                verdict.expect("late records are written", late == lines, f"{late}, {lines}")
    for stream in history.scenario.streams:
        if stream.side_outputs and f"{stream.name}.bad" in history.side:
            lines = history.side[f"{stream.name}.bad"].count(b"\n")
            right = sum(r.t is None for r in stream.records[: history.read[stream.iri]])
            verdict.expect("bad items are written once", lines == right, f"{lines} of {right}")


def _is_always_read(history: History, stream: StreamSpec) -> bool:
    """Return True if a query reads the stream all the time: without any, nothing is counted."""
    readers = [each for each in history.scenario.queries if stream.name in each.streams]
    return any(each.from_start and not each.fails for each in readers)
