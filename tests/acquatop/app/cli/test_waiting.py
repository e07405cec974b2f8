"""Messages about the things that queries wait for: when, where, and how often."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console

from acquatop.app.cli import main
from acquatop.app.cli.status_line import StatusLine
from acquatop.app.cli.waiting_report import WaitingReport
from acquatop.app.watch.json_lines import JsonLines
from acquatop.app.watch.log import Log
from acquatop.app.watch.waiting_pace import AGAIN_SECONDS, LONGEST_SECONDS, WaitingPace
from acquatop.catalog.catalog import Catalog
from acquatop.engine.observer import AnswerSeen, BatchSeen
from acquatop.engine.waiting.kinds import UNREACHED, Waiting, WaitingKind
from tests.support.empty_answer import NOTHING
from tests.support.markers import THOROUGH
from tests.support.mqtt.mosquitto import MOSQUITTO, PASSWD, Mosquitto

ROOT = Path(__file__).parents[4]
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
WINDOW = Waiting(kind=WaitingKind.WINDOW, since=0.0, text="a window is open")
SILENT = Waiting(kind=WaitingKind.SILENT, since=0.0, text="nothing comes", remedy="send it")


@dataclass
class Explained:
    """Engine whose waits the test says."""

    waits: dict[str, Waiting] = field(default_factory=dict)
    catalog: Catalog = field(
        default_factory=lambda: Catalog.parse(
            CATALOG.format(connector="lines", options='path = "events"'),
            file=Path("catalog.toml"),
            variables={},
        )
    )

    def waiting(self) -> dict[str, Waiting]:
        return self.waits


@dataclass
class Time:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def said_by(report: WaitingReport, capsys: pytest.CaptureFixture[str]) -> list[str]:
    report.poll()
    return capsys.readouterr().err.splitlines()


@contextmanager
def reporting(engine: Explained, time: Time, **more: object) -> Iterator[WaitingReport]:
    """Return a report whose thread never gets to work."""
    with WaitingReport(clock=time, wall=time, **more) as report:  # type: ignore[arg-type]
        report.observe(engine)
        yield report


def test_a_wait_is_told_after_two_seconds_and_then_at_growing_intervals() -> None:
    time = Time()
    pace = WaitingPace(clock=time)
    told = []
    for second in range(4_000):
        time.now = float(second)
        told += [second for _ in pace.due({"q": SILENT, "r": SILENT})]
    gaps = [after - before for before, after in pairwise(told)]
    assert told[:2] == [2, 2 + AGAIN_SECONDS]
    assert gaps == sorted(gaps)
    assert gaps[-1] == LONGEST_SECONDS


def test_a_wait_that_comes_and_goes_is_not_told_all_the_time() -> None:
    time = Time()
    pace = WaitingPace(clock=time)
    told = 0
    for second in range(60):
        time.now = float(second)
        told += len(list(pace.due({"q": SILENT} if second % 5 else {})))
    assert 1 < told <= 60 / AGAIN_SECONDS + 1


def test_the_words_are_told_on_the_standard_error_for_all_that_wait_for_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    engine, time = Explained({"q": SILENT, "r": SILENT}), Time()
    with reporting(engine, time) as report:
        assert said_by(report, capsys) == []
        time.now = 2.0
        assert said_by(report, capsys) == ["acquatop: q, r: waiting: nothing comes (2 s); send it"]
        assert said_by(report, capsys) == []


def test_after_the_first_answer_an_open_window_is_no_news_but_trouble_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    engine, time = Explained({"q": WINDOW}), Time()
    with reporting(engine, time) as report:
        report.answer(AnswerSeen(answer=NOTHING))
        report.poll()
        time.now = 100.0
        assert said_by(report, capsys) == []
        engine.waits = {"q": SILENT}
        report.poll()
        time.now = 200.0
        assert len(said_by(report, capsys)) == 1


def test_a_recording_tells_only_of_sources_that_are_not_reached(
    capsys: pytest.CaptureFixture[str],
) -> None:
    engine, time = Explained({"q": SILENT}), Time()
    with reporting(engine, time, only=UNREACHED) as report:
        report.poll()
        time.now = 9.0
        assert said_by(report, capsys) == []
        engine.waits = {"q": replace(SILENT, kind=WaitingKind.CONNECTING)}
        report.poll()
        time.now = 19.0
        assert len(said_by(report, capsys)) == 1


def test_times_of_1970_are_told_at_once_and_once(capsys: pytest.CaptureFixture[str]) -> None:
    with reporting(Explained(), Time()) as report:
        for _ in range(2):
            report.batch(BatchSeen(stream="http://example.org/s", events=1, watermark_ms=10_000))
            report.batch(
                BatchSeen(stream="http://example.org/s", events=1, watermark_ms=1_750_000_000)
            )
    assert capsys.readouterr().err.splitlines() == [
        "acquatop: the times of <http://example.org/s> are of 1970-01-21; "
        'did you mean time_as = "seconds"?'
    ]


def test_a_log_has_the_same_as_a_line_and_a_silent_report_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine, time, file = Explained({"q": SILENT}), Time(), tmp_path / "log"
    log = Log(JsonLines(str(file)))
    with reporting(engine, time, silent=True, log=log) as report:
        report.poll()
        time.now = 2.0
        assert said_by(report, capsys) == []
    log.close()
    (line,) = map(json.loads, file.read_text().splitlines())
    assert line.items() >= {"event": "waiting", "level": "warning", "queries": ["q"]}.items()
    assert line.items() >= {"kind": "silent", "remedy": "send it"}.items()


def test_on_a_terminal_one_line_is_updated_and_gives_way_to_other_output() -> None:
    screen = io.StringIO()
    line = StatusLine(Console(file=screen, force_terminal=True, width=80))
    engine, time = Explained({"q": SILENT}), Time()
    with reporting(engine, time, line=line) as report:
        report.poll()
        assert screen.getvalue() == ""
        for time.now in (2.0, 3.0):
            report.poll()
        assert "nothing comes (3 s); send it" in screen.getvalue()
        assert "\n" not in screen.getvalue()
        with line.aside():
            assert screen.getvalue().endswith("\x1b[2K")


def made(folder: Path, connector: str, options: str) -> Path:
    (folder / "catalog.toml").write_text(CATALOG.format(connector=connector, options=options))
    (folder / "query.rspql").write_text(QUERY)
    return folder


@contextmanager
def running(folder: Path, verb: str, *more: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command until its standard error has said what a test wants."""
    query = ["--query", "query.rspql"] if verb == "record" else ["query.rspql"]
    command = [sys.executable, "-m", "acquatop", verb, *query, "--catalog", "catalog.toml"]
    process = subprocess.Popen(
        [*command, "--runtime", "local", *more],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line_with(process: subprocess.Popen[str], words: str) -> str:
    """Return the first line of the standard error with some words."""
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        seen.append(line)
        if words in line:
            return line
    raise AssertionError(f"{words!r} is not in {seen}")


@THOROUGH
def test_a_server_that_is_not_there_is_told_while_the_standard_output_stays_pure(
    tmp_path: Path,
) -> None:
    folder = made(tmp_path, "tcp", f'address = "{nobody()}", log = "log"')
    with running(folder, "run", "--json") as process:
        assert "Connection refused" in line_with(process, "waiting: not connected to 127.0.0.1:")
        process.send_signal(signal.SIGINT)
        assert process.communicate()[0] == ""


@THOROUGH
def test_a_recording_that_is_made_tells_it_too(tmp_path: Path) -> None:
    folder = made(tmp_path, "tcp", f'address = "{nobody()}", log = "log"')
    with (folder / "catalog.toml").open("a") as catalog:
        # Filled key by key, so that no request is sent before the first close.
        catalog.write(f'[services.":people"]\nendpoint = "http://{nobody()}/"\nload = false\n')
        catalog.write('[services.":people".refresh]\npolicy = "AT-TSM"\nitems = 1\n')
    joined = QUERY.replace("} } ORDER", "} SERVICE :people { ?s :followers ?f } } ORDER")
    (folder / "query.rspql").write_text(joined.replace("(?n)", "(?n + ?f)"))
    with running(folder, "record", "--json", "--out", "out") as process:
        line_with(process, "waiting: not connected to 127.0.0.1:")


def nobody() -> str:
    """Return an address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"127.0.0.1:{free.getsockname()[1]}"


@THOROUGH
def test_a_service_tells_it_too(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    folder = made(tmp_path, "lines", 'path = "absent"')
    with running(folder, "serve", "--listen", "0") as process:
        assert "there is no file or folder" in line_with(process, "query: waiting: ")


@THOROUGH
def test_wrong_units_are_told_though_a_window_is_only_open(tmp_path: Path) -> None:
    folder = made(tmp_path, "lines", 'path = "events"')
    (folder / "events").write_text('{"at": 1750000000, "user": "a", "n": 1}\n')
    with running(folder, "run", "--json") as process:
        assert "1970-01-21" in line_with(process, 'did you mean time_as = "seconds"?')


@pytest.mark.parametrize(
    ("at", "options", "words"),
    [
        ("1750000000", 'path = "events"', 'did you mean time_as = "seconds"?'),
        ("1750000000000000", 'path = "events"', "divide microseconds by 1000"),
        ("1750000000000", 'path = "events"', ""),
        ("1750000000", 'path = "absent"', ""),
    ],
)
def test_a_check_warns_of_wrong_units_in_the_first_records_of_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], at: str, options: str, words: str
) -> None:
    folder = made(tmp_path, "lines", options)
    (folder / "events").write_text(f'{{"at": {at}, "user": "a", "n": 1}}\n')
    query = str(folder / "query.rspql")
    assert main(["check", query, "--catalog", str(folder / "catalog.toml")]) == 0
    out = capsys.readouterr().out
    assert words in out
    assert ("warning" in out) == bool(words)


@THOROUGH
@pytest.mark.skipif(MOSQUITTO is None or PASSWD is None, reason="there is no mosquitto")
def test_a_wrong_topic_is_told_by_a_run(tmp_path: Path) -> None:
    broker = Mosquitto(tmp_path, log="information")
    try:
        url = f'url = "mqtt://127.0.0.1:{broker.port}"'
        folder = made(tmp_path, "mqtt", f'{url}, topics = ["plnat/#"], log = "log"')
        with running(folder, "run") as process:
            line = line_with(process, "no message on topic 'plnat/#' yet")
            assert f"connected to the MQTT broker at 127.0.0.1:{broker.port}" in line
    finally:
        broker.kill()
