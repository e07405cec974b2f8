"""The command line as a person meets it: whole processes, exit codes, messages."""

from __future__ import annotations

import http.client
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from examples.oxigraph import OxigraphServer
from tests.support import programs
from tests.support.markers import THOROUGH
from tests.support.waiting import without_waits
from tests.support.worlds import Event, catalog_text, query_text, user_term

ROOT = Path(__file__).parents[4]
RUN = [sys.executable, "-m", "acquatop", "run"]
DEMO = [sys.executable, "-m", "examples.social_media.demo"]


def run(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    surroundings = {**os.environ, **environment}
    return programs.run(command, cwd=ROOT, env=surroundings)


@pytest.fixture
def world(server: OxigraphServer, tmp_path: Path) -> Path:
    """A folder with a query, a catalog and events, and a server with what they need."""
    server.update(f"INSERT DATA {{ {user_term('ann')} <http://example.org/followers> 5 }}")
    (tmp_path / "query.rspql").write_text(query_text())
    (tmp_path / "catalog.toml").write_text(catalog_text(endpoint="${ENDPOINT}"))
    (tmp_path / "endpoint").write_text(server.query_url)
    events = [Event(1, "ann", 3), Event(5, "bob", 4), Event(9, "ann", 2)]
    (tmp_path / "events").write_bytes(b"".join(event.line() + b"\n" for event in events))
    return tmp_path


def arguments(
    world: Path, *more: str, query: str = "query.rspql", catalog: str = "catalog.toml"
) -> list[str]:
    return [*RUN, str(world / query), "--catalog", str(world / catalog), "--until-end", *more]


def endpoint(world: Path) -> dict[str, str]:
    return {"ENDPOINT": (world / "endpoint").read_text()}


@THOROUGH
def test_literals_that_are_not_written_as_their_datatype_says_are_passed_on_in_silence(
    world: Path, server: OxigraphServer
) -> None:
    literal = '"many"^^<http://www.w3.org/2001/XMLSchema#integer>'
    server.update(f"INSERT DATA {{ {user_term('bob')} <http://example.org/followers> {literal} }}")
    (world / "query.rspql").write_text(query_text(score="?mentions"))
    done = run(
        arguments(world, "--runtime", "local", "--json", "--windows", "4"), **endpoint(world)
    )
    assert (done.returncode, without_waits(done.stderr)) == (0, "")
    assert '"value": "many"' in done.stdout


@THOROUGH
def test_json_is_one_object_per_answer_and_nothing_else(world: Path) -> None:
    done = run(
        arguments(world, "--runtime", "local", "--json", "--windows", "4"), **endpoint(world)
    )
    assert (done.returncode, without_waits(done.stderr)) == (0, "")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == 4
    assert answers[-1]["results"][0]["bindings"]["user"] == {
        "type": "uri",
        "value": "http://example.org/user/ann",
    }
    assert answers[-1]["allowed"]["items"] == 3


@THOROUGH
def test_tables_show_rank_result_score_and_how_it_came_to_be(world: Path) -> None:
    done = run(arguments(world, "--runtime", "local"), COLUMNS="200", **endpoint(world))
    assert done.returncode == 0
    for word in ("rank", "?user", "ann", "score", "refreshed", "items", "exact", " ms"):
        assert word in done.stdout


@THOROUGH
def test_what_the_user_got_wrong_ends_with_one_message_and_exit_code_2(world: Path) -> None:
    (world / "typo.rspql").write_text(query_text().replace("LIMIT", "LIMT"))
    (world / "stream.rspql").write_text(query_text().replace(":stream", ":streem"))
    (world / "binary.rspql").write_bytes(b"\xff\xfe")
    (world / "typo.toml").write_text(catalog_text().replace("items", "itmes"))
    for command, said in [
        (arguments(world, query="typo.rspql"), ["typo.rspql:7:", "did you mean LIMIT?"]),
        (
            arguments(world, query="stream.rspql"),
            ["stream.rspql:4:", "did you mean <http://example.org/stream>?"],
        ),
        (
            arguments(world, query="missing.rspql"),
            ["missing.rspql: the query cannot be read: No such file"],
        ),
        (arguments(world, query="binary.rspql"), ["not UTF-8"]),
        (arguments(world, catalog="typo.toml"), ["typo.toml:", "did you mean", "items"]),
        (arguments(world, catalog="missing.toml"), ["missing.toml: the catalog cannot be read"]),
        (arguments(world, "--runtime", "flink"), ["invalid choice: 'flink'"]),
        (arguments(world, "--windows", "0"), ["'0' is not a whole number from 1 on"]),
        (RUN, ["the following arguments are required"]),
    ]:
        done = run(command, **endpoint(world))
        assert done.returncode == 2, done
        assert all(part in done.stderr for part in said), done.stderr
        assert "Traceback" not in done.stderr + done.stdout
        assert done.stdout == ""


@THOROUGH
def test_what_the_environment_got_wrong_ends_with_one_message_and_exit_code_1(
    tmp_path: Path,
) -> None:
    (tmp_path / "query.rspql").write_text(query_text())
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        (tmp_path / "catalog.toml").write_text(
            catalog_text(endpoint=f"http://127.0.0.1:{port}/query")
        )
        done = run([*arguments(tmp_path), "--metrics", port])
    assert done.returncode == 1
    assert f"127.0.0.1:{port}: Address already in use" in done.stderr
    assert "Traceback" not in done.stderr
    done = run(arguments(tmp_path, "--runtime", "local"))
    assert done.returncode == 1
    assert f"http://127.0.0.1:{port}/query failed" in done.stderr
    assert "refused" in done.stderr
    assert "hint: start it" in done.stderr
    assert "Traceback" not in done.stderr


@THOROUGH
def test_a_java_too_old_is_one_message_too(world: Path, tmp_path: Path) -> None:
    pretended = tmp_path / "jdk" / "bin" / "java"
    pretended.parent.mkdir(parents=True)
    pretended.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    pretended.chmod(0o755)
    without_package = "import sys, acquatop.runtime.java as java; java._packaged = lambda: None; "
    command = [
        sys.executable,
        "-c",
        without_package + "from acquatop.app.cli import main; sys.exit(main(sys.argv[1:]))",
    ]
    surroundings = {"JAVA_HOME": str(tmp_path / "jdk"), "PATH": "/nowhere", **endpoint(world)}
    done = run([*command, *arguments(world)[len(RUN) - 1 :]], **surroundings)
    assert done.returncode == 1
    assert "Spark needs Java 17 or newer" in done.stderr
    assert "(JAVA_HOME) is version 11" in done.stderr
    assert "hint: pip install" in done.stderr
    assert "Traceback" not in done.stderr


@THOROUGH
def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    (tmp_path / "query.rspql").write_text("SELECT")
    (tmp_path / "catalog.toml").write_text(catalog_text())
    done = run(arguments(tmp_path, "--debug"))
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert "the query ends too early" in done.stderr


@contextmanager
def demo(*options: str) -> Iterator[subprocess.Popen[str]]:
    """Start the demo as a shell would: at the head of a session of its own, with Ctrl-C not
    ignored.
    """
    process = subprocess.Popen(
        [*DEMO, "--json", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def assert_nothing_is_left(process: subprocess.Popen[str], messages: str) -> None:
    """Assert that no process of the demo's session runs any more, nor the server that its messages
    name.
    """
    port = messages.split("127.0.0.1:")[1].split("/")[0]
    shown = subprocess.run(
        ["ps", "-e", "-o", "sid=,stat=,args="], capture_output=True, text=True, check=True
    )
    rows = [line.split(None, 2) for line in shown.stdout.splitlines()]
    alive = [
        (int(session), command) for session, state, command in rows if not state.startswith("Z")
    ]
    assert [command for session, command in alive if session == process.pid] == []
    assert [command for _, command in alive if f"--bind 127.0.0.1:{port}" in command] == []


@THOROUGH
def test_the_demo_answers_and_leaves_nothing_behind() -> None:
    with demo("--windows", "3", "--runtime", "local") as process:
        out, err = programs.end_of(process)
    assert process.returncode == 0, err
    assert len(out.splitlines()) == 3
    assert_right(out.splitlines())
    assert_nothing_is_left(process, err)


def assert_right(lines: list[str]) -> None:
    answers = [json.loads(line) for line in lines]
    # How much of the first windows has streamed in by their close is up to the clock.
    assert max(len(answer["results"]) for answer in answers) == 5
    for answer in answers:
        assert answer["spent"]["items"] <= answer["allowed"]["items"] == 8
        assert answer["status"] in ("exact", "certified", "approximate")
        scores = [row["score"] for row in answer["results"]]
        assert scores == sorted(scores, reverse=True)


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_the_demo_on_spark_ends_well_when_it_is_told_to(ending: signal.Signals) -> None:
    end_demo("spark", ending)


@THOROUGH
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_the_demo_in_process_ends_well_when_it_is_told_to(ending: signal.Signals) -> None:
    end_demo("local", ending)


def end_demo(runtime: str, ending: signal.Signals) -> None:
    with demo("--windows", "1000", "--runtime", runtime) as process:
        assert process.stdout is not None
        assert_right([process.stdout.readline() for _ in range(3)])
        if ending is signal.SIGINT:
            os.killpg(process.pid, ending)  # to the whole group, as a terminal does it
        else:
            process.send_signal(ending)
        _, err = programs.end_of(process)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    assert_nothing_is_left(process, err)


BUSIEST = """
PREFIX : <http://example.org/>
SELECT ?user ?mentions FROM NAMED WINDOW :w ON :stream [RANGE 9ms STEP 3ms]
WHERE {{ WINDOW :w {{ ?user :mentions ?mentions }} }} ORDER BY {direction}(?mentions) LIMIT 2
"""


@pytest.fixture
def lonely(tmp_path: Path) -> Path:
    """A folder with two queries that ask no remote, a catalog, and events that close twenty
    windows.
    """
    (tmp_path / "most.rspql").write_text(BUSIEST.format(direction="DESC"))
    (tmp_path / "least.rspql").write_text(
        "REGISTER RSTREAM <urn:least> AS " + BUSIEST.format(direction="ASC")
    )
    (tmp_path / "catalog.toml").write_text(catalog_text())
    events = [Event(at, f"user{at % 7}", at % 11) for at in range(1, 61)]
    (tmp_path / "events").write_bytes(b"".join(event.line() + b"\n" for event in events))
    return tmp_path


def local(folder: Path, *more: str) -> list[str]:
    queries = [str(folder / name) for name in ("most.rspql", "least.rspql")]
    return [*RUN, *queries, "--catalog", str(folder / "catalog.toml"), "--runtime", "local", *more]


@THOROUGH
def test_several_queries_run_on_one_engine_and_each_answer_says_whose_it_is(lonely: Path) -> None:
    done = run(
        local(lonely, "--until-end", "--json", "--log", str(lonely / "log"), "--metrics", "0")
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"acquatop: metrics at http://127\.0\.0\.1:\d+/metrics\n", done.stderr)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    windows = {
        name: [each["window"]["closes"] for each in answers if each["query"] == name]
        for name in NAMES
    }
    assert windows["most"] == windows["urn:least"]
    assert len(windows["most"]) == len(set(windows["most"])) == len(answers) / 2 >= 20
    log = [json.loads(line) for line in (lonely / "log").read_text().splitlines()]
    assert {"started", "query_registered", "stopped"} <= {line["event"] for line in log}
    (started,) = (line for line in log if line["event"] == "started")
    assert started["queries"] == NAMES


NAMES = ["most", "urn:least"]


@THOROUGH
def test_two_queries_of_one_name_are_refused(lonely: Path) -> None:
    done = run([*RUN, *[str(lonely / "most.rspql")] * 2, "--catalog", str(lonely / "catalog.toml")])
    assert done.returncode == 2
    assert 'are both named "most"' in done.stderr


@THOROUGH
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_between_two_answers_with_exit_code_0(
    lonely: Path, ending: signal.Signals
) -> None:
    with subprocess.Popen(
        local(lonely, "--json", "--log", "-", "--metrics", "0"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["query"] in NAMES
        place = json.loads(process.stderr.readline())["url"].split("/")[2]
        connection = http.client.HTTPConnection(place, timeout=10)
        connection.request("GET", "/metrics")
        assert 'acquatop_answers_total{query="' in connection.getresponse().read().decode()
        connection.close()
        process.send_signal(ending)
        # Not by communicate(), which forgets what readline() has read ahead.
        out, err = process.stdout.read(), process.stderr.read()
    assert process.returncode == 0, err
    assert all(json.loads(line)["query"] in NAMES for line in out.splitlines())
    assert out == "" or out.endswith("\n")
    events = [json.loads(line)["event"] for line in err.splitlines()]
    assert events[-1] == "stopped"
    assert events.count("stopping") == 1


@THOROUGH
def test_on_a_terminal_a_table_is_kept_up_to_date(lonely: Path) -> None:
    terminal, theirs = pty.openpty()
    command = local(lonely, "--until-end")
    surroundings = {**os.environ, "TERM": "xterm", "COLUMNS": "150", "LINES": "50"}
    with subprocess.Popen(
        command, stdout=theirs, stderr=theirs, cwd=ROOT, env=surroundings
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(terminal, 65536)
            except OSError:  # nobody holds the other side any more
                break
            if not part:
                break
            shown += part
    os.close(terminal)
    assert process.returncode == 0, shown
    hide_cursor, show_cursor = b"\x1b[?25l", b"\x1b[?25h"
    assert shown.count(hide_cursor) == 1
    # A short run may end before the table is drawn a second time.
    last = shown.rsplit(b"\x1b[2K", 1)[-1]
    assert show_cursor in last
    for part in (b"most", b"urn:least", b"window", b"events/s"):
        assert part in last
    assert b"Traceback" not in shown


def test_who_only_checks_a_query_waits_for_nothing_else_to_load(tmp_path: Path) -> None:
    (tmp_path / "query.rspql").write_text(query_text())
    code = (
        "import sys; from acquatop.app.cli import main; main(sys.argv[1:]); "
        "print([each for each in ('pyspark', 'pandas', 'prometheus_client', 'rich', 'pyarrow') "
        "if each in sys.modules])"
    )
    done = run([sys.executable, "-c", code, "check", str(tmp_path / "query.rspql")])
    assert done.stdout.splitlines() == [f"{tmp_path / 'query.rspql'}: ok", "[]"]
