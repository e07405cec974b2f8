"""Event time: which windows close when, what is late, idle or too early, and who waits for whom."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop import Answer, Engine, Status
from acquatop.answer.sinks.callback import CallbackSink
from acquatop.catalog.catalog import Catalog, CatalogError
from acquatop.engine.alignment import MAX_DRIFT
from acquatop.engine.commits import Committer
from acquatop.engine.delivery import Delivery
from acquatop.engine.evaluation_slot import EvaluationSlot
from acquatop.engine.handle import RegisteredQuery
from acquatop.engine.idle_timer import IdleTimer
from acquatop.engine.observer import BatchSeen, Silent
from acquatop.engine.queries import QueryRegistry
from acquatop.engine.side_outputs.late_records import LateRecords
from acquatop.engine.slots import SlotTable
from acquatop.engine.stream import StreamOperator
from acquatop.engine.stream_driver import StreamDriver
from acquatop.engine.stream_settings import StreamSettings
from acquatop.engine.stream_time import Phase
from acquatop.errors import EnvironmentProblem
from acquatop.ingest.reduce.job import Job
from acquatop.ingest.reduce.late_finder import TOO_FAR_AHEAD, LateFinder
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import Bound, BoundCounted, BoundQuery
from acquatop.query.contract import Evaluation
from acquatop.query.count_windows import CountedEvaluation
from acquatop.query.evaluation import TopKEvaluation
from acquatop.query.kinds import Resources
from acquatop.query.sparql.evaluation import SparqlEvaluation
from acquatop.query.sparql.window_graph import WindowGraph
from acquatop.refresh.open_replicas import Replicas
from acquatop.runtime import Batch, Position
from acquatop.windows import Windows
from connectors.columns import ColumnsMapping
from connectors.mapping import XSD_DOUBLE, Property, Template
from connectors.ntriples import NTriplesMapping
from replica.clocks import Clock
from replica.rankers import DEFAULT_RANKERS
from tests.support.event_time_queries import BEST, LAST_THREE, NS, PREFIX, SUMS, WHOLE
from tests.support.markers import THOROUGH

PAIRS = """SELECT ?s ?t
           FROM NAMED WINDOW :v ON :a [RANGE 10s] FROM NAMED WINDOW :w ON :b [RANGE 10s]
           WHERE { WINDOW :v { ?s :p ?p } WINDOW :w { ?t :p ?p } }"""
SUMMED = """SELECT ?p
           FROM NAMED WINDOW :v ON :a [RANGE 10s] FROM NAMED WINDOW :w ON :b [RANGE 10s]
           WHERE { WINDOW :v { SELECT ?p (COUNT(*) AS ?n) { ?s :p ?p } GROUP BY ?p }
                   WINDOW :w { SELECT ?p (COUNT(*) AS ?m) { ?s :p ?p } GROUP BY ?p } }
           ORDER BY DESC(?n + ?m) LIMIT 3"""
TENS = "[RANGE 10s STEP 10s]"


def catalog(
    folder: Path,
    *,
    arrivals: str = "distinct",
    options: str = "",
    start: str = "start_ms = 0",
    **extra: str,
) -> Catalog:
    """Return two streams; ``extra`` is what is said of each besides."""
    text = ""
    for name in ("a", "b"):
        text += f"""
            [streams."{NS}{name}"]
            connector = "lines"
            arrivals = "{arrivals}"
            {start}
            {extra.get(name, "")}
            [streams."{NS}{name}".options]
            path = "{folder}/{name}"
            {options}
            [streams."{NS}{name}".mapping]
            subject = "{NS}{{s}}"
            time = "t"
            properties = {{ "{NS}p" = {{ field = "p", datatype = "xsd:integer" }} }}
        """
    return Catalog.parse(text, file=folder / "catalog.toml", variables={})


def line(time_ms: int, subject: str = "k") -> bytes:
    return json.dumps({"t": time_ms, "s": subject, "p": 1}).encode()


class NotedCommits(Committer):
    """Commits that are counted: the numbers of answers with each."""

    def __init__(self, slots: SlotTable, clock: Clock, *, durable: bool) -> None:
        super().__init__(None, slots, clock)
        self.made: list[int] = []
        self._durable = durable

    @property
    def is_durable(self) -> bool:
        return self._durable

    def commit(self, stream: str, entry: Mapping[str, bytes], answers: Sequence[Answer]) -> float:
        self.made.append(len(answers))
        return 0.0


class NotedDelivery(Delivery):
    """Delivery with notes on the ends of streams."""

    def __init__(self, queries: QueryRegistry, slots: SlotTable, desk: Desk) -> None:
        super().__init__(queries, slots, desk, durable=desk.durable)
        self.ended: list[BaseException | None] = []
        self.has_ended = threading.Event()

    def end_stream(
        self, stream: str, slots: Sequence[EvaluationSlot], error: BaseException | None
    ) -> None:
        super().end_stream(stream, slots, error)
        self.ended.append(error)
        self.has_ended.set()


class Desk(Silent):
    """Engine without a runtime: it has streams, a clock that the test moves, and notes."""

    def __init__(self, catalog: Catalog, *, live: bool = True, durable: bool = False) -> None:
        self.now = 100.0
        self.durable = durable
        self.answers: list[Answer] = []
        self.seen: list[BatchSeen] = []
        self.catalog = catalog
        self.subjects = iter(range(10**6))
        resources = Resources(Replicas(), self.clock, DEFAULT_RANKERS, map, Path, durable=durable)  # type: ignore[arg-type]
        self.slots = SlotTable(resources, None, reads_together=True)
        self.queries = QueryRegistry(self.slots, self, live=live)
        self.commits = NotedCommits(self.slots, self.clock, durable=durable)
        self.delivery = NotedDelivery(self.queries, self.slots, self)
        settings = StreamSettings(self.clock, live=live, durable=durable, wall_clock=self.clock)
        self.operators = {
            iri.removeprefix(NS): StreamOperator(stream, settings)
            for iri, stream in catalog.streams.items()
        }
        self.streams = {
            name: StreamDriver(operator, self.commits, self.delivery, self, settings)
            for name, operator in self.operators.items()
        }

    def clock(self) -> float:
        return self.now

    def leave(self, query: RegisteredQuery) -> None:
        slot = self.slots.of(query)
        assert slot is not None
        for operator in self.operators.values():
            operator.leave(slot, query.name)

    # Notes.

    def failed(self, where: str, error: BaseException) -> None:
        if where.startswith("query"):
            raise error

    def batch(self, seen: BatchSeen) -> None:
        self.seen.append(seen)

    # What a test does.

    def register(
        self, text: str, name: str = "q", sink: Callable[[Answer], None] | None = None
    ) -> RegisteredQuery:
        bound = bind_query(PREFIX + text, self.catalog, name=name)
        sinks = [CallbackSink(sink or self.answers.append)]
        query = self.queries.add(bound, text, sinks, 0, leave=self.leave).query
        slot = self.slots.assign(query, bound, ())
        for stream in bound.streams:
            assert self.streams[stream.iri.removeprefix(NS)].join(slot, bound)
        return query

    def feed(
        self, stream: str, *times_ms: int, lines: Sequence[bytes] = (), partitions: int = 2
    ) -> list[int]:
        """Hand in a batch, cut into some partitions.

        Return when the windows close that are answered then.
        """
        before, driver = len(self.answers), self.streams[stream]
        job = driver.job()
        lines = [*(line(time_ms, f"s{next(self.subjects)}") for time_ms in times_ms), *lines]
        parts = [list(job([rows(lines[at::partitions])])) for at in range(partitions)]
        driver.take(Batch({"batch": 0}, parts))
        return [answer.closes_ms for answer in self.answers[before:]]

    def feed_cut(self, stream: str, partitions: Sequence[Sequence[int]]) -> None:
        """Hand in a batch with the times of each partition."""
        driver = self.streams[stream]
        job = driver.job()
        lines = [[line(at, f"s{next(self.subjects)}") for at in each] for each in partitions]
        driver.take(Batch({"batch": 0}, [list(job([rows(each)])) for each in lines if each]))

    def wait(self, seconds: float, stream: str = "a") -> list[int]:
        """Let the clock go on, and then a stream's time; return the same."""
        before = len(self.answers)
        self.now += seconds
        self.streams[stream].tick()
        return [answer.closes_ms for answer in self.answers[before:]]


