"""Items that cannot be used are said: at once where a stream is live, at the end in any case,
whatever is answered.
"""

from __future__ import annotations

import json
import os
import pty
import queue
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from acquatop.app.cli.unusable import MOST_REASONS, NothingUsable, Unusable, told
from acquatop.app.watch import BatchSeen
from acquatop.app.watch.intake import ItemCounts
from acquatop.ingest.place import Place
from acquatop.ingest.reduce.contract import MOST_PLACES, Facts, Part
from acquatop.ingest.reduce.job import Job
from acquatop.ingest.reduce.records import Records
from connectors.mapping import JsonMapping, Template
from connectors.row_origins import FILE, POSITION
from examples.oxigraph import OxigraphServer
from tests.support import programs
from tests.support.markers import THOROUGH
from tests.support.waiting import without_waits

ROOT = Path(__file__).parents[4]
PATIENCE = 240.0
CATALOG = """
[prefixes]
"" = "http://example.org/"
[streams.":s"]
connector = "{connector}"
options = {{ {options} }}
[streams.":s".mapping]
subject = ":user/{{user}}"
time = "at"
properties = {{ ":n" = {{ field = "n", datatype = "xsd:integer" }} }}
"""
QUERY = """PREFIX : <http://example.org/> SELECT ?s ?n FROM NAMED WINDOW :w ON :s [RANGE 10s]
WHERE { WINDOW :w { ?s :n ?n } } ORDER BY DESC(?n) LIMIT 3"""
MISNAMED = [b'{"t": 1, "user": "a", "n": 1}', b"{", b'{"t": 20000, "user": "b", "n": 2}']
GOOD = [b'{"at": 1, "user": "a", "n": 1}', b'{"at": 15000, "user": "b", "n": 2}']
NO_TIME = 'no time in the field "at"'
ALL_BAD = (
    f"acquatop: 3 of 3 items of <http://example.org/s> could not be used: {NO_TIME} (2, the "
    f"first at position 0 of"
    " events); not JSON (1, the first at position 30 of events)\n"
)


def append(folder: Path, lines: list[bytes]) -> None:
    with (folder / "events").open("ab") as file:
        file.write(b"".join(line + b"\n" for line in lines))


def made(
    folder: Path, lines: list[bytes], connector: str = "lines", options: str = 'path = "events"'
) -> Path:
    (folder / "catalog.toml").write_text(CATALOG.format(connector=connector, options=options))
    (folder / "query.rspql").write_text(QUERY)
    append(folder, lines)
    return folder


def command(*more: str, verb: str = "run") -> list[str]:
    query = ["query.rspql", "--runtime", "local"] if verb == "run" else ["--query", "query.rspql"]
    return [sys.executable, "-m", "acquatop", verb, *query, "--catalog", "catalog.toml", *more]


