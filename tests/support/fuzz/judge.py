"""Judgement of a trial: nothing vanishes, and everything is shown as it was sent."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from acquatop import Answer
from tests.support.fuzz.encoding import Sent
from tests.support.fuzz.queries import Query, Used
from tests.support.fuzz.reading_back import FORMS, differences
from tests.support.fuzz.trial import IN_PROCESS, Outcome, Plan, plan_of, run

_ALWAYS = 1 << 62


@dataclass
class Report:
    """Result of a trial."""

    seed: int
    about: str
    items: int
    used: int
    late: int
    answers: int
    bad: Counter[str]
    problems: list[str] = field(default_factory=list)


def trial(
    seed: int,
    folder: Path,
    connectors: Sequence[str] = IN_PROCESS,
    spark: SparkSession | None = None,
) -> Report:
    """Run the trial of a seed in an empty folder, and judge it."""
    plan = plan_of(seed, folder, connectors)
    outcome = run(plan, folder, spark)
    used = _used(plan, outcome)
    problems = [
        *outcome.failures,
        *_counted(plan, outcome, used),
        *_rightly_used(plan, outcome, used),
        *_answers(plan, outcome, used),
        *_files(plan, outcome, folder),
        *_dead_letters(outcome, folder),
    ]
    return Report(
        seed,
        plan.about,
        len(plan.sent),
        len(used),
        outcome.late,
        sum(map(len, outcome.answers.values())),
        outcome.bad,
        problems,
    )


def _used(plan: Plan, outcome: Outcome) -> Used:
    """Return the items that are shown."""
    shown = {number for answer in outcome.answers["all"] for number in _numbers(answer)}
    return {each.item.number: each for each in plan.sent if each.item.number in shown}


def _numbers(answer: Answer) -> list[int]:
    return [int(str(row.bindings["k"])) for row in answer.rows]


def _answered_until(plan: Plan, outcome: Outcome) -> int:
    """Return the time up to which all windows are answered: a live stream leaves some open."""
    if not plan.is_live:
        return _ALWAYS
    return max((answer.closes_ms for answer in outcome.answers["all"]), default=-_ALWAYS)


def _waits(sent: Sent, until_ms: int) -> bool:
    """Return True if an item may be in a window that is still open."""
    ms = sent.item.time.ms
    return sent.verdict is not False and ms is not None and ms > until_ms


def _counted(plan: Plan, outcome: Outcome, used: Used) -> Iterator[str]:
    """Yield what is wrong with the numbers of items read, used, bad and late."""
    if outcome.events != len(plan.sent):
        yield f"{len(plan.sent)} items were sent, {outcome.events} were read"
    if not all(outcome.bad):
        yield "a bad item has no reason"
    bad, until_ms = sum(outcome.bad.values()), _answered_until(plan, outcome)
    rest = len(plan.sent) - len(used) - bad - outcome.late
    waiting = sum(_waits(each, until_ms) and each.item.number not in used for each in plan.sent)
    if not 0 <= rest <= waiting:
        yield (
            f"{len(plan.sent)} items are not {len(used)} used, {dict(outcome.bad)} bad, "
            f"{outcome.late} late, and {waiting} that wait"
        )


def _rightly_used(plan: Plan, outcome: Outcome, used: Used) -> Iterator[str]:
    """Yield items that must be used and are not, or the reverse."""
    until_ms = _answered_until(plan, outcome)
    for each in plan.sent:
        is_used = each.item.number in used
        if each.verdict is True and not is_used and not outcome.late and not _waits(each, until_ms):
            yield f"an item is not used: {each.item!r:.800}"
        if each.verdict is False and is_used:
            yield f"an item is used: {each.item!r:.800}"


def _answers(plan: Plan, outcome: Outcome, used: Used) -> Iterator[str]:
    """Yield what is wrong with answers."""
    numbers = [number for answer in outcome.answers["all"] for number in _numbers(answer)]
    if len(numbers) != len(set(numbers)):
        yield "items are shown twice"
    for answer in outcome.answers["all"]:
        for number in _numbers(answer):
            ms = used[number].item.time.ms if number in used else None
            if ms is None or not answer.opens_ms < ms <= answer.closes_ms:
                yield f"an item of {ms} is in ({answer.opens_ms}, {answer.closes_ms}]"
    until_ms = _answered_until(plan, outcome)
    for query in plan.queries:
        for answer in outcome.answers[query.name]:
            if answer.closes_ms <= until_ms:
                yield from (f"{query.name}: {each}" for each in query.check(answer, used))


def _files(plan: Plan, outcome: Outcome, folder: Path) -> Iterator[str]:
    """Yield what is wrong with files of answers."""
    for query in plan.queries:
        for kind in plan.sinks:
            if query.form in FORMS[kind]:
                yield from _of_file(kind, query, outcome, folder)


def _of_file(kind: str, query: Query, outcome: Outcome, folder: Path) -> Iterator[str]:
    place = folder / "out" / kind / query.name
    try:
        found = list(differences(kind, place, outcome.answers[query.name]))
    except Exception as error:
        found = [f"{kind} cannot be read: {error!r:.300}"]
    yield from (f"{query.name}: {each}" for each in found)


def _dead_letters(outcome: Outcome, folder: Path) -> Iterator[str]:
    """Yield what is wrong with the file of bad items."""
    file = folder / "bad"
    lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
    if len(lines) != sum(outcome.bad.values()):
        yield f"{len(lines)} dead letters for {sum(outcome.bad.values())} bad items"
    for line in lines:
        try:
            reason = json.loads(line)["reason"]
        except (ValueError, LookupError):
            reason = None
        if not reason or reason not in outcome.bad:
            yield f"a dead letter has no reason: {line!r:.200}"