def rows(lines: Sequence[bytes]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(lines, pa.binary())], ["value"])


def work_of(bound: Bound) -> Evaluation:
    match bound:
        case BoundCounted():
            return CountedEvaluation(bound)
        case BoundQuery():
            return TopKEvaluation(bound, None)
        case _:
            return SparqlEvaluation(bound)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


# Against a model ----------------------------------------------------------------------------------


class Model:
    """The same in a few lines: what closes, what is late, how far time has come."""

    def __init__(self, windows: Windows, lateness: int, idle: int) -> None:
        self.windows, self.lateness, self.idle = windows, lateness, idle
        self.time: int | None = None
        self.base: int | None = None
        self.since = 0
        self.next = 0
        self.late: list[int] = []

    def clock(self, now: int) -> None:
        if self.time is not None and self.base is not None and now - self.since >= self.idle:
            self.time = max(self.time, self.base + now - self.since - self.idle)

    def events(self, now: int, times: Sequence[int]) -> None:
        self.clock(now)
        for time in times:
            inside = [at for at in range(500) if self._opens(at) < time <= self._closes(at)]
            if inside and self.time is not None and self._closes(inside[0]) <= self.time:
                self.late.append(time)
            # Others of the same millisecond may still come.
            reached = time - self.lateness - 1
            self.time = reached if self.time is None else max(self.time, reached)
        if times:
            self.since, self.base = now, self.time

    def close(self) -> list[int]:
        closes = []
        while self.time is not None and self._closes(self.next) <= self.time:
            closes.append(self._closes(self.next))
            self.next += 1
        return closes

    def _opens(self, at: int) -> int:
        return self.windows.bounds(at)[0]

    def _closes(self, at: int) -> int:
        return self.windows.bounds(at)[1]


@settings(max_examples=60)
@given(
    steps=st.lists(
        st.one_of(
            st.lists(st.integers(-20, 400), min_size=1, max_size=5),
            st.integers(1, 120),
        ),
        max_size=12,
    ),
    shape=st.sampled_from([(30, 10), (20, 20), (10, 25)]),
    lateness=st.sampled_from([0, 15]),
    query=st.sampled_from(
        [(BEST, "distinct"), (BEST, "latest"), (SUMS, "distinct"), (SUMS, "all"), (WHOLE, "all")]
    ),
)
def test_windows_close_and_events_are_late_as_a_plain_model_says(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[list[int] | int],
    shape: tuple[int, int],
    lateness: int,
    query: tuple[str, str],
) -> None:
    (width, slide), (text, arrivals) = shape, query
    folder = tmp_path_factory.mktemp("model")
    extra = f'idle = "50ms"\nlate = "late"\nlateness = "{lateness}ms"'
    desk = Desk(catalog(folder, arrivals=arrivals, a=extra))
    desk.register(text.format(window=f"[RANGE {width}ms STEP {slide}ms]"))
    model, now = Model(Windows(width, slide, 0), lateness, 50), 0
    for step in [*steps, [1_000]]:
        if isinstance(step, int):
            now += step
            model.clock(now)
            closes = desk.wait(step / 1000)
        else:
            model.events(now, step)
            closes = desk.feed("a", *step, partitions=1)
        assert closes == model.close()
        assert desk.operators["a"].watermark_ms == model.time
    assert sum(seen.late for seen in desk.seen) == len(model.late)
    assert sum(answer.counts.late for answer in desk.answers) == len(model.late)
    kept = [json.loads(text) for text in (folder / "late").read_text().splitlines()]
    assert sorted(each["time"] for each in kept) == sorted(model.late)
    assert all(
        json.loads(each["record"])["t"] == each["time"] <= each["watermark"] for each in kept
    )


