"""Checker: judges a history of what was seen from outside, by brute force."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from acquatop.answer.answer import Answer
from acquatop.answer.sinks.naming import safe_name
from tests.support.simulation.answers import Judge
from tests.support.simulation.approximate import Approximate
from tests.support.simulation.behind import Read
from tests.support.simulation.changes import Document, judge_changes
from tests.support.simulation.coverage import features_of
from tests.support.simulation.remote import SimulatedService
from tests.support.simulation.scenario import QuerySpec, Scenario, StreamSpec
from tests.support.simulation.sparql import LOSSES
from tests.support.simulation.world import History, Told


@dataclass
class Verdict:
    """Judgement of a history: what is wrong, and how much has really been judged."""

    problems: list[str] = field(default_factory=list)
    judged: Counter[str] = field(default_factory=Counter)
    under: Counter[str] = field(default_factory=Counter)
    """Answers judged by kind of fault that had struck before."""
    checks: Counter[str] = field(default_factory=Counter)
    covered: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Answers judged by feature and status."""

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
        self.covered += other.covered


def judge(history: History, reference: History | None = None) -> Verdict:
    """Return the verdict on a history; ``reference`` is the same run without faults."""
    verdict = Verdict(problems=list(history.problems))
    _judge_answers(history, verdict)
    _judge_twins(history, verdict)
    _judge_readers(history, verdict)
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
        query = _query(history.scenario, told.answer.query)
        if told.repeated or query.twin is not None or query.kind in ("behind", "other"):
            continue
        if told.life > history.ended.get(query.name, told.life):
            continue
        status = str(told.answer.status)
        if status == "approximate":
            verdict.expect("approximate says why", bool(told.answer.reason), _named(told.answer))
            problem = Approximate(history, told, query).problem()
        else:
            problem = Judge(history, told, query).problem()
        verdict.expect(f"{status} is right", problem is None, f"{_named(told.answer)}: {problem}")
        _count(history, verdict, query, status, told.faults)


def _count(
    history: History, verdict: Verdict, query: QuerySpec, status: str, faults: Iterable[str]
) -> None:
    verdict.judged[status] += 1
    for fault in faults:
        verdict.under[fault] += 1
    for feature in {*features_of(history.scenario, query), *history.parted(query)}:
        verdict.covered[feature, status] += 1


def _judge_readers(history: History, verdict: Verdict) -> None:
    """Check the queries that read the answers of others against these."""
    for query in history.scenario.queries:
        if query.reads is None or history.ended.keys() & {query.name, query.reads}:
            continue
        last = {
            each.answer.window: each for each in history.told if each.answer.query == query.name
        }
        for told in last.values():
            problem = Read.of(history, query.reads, told.life).problem(told.answer)
            said = f"{_named(told.answer)}: {problem}"
            verdict.expect("what reads answers is right", problem is None, said)
            _count(history, verdict, query, str(told.answer.status), told.faults)


def _judge_twins(history: History, verdict: Verdict) -> None:
    """Check the queries that give changes against those that give whole answers."""
    for query in history.scenario.queries:
        if query.twin is None or (query.counts and _are_lost(history, query)):
            continue
        if history.ended.keys() & {query.name, query.twin}:
            continue
        faults = {
            each.answer.window: each.faults
            for each in history.told
            if each.answer.query == query.name
        }
        told, whole = _documents(history, query.name), _documents(history, query.twin)
        if _may_miss_others(history.scenario, query):
            certain = _until_something_is_late(told, whole)
            told, whole = ({at: each[at] for at in each if at < certain} for each in (told, whole))
        for change in judge_changes(query, told, whole):
            said = f"{query.name} window {change.window}: {change.problem}"
            verdict.expect(f"{query.output} is right", change.problem is None, said)
            _count(history, verdict, query, change.status, faults.get(change.window, ()))


def _may_miss_others(scenario: Scenario, query: QuerySpec) -> bool:
    """Return True if a query may miss other late records than its twin.

    While one of its streams brings a batch, the other may become idle between their turns.
    """
    streams = {scenario.stream(name) for name in query.streams}
    return len(streams) > 1 and any(each.idle_ms is not None for each in streams)


def _until_something_is_late(*several: Mapping[int, Document]) -> float:
    """Return the first window of which an answer lacks something that came too late."""
    found = (at for told in several for at, each in told.items() if each["status"] == "approximate")
    return min(found, default=math.inf)