def surroundings(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def run(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Run a command; of what it says, lines about waits are left out."""
    done = programs.run(command(*more), cwd=folder, env=surroundings())
    done.stderr = without_waits(done.stderr)
    return done


class Program:
    """A program that runs, and the lines that it says on its standard error as they come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._said: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            # Told after two seconds, which may pass at any point of a test.
            if ": waiting: " not in line:
                self._said.put(line)
        self._said.put(None)

    def line(self) -> str | None:
        return self._said.get(timeout=PATIENCE)

    def end(self) -> tuple[int, str]:
        """End it as Ctrl-C does, and return its exit code and standard output."""
        self.process.send_signal(signal.SIGINT)
        assert self.process.stdout is not None
        out = self.process.stdout.read()
        return self.process.wait(PATIENCE), out

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()


@contextmanager
def running(folder: Path, *more: str, verb: str = "run") -> Iterator[Program]:
    process = subprocess.Popen(
        command(*more, verb=verb),
        cwd=folder,
        env=surroundings(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    program = Program(process)
    try:
        yield program
    finally:
        program.close()


# Recordings ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_recording_with_nothing_but_bad_items_says_so_on_spark(tmp_path: Path) -> None:
    done = run(made(tmp_path, MISNAMED), "--until-end", "--runtime", "spark")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", ALL_BAD)


@THOROUGH
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_recording_with_nothing_but_bad_items_says_so_and_fails(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    done = run(made(tmp_path, MISNAMED), "--until-end", *more)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", ALL_BAD)


@THOROUGH
def test_a_recording_with_some_bad_items_is_answered_and_they_are_said(tmp_path: Path) -> None:
    done = run(made(tmp_path, [*GOOD, b"{"]), "--until-end", "--json")
    assert [json.loads(line)["events"] for line in done.stdout.splitlines()] == [3, 0]
    said = (
        "1 of 3 items of <http://example.org/s> could not be used: not JSON (1, the first at "
        "position 66 of events)"
    )
    assert (done.returncode, done.stderr) == (0, f"acquatop: {said}\n")


@THOROUGH
def test_a_recording_without_bad_items_says_nothing(tmp_path: Path) -> None:
    done = run(made(tmp_path, GOOD), "--until-end", "--json")
    assert (done.returncode, done.stderr) == (0, "")


@THOROUGH
def test_a_log_on_the_standard_error_has_the_figures_and_the_place(tmp_path: Path) -> None:
    done = run(made(tmp_path, [*GOOD, b"{"]), "--until-end", "--json", "--log", "-")
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    (bad,) = (line for line in lines if line["event"] == "bad")
    assert (
        bad.items()
        >= {"reason": "not JSON", "records": 1, "file": "events", "position": 66}.items()
    )


# Live streams -------------------------------------------------------------------------------------


@THOROUGH
def test_the_first_bad_item_of_a_live_run_is_said_before_any_answer_and_only_once(
    tmp_path: Path,
) -> None:
    with running(made(tmp_path, []), "--json") as program:
        append(tmp_path, [b"{"])
        said = (
            "acquatop: 1 of 1 item of <http://example.org/s> so far cannot be used: not JSON "
            "(1, the first"
        )
        assert (program.line() or "").startswith(said)
        append(tmp_path, [b"{", *GOOD])
        assert program.process.stdout is not None
        assert json.loads(program.process.stdout.readline())["events"] == 4
        assert program.end() == (0, "")
        at_the_end = program.line()
        assert at_the_end is not None
        assert (
            "2 of 4 items of <http://example.org/s> could not be used: not JSON (2, the first at"
            in at_the_end
        )
        assert program.line() is None


@THOROUGH
def test_a_live_run_with_nothing_but_bad_items_fails_when_it_is_ended(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        folder = made(tmp_path, [], "tcp", f'address = "{host}:{port}", log = "log"')
        with running(folder, "--json") as program:
            listener.settimeout(PATIENCE)
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b"".join(line + b"\n" for line in MISNAMED[:1]))
                first = program.line()
                assert first is not None
                assert first.startswith(
                    "acquatop: 1 of 1 item of <http://example.org/s> so far cannot be used: no time"
                )
                assert program.end() == (1, "")
            said = (
                "acquatop: 1 of 1 item of <http://example.org/s> could not be used: no time in "
                "the field"
            )
            assert (program.line() or "").startswith(said)
            assert program.line() is None


@THOROUGH
def test_a_recording_being_made_of_nothing_but_bad_items_says_so_and_fails(
    tmp_path: Path, server: OxigraphServer
) -> None:
    folder = made(tmp_path, MISNAMED)
    server.update("INSERT DATA { <http://example.org/user/a> <http://example.org/followers> 5 }")
    remote = f'[services.":people"]\nendpoint = "{server.query_url}"\n'
    remote += '[services.":people".refresh]\npolicy = "AT-TSM"\nitems = 1\n'
    (folder / "catalog.toml").write_text((folder / "catalog.toml").read_text() + remote)
    joined = QUERY.replace("} } ORDER", "} SERVICE :people { ?s :followers ?f } } ORDER").replace(
        "(?n)", "(?n + ?f)"
    )
    (folder / "query.rspql").write_text(joined)
    with running(folder, "--out", "out", "--json", verb="record") as program:
        assert "3 of 3 items of <http://example.org/s> so far cannot be used" in (
            program.line() or ""
        )
        code, out = program.end()
        assert (code, json.loads(out)["events"]) == (1, 0)
        assert program.line() == ALL_BAD


@THOROUGH
def test_on_a_terminal_it_is_said_above_the_table_and_again_below_it(tmp_path: Path) -> None:
    folder = made(tmp_path, MISNAMED)
    terminal, theirs = pty.openpty()
    environment = surroundings(TERM="xterm", COLUMNS="200", LINES="50")
    shown = b""
    with subprocess.Popen(
        command(),
        cwd=folder,
        env=environment,
        stdout=theirs,
        stderr=theirs,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        os.close(theirs)
        until, is_told = time.monotonic() + PATIENCE, False
        while time.monotonic() < until:
            if not select.select([terminal], [], [], 1.0)[0]:
                continue
            try:
                part = os.read(terminal, 65536)
            except OSError:  # nobody holds the other side any more
                break
            shown += part
            if b"all items are bad" in shown and not is_told:
                is_told = True
                process.send_signal(signal.SIGINT)
        process.kill() if process.poll() is None and time.monotonic() >= until else None
    os.close(terminal)
    assert process.returncode == 1, shown
    # Each picture begins with the lines of the one before wiped away: nothing else may be on its
    # lines.
    pictures = re.split(r"(?:\r?\x1b\[2K(?:\x1b\[1A)?)+", shown.decode())
    plain = [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", each).replace("\r", "") for each in pictures]
    (first,) = (each for each in plain if "so far cannot be used" in each)
    lines = [line for line in first.splitlines() if line]
    assert lines[0].startswith(
        "acquatop: 3 of 3 items of <http://example.org/s> so far cannot be used"
    )
    assert any(line.startswith(("0 events/s", "1 events/s")) for line in lines)
    assert all(
        "acquatop" not in line or line.startswith("acquatop: ")
        for each in plain
        for line in each.splitlines()
    )
    assert plain[-1].rstrip("\n").endswith(ALL_BAD.rstrip("\n"))


# In words -----------------------------------------------------------------------------------------


def test_few_of_many_reasons_are_said_and_nothing_steers_the_terminal() -> None:
    came = ItemCounts(100, {f"reason \x1b[{at}": at for at in range(1, MOST_REASONS + 3)})
    said = told("urn:s", came)
    assert said.endswith("; 2 more reasons")
    assert "\x1b" not in said
    assert said.index(f"reason \ufffd[{MOST_REASONS + 2}") < said.index(
        f"reason \ufffd[{MOST_REASONS + 1}"
    )


def test_an_error_of_the_run_does_not_hide_bad_items(capsys: pytest.CaptureFixture[str]) -> None:
    def failing() -> None:
        with Unusable(at_first=False) as unusable:
            unusable.intake.batch(BatchSeen(stream="urn:s", events=2, bad={"not JSON": 2}))
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        failing()
    assert (
        capsys.readouterr().err
        == "acquatop: 2 of 2 items of <urn:s> could not be used: not JSON (2)\n"
    )


def test_where_a_log_has_the_standard_error_it_has_it_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Unusable(at_first=True, silent=True) as unusable:
        unusable.intake.batch(BatchSeen(stream="urn:s", events=2, bad={"not JSON": 2}))
        with pytest.raises(NothingUsable, match="2 of 2 items"):
            unusable.check()
    assert capsys.readouterr().err == ""


# Where they stand ---------------------------------------------------------------------------------


def test_of_each_reason_the_first_place_is_known_and_goes_with_the_facts() -> None:
    lines = [b"{", b'{"at": 1, "user": "a"}', b"\xff", b'{"user": "a"}', b"{"]
    rows = pa.record_batch(
        [pa.array(["f"] * 5), pa.array([0, 10, 20, 30, 40]), pa.array(lines, pa.binary())],
        [FILE, POSITION, "value"],
    )
    (part,) = Job(JsonMapping(Template("urn:", "user", ""), "at"), [Records()])([rows])
    places = {"not JSON": Place("f", 0), "not UTF-8": Place("f", 20), NO_TIME: Place("f", 30)}
    assert part.facts.bad_at == places
    assert Part.from_bytes(part.to_bytes()).facts == part.facts


def test_places_are_known_of_a_bounded_number_of_reasons() -> None:
    mapping = JsonMapping(Template("urn:", "user", ""), "at")
    rows = pa.record_batch([pa.array([b'{"at": 1, "user": "a"}'] * 100, pa.binary())], ["value"])
    records = mapping.records(rows)
    bad = pa.array([f"reason {at}" for at in range(100)])
    records = records.set_column(records.schema.get_field_index("bad"), "bad", bad)
    assert list(Facts.of(records, rows).bad_at or {}) == [
        f"reason {at}" for at in range(MOST_PLACES)
    ]
    assert Facts.of(records).bad_at is None
