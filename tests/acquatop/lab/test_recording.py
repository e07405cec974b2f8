"""A recording has what the stream said and what the remote gave,
and its replay answers as the run did.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from acquatop import Engine
from acquatop.app.cli import main
from acquatop.app.cli.progress import RecordingProgress
from acquatop.catalog.catalog import Catalog
from acquatop.engine.observer import BatchSeen
from acquatop.errors import EnvironmentProblem, UserError
from acquatop.lab.record.full_snapshots import FullSnapshots, SnapshotBudget
from acquatop.lab.record.recorded_remote import RecordedFeed, RecordedRemote
from acquatop.lab.record.recording import CATALOG as FILE
from acquatop.lab.record.recording import QUERY, REMOTE, STREAM, Recording
from acquatop.lab.record.remote_log import PatternTape, RemoteTape
from acquatop.lab.record.stream_log import StreamTape
from acquatop.lab.record.table_column import TableColumn, UnwritableError
from acquatop.lab.replay.trace import open_trace
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundQuery
from connectors.fields import ROW
from connectors.mapping import JsonMapping, Property, Template
from examples.oxigraph import OxigraphServer
from replica.feeds.contract import ChangeSink
from replica.remotes import RemoteError
from replica.remotes.records import Field, KeyTemplate, RecordMapping, Star
from replica.remotes.table import TableRemote as ReplayedRemote
from replica.spending.limit import Limit
from replica.spending.quota import Quota
from tests.support import programs
from tests.support.markers import THOROUGH
from tests.support.recorded_runs import (
    SLIDE,
    USERS,
    Run,
    append,
    catalog_of,
    events,
    replayed,
    set_followers,
    shown,
)
from tests.support.waiting import without_waits
from tests.support.worlds import (
    NS,
    XSD,
    Event,
    TableRemote,
    catalog_text,
    integer,
    query_text,
    user_term,
)

ROOT = Path(__file__).parents[3]
PATIENCE = 240.0


def tape_of(path: Path, column: TableColumn | None = None) -> PatternTape:
    column = column or TableColumn("p0", f"{NS}followers", "followers")
    return PatternTape(RemoteTape(path, [[column]]), "user")


def values_at(folder: Path, time_ms: int) -> dict[str, int]:
    """Return what a recording says that the remote had at a time."""
    held: dict[str, int | None] = {}
    for line in (folder / REMOTE).read_text("utf-8").splitlines():
        record = json.loads(line)
        if record["time_ms"] <= time_ms:
            held[record["subject"].removeprefix(f"{NS}user/")] = record.get("p0")
    return {user: value for user, value in held.items() if value is not None}


@pytest.mark.parametrize("seed", range(3))
def test_a_replay_answers_as_the_run_that_was_recorded(
    server: OxigraphServer, tmp_path: Path, seed: int
) -> None:
    run = Run(tmp_path, server, seed, windows=6)
    again = replayed(run.out)
    assert [answer.closes_ms for answer in again][: len(run.answers)] == [
        each.closes_ms for each in run.answers
    ]
    assert len(again) >= len(run.answers) > 4
    assert [shown(each) for each in again[: len(run.answers)]] == [
        shown(each) for each in run.answers
    ]
    lines = [json.loads(line) for line in (tmp_path / "events").read_bytes().splitlines()]
    kept = [json.loads(line) for line in (run.out / STREAM).read_bytes().splitlines()]
    assert kept == [
        {"time_ms": each["t"], "subject": f"{NS}user/{each['user']}", "p0": each["mentions"]}
        for each in lines
    ]


@pytest.mark.parametrize("load", ["true", "false"])
def test_full_snapshots_say_what_the_remote_had_at_every_evaluation(
    server: OxigraphServer, tmp_path: Path, load: str
) -> None:
    service = f"load = {load}\nblock_size = 2"
    run = Run(tmp_path, server, 7, windows=8, service=service, snapshots=SnapshotBudget(SLIDE, 10))
    met: set[str] = set(run.truth[SLIDE]) if load == "true" else set()
    events = [json.loads(line) for line in (tmp_path / "events").read_bytes().splitlines()]
    for closes, truth in run.truth.items():
        met |= {each["user"] for each in events if each["t"] <= closes}
        known = {user: value for user, value in values_at(run.out, closes).items() if user in met}
        assert known == {user: value for user, value in truth.items() if user in met}
    assert run.recording.snapshot_requests <= 8 * 10
    assert not run.recording.snapshot_failures


def test_the_oracle_takes_a_recording_as_it_is(server: OxigraphServer, tmp_path: Path) -> None:
    run = Run(tmp_path, server, 11, windows=6, snapshots=SnapshotBudget(SLIDE, 1))
    trace = open_trace(run.out, (run.out / QUERY).read_text("utf-8"))
    assert trace.records.num_rows == len((tmp_path / "events").read_bytes().splitlines())
    (history,) = trace.histories
    held: dict[str, list[float]] = {}
    for (closes, truth), said in zip(
        run.truth.items(), history.changes(list(run.truth)), strict=True
    ):
        held |= {key: [_number(each["followers"]) for each in found] for key, found in said.items()}
        assert {key: numbers for key, numbers in held.items() if numbers} == {
            user_term(user): [number] for user, number in truth.items()
        }, closes


def test_without_snapshots_a_recording_knows_only_what_was_asked(
    server: OxigraphServer, tmp_path: Path
) -> None:
    run = Run(tmp_path, server, 7, windows=8, items=1, requests=1)
    assert any(values_at(run.out, closes) != truth for closes, truth in run.truth.items())


def test_a_snapshot_asks_for_no_more_than_its_budget_and_goes_on_in_the_next(
    tmp_path: Path,
) -> None:
    remote = TableRemote(dict.fromkeys(USERS, 1), block_size=2)
    tape = tape_of(tmp_path / REMOTE)
    tape.meet(map(user_term, USERS), 0)
    now = [0.0]
    recorded = RecordedRemote(remote, tape, lambda: now[0])
    snapshots = FullSnapshots(
        SnapshotBudget(1000, 2), recorded, tape, Quota(), 1.0, clock=lambda: 0.0
    )
    for second in (1.0, 1.5, 2.0):
        now[0] = second
        snapshots.evaluate(round(1000 * second))
    asked = [key for keys in remote.asked for key in keys]
    assert (snapshots.requests, len(asked)) == (4, 8)
    assert set(asked[:6]) == set(map(user_term, USERS))


def test_a_snapshot_keeps_to_the_limits_of_its_service_and_ends_with_a_failure(
    tmp_path: Path,
) -> None:
    remote = TableRemote(dict.fromkeys(USERS, 1), block_size=2)
    tape = tape_of(tmp_path / REMOTE)
    tape.meet(map(user_term, USERS), 0)
    quota = Quota([Limit.parse("2 requests per hour")])
    recorded = RecordedRemote(remote, tape, lambda: 1.0)
    budget = SnapshotBudget(600_000, 10)
    FullSnapshots(budget, recorded, tape, quota, 1.0).evaluate(1000)
    assert len(remote.asked) == 2
    remote.failing = True
    failing = FullSnapshots(budget, recorded, tape, Quota(), 1.0)
    failing.evaluate(2000)
    assert (failing.requests, dict(failing.failures)) == (1, {"the table is out of order": 1})


def test_keys_that_have_never_been_asked_for_come_first(tmp_path: Path) -> None:
    tape = tape_of(tmp_path / REMOTE)
    first, second, new = map(user_term, USERS[:3])
    tape.add([first], [], 1)
    tape.add([second], [], 2)
    tape.meet([second, new], 2)
    assert tape.due(5, 3) == [new, first, second]
    assert tape.due(5, 2) == [new, first]


def test_a_snapshot_of_a_slow_remote_leaves_half_of_the_time_to_the_stream(tmp_path: Path) -> None:
    remote = TableRemote(dict.fromkeys(USERS, 1), block_size=1)
    tape = tape_of(tmp_path / REMOTE)
    tape.meet(map(user_term, USERS), 0)
    recorded = RecordedRemote(remote, tape, lambda: 1.0)
    budget = SnapshotBudget(10_000, 100)
    FullSnapshots(
        budget, recorded, tape, Quota(), 1.0, clock=lambda: 2.0 * len(remote.asked)
    ).evaluate(1000)
    assert len(remote.asked) == 3


# The files ----------------------------------------------------------------------------------------

TERMS = st.one_of(
    st.integers(-9, 9).map(integer),
    st.decimals(-9, 9, places=2).map(lambda number: f'"{number}"^^<{XSD}decimal>'),
    st.floats(-9, 9).map(lambda number: f'"{number!r}"^^<{XSD}double>'),
    st.none(),
)
SAID = st.lists(st.tuples(st.sampled_from(USERS[:3]), st.integers(0, 5), TERMS), max_size=20)


@given(SAID, st.integers(0, 20), st.integers(0, 30))
def test_what_was_written_is_what_the_replay_reads(
    tmp_path_factory: pytest.TempPathFactory,
    said: list[tuple[str, int, str | None]],
    stop: int,
    torn: int,
) -> None:
    """However it is cut into lives: the last that was said at or before a time holds,
    of two at one time the first.
    """
    path = tmp_path_factory.mktemp("tape") / REMOTE
    column = TableColumn("p0", f"{NS}followers", "f")
    expected: dict[str, list[tuple[int, str | None]]] = {}
    tape = tape_of(path, column)
    for at, (user, time_ms, term) in enumerate(said):
        if at == stop:
            tape.tape.close()
            with path.open("ab") as file:
                file.write(b'{"time_ms": 99, "subject": "http://x.org/"'[:torn])
            tape = tape_of(path, column)
        tape.add(
            [user_term(user)],
            [] if term is None else [{"user": user_term(user), "f": term}],
            time_ms,
        )
        lines = expected.setdefault(user, [])
        if lines and time_ms <= lines[-1][0]:
            if _same(lines[-1][1], term):
                continue
            time_ms = lines[-1][0] + 1
        lines.append((time_ms, term))
    tape.tape.close()
    times = {time_ms for lines in expected.values() for time_ms, _ in lines}
    mapping = RecordMapping(
        KeyTemplate("", "subject", ""),
        {f"{NS}followers": Field("p0", column.datatype or f"{XSD}integer")},
    )
    now = [0]
    remote = ReplayedRemote(
        path,
        mapping=mapping,
        star=Star("user", {"f": f"{NS}followers"}),
        now_ms=lambda: now[0],
        time="time_ms",
    )
    for time_ms in times:
        now[0] = time_ms
        found = {
            each["user"]: _number(each["f"])
            for each in remote.fetch([user_term(user) for user in expected], 1.0)
        }
        held = {
            user: [term for at, term in lines if at <= time_ms][-1:]
            for user, lines in expected.items()
        }
        assert found == {
            user_term(user): _number(terms[0]) for user, terms in held.items() if terms and terms[0]
        }


def _number(term: str) -> float:
    return float(term.split('"')[1])


def _same(one: str | None, other: str | None) -> bool:
    column = TableColumn("p0", "urn:p", "f")
    return (one and column.write(one)) == (other and column.write(other))


@pytest.mark.parametrize(
    ("terms", "written", "datatype"),
    [
        (
            [integer(1), f'"2.5"^^<{XSD}double>', f'"0.10"^^<{XSD}decimal>'],
            ["1", "2.5", "0.10"],
            f"{XSD}double",
        ),
        ([f'"+07"^^<{XSD}unsignedByte>'], ["7"], f"{XSD}integer"),
        (['"a\\"\\n"', '""'], ['"a\\"\\n"', '""'], f"{XSD}string"),
        ([f'"1"^^<{XSD}boolean>'], ["true"], f"{XSD}boolean"),
        (["<urn:a>"], ['"urn:a"'], "iri"),
    ],
)
def test_terms_are_written_as_their_column_reads_them(
    terms: list[str], written: list[str], datatype: str
) -> None:
    column = TableColumn("p0", "urn:p", "x")
    assert [column.write(term) for term in terms] == written
    assert column.datatype == datatype


@pytest.mark.parametrize(
    "term", ['"a"@en', '"x"^^<urn:d>', f'"x"^^<{XSD}integer>', f'"INF"^^<{XSD}double>', '"text"']
)
def test_a_term_that_does_not_fit_is_left_out_and_counted(tmp_path: Path, term: str) -> None:
    tape = tape_of(tmp_path / REMOTE, TableColumn("p0", "urn:p", "f", datatype=f"{XSD}integer"))
    tape.add([user_term("a")], [{"user": user_term("a"), "f": term}], 1)
    assert (tape.tape.count, sum(tape.tape.left_out.values())) == (0, 1)
    with pytest.raises(UnwritableError):
        TableColumn("p0", "urn:p", "f", datatype=f"{XSD}integer").write(term)


def test_records_are_written_column_by_column_as_they_are(tmp_path: Path) -> None:
    properties = {
        "urn:n": Property("n", f"{XSD}integer"),
        "urn:x": Property("x", f"{XSD}double"),
        "urn:s": Property("s", f"{XSD}string"),
        "urn:i": Property("i", "iri"),
    }
    mapping = JsonMapping(Template("urn:s:", "id", ""), "t", properties)
    lines = [
        {"t": 5, "id": "a", "n": -3, "x": 1e20, "s": 'quote " \\ \n é', "i": "urn:o"},
        {"t": 6, "id": "b"},
        {"t": 7, "id": "c", "x": 0.1, "s": ""},
        {"t": "bad"},
    ]
    batch = mapping.decode(pa.array([json.dumps(line).encode() for line in lines], pa.binary()))
    tape = StreamTape(tmp_path / STREAM, mapping)
    tape.begin()
    tape.add([pa.Table.from_batches([batch])], durable=False)
    names = {"t": "time_ms", "id": "subject", "n": "p0", "x": "p1", "s": "p2", "i": "p3"}
    expected = [{names[name]: value for name, value in line.items()} for line in lines[:3]]
    for line in expected:
        line["subject"] = f"urn:s:{line['subject']}"
    assert [json.loads(line) for line in (tmp_path / STREAM).read_bytes().splitlines()] == expected
    assert tape.count == 3
    again = JsonMapping(
        Template("", "subject", ""),
        "time_ms",
        {iri: Property(mapping.column(iri), each.datatype) for iri, each in properties.items()},
    )
    written = again.decode(pa.array((tmp_path / STREAM).read_bytes().splitlines(), pa.binary()))
    assert written.drop_columns([ROW]).to_pylist() == batch.drop_columns([ROW]).to_pylist()[:3]


def test_what_no_state_knows_of_is_cut_off_and_read_again(tmp_path: Path) -> None:
    mapping = JsonMapping(Template("urn:s:", "id", ""), "t", {})
    records = [
        pa.Table.from_batches([mapping.decode(pa.array([b'{"t": 1, "id": "a"}'], pa.binary()))])
    ]
    killed = StreamTape(tmp_path / STREAM, mapping)
    killed.begin()
    killed.add(records, durable=True)
    again = StreamTape(tmp_path / STREAM, mapping)
    again.begin()
    assert again.size == (tmp_path / STREAM).stat().st_size == 0
    again.add(records, durable=True)
    moved = StreamTape((tmp_path / STREAM).rename(tmp_path / "moved"), mapping)
    moved.resume(again.state())
    moved.begin()
    assert moved.size == killed.size == (tmp_path / "moved").stat().st_size > 0


# The folder ---------------------------------------------------------------------------------------


def open_recording(folder: Path, query: str | None = None, **changes: object) -> Recording:
    catalog = Catalog.parse(catalog_text(**changes), file=folder / "catalog.toml", variables={})
    return Recording.open(folder / "out", catalog, query or query_text(), file="q.rspql")


def test_a_folder_is_gone_on_with_by_the_same_query_alone(tmp_path: Path) -> None:
    first = open_recording(tmp_path)
    with pytest.raises(EnvironmentProblem, match="in use"):
        open_recording(tmp_path)
    first.remotes[0].add([], [{"user": user_term("a"), "followers": f'"2.5"^^<{XSD}double>'}], 0)
    first.close()
    again = open_recording(tmp_path)
    assert again.keys == 1
    again.close()
    assert 'datatype = "http://www.w3.org/2001/XMLSchema#double"' in (
        tmp_path / "out" / FILE
    ).read_text("utf-8")
    with pytest.raises(UserError, match="another query"):
        open_recording(tmp_path, query_text(k=3))
    (tmp_path / "out" / STREAM).write_text("{}\n", "utf-8")
    with pytest.raises(UserError, match="state"):
        open_recording(tmp_path)


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()
    with pytest.raises(UserError, match="it holds mine"):
        open_recording(tmp_path)


def test_what_cannot_be_replayed_is_not_recorded(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="asks no remote"):
        open_recording(
            tmp_path,
            query_text(score="?mentions")
            .replace("SERVICE :people { ?user :followers ?followers }", "")
            .replace("?followers", ""),
        )
    named = "SERVICE :people { ?user :name 'Ann'@en } }\nORDER"
    with pytest.raises(UserError, match="it says nothing but"):
        open_recording(tmp_path, query_text().replace("}\nORDER", named))


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("?user :followers ?followers", "?user :profile/:followers ?followers"),
        ("?user :followers ?followers", "?one :of ?user ; :followers ?followers"),
        ("?user :followers ?followers", "?user :followers ?followers, ?more"),
        ("}\nORDER", "SERVICE :people { ?user :followers ?g ; :name ?n } }\nORDER"),
    ],
)
def test_a_recording_answers_patterns_of_any_kind(tmp_path: Path, said: str, instead: str) -> None:
    query = query_text().replace(said, instead)
    open_recording(tmp_path, query).close()
    catalog = replace(Catalog.load(tmp_path / "out" / FILE), asks_for_records=True)
    assert isinstance(bind_query(query, catalog), BoundQuery)


def test_nothing_of_where_values_came_from_is_written(
    server: OxigraphServer, tmp_path: Path
) -> None:
    Run(tmp_path, server, 1, windows=2)
    written = b"".join(each.read_bytes() for each in (tmp_path / "out").iterdir() if each.is_file())
    assert server.query_url.encode() not in written


# The command --------------------------------------------------------------------------------------


@pytest.fixture
def world(server: OxigraphServer, tmp_path: Path) -> Path:
    set_followers(server, dict.fromkeys(USERS, 3))
    catalog_of(tmp_path, server)
    (tmp_path / "q.rspql").write_text(query_text(width=3), "utf-8")
    return tmp_path


def command(folder: Path, *more: str) -> list[str]:
    files = [
        "--catalog",
        folder / "catalog.toml",
        "--query",
        folder / "q.rspql",
        "--out",
        folder / "out",
    ]
    return ["record", *map(str, files), *more]


def started(folder: Path, *more: str) -> subprocess.Popen[str]:
    program = [sys.executable, "-m", "acquatop", *command(folder, *more)]
    return subprocess.Popen(
        program, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def lines_of(folder: Path) -> list[bytes]:
    path = folder / "out" / STREAM
    return path.read_bytes().splitlines() if path.exists() else []


def wait_for(process: subprocess.Popen[str], folder: Path, count: int) -> None:
    until = time.monotonic() + PATIENCE
    while len(lines_of(folder)) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until, "nothing is recorded"
        os.sched_yield()


@THOROUGH
def test_a_recording_that_was_killed_goes_on_and_has_each_event_once(world: Path) -> None:
    append(world, list(events(1, 20)))
    with started(world) as process:
        wait_for(process, world, 20)
        process.kill()
    for torn in (STREAM, REMOTE):
        with (world / "out" / torn).open("ab") as file:
            file.write(b'{"time_ms": 12')
    append(world, list(events(21, 20)))
    with started(world, "--json") as process:
        wait_for(process, world, 40)
        process.send_signal(signal.SIGTERM)
        said, complaints = programs.end_of(process)
    assert (process.returncode, without_waits(complaints)) == (0, "")
    assert json.loads(said)["keys"] == len(USERS)
    assert [json.loads(line)["time_ms"] for line in lines_of(world)] == list(range(1, 41))
    assert [answer.closes_ms for answer in replayed(world / "out")][:10] == [
        3 * at for at in range(1, 11)
    ]


@pytest.mark.parametrize("bound", [("--events", "20"), ("--max-bytes", "100"), ("--for", "1ms")])
def test_a_bound_ends_a_recording(
    world: Path, capsys: pytest.CaptureFixture[str], bound: tuple[str, str]
) -> None:
    append(world, list(events(1, 25)))
    assert main(command(world, *bound)) == 0
    said = capsys.readouterr()
    assert without_waits(said.err) == ""
    assert "recorded" in said.out
    if bound[0] != "--for":
        assert f"{world / 'out'}: recorded 25 events" in said.out


@pytest.mark.parametrize("wrong", [["--for", "soon"], ["--events", "0"], ["--snapshot-every", "3"]])
def test_wrong_options_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: list[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(command(tmp_path, *wrong))
    assert ended.value.code == 2
    assert wrong[0] in capsys.readouterr().err


def test_a_feed_is_recorded_and_handed_on(tmp_path: Path) -> None:
    class OneWord:
        failure = "none"

        def start(self, sink: ChangeSink) -> None:
            said = {
                user_term("a"): [{"user": user_term("a"), "followers": integer(3)}],
                user_term("b"): [],
            }
            sink(said, 7.0)

        def stop(self) -> None:
            self.failure = "stopped"

    tape = tape_of(tmp_path / REMOTE)
    heard: list[float] = []
    feed = RecordedFeed(OneWord(), tape, lambda: 5.0)
    feed.start(lambda said, now: heard.append(now))
    feed.stop()
    assert (heard, feed.failure) == ([7.0], "stopped")
    assert [json.loads(line) for line in (tmp_path / REMOTE).read_bytes().splitlines()] == [
        {"time_ms": 5000, "subject": f"{NS}user/a", "p0": 3},
        {"time_ms": 5000, "subject": f"{NS}user/b"},
    ]


def test_a_pattern_of_several_properties_and_constants_is_replayed(
    server: OxigraphServer, tmp_path: Path
) -> None:
    server.update(
        f"""PREFIX : <{NS}> INSERT DATA {{
        {user_term("u0")} :followers 3 ; :kind :person ; :name "a, \\"b\\"" .
        {user_term("u1")} :followers 2.5 ; :kind :person ; :name "c" .
        {user_term("u2")} :followers 9 }}"""
    )
    pattern = "?user :followers ?followers ; :kind :person ; :name ?name"
    query = query_text(width=SLIDE, slide=SLIDE).replace("?user :followers ?followers", pattern)
    query = query.replace("?followers (", "?followers ?name (")
    catalog = catalog_of(tmp_path, server, deadline="30s")
    append(tmp_path, [Event(1 + at, f"u{at}", 1) for at in range(3)] + [Event(SLIDE + 1, "u0", 1)])
    with closing(Recording.open(tmp_path / "out", catalog, query, file="q")) as recording:
        engine = Engine(
            catalog, runtime="local", state=recording.state, autostart=False, recording=recording
        )
        with engine:
            answers = engine.register(query)
            engine.start()
            answer = next(iter(answers))
        assert not recording.left_out
    assert len(answer.rows) == 2
    again = replayed(tmp_path / "out")[0]
    assert [(row.score, row.bindings["name"]) for row in again.rows] == [
        (row.score, row.bindings["name"]) for row in answer.rows
    ]


def test_a_terminal_shows_how_much_there_is() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80)
    with RecordingProgress(lambda: "recorded [3] events", console) as progress:
        progress.begin()
        progress.batch(BatchSeen(stream="urn:s", events=3))
    assert "recorded [3] events" in screen.getvalue()


def test_a_remote_that_fails_is_recorded_as_nothing(tmp_path: Path) -> None:
    tape = tape_of(tmp_path / REMOTE)
    with pytest.raises(RemoteError):
        RecordedRemote(TableRemote(failing=True), tape, lambda: 1.0).fetch([user_term("a")], 1.0)
    assert tape.tape.count == 0