# Events of one millisecond ------------------------------------------------------------------------

ALL_WAYS = (
    (BEST, "distinct", TENS),
    (BEST, "latest", TENS),
    (SUMS, "distinct", TENS),
    (SUMS, "all", TENS),
    (WHOLE, "all", TENS),
    (WHOLE, "latest", TENS),
    (BEST, "distinct", LAST_THREE),
    (SUMS, "all", LAST_THREE),
    (WHOLE, "all", LAST_THREE),
)


def answered_in_batches(
    folder: Path, way: tuple[str, str, str], extra: str, batches: Sequence[Sequence[int]]
) -> list[object]:
    """Return the answers to a recording that comes in some batches without late records."""
    text, arrivals, window = way
    desk = Desk(catalog(folder, arrivals=arrivals, a=extra), live=False)
    desk.register(text.format(window=window))
    for batch in batches:
        desk.feed("a", *batch)
    desk.streams["a"].end(None)
    assert desk.delivery.ended == [None]
    assert [seen.late for seen in desk.seen] == [0] * len(batches)
    assert [answer.counts.late for answer in desk.answers] == [0] * len(desk.answers)
    return [answer.canonical() for answer in desk.answers]


@THOROUGH
@pytest.mark.parametrize("way", ALL_WAYS)
@pytest.mark.parametrize("lateness", [0, 3_000])
@settings(max_examples=15)
@given(times=st.lists(st.integers(0, 60_000), min_size=1, max_size=12), data=st.data())
def test_the_cut_into_batches_changes_no_answer_however_late_records_are(
    tmp_path_factory: pytest.TempPathFactory,
    way: tuple[str, str, str],
    lateness: int,
    times: list[int],
    data: st.DataObject,
) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(times)))) | {0, len(times)})
    some = [times[start:stop] for start, stop in pairwise(cuts)]
    cases = [[times], [[each] for each in times], some]
    answers, late, kept = zip(
        *(in_batches(tmp_path_factory.mktemp("cut"), way, lateness, each) for each in cases),
        strict=True,
    )
    assert answers[0] == answers[1] == answers[2]
    assert late[0] == late[1] == late[2]
    assert kept[0] == kept[1] == kept[2]


def in_batches(
    folder: Path, way: tuple[str, str, str], lateness: int, batches: Sequence[Sequence[int]]
) -> tuple[list[object], int, str]:
    """Return the answers to a recording, the number of late records, and the file of these."""
    text, arrivals, window = way
    extra = f'lateness = "{lateness}ms"\nlate = "late"'
    desk = Desk(catalog(folder, arrivals=arrivals, a=extra), live=False)
    desk.register(text.format(window=window))
    for batch in batches:
        desk.feed("a", *batch, partitions=1)
    desk.streams["a"].end(None)
    assert desk.delivery.ended == [None]
    shown = [answer.canonical() for answer in desk.answers]
    kept = [json.loads(line) for line in (folder / "late").read_text().splitlines()]
    return shown, sum(seen.late for seen in desk.seen), str([each["time"] for each in kept])


def closing_times() -> st.SearchStrategy[list[int]]:
    """Times of which many are the same, and those at which windows close."""
    return st.lists(
        st.sampled_from([9_999, 10_000, 10_001, 15_000, 20_000, 40_000]), min_size=1, max_size=9
    ).map(sorted)


@settings(max_examples=80)
@given(
    closing_times(),
    st.sampled_from(ALL_WAYS),
    st.sets(st.integers(0, 9)),
    st.sampled_from([0, 1, 10_000]),
)
def test_wherever_a_stream_is_cut_the_answers_are_the_same_and_nothing_is_late(
    tmp_path_factory: pytest.TempPathFactory,
    times: list[int],
    way: tuple[str, str, str],
    cuts: set[int],
    lateness: int,
) -> None:
    folder, extra = tmp_path_factory.mktemp("cut"), f'lateness = "{lateness}ms"'
    whole = answered_in_batches(folder, way, extra, [times])
    bounds = [0, *sorted(cut for cut in cuts if cut < len(times)), len(times)]
    cut = [times[start:end] for start, end in pairwise(bounds)]
    assert answered_in_batches(folder, way, extra, cut) == whole


@pytest.mark.parametrize("way", ALL_WAYS)
def test_events_of_the_millisecond_of_a_close_may_come_one_by_one(
    folder: Path, way: tuple[str, str, str]
) -> None:
    times = [5_000, 10_000, 10_000, 10_000, 20_000, 20_000]
    whole = answered_in_batches(folder, way, "", [times])
    assert answered_in_batches(folder, way, "", [[time] for time in times]) == whole
    for cut in range(1, len(times)):
        assert answered_in_batches(folder, way, "", [times[:cut], times[cut:]]) == whole