def _are_lost(history: History, query: QuerySpec) -> bool:
    """Return True if windows of a query or its twin have no answer; positions do not tell which."""
    names = {query.name, query.twin}
    return any(each.window.query in names for each in history.unanswered)


def _documents(history: History, name: str) -> dict[int, Document]:
    """Return the answers of a query by window, each as it was told last.

    A window that was answered before damage of the state may have no answer after it.
    """
    lost = {
        each.window.closes_ms: each.life for each in history.unanswered if each.window.query == name
    }
    return {
        each.answer.window: json.loads(each.document)
        for each in history.told
        if each.answer.query == name and each.life >= lost.get(each.answer.closes_ms, each.life)
    }


def _query(scenario: Scenario, name: str) -> QuerySpec:
    return next(each for each in scenario.queries if each.name == name)


def _named(answer: Answer) -> str:
    return f"{answer.query} window {answer.window} (closes {answer.closes_ms}, {answer.status})"


def _index(query: QuerySpec, closes_ms: int) -> int:
    """Return the number of the window of a query that closes at a time."""
    return (closes_ms - query.width) // query.slide


# Files --------------------------------------------------------------------------------------------


def _told_last(history: History) -> dict[tuple[str, int], str]:
    """Return what was told last of each window that still stands.

    If an answer comes out differently after a crash, the windows of its readers that hold it are
    told again, or have nothing in them any more. A line that was written before a state was damaged
    stays until a later one is written: sinks hear only of answers.
    """
    told: dict[tuple[str, int], str] = {}
    closes: dict[tuple[str, int], int] = {}
    for each in history.told:
        key = each.answer.query, each.answer.window
        if told.get(key, each.document) != each.document:
            readers = [q.name for q in history.scenario.queries if q.reads == each.answer.query]
            for one in [one for one in told if one[0] in readers]:
                stays = history.has_damage and told[one] in _written(history, one[0])
                if closes[one] >= each.answer.closes_ms and not stays:
                    del told[one]
        told[key], closes[key] = each.document, each.answer.closes_ms
    return told


def _written(history: History, query: str) -> set[str]:
    """Return the documents of a query's file of lines."""
    lines = history.files.get(f"lines/{safe_name(query)}.ndjson", b"").splitlines()
    return {json.dumps(json.loads(line), sort_keys=True) for line in lines}


def _judge_files(history: History, verdict: Verdict) -> None:
    """Check that each window has one answer in each file, in order, without a gap."""
    told = _told_last(history)
    for query in history.scenario.queries:
        if query.fails:
            continue
        name = f"lines/{safe_name(query.name)}.ndjson"
        lines = history.files.get(name, b"").splitlines()
        documents = [json.loads(line) for line in lines]
        indices = [each["window"]["index"] for each in documents]
        verdict.expect("lines are in order", indices == sorted(set(indices)), f"{name}: {indices}")
        known = sorted(window for owner, window in told if owner == query.name)
        gone: set[int] = set()
        if history.has_damage or query.name in {*history.ended, *history.left}:
            # Lines after those of the older snapshot come again, and all of a query that began
            # anew.
            lost = {each.window for each in history.unanswered if each.window.query == query.name}
            if lost and query.counts:
                continue
            # A window that was answered then may have no answer now.
            gone = {_index(query, each.closes_ms) for each in lost} - set(indices)
            gone &= set(known)
            known = [window for window in known if window not in gone]
            known = known[: len(indices)] if history.has_damage else known
        verdict.expect("all told is in the file", indices == known, f"{name}: {indices}, {known}")
        for document, index in zip(documents, indices, strict=True):
            right = told.get((query.name, index))
            same = right == json.dumps(document, sort_keys=True)
            verdict.expect("a line is what was told", same, f"{name} {index}")
        if not history.has_damage:
            _expect_no_gap(history, query, documents, verdict)
        folder = f"tables/{safe_name(query.name)}/"
        tables = sum(1 for file in history.files if file.startswith(folder))
        if tables and not history.has_damage:
            # Of those that have no answer now the tables stay.
            few, many = len(indices), len(indices) + len(gone)
            verdict.expect("a table per window", few <= tables <= many, f"{query.name}: {tables}")


