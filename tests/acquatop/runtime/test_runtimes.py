"""One battery over every runtime: the same events give the same bytes."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from acquatop import Answer, Engine, Status
from acquatop.catalog.catalog import Catalog
from acquatop.errors import EnvironmentProblem
from acquatop.ingest.reduce.job import Job
from acquatop.runtime import RUNTIMES, Batch, stream_carrier
from acquatop.runtime.spark import SparkRuntime
from acquatop.runtime.stream_carrier import SparkCarrier
from connectors import ConnectorError
from examples.oxigraph import OxigraphServer
from tests.support.windowed import Record
from tests.support.windowed import catalog as two_streams
from tests.support.worlds import (
    Event,
    brute_force,
    catalog_text,
    query_text,
    solutions_in,
    user_term,
)

pytestmark = [
    pytest.mark.spark,
    pytest.mark.server,
    pytest.mark.usefixtures("executors"),
]
USERS = {f"u{number}": 7 * number % 13 for number in range(13)}
Open = Callable[..., Engine]


@pytest.fixture(params=RUNTIMES)
def runtime(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def people(server: OxigraphServer) -> OxigraphServer:
    rows = " ".join(
        f"{user_term(user)} <http://example.org/followers> {count} ."
        for user, count in USERS.items()
    )
    server.update(f"INSERT DATA {{ {rows} }}")
    return server


@pytest.fixture
def open_engine(people: OxigraphServer, tmp_path: Path, spark: SparkSession) -> Iterator[Open]:
    opened: list[Engine] = []

    def open_(runtime: str, *, until_end: bool = True, **changes: object) -> Engine:
        values = {
            "path": tmp_path / "events",
            "endpoint": people.query_url,
            "items": 100,
            "n": 500,
            **changes,
        }
        catalog = Catalog.parse(
            catalog_text(**values), file=tmp_path / "catalog.toml", variables={}
        )
        opened.append(Engine(catalog, runtime=runtime, until_end=until_end, spark=spark))
        return opened[-1]

    yield open_
    for engine in opened:
        engine.stop()


def some_events(count: int = 400) -> list[Event]:
    chance = random.Random(3)
    return [
        Event(1 + number // 8, chance.choice(list(USERS)), chance.randrange(9))
        for number in range(count)
    ]


def write(tmp_path: Path, lines: list[bytes], files: int = 1) -> None:
    folder = tmp_path / "events"
    folder.mkdir(exist_ok=True)
    for number in range(files):
        part = lines[number * len(lines) // files : (number + 1) * len(lines) // files]
        (folder / f"{number}.ndjson").write_bytes(b"".join(line + b"\n" for line in part))


def shown(answer: Answer) -> list[tuple[str, int, int]]:
    return [
        (
            str(row.bindings["user"]).rsplit("/", 1)[1],
            int(row.bindings["mentions"]),
            round(row.score),
        )
        for row in answer.rows
    ]


@pytest.mark.parametrize("arrivals", ["all", "latest"])
def test_answers_are_right(open_engine: Open, runtime: str, arrivals: str, tmp_path: Path) -> None:
    events = some_events()
    write(tmp_path, [event.line() for event in events])
    answers = list(open_engine(runtime, arrivals=arrivals).register(query_text(k=3)))
    assert [answer.window for answer in answers] == list(
        range(answers[0].window, answers[0].window + len(answers))
    )
    assert answers[-1].closes_ms >= events[-1].t > answers[-1].opens_ms
    for answer in answers:
        right = brute_force(
            events,
            answer.opens_ms,
            answer.closes_ms,
            USERS,
            k=3,
            latest=arrivals == "latest",
            sign=1,
        )
        assert shown(answer) == right
        assert answer.status is Status.EXACT


def test_every_runtime_and_every_cut_into_batches_gives_the_same_bytes(
    open_engine: Open, tmp_path: Path
) -> None:
    lines = [event.line() for event in some_events()]
    documents = set()
    for runtime in RUNTIMES:
        for files in (1, 3):
            write(tmp_path, lines, files)
            answers = list(open_engine(runtime).register(query_text(k=3)))
            documents.add(json.dumps([answer.canonical() for answer in answers]))
            for file in (tmp_path / "events").iterdir():
                file.unlink()
    assert len(documents) == 1


LAST = """PREFIX : <http://example.org/>
SELECT ?user ?mentions FROM NAMED WINDOW :w ON :stream [ELEMENTS 20 STEP {step}]
WHERE {{ WINDOW :w {{ ?user :mentions ?mentions }} }} ORDER BY DESC(?mentions) LIMIT 3"""


@pytest.mark.parametrize(("arrivals", "step"), [("distinct", 1), ("latest", 7)])
def test_windows_that_count_elements_are_the_same_bytes(
    open_engine: Open, arrivals: str, step: int, tmp_path: Path
) -> None:
    distinct = [
        replace(event, user=f"{event.user}-{at}") for at, event in enumerate(some_events(120))
    ]
    documents = set()
    for runtime in RUNTIMES:
        write(tmp_path, [event.line() for event in distinct], files=3)
        answers = list(open_engine(runtime, arrivals=arrivals).register(LAST.format(step=step)))
        assert len(answers) == 120 // step
        documents.add(json.dumps([answer.canonical() for answer in answers]))
    assert len(documents) == 1


WHOLE = """PREFIX : <http://example.org/>
SELECT ?user ?mentions FROM NAMED WINDOW :w ON :stream [RANGE 2ms STEP 1ms]
WHERE { WINDOW :w { ?user :mentions ?mentions } }"""


AGGREGATED = """PREFIX : <http://example.org/>
SELECT ?user ?n ?sum (?n * ?followers + ?sum AS ?score)
FROM NAMED WINDOW :w ON :stream [RANGE 9ms STEP 3ms]
WHERE {
  WINDOW :w { SELECT ?user (COUNT(*) AS ?n) (SUM(?mentions) AS ?sum)
  { ?user :mentions ?mentions } GROUP BY ?user }
  SERVICE :people { ?user :followers ?followers }
}
ORDER BY DESC(?score) LIMIT 3"""


def test_events_of_one_millisecond_may_come_one_by_one(
    open_engine: Open, runtime: str, tmp_path: Path
) -> None:
    """A batch for each line: windows close at the time of several events."""
    events = [Event(1 + number // 4, list(USERS)[number % 13], number % 5) for number in range(40)]
    write(tmp_path, [event.line() for event in events])

    def answered(runtime: str, options: str) -> list[list[dict[str, Any]]]:
        engine = open_engine(runtime, arrivals="distinct", options=options)
        texts = {
            "top": query_text(k=3),
            "last": LAST.format(step=1),
            "per user": AGGREGATED,
            "whole": WHOLE,
        }
        queries = [engine.register(text, name=name) for name, text in texts.items()]
        answers = [list(query) for query in queries]
        assert sum(answer.counts.late for several in answers for answer in several) == 0
        return [[answer.canonical() for answer in several] for several in answers]

    whole = answered("local", "")
    assert [len(answers) for answers in whole] == [6, 40, 6, 11]
    assert answered(runtime, "\nmaxBytesPerBatch = 30") == whole


@pytest.mark.parametrize("arrivals", ["all", "latest"])
def test_aggregates_per_key_are_right_and_the_same_bytes(
    open_engine: Open, arrivals: str, tmp_path: Path
) -> None:
    events = some_events()
    documents = set()
    for runtime, files in zip(RUNTIMES, (1, 3), strict=True):
        write(tmp_path, [event.line() for event in events], files)
        answers = list(open_engine(runtime, arrivals=arrivals).register(AGGREGATED))
        documents.add(json.dumps([answer.canonical() for answer in answers]))
        for answer in answers:
            values: dict[str, list[tuple[int, int]]] = {}
            inside = solutions_in(
                events, answer.opens_ms, answer.closes_ms, latest=arrivals == "latest"
            )
            for (user, mentions), time in inside.items():
                values.setdefault(user, []).append((time, mentions))
            rows = [
                (
                    len(each) * USERS[user] + sum(mentions for _, mentions in each),
                    max(each)[0],
                    user,
                    len(each),
                )
                for user, each in values.items()
            ]
            rows.sort(key=lambda row: (-row[0], -row[1], user_term(row[2])))
            found = [
                (row.score, row.bindings["user"].n3(), int(row.bindings["n"]))
                for row in answer.rows
            ]
            assert found == [(score, user_term(user), count) for score, _, user, count in rows[:3]]
            assert answer.status is Status.EXACT
    assert len(documents) == 1


def test_bad_items_are_counted_and_stop_nothing(
    open_engine: Open, runtime: str, tmp_path: Path
) -> None:
    good = [event.line() for event in some_events(40)]
    write(tmp_path, [good[0], b"{", *good[1:20], b'{"user": "x"}', *good[20:], b"\xff", b"{"])
    answers = list(open_engine(runtime).register(query_text()))
    counted: dict[str, int] = {}
    for answer in answers:
        for reason, count in answer.counts.bad.items():
            counted[reason] = counted.get(reason, 0) + count
    assert counted == {"not JSON": 2, "not UTF-8": 1, 'no time in the field "t"': 1}
    assert sum(answer.counts.events for answer in answers) == 44


def test_a_live_stream_answers_as_its_windows_close(
    open_engine: Open, runtime: str, tmp_path: Path
) -> None:
    write(tmp_path, [Event(2, "u1", 3).line(), Event(5, "u2", 4).line()])
    answers = iter(
        open_engine(runtime, until_end=False, start="start_ms = 0").register(
            query_text(width=4, slide=4)
        )
    )
    assert shown(next(answers)) == [("u1", 3, 6 + USERS["u1"])]
    with (tmp_path / "events" / "0.ndjson").open("ab") as stream:
        stream.write(Event(13, "u3", 1).line() + b"\n")
    assert shown(next(answers)) == [("u2", 4, 8 + USERS["u2"])]
    assert shown(next(answers)) == []  # nothing happened in (8, 12], and that is said too


def test_the_replica_follows_the_remote_within_its_budget(
    open_engine: Open, runtime: str, people: OxigraphServer, tmp_path: Path
) -> None:
    write(tmp_path, [Event(2_000, "u1", 9).line(), Event(6_000, "u2", 3).line()])
    # One item is asked for each time, and the test has to know which: the first of the answer.
    engine = open_engine(
        runtime, until_end=False, start="start_ms = 0", items=1, requests=1, policy="AT-TSM"
    )
    answers = iter(engine.register(query_text(width=100_000, slide=4_000, k=2)))
    with (tmp_path / "events" / "0.ndjson").open("ab") as stream:
        stream.write(Event(101_000, "u1", 9).line() + b"\n")
    first = next(answers)
    assert [name for name, _, _ in shown(first)] == ["u1", "u2"]
    assert (first.spending.items, first.spending.requests) == (1, 1)
    assert first.status is Status.CERTIFIED
    people.update(f"DELETE WHERE {{ {user_term('u1')} ?p ?o }}")
    with (tmp_path / "events" / "0.ndjson").open("ab") as stream:
        stream.write(Event(105_000, "u2", 3).line() + b"\n")
    second = next(answers)
    assert [name for name, _, _ in shown(second)] == ["u2"]  # the remote has no u1 any more
    assert second.spending.items == 1


def test_several_queries_share_a_stream(open_engine: Open, runtime: str, tmp_path: Path) -> None:
    write(tmp_path, [])
    engine = open_engine(runtime, until_end=False)
    first = engine.register(query_text(k=1), name="first")
    second = engine.register(query_text(k=2, width=6, slide=6), name="second")
    write(tmp_path, [event.line() for event in some_events()])
    assert [answer.query for answer in first.answers(limit=2)] == ["first", "first"]
    assert len(next(iter(second)).rows) == 2


def test_a_query_over_two_streams_has_the_time_of_both(
    spark: SparkSession, runtime: str, tmp_path: Path
) -> None:
    for stream, records in {
        "a": [Record(1_000, "k", 1), Record(8_000, "l", 2), Record(12_000, "m", 2)],
        "b": [Record(2_000, "x", 1), Record(9_000, "y", 2), Record(11_000, "z", 2)],
    }.items():
        (tmp_path / stream).write_bytes(b"".join(record.line() + b"\n" for record in records))
    text = """PREFIX : <http://example.org/> SELECT ?s ?t
    FROM NAMED WINDOW :v ON :a [RANGE 10s] FROM NAMED WINDOW :w ON :b [RANGE 5s]
    WHERE { WINDOW :v { ?s :p ?p } WINDOW :w { ?t :p ?p } }"""
    with Engine(
        two_streams(folder=tmp_path), runtime=runtime, until_end=True, spark=spark
    ) as engine:
        answers = list(engine.register(text))
    rows = [
        [tuple(str(term)[-1] for term in row.bindings.values()) for row in answer.rows]
        for answer in answers
    ]
    assert [answer.closes_ms for answer in answers] == [5_000, 10_000, 15_000, 20_000]
    assert rows == [[], [("l", "y")], [("l", "z")], []]


def test_stopping_ends_the_iterators(open_engine: Open, runtime: str, tmp_path: Path) -> None:
    write(tmp_path, [])
    engine = open_engine(runtime, until_end=False)
    query = engine.register(query_text())
    engine.stop()
    assert list(query) == []
    assert list(query) == []
    engine.stop()


def test_what_ends_a_stream_early_is_raised_where_answers_are_awaited(
    open_engine: Open, runtime: str, tmp_path: Path
) -> None:
    write(tmp_path, [event.line() for event in some_events()])
    query = open_engine(runtime, until_end=False).register(query_text())
    next(iter(query))
    (tmp_path / "events" / "0.ndjson").write_bytes(b"")
    with pytest.raises(Exception, match="has shrunk"):
        list(query)


def test_a_file_that_another_one_replaces_is_said_with_a_remedy(
    open_engine: Open, runtime: str, tmp_path: Path
) -> None:
    file = tmp_path / "events" / "0.ndjson"
    write(tmp_path, [event.line() for event in some_events()])
    query = open_engine(runtime, until_end=False).register(query_text())
    next(iter(query))
    (tmp_path / "new").write_bytes(file.read_bytes().replace(b"u1", b"u2"))
    (tmp_path / "new").rename(file)
    with pytest.raises(
        (ConnectorError, EnvironmentProblem),
        match=r"0\.ndjson is not what has been read of it: [^\n]*\n  hint: put back what was read",
    ):
        list(query)


class Slow:
    """A streaming query whose Python was too slow to begin, after some batches of it."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query

    def awaitTermination(self) -> None:  # noqa: N802 (the name is PySpark's)
        with suppress(StreamingQueryException):
            self._query.awaitTermination()
        raise RuntimeError(f"[STREAM_FAILED] {stream_carrier.SLOW}. SQLSTATE: XXKST")