def test_a_window_closes_with_the_first_event_after_it_and_no_sooner(folder: Path) -> None:
    desk = Desk(catalog(folder, a='lateness = "1s"'))
    desk.register(BEST.format(window=TENS))
    assert desk.feed("a", 9_000, 10_000) == []
    assert desk.feed("a", 11_000) == []
    assert desk.feed("a", 10_000, 11_000) == []
    assert desk.feed("a", 11_001) == [10_000]
    assert [len(answer.rows) for answer in desk.answers] == [3]
    assert desk.feed("a", 10_000, 10_001) == []
    assert [seen.late for seen in desk.seen] == [0, 0, 0, 0, 1]


def test_a_state_of_before_goes_on_from_what_had_closed_then(folder: Path) -> None:
    """An event once said that its own millisecond had come, and such windows had closed."""
    desk = Desk(catalog(folder))
    desk.register(BEST.format(window=TENS))
    operator = desk.operators["a"]
    operator.resume(
        {"newest_ms": 10_000, "watermark_ms": 10_000, "told_ms": 10_000, "position": {}}
    )
    assert operator.watermark_ms == 10_000
    desk.feed("a", 10_000)
    assert operator.watermark_ms == 10_000
    desk.feed("a", 10_002)
    assert operator.watermark_ms == 10_001


# Idle streams -------------------------------------------------------------------------------------


def test_elements_of_an_idle_stream_are_counted_as_its_time_goes_on_and_then_nothing_is_waited_for(
    folder: Path,
) -> None:
    desk = Desk(catalog(folder, arrivals="distinct", a='idle = "5s"\nlateness = "1s"'))
    desk.register(BEST.format(window="[ELEMENTS 2 STEP 1]"))
    operator = desk.operators["a"]
    assert desk.feed("a", 7_000, 8_500, 8_000) == [7_000]
    assert desk.wait(5.0) == []
    assert operator.due_in() == pytest.approx(0.501)
    assert desk.wait(0.501) == [8_000]
    assert operator.due_in() == pytest.approx(0.5)
    assert desk.wait(0.6) == [8_500]
    assert operator.due_in() is None
    assert desk.feed("a", 8_550) == []
    assert (desk.seen[-1].late, desk.answers[-1].status) == (1, "exact")
    assert desk.feed("a", 10_000, 9_800) == []
    assert desk.feed("a", 12_000) == [9_800, 10_000]
    assert [str(answer.status) for answer in desk.answers[-2:]] == ["approximate", "approximate"]


def test_a_window_with_no_traffic_closes_and_what_comes_for_it_then_is_late(folder: Path) -> None:
    desk = Desk(catalog(folder, a='idle = "5s"\nlateness = "1s"'))
    desk.register(BEST.format(window=TENS))
    assert desk.feed("a", 8_000) == []
    assert desk.wait(4.9) == []
    assert desk.wait(3.1) == []
    assert desk.wait(0.001) == [10_000]
    assert [len(answer.rows) for answer in desk.answers] == [1]
    assert desk.wait(10) == [20_000]
    assert desk.feed("a", 12_000) == []
    assert [seen.late for seen in desk.seen][-1] == 1
    assert desk.feed("a", 21_000) == []
    # Time goes on from where it was, not from the newest event.
    assert desk.wait(15) == [30_000]


def test_the_timer_sleeps_until_the_next_window_could_close(folder: Path) -> None:
    desk = Desk(catalog(folder, a='idle = "5s"'))
    operator = desk.operators["a"]
    assert operator.due_in() is None
    desk.register(BEST.format(window=TENS))
    desk.feed("a", 8_000)
    assert operator.due_in() == pytest.approx(5)
    desk.now += 5
    assert operator.due_in() == 0
    desk.streams["a"].tick()
    assert operator.due_in() == pytest.approx(2.001)
    desk.streams["a"].job()
    assert operator.due_in() is None
    assert desk.wait(60) == []


def test_time_stands_still_in_a_batch_that_begins_before_its_carrier_is_known(
    folder: Path,
) -> None:
    desk = Desk(catalog(folder, a='idle = "5s"'))
    desk.register(BEST.format(window=TENS))
    desk.feed("a", 8_000)
    driver = desk.streams["a"]
    driver.job()
    driver.attach(Carried())
    assert desk.wait(60) == []
    assert desk.operators["a"].due_in() is None
    driver.end(None)


def test_a_stream_that_is_not_idle_and_a_recording_wait_for_events(folder: Path) -> None:
    recorded = Desk(catalog(folder, a='idle = "5s"'), live=False)
    endless = Desk(catalog(folder))
    for desk in (recorded, endless):
        desk.register(BEST.format(window=TENS))
        desk.feed("a", 8_000)
        assert desk.wait(3_600) == []
        assert desk.operators["a"].due_in() is None


def test_what_closes_by_itself_is_kept_before_it_is_given_out(folder: Path) -> None:
    desk = Desk(catalog(folder, a='idle = "5s"'), durable=True)
    desk.register(BEST.format(window=TENS))
    desk.feed("a", 8_000)
    assert desk.wait(7.001) == [10_000]
    assert desk.commits.made == [0, 1]
    state = desk.operators["a"].state()
    again = Desk(catalog(folder, a='idle = "5s"')).operators["a"]
    again.resume(state)
    assert again.watermark_ms == 10_000
    assert again.state() == state


