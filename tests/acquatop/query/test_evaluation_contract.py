"""Battery for all kinds of evaluation: due windows, empty runs, lateness, counters, state."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest

from acquatop.answer.answer import Answer, Status
from acquatop.catalog.catalog import Catalog
from acquatop.ingest.reduce.job import Job
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import Bound, BoundTable
from acquatop.query.contract import Evaluation, Tick
from acquatop.query.kinds import KINDS, Resources, open_evaluation
from acquatop.refresh.open_replicas import Replicas
from replica.rankers import DEFAULT_RANKERS

NS = "http://example.org/"
STREAM = NS + "stream"
CATALOG = """
[prefixes]
"" = "http://example.org/"
[streams.":stream"]
connector = "lines"
arrivals = "{arrivals}"
keys = "{keys}"
options = {{ path = "records" }}
{strategy}
{start}
[streams.":stream".mapping]
subject = "http://example.org/{{s}}"
time = "t"
properties = {{ ":p" = {{ field = "p", datatype = "xsd:integer" }} }}
"""
ON = "FROM NAMED WINDOW :w ON :stream {window} WHERE {{ WINDOW :w {{ ?s :p ?p }} }}"
BEST = f"SELECT ?s ?p {ON} ORDER BY DESC(?p) LIMIT 3"
SUMS = f"SELECT ?s (SUM(?p) AS ?sum) {ON} GROUP BY ?s ORDER BY DESC(?sum) LIMIT 3"
WHOLE = f"SELECT ?s ?p {ON}"
MEAN = f"SELECT (AVG(?p) AS ?mean) {ON}"

WIDTH, SLIDE = 4, 2


@dataclass(frozen=True)
class Kind:
    """Kind of evaluation: a query that it answers, and the windows that are due for its records."""

    text: str
    arrivals: str = "all"
    keys: str = "driver"
    shared: bool = False
    counts: bool = False
    has_members: bool = False
    strategy: str | None = None

    def bound(self, name: str = "q", start: str = "start_ms = 0") -> Bound:
        window = f"[ELEMENTS {WIDTH} STEP {SLIDE}]" if self.counts else self._range
        catalog = Catalog.parse(
            CATALOG.format(
                arrivals=self.arrivals,
                keys=self.keys,
                start=start,
                strategy=f'strategy = "{self.strategy}"' if self.strategy else "",
            ),
            file=Path("catalog.toml"),
            variables={},
        )
        return bind_query(self.text.format(window=window), catalog, name=name)

    @property
    def _range(self) -> str:
        return f"[RANGE {WIDTH}ms STEP {SLIDE}ms]"

    def closes(self, times: Sequence[int], until_ms: int, after_ms: int = 0) -> list[int]:
        """Return the closes of the windows that are due up to a time, by a model of its own."""
        if self.counts:
            elements = sorted(time for time in times if after_ms < time <= until_ms)
            return elements[SLIDE - 1 :: SLIDE]
        return [
            opens + WIDTH
            for opens in range(until_ms - WIDTH + 1)
            if opens % SLIDE == 0 and opens >= after_ms
        ]


EVALUATIONS = {
    "top-k": Kind(BEST, has_members=True),
    "top-k of latest arrivals": Kind(BEST, "latest", has_members=True),
    "top-k of distinct arrivals": Kind(BEST, "distinct", has_members=True),
    **{
        f"top-k by {name}": Kind(BEST, "distinct", has_members=True, strategy=name)
        for name in ("super-mtkn-list", "mintopk-list", "pretopk")
    },
    "aggregates": Kind(SUMS, has_members=True),
    "aggregates of distinct arrivals": Kind(SUMS, "distinct", has_members=True),
    "aggregates in executors": Kind(SUMS, "distinct", "executors", has_members=True),
    "shared": Kind(BEST, "distinct", shared=True, has_members=True),
    "whole windows": Kind(WHOLE),
    "one row of whole windows": Kind(MEAN, "latest"),
    "counted, per element": Kind(BEST, "distinct", counts=True),
    "counted, top-k": Kind(BEST, "latest", counts=True),
    **{
        f"counted, by {name}": Kind(BEST, "distinct", counts=True, strategy=name)
        for name in ("SA", "RARF", "RAPF")
    },
    "counted, by a list": Kind(BEST, "distinct", counts=True, strategy="mintopk-list"),
    "counted, aggregates": Kind(SUMS, "distinct", counts=True),
    "counted, whole windows": Kind(WHOLE, counts=True),
}
each_kind = pytest.mark.parametrize("kind", EVALUATIONS.values(), ids=EVALUATIONS)
each_over_time = pytest.mark.parametrize(
    "kind",
    [kind for kind in EVALUATIONS.values() if not kind.counts],
    ids=[name for name, kind in EVALUATIONS.items() if not kind.counts],
)


class Played:
    """Evaluation of one query, or of several of the same kind, that is handed lines of JSON."""

    def __init__(self, kind: Kind, folder: Path, bound: Bound | None = None) -> None:
        self.kind, self.folder = kind, folder
        self.bound = kind.bound() if bound is None else bound
        resources = Resources(
            Replicas(),
            lambda: 0.0,
            DEFAULT_RANKERS,
            lambda task, buckets: [task(bucket) for bucket in buckets],
            lambda key: folder,
            durable=True,
        )
        self.evaluation: Evaluation = open_evaluation(
            self.bound, "key", resources, load=False, shared=kind.shared
        )

    def begin(self, after_ms: Mapping[str, int] | None = None) -> Played:
        self.evaluation.join(self.bound, after_ms or {})
        return self

    def add(self, *times: int, bad: int = 0) -> None:
        """Hand in a record for each time, and some that cannot be read."""
        lines = [json.dumps({"t": time, "s": f"s{time}", "p": time % 7}).encode() for time in times]
        batch = pa.record_batch([pa.array([*lines, *([b"{"] * bad)], pa.binary())], ["value"])
        mapping = self.bound.streams[0].mapping
        parts = list(Job(mapping, self.evaluation.reducers(STREAM))([batch]))
        self.evaluation.add(STREAM, parts, self.evaluation.names)

    def advance(self, watermark_ms: int) -> list[Answer]:
        return list(self.evaluation.advance(Tick(STREAM, watermark_ms, 0.0)))

    def finish(self) -> list[Answer]:
        return list(self.evaluation.finish(STREAM))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def closes(answers: Sequence[Answer]) -> list[int]:
    return [answer.closes_ms for answer in answers]


def test_the_battery_has_every_kind_with_a_stream() -> None:
    assert {type(kind.bound()) for kind in EVALUATIONS.values()} == {*KINDS} - {BoundTable}


@each_kind
def test_each_window_is_answered_once_when_the_watermark_passes_its_close(
    kind: Kind, folder: Path
) -> None:
    played, times = Played(kind, folder).begin(), (1, 2, 3, 5, 8, 9, 13)
    played.add(*times)
    found = [(until, closes(played.advance(until))) for until in (3, 5, 6, 7, 11, 11, 14)]
    due = 0
    for until, answered in found:
        expected = kind.closes(times, until)
        assert answered == expected[due:]
        due = len(expected)
    assert due == (3 if kind.counts else 6)


@each_over_time
def test_without_a_start_the_first_window_is_the_first_that_holds_a_record(
    kind: Kind, folder: Path
) -> None:
    played = Played(kind, folder, kind.bound(start="")).begin()
    played.add(101)
    assert closes(played.advance(100)) == []
    played.add(99)
    # Windows open at even times; 99 lies first in the one that opens at 96 and closes at 100.
    assert closes(played.advance(100)) == [100]
    assert closes(played.advance(103)) == [102]


@each_kind
def test_a_query_that_joins_later_is_answered_from_the_first_window_that_opens_then(
    kind: Kind, folder: Path
) -> None:
    played, times = Played(kind, folder).begin({STREAM: 5}), (4, 6, 7, 8, 9, 10, 11)
    played.add(*times)
    assert closes(played.advance(11)) == kind.closes(times, 11, after_ms=5)


@each_over_time
def test_a_run_of_empty_windows_is_answered_or_skipped_and_counted(
    kind: Kind, folder: Path
) -> None:
    for most in (11, 12):
        played = Played(kind, folder / str(most)).begin()
        with patch("acquatop.query.schedule.cursor.MAX_EMPTY_WINDOWS", most):
            played.add(1)
            answers = played.advance(6)
            # Windows that close after 6 and before 31 are empty: there are 12 of them.
            played.add(31, 32)
            answers += played.advance(36)
        skipped = sum(answer.counts.skipped for answer in answers)
        assert len(answers) + skipped == len(kind.closes((), 36))
        assert skipped == (12 if most < 12 else 0)
        held = [answer for answer in answers if answer.closes_ms >= 32]
        assert [answer.counts.skipped for answer in held] == [skipped, 0, 0]


@each_kind
def test_a_late_record_is_counted_and_its_windows_are_approximate(kind: Kind, folder: Path) -> None:
    played = Played(kind, folder).begin()
    played.add(1, 2, 4, 5, 6)
    on_time = played.advance(6)
    assert [answer.counts.late for answer in on_time] == [0] * len(on_time)
    assert {answer.status for answer in on_time} == {Status.EXACT}
    played.add(6 if kind.counts else 5, 7, 8)
    after = played.advance(8)
    assert [answer.counts.late for answer in after] == [1] + [0] * (len(after) - 1)
    assert after[0].status is Status.APPROXIMATE
    played.add(*range(9, 21))
    assert played.advance(20)[-1].status is Status.EXACT


@each_kind
def test_every_record_and_fault_is_counted_in_one_answer(kind: Kind, folder: Path) -> None:
    played = Played(kind, folder).begin()
    played.add(1, 2, 3, bad=2)
    played.add(4, bad=1)
    answers = played.advance(4)
    played.add(5, 6, 7, 8)
    answers += played.advance(8)
    assert answers[0].counts.events == 7
    assert sum(answers[0].counts.bad.values()) == 3
    assert sum(answer.counts.events for answer in answers) == 11
    assert all(not answer.counts.bad for answer in answers[1:])


@each_kind
def test_the_next_close_is_known_before_it_is_due(kind: Kind, folder: Path) -> None:
    played = Played(kind, folder).begin()
    played.add(1, 2, 3, 4)
    due_ms = played.evaluation.due_after(STREAM, 0)
    assert due_ms is not None
    assert closes(played.advance(due_ms - 1)) == []
    if not kind.counts:
        assert closes(played.advance(due_ms)) == [due_ms]


@each_kind
def test_the_end_of_the_stream_closes_all_windows_that_hold_records(
    kind: Kind, folder: Path
) -> None:
    played, times = Played(kind, folder).begin(), (1, 2, 3, 4, 7)
    played.add(*times)
    answers = played.advance(4)
    answers += played.finish()
    # The last window with a record opens at 6; elements that fill no window close none.
    assert closes(answers) == kind.closes(times, 7 if kind.counts else 10)
    assert played.finish() == []


@each_kind
def test_a_snapshot_continues_with_the_same_answers_wherever_it_is_taken(
    kind: Kind, folder: Path
) -> None:
    batches: list[tuple[tuple[int, ...], int]] = [
        ((1, 3, 2), 2),
        ((6, 5), 5),
        ((4, 8, 7), 8),
        ((40, 41), 41),
        ((44, 43), 46),
    ]
    with patch("acquatop.query.schedule.cursor.MAX_EMPTY_WINDOWS", 5):
        whole = answers_of(Played(kind, folder / "whole").begin(), batches, cut=None)
        for cut in range(len(batches)):
            assert answers_of(Played(kind, folder / str(cut)).begin(), batches, cut) == whole
    assert len(whole) >= 5


def answers_of(
    played: Played, batches: Sequence[tuple[tuple[int, ...], int]], cut: int | None
) -> list[object]:
    """Return the answers; a new evaluation resumes before the batch ``cut``."""
    answers: list[Answer] = []
    for at, (times, watermark_ms) in enumerate(batches):
        if at == cut:
            snapshot = played.evaluation.snapshot()
            played.evaluation.snapshot_committed()
            played = resumed(played, snapshot)
        played.add(*times)
        answers += played.advance(watermark_ms)
    answers += played.finish()
    return [(answer.canonical(), answer.counts, answer.reason) for answer in answers]


def resumed(played: Played, snapshot: bytes) -> Played:
    """Return a new evaluation that continues from a snapshot."""
    other = Played(played.kind, played.folder)
    assert not other.evaluation.resume_query(other.bound)
    other.evaluation.resume(snapshot)
    assert other.evaluation.resume_query(other.bound)
    return other


@pytest.mark.parametrize(
    "kind",
    [kind for kind in EVALUATIONS.values() if kind.has_members],
    ids=[name for name, kind in EVALUATIONS.items() if kind.has_members],
)
def test_members_come_and_go_without_a_change_to_others(kind: Kind, folder: Path) -> None:
    played = Played(kind, folder).begin()
    played.add(1, 2, 3)
    first = played.advance(4)
    played.evaluation.join(kind.bound("r"), {STREAM: 4})
    assert list(played.evaluation.names) == ["q", "r"]
    played.add(5, 6, 7, 8)
    both = played.advance(8)
    assert {name: closes([a for a in both if a.query == name]) for name in "qr"} == {
        "q": [6, 8],
        "r": [8],
    }
    assert [closes(first), played.evaluation.names] == [[4], ["q", "r"]]
    played.evaluation.leave("q")
    played.evaluation.leave("q")
    played.add(9, 10)
    assert [(answer.query, answer.closes_ms) for answer in played.advance(10)] == [("r", 10)]