@pytest.mark.parametrize("slow", [1, 99])
def test_a_stream_that_spark_is_too_slow_to_start_is_started_again(
    open_engine: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: int
) -> None:
    start, starts = SparkCarrier._start, list[int]()

    def start_slowly(carrier: SparkCarrier, *arguments: Any) -> Any:
        starts.append(len(starts))
        query = start(carrier, *arguments)
        return Slow(query) if len(starts) <= slow else query

    write(tmp_path, [event.line() for event in some_events()])
    right = [answer.canonical() for answer in open_engine("local").register(query_text(k=3))]
    monkeypatch.setattr(SparkCarrier, "_start", start_slowly)
    query = open_engine("spark").register(query_text(k=3))
    if slow == 1:
        assert [answer.canonical() for answer in query] == right
        assert len(starts) == 2
    else:
        with pytest.raises(EnvironmentProblem, match=stream_carrier.SLOW):
            list(query)
        # Its only batch came with the first.
        assert len(starts) == stream_carrier.STARTS


def test_a_session_that_runs_already_is_used_and_not_stopped(spark: SparkSession) -> None:
    runtime = SparkRuntime()
    assert runtime.spark is spark
    runtime.close()
    assert spark.range(3).count() == 3


class Nobody:
    """A consumer of nothing."""

    def __init__(self, ended: list[object]) -> None:
        self._ended = ended

    def wait(self) -> None:
        raise AssertionError("there is no batch")

    def release(self) -> None:
        pass

    def job(self) -> Job:
        raise AssertionError("there is no batch")

    def take(self, batch: Batch) -> None:
        raise AssertionError("there is no batch")

    def end(self, error: BaseException | None) -> None:
        self._ended.append(error)


def test_a_stream_whose_start_fails_on_spark_leaves_nothing_behind(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, [])
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(stream_carrier, "TRIGGER", "now and then")
    catalog = Catalog.parse(
        catalog_text(path=tmp_path / "events"), file=tmp_path / "catalog.toml", variables={}
    )
    (stream,) = catalog.streams.values()
    ended: list[object] = []
    with pytest.raises(Exception, match="now and then"):
        SparkRuntime(spark).carry(stream, Nobody(ended), until_end=False, resume=None).start()
    assert ended == []
    assert list(temporary.iterdir()) == []
    assert spark.streams.active == []