def test_a_query_that_joins_an_idle_stream_begins_with_what_is_still_to_come(folder: Path) -> None:
    desk = Desk(catalog(folder, a='idle = "5s"'))
    desk.register(BEST.format(window=TENS))
    desk.feed("a", 8_000)
    desk.wait(30)
    desk.register(SUMS.format(window="[RANGE 5s STEP 5s]"), name="later")
    assert desk.operators["a"].due_in() == 0
    desk.wait(10)
    assert [answer.closes_ms for answer in desk.answers if answer.query == "later"] == [40_000]


@pytest.mark.parametrize("order", ["", " ORDER BY DESC(2 * ?p) LIMIT 3"])
def test_an_idle_stream_holds_up_no_other_even_if_it_never_brought_anything(
    folder: Path, order: str
) -> None:
    desk = Desk(catalog(folder, b='idle = "5s"'))
    desk.register(PAIRS + order)
    desk.operators["b"].time.listen()
    assert desk.feed("a", 8_000, 30_000) == []
    assert desk.wait(5, "b") == [10_000, 20_000]
    # It goes with the other, however fast that is.
    assert desk.feed("a", 70_001) == [30_000, 40_000, 50_000, 60_000, 70_000]
    assert desk.feed("b", 65_000) == []
    assert desk.seen[-1].late == 1
    assert desk.feed("b", 75_000) == []
    assert desk.feed("a", 81_000) == []
    assert desk.feed("b", 82_000) == [80_000]


@pytest.mark.parametrize("arrivals", ["distinct", "all", "latest"])
@pytest.mark.parametrize("order", ["", " ORDER BY DESC(2 * ?p) LIMIT 3", SUMMED])
def test_a_stream_that_was_idle_brings_no_answer_back(
    folder: Path, order: str, arrivals: str
) -> None:
    desk = Desk(catalog(folder, arrivals=arrivals, start="", b='idle = "5s"'))
    desk.register(order if order == SUMMED else PAIRS + order)
    desk.operators["b"].time.listen()
    assert desk.feed("a", 8_000, 30_000) == []
    assert desk.wait(5, "b") == [10_000, 20_000]
    # The other has been answered without it until 20 000.
    assert desk.feed("b", 12_000, 18_000, 31_000) == []
    assert desk.feed("a", 41_000, 60_000) == [30_000]
    assert desk.feed("b", 62_000) == [40_000, 50_000]
    assert [answer.counts.late for answer in desk.answers] == [0, 0, 2, 0, 0]
    assert {answer.status for answer in desk.answers} == {Status.EXACT}


def test_two_idle_streams_go_on_by_the_clock(folder: Path) -> None:
    desk = Desk(catalog(folder, a='idle = "5s"', b='idle = "5s"'))
    desk.register(PAIRS)
    desk.feed("a", 8_000)
    desk.feed("b", 6_000)
    assert desk.wait(7.001, "a") == []
    assert desk.wait(2, "b") == [10_000]


def test_the_timer_of_a_stream_ends_with_it_and_an_error_in_it_ends_the_stream(
    folder: Path,
) -> None:
    desk = Desk(catalog(folder, a='idle = "20ms"'), durable=True)
    desk.streams["a"].attach(Carried())
    desk.streams["a"].end(None)
    assert "acquatop-idle-" not in " ".join(thread.name for thread in threading.enumerate())
    assert desk.delivery.ended == [None]

    def refuse(answer: Answer) -> None:
        raise OSError("the sink is full")

    desk = Desk(desk.catalog, durable=True)
    desk.register(BEST.format(window=TENS), sink=refuse)
    desk.feed("a", 8_000)
    stream = desk.streams["a"]
    stream.attach(Carried())
    desk.now += 60
    desk.delivery.has_ended.wait()
    with pytest.raises(OSError, match="sink"):
        stream.wait()
    stream.end(None)
    assert [str(error) for error in desk.delivery.ended] == ["the sink is full"]


class Carried:
    """Carrier without a stream."""

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    tells_status = False

    def status(self) -> None:
        """Return None: there is no source."""

    def forget(self, position: Position) -> None:
        pass


def test_a_timer_may_be_stopped_by_itself_and_never_runs_after_that() -> None:
    done = threading.Event()
    timer = IdleTimer(lambda: 0.0, lambda: (timer.stop(), done.set()))  # type: ignore[func-returns-value]
    timer.start("acquatop-idle-test")
    done.wait()
    timer.stop()
    timer.start("acquatop-idle-test")
    assert "acquatop-idle-test" not in [thread.name for thread in threading.enumerate()]


def test_in_process_a_silent_stream_is_answered(folder: Path) -> None:
    (folder / "a").write_bytes(line(8_000) + b"\n")
    with Engine(catalog(folder, a='idle = "20ms"'), runtime="local") as engine:
        query = engine.register(PREFIX + BEST.format(window="[RANGE 8020ms STEP 8020ms]"))
        (answer,) = query.answers(limit=1)
        assert (answer.closes_ms, len(answer.rows)) == (8_020, 1)
    assert NS not in " ".join(thread.name for thread in threading.enumerate())


# Late records -------------------------------------------------------------------------------------


def test_late_records_are_counted_once_however_many_queries_miss_them(folder: Path) -> None:
    desk = Desk(catalog(folder, a='late = "late"'))
    desk.register(BEST.format(window=TENS))
    desk.register(WHOLE.format(window="[RANGE 5s STEP 5s]"), name="whole")
    desk.register(SUMS.format(window="[RANGE 60s STEP 60s]"), name="sums")
    desk.feed("a", 16_000)
    assert desk.seen[-1].late == 0
    desk.feed("a", 9_000, 12_000, 15_500)
    assert desk.seen[-1].late == 2
    times = [json.loads(text)["time"] for text in (folder / "late").read_text().splitlines()]
    assert sorted(times) == [9_000, 12_000]