def _expect_no_gap(
    history: History, query: QuerySpec, documents: Sequence[Mapping[str, Any]], verdict: Verdict
) -> None:
    """Check that every window from the first answer on is answered, or told to have no answer."""
    name = query.name
    indices = [each["window"]["index"] for each in documents]
    lost = [each.window for each in history.unanswered if each.window.query == name]
    verdict.expect(
        "a lost evaluation has a reason", all(each.reason in LOSSES for each in lost), f"{lost}"
    )
    if query.kind in ("pairs", "behind", "other") or (query.counts and query.twin is not None):
        return
    gone = {_index(query, each.closes_ms) for each in lost} if not query.counts else set()
    if indices and name not in history.left and not (lost and query.counts):
        whole = set(range(indices[0], indices[-1] + 1))
        missing = sorted(whole - set(indices) - gone)
        verdict.expect("no window is left out", not missing, f"{name}: {missing} of {indices}")
        verdict.checks["a window without an answer is told"] += len(whole & gone - set(indices))
    if name in history.ended:
        ended = history.ended[name]
        in_a_row = [each for each in history.unanswered if each.life == ended]
        verdict.expect("lost in a row before it ends", len(in_a_row) >= 3, f"{name}: {in_a_row}")
        return
    stream = history.scenario.stream(query.streams[0])
    good = [record.t for record in stream.records if record.t is not None]
    if query.counts or not history.scenario.recording or not good:
        return
    last = -(-max(good) // query.slide) - 1
    ends = max([*indices[-1:], *gone], default=None)
    verdict.expect("it goes on to the end", ends == last, f"{name}: {ends} instead of {last}")
    if stream.is_orderly and not gone:
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
        queries = [
            each for each in history.scenario.queries if each.service == name and each.twin is None
        ]
        for query in queries:
            _judge_steps(history, service, query, verdict)
        most = service.spec.items + service.spec.bank[0]
        for call in service.calls:
            within = len(call.keys) <= most
            verdict.expect("a request is within the budget", within, f"{name}: {call}")
        for count, unit, seconds in service.spec.limits:
            for lives in _lives_together(history, service):
                most = service.most_in(unit, seconds, lives=lives)
                said = f"{name}: {most} {unit} in {seconds} s, of {count}"
                verdict.expect("limits over time hold", most <= count, said)
        if service.spec.strict and queries:
            _judge_strict(history, service, queries[0], verdict)
            _judge_repeated_evaluations(history, service, queries[0], verdict)


def _lives_together(history: History, service: SimulatedService) -> list[list[int]]:
    """Return the lives that must keep a limit over time together: with a ledger, successive ones.

    A boot begins with the time of day, which may have been set forward in the one before.
    """
    boots = history.boots
    misled = {boots[life] for life in history.forward}
    together: list[list[int]] = []
    for life, boot in enumerate(boots):
        goes_on = life > 0 and (boot == boots[life - 1] or boots[life - 1] not in misled)
        if service.spec.strict and goes_on:
            together[-1].append(life)
        else:
            together.append([life])
    return together


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
        if not step.is_whole or history.ends_within(step) or query.name in step.lost:
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
    lost = {each.window.closes_ms for each in history.unanswered if each.window.query == query.name}
    count = len(windows) + len(lost) + (0 if history.scenario.recording else 1)
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
    if stream.idle_ms is not None or history.has_damage or history.unanswered:
        return
    if not history.steps:
        return
    name = service.spec.name
    answered: set[int] = set()
    windows: defaultdict[int, set[int]] = defaultdict(set)
    for told in history.told:
        if told.answer.query == query.name:
            windows[told.step].add(told.answer.window)
    until, items, requests, count, life, last = None, 0, 0, 0, 0, history.steps[-1]
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
        elif step.life > life and (count or step is last) and step.read[stream.iri] >= until:
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
        late = [json.loads(line) for line in _lines(history, f"{stream.name}.late")]
        twice = len(late) - len({each["record"] for each in late})
        verdict.expect("late records stand there once", not twice, f"{twice} of {len(late)}")
        if stream.side_outputs and f"{stream.name}.bad" in history.side:
            lines = history.side[f"{stream.name}.bad"].count(b"\n")
            right = sum(r.t is None for r in stream.records[: history.read[stream.iri]])
            verdict.expect("bad items are written once", lines == right, f"{lines} of {right}")


def _lines(history: History, name: str) -> list[bytes]:
    """Return the lines of a side output."""
    return history.side.get(name, b"").splitlines()


def _is_always_read(history: History, stream: StreamSpec) -> bool:
    """Return True if a query reads the stream all the time: without any, nothing is counted."""
    readers = [each for each in history.scenario.queries if stream.name in each.streams]
    return any(each.from_start and not each.fails for each in readers)