def test_a_late_record_makes_no_other_record_of_its_batch_late(tmp_path: Path) -> None:
    """A source cuts what is in order into partitions; the first goes on while the others wait."""
    times = [at * 1_000 for at in range(40)]
    times[12] = 500
    desk = Desk(catalog(tmp_path, arrivals="all", a='late = "late"'))
    desk.register(WHOLE.format(window=TENS))
    desk.feed_cut("a", [times[:20], times[20:30], times[30:]])
    desk.feed("a", 60_000)
    assert [seen.late for seen in desk.seen] == [1, 0]
    assert [len(answer.rows) for answer in desk.answers[:4]] == [10, 9, 10, 9]
    assert json.loads((tmp_path / "late").read_text())["time"] == 500


@settings(max_examples=60)
@given(
    partitions=st.lists(st.lists(st.integers(0, 90), max_size=8), min_size=1, max_size=4),
    shape=st.sampled_from([(20, 10), (10, 10)]),
    start=st.sampled_from(["start_ms = 0", ""]),
    query=st.sampled_from([(WHOLE, "all"), (WHOLE, "latest")]),
)
def test_each_record_is_in_its_windows_or_late_however_partitions_run_apart(
    tmp_path_factory: pytest.TempPathFactory,
    partitions: list[list[int]],
    shape: tuple[int, int],
    start: str,
    query: tuple[str, str],
) -> None:
    (width, slide), (text, arrivals) = shape, query
    folder = tmp_path_factory.mktemp("apart")
    desk = Desk(catalog(folder, arrivals=arrivals, a='late = "late"', start=start), live=False)
    desk.register(text.format(window=f"[RANGE {width}ms STEP {slide}ms]"))
    desk.feed_cut("a", partitions)
    desk.feed("a", 1_000)
    desk.streams["a"].end(None)
    kept = [json.loads(line) for line in (folder / "late").read_text().splitlines()]
    shown = {str(row.bindings["s"]) for answer in desk.answers for row in answer.rows}
    late = {NS + json.loads(each["record"])["s"] for each in kept}
    assert len(kept) == len(late) == sum(seen.late for seen in desk.seen)
    # The first window of an aligned stream is known only once time has passed its first record.
    before_all = {0} if start else set[int]()
    sent = {
        f"{NS}s{at}": time for at, time in enumerate(time for each in partitions for time in each)
    }
    assert {each for each in sent if sent[each] not in before_all} <= shown | late
    windows = Windows(width, slide, 0 if start else None)
    reached = [max(each[:at], default=-1) for each in partitions for at in range(len(each))]
    for at, (subject, time) in enumerate(sent.items()):
        if subject in late:
            # A record before it in its own partition has closed the window.
            assert windows.bounds(windows.first(time))[1] < reached[at]


def test_what_is_late_stands_in_the_file_as_it_came(folder: Path) -> None:
    closed = [(Windows(10, 10, 0), 0)]
    finder = LateFinder(closed, keeps=True)
    properties = {NS + "p": Property("p", XSD_DOUBLE)}
    columns = ColumnsMapping(Template(NS, "s", ""), "t", properties)
    table = pa.record_batch(
        {
            "t": [5, 50],
            "s": ["x", "y"],
            "p": [None, 1.0],
            "x": [float("nan"), 1.0],
            "_misfit": [None, None],
        }
    )
    found = finder.find(table, columns.records(table), columns)
    assert found is not None
    assert found.to_pylist() == [
        {"time_ms": 5, "record": '{"t": 5, "s": "x", "p": null, "x": null}'}
    ]
    statements = NTriplesMapping(NS + "t", properties)
    text = (
        f'<urn:x> <{NS}p> "1.5"^^<{XSD_DOUBLE}> .\n<urn:x> <{NS}t> "5" .\n\n<urn:y> <{NS}t> "50" .'
    )
    lines = rows(
        [
            each.encode()
            for each in text.replace('"5"', _number(5)).replace('"50"', _number(50)).split("\n")
        ]
    )
    found = finder.find(lines, statements.records(lines), statements)
    assert found is not None
    assert (
        json.loads(found.column("record")[0].as_py()) == f'<urn:x> <{NS}p> "1.5"^^<{XSD_DOUBLE}> .'
    )
    assert LateFinder(closed, keeps=False).find(
        table, columns.records(table), columns
    ).column_names == ["time_ms"]
    assert LateFinder((), keeps=True).find(table, columns.records(table), columns) is None


def _number(value: int) -> str:
    return f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def test_empty_lines_do_not_shift_what_is_kept(folder: Path) -> None:
    desk = Desk(catalog(folder, a='late = "late"'))
    desk.register(BEST.format(window=TENS))
    desk.feed("a", 16_000)
    desk.feed("a", lines=[b" ", b" ", line(17_000, "in-time"), b"", line(9_000, "late")])
    (kept,) = (folder / "late").read_text().splitlines()
    assert json.loads(json.loads(kept)["record"])["s"] == "late"


def test_a_late_record_stands_in_the_file_once_after_a_crash(folder: Path) -> None:
    (folder / "late").write_text("of another time\n")
    before = Desk(catalog(folder, a='late = "late"'), durable=True)
    before.register(BEST.format(window=TENS))
    before.feed("a", 16_000)
    before.feed("a", 9_000)
    state = json.loads(json.dumps(before.operators["a"].state()))
    before.feed("a", 8_000)
    assert len((folder / "late").read_text().splitlines()) == 3
    after = Desk(before.catalog)
    after.operators["a"].resume(state)
    after.streams["a"].job()
    assert [
        text[-40:].find("9000") >= 0 for text in (folder / "late").read_text().splitlines()[1:]
    ] == [True]


def test_an_engine_that_goes_on_cuts_off_what_it_does_not_know_of(folder: Path) -> None:
    streams = catalog(folder, a='late = "late"')

    def write(*times: int) -> None:
        with (folder / "a").open("ab") as file:
            file.writelines(line(time, f"s{time}") + b"\n" for time in times)

    def closes(late: int, newest: int) -> list[int]:
        with Engine(streams, runtime="local", state=folder / "state") as engine:
            query = engine.register(PREFIX + BEST.format(window=TENS), name="q")
            engine.start()
            found = [answer.closes_ms for answer in query.answers(limit=1)]
            write(late, newest)
            return found + [answer.closes_ms for answer in query.answers(limit=1)]

    write(8_000, 16_000)
    assert closes(9_000, 26_000) == [10_000, 20_000]
    with (folder / "late").open("ab") as file:
        file.write(b'{"never": "kept"}\n')
    # The last answer is given out again.
    assert closes(7_000, 36_000) == [20_000, 30_000]
    times = [json.loads(text)["time"] for text in (folder / "late").read_text().splitlines()]
    assert times == [9_000, 7_000]


def test_a_late_file_is_cut_only_where_it_is_known(folder: Path) -> None:
    path = folder / "deep" / "late"
    first = LateRecords(str(path), "urn:s")
    first.begin()
    first.add([(5, "1")], 9, durable=True)
    other = LateRecords(str(folder / "other"), "urn:s")
    (folder / "other").write_text("longer than what was kept of the first file, by far\n" * 3)
    other.resume(first.state())
    other.begin()
    assert len((folder / "other").read_text().splitlines()) == 3
    assert json.loads(path.read_text()) == {
        "stream": "urn:s",
        "time": 5,
        "watermark": 9,
        "record": 1,
    }
    with pytest.raises(EnvironmentProblem, match="cannot be written"):
        LateRecords(str(folder), "urn:s").begin()


# Records from the future --------------------------------------------------------------------------


def test_a_record_from_the_future_is_bad_and_moves_no_time(folder: Path) -> None:
    desk = Desk(catalog(folder))
    desk.register(BEST.format(window=TENS))
    desk.feed("a", 50_000, 3_700_001, 3_700_000 - 3_600_000)
    assert (desk.seen[-1].bad, desk.seen[-1].watermark_ms) == ({TOO_FAR_AHEAD: 1}, 99_999)
    recorded = Desk(catalog(folder), live=False)
    recorded.feed("a", 10**9)
    assert recorded.seen[-1].bad == {}


def test_the_catalog_says_how_far_ahead_and_gives_each_stream_a_late_file_of_its_own(
    folder: Path,
) -> None:
    assert catalog(folder).streams[NS + "a"].ahead_ms == 3_600_000
    assert catalog(folder, a='ahead = "2m"').streams[NS + "a"].ahead_ms == 120_000
    assert catalog(folder, a='ahead = "off"').streams[NS + "a"].ahead_ms is None
    with pytest.raises(CatalogError, match="the same file"):
        catalog(folder, a='late = "late"', b='late = "late"')


# Streams that wait for others ---------------------------------------------------------------------


@pytest.fixture
def held(folder: Path) -> Iterator[tuple[Desk, RegisteredQuery, threading.Thread]]:
    """A stream far ahead of another, and a thread in which it waits."""
    desk = Desk(catalog(folder, b='idle = "5s"'))
    query = desk.register(PAIRS)
    desk.feed("b", 1_000)
    desk.feed("a", 1_000 + MAX_DRIFT * 10_000)
    desk.streams["a"].wait()
    desk.feed("a", 1_001 + MAX_DRIFT * 10_000)
    desk.streams["b"].wait()
    thread = threading.Thread(target=desk.streams["a"].wait)
    thread.start()
    yield desk, query, thread
    desk.streams["a"].release()
    thread.join()


def test_a_stream_far_ahead_goes_on_when_the_other_has_caught_up(
    held: tuple[Desk, RegisteredQuery, threading.Thread],
) -> None:
    desk, _, thread = held
    assert thread.is_alive()
    desk.feed("b", 1_001)
    thread.join()


@pytest.mark.parametrize("why", ["ended", "failed", "idle", "removed", "stopped"])
def test_a_stream_far_ahead_goes_on_when_nobody_waits_for_the_other(
    held: tuple[Desk, RegisteredQuery, threading.Thread], why: str
) -> None:
    desk, query, thread = held
    assert thread.is_alive()
    if why in ("ended", "failed"):
        desk.streams["b"].end(None if why == "ended" else OSError("gone"))
    elif why == "idle":
        desk.wait(5, "b")
    elif why == "removed":
        query.stop()
    else:
        desk.streams["a"].release()
    thread.join()


@pytest.mark.parametrize("text", [PAIRS, SUMMED])
def test_an_idle_stream_is_not_answered_before_it_is_joined(folder: Path, text: str) -> None:
    """Nobody but its own thread knows what a query has missed of it."""
    desk = Desk(catalog(folder, b='idle = "5s"', start=""))
    desk.feed("b", 15_000, 41_000)
    desk.feed("a", 1_000)
    desk.now += 6
    assert desk.operators["b"].is_idle
    desk.register(text)
    assert desk.feed("a", 12_000, 15_000, 25_000) == []
    desk.wait(0, "b")
    desk.feed("a", 55_000, 65_000)
    assert [(each.opens_ms, each.closes_ms) for each in desk.answers] == [(50_000, 60_000)]


def test_a_stream_that_waits_is_not_idle(folder: Path) -> None:
    desk = Desk(catalog(folder, a='idle = "5s"'))
    desk.register(PAIRS)
    desk.feed("b", 1_000)
    desk.feed("a", 90_000)
    thread = threading.Thread(target=desk.streams["a"].wait)
    thread.start()
    while desk.operators["a"].time.phase is not Phase.HELD:
        pass
    desk.now += 60
    assert not desk.operators["a"].is_idle
    assert desk.operators["a"].due_in() is None
    desk.feed("b", 90_000)
    thread.join()
    assert not desk.operators["a"].is_idle


def test_what_waits_is_bounded_when_one_recording_is_far_ahead_of_another(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a").write_bytes(
        b"".join(line(time, f"s{time}") + b"\n" for time in range(1_000, 2_000_000, 1_000))
    )
    (folder / "b").write_bytes(
        b"".join(line(time, f"t{time}") + b"\n" for time in range(1_000, 2_000_000, 50_000))
    )
    waiting: list[int] = []
    add, job = WindowGraph.add, StreamDriver.job
    drivers: dict[str, StreamDriver] = {}

    def noted(graph: WindowGraph, records: pa.RecordBatch) -> int:
        late = add(graph, records)
        waiting.append(graph.waiting)
        return late

    def is_held(iri: str) -> bool:
        phase = drivers[iri].stream.time.phase if iri in drivers else None
        return phase in (Phase.HELD, Phase.ENDED)

    def slow(driver: StreamDriver) -> Job:
        drivers[driver.stream.iri] = driver
        while driver.stream.iri == NS + "b" and not is_held(NS + "a"):
            moment.wait(0.001)
        return job(driver)

    moment = threading.Event()
    monkeypatch.setattr(WindowGraph, "add", noted)
    monkeypatch.setattr(StreamDriver, "job", slow)
    streams = catalog(folder, options="maxBytesPerBatch = 400")
    with Engine(streams, runtime="local", until_end=True) as engine:
        answers = list(engine.register(PREFIX + PAIRS))
    assert len(answers) == 200
    # The drift, the window that is open, and a batch, which holds 12 records at most.
    assert 0 < max(waiting) <= MAX_DRIFT * 10 + 10 + 12


def test_an_engine_stops_at_once_while_a_stream_waits(folder: Path) -> None:
    (folder / "a").write_bytes(
        b"".join(line(time) + b"\n" for time in range(1_000, 200_000, 1_000))
    )
    (folder / "b").write_bytes(b"")
    held = threading.Event()

    class Held(Silent):
        def batch(self, seen: BatchSeen) -> None:
            held.set()

    with Engine(
        catalog(folder, options="maxBytesPerBatch = 400"), runtime="local", observer=Held()
    ) as engine:
        query = engine.register(PREFIX + PAIRS)
        held.wait()
    assert query.stopped


# Batches that are read before the one before them is taken ----------------------------------------


def batch_of(job: Job, *times_ms: int) -> Batch:
    parts = list(job([rows([line(at, f"s{at}") for at in times_ms])]))
    return Batch({"batch": 0}, [parts])


def test_a_job_ahead_knows_the_time_behind_the_batch_before(folder: Path) -> None:
    ahead, after = (Desk(catalog(folder, a='idle = "5s"')) for _ in range(2))
    for desk in (ahead, after):
        desk.register(BEST.format(window=TENS))
    times_ms = [(8_000, 9_000), (12_000, 31_000), (11_000, 29_000, 32_000, 45_000)]
    driver = after.streams["a"]
    for each in times_ms:
        driver.take(batch_of(driver.job(), *each))
    driver = ahead.streams["a"]
    batch = batch_of(driver.job(), *times_ms[0])
    for each in times_ms[1:]:
        prepared = driver.job_ahead(batch)
        assert prepared is not None
        job = prepared.begin()
        assert job is not None
        following = batch_of(job, *each)
        driver.take(batch)
        # The next one is under way, so time stands still.
        assert ahead.wait(60) == []
        batch = following
    driver.take(batch)
    assert [seen.late for seen in ahead.seen] == [seen.late for seen in after.seen] == [0, 0, 2]
    assert [each.canonical() for each in ahead.answers] == [
        each.canonical() for each in after.answers
    ]
    assert ahead.wait(60) != []


def test_what_is_prepared_is_of_no_use_once_time_may_go_on(folder: Path) -> None:
    desk = Desk(catalog(folder, a='idle = "5s"'))
    desk.register(BEST.format(window=TENS))
    driver = desk.streams["a"]
    batch = batch_of(driver.job(), 8_000)
    prepared = driver.job_ahead(batch)
    assert prepared is not None
    driver.take(batch)
    assert prepared.begin() is None
    assert desk.wait(60)[0] == 10_000


def test_nothing_is_prepared_while_queries_or_other_streams_decide(folder: Path) -> None:
    desk = Desk(catalog(folder))
    driver = desk.streams["a"]
    without_times = batch_of(driver.job())
    query = desk.register(BEST.format(window=TENS))
    batch = batch_of(driver.job(), 8_000)
    assert driver.job_ahead(without_times) is None
    assert driver.job_ahead(batch) is not None
    desk.register(BEST.format(window=TENS), name="comes")
    assert driver.job_ahead(batch) is None
    driver.take(batch)
    batch = batch_of(driver.job(), 9_000)
    assert driver.job_ahead(batch) is not None
    query.stop()
    assert driver.job_ahead(batch) is None
    desk.register(PAIRS, name="pairs")
    driver.take(batch)
    assert driver.job_ahead(batch_of(driver.job(), 9_500)) is None
