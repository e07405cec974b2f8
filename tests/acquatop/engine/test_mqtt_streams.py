"""Queries over MQTT, on both runtimes: each message counts once, whatever is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from acquatop.answer.sinks import open_sink
from acquatop.engine.engine import Engine
from acquatop.engine.observer import BatchSeen, Silent
from connectors.log.folder import LogFolder
from tests.support import programs
from tests.support.connector_examples import example_of
from tests.support.markers import THOROUGH
from tests.support.mqtt.mosquitto import MOSQUITTO, PASSWD, Mosquitto
from tests.support.mqtt.proxy import Proxy, Way
from tests.support.mqtt.publisher import Publisher
from tests.support.simulation.recorded import Run, judge_recorded, write_history
from tests.support.simulation.scenario import NS, QuerySpec, Record, StreamSpec
from tests.support.waiting import PATIENCE, until

pytestmark = pytest.mark.skipif(
    MOSQUITTO is None or PASSWD is None,
    reason="there is no mosquitto (a package of Debian's and Homebrew's)",
)
ROOT = Path(__file__).parents[3]
IN_A_WINDOW, MACHINES = 100, 3
CATALOG = """
[prefixes]
"" = "http://example.org/"
[streams.":plant"]
connector = "mqtt"
arrivals = "distinct"
[streams.":plant".options]
url = "mqtt://127.0.0.1:{port}"
topics = ["plant/+"]
log = "{folder}/log"
quietMs = 300
[streams.":plant".mapping]
subject = "http://example.org/reading/{{id}}"
time = "t"
properties = {{ ":machine" = {{ field = "@topic.1" }} }}
"""
QUERY = """
PREFIX : <http://example.org/>
SELECT ?m ?n (?n * 1 AS ?score) FROM NAMED WINDOW :w ON :plant [RANGE 1s STEP 1s]
WHERE { WINDOW :w { SELECT ?m (COUNT(*) AS ?n) { ?e :machine ?m } GROUP BY ?m } }
ORDER BY DESC(?score) LIMIT 9
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    folder = tmp_path_factory.mktemp("mosquitto")
    keeping = (
        f"persistence true\npersistence_location {folder}/\n"
        "autosave_interval 0\nmax_queued_messages 0"
    )
    running = Mosquitto(folder, settings=keeping, log="information")
    yield running
    running.kill()


def readings(start: int, stop: int) -> list[tuple[str, bytes]]:
    """Return messages, a hundred in a second of theirs, windows' closes among them."""
    return [
        (f"plant/m{at % MACHINES}", json.dumps({"id": at, "t": 1_000 + at * 10}).encode())
        for at in range(start, stop)
    ]


def expected(count: int) -> dict[int, dict[str, int]]:
    """Return the readings of each machine in closed windows, by the windows' closes."""
    windows: dict[int, Counter[str]] = {}
    for at in range(count):
        closes = -(-(1_000 + at * 10) // 1_000) * 1_000
        windows.setdefault(closes, Counter())[f"m{at % MACHINES}"] += 1
    newest = 1_000 + (count - 1) * 10
    return {closes: dict(counts) for closes, counts in windows.items() if closes <= newest}


def answered(file: Path) -> dict[int, dict[str, int]]:
    """Return the readings of each machine in a file's answers, by their windows' closes."""
    lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
    found = [json.loads(line) for line in lines]
    closes = [
        int(datetime.fromisoformat(each["window"]["closes"]).timestamp() * 1000) for each in found
    ]
    assert len(set(closes)) == len(found)
    return dict(zip(closes, map(counted, found), strict=True))


def counted(answer: Mapping[str, object]) -> dict[str, int]:
    rows = answer["results"]
    assert isinstance(rows, list)
    return {row["bindings"]["m"]["value"]: int(row["bindings"]["n"]["value"]) for row in rows}


@THOROUGH
def test_every_message_counts_once_when_engine_broker_and_network_are_killed(
    broker: Mosquitto, tmp_path: Path
) -> None:
    proxy, random = Proxy(broker.port), Random(4)
    (tmp_path / "catalog.toml").write_text(CATALOG.format(port=proxy.port, folder=tmp_path))
    (tmp_path / "query.rspql").write_text(QUERY)
    answers = tmp_path / "answers.ndjson"
    command = [sys.executable, "-m", "acquatop", "run", "query.rspql", "--catalog", "catalog.toml"]
    command += ["--runtime", "local", "--state", "state", "--to", f"canonical:{answers}"]
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT)}

    def started() -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, cwd=tmp_path, env=surroundings, stdout=subprocess.DEVNULL)

    engine, said = started(), 0
    try:
        until(lambda: engine.poll() is not None or bool(list((tmp_path / "log").glob("segment-*"))))
        assert engine.poll() is None
        # The session begins with the first subscription, which is there when this has come through.
        with closing(Publisher(broker.port)) as publisher:
            until(
                lambda: publisher.publish([("plant/none", b"{}")]) or has_records(tmp_path / "log")
            )
        for trial in range(4):
            way = random.choice(list(Way))
            proxy.at(
                way,
                random.randrange(1, 3_000 if way is Way.TO_CLIENT else 300),
                (engine.kill, proxy.cut)[trial % 2],
            )
            with closing(Publisher(broker.port)) as publisher:
                publisher.publish(readings(said, said + 150))
            said += 150
            assert proxy.happened.wait(PATIENCE)
            proxy.cut()
            if trial % 2 == 0:
                engine.wait()
                if trial == 2:
                    broker.stop()
                    broker.start()
                engine = started()
        until(lambda: set(answered(answers)) >= set(expected(said)))
    finally:
        engine.kill()
        engine.wait()
        proxy.close()
    assert answered(answers) == expected(said)
    history = tmp_path / "history.ndjson"
    write_history(history, history_of(said, answers.read_bytes()))
    verdict = judge_recorded(history)
    assert verdict.problems == []
    assert verdict.judged["exact"] == len(expected(said))
    assert verdict.checks["no window is left out"] == 1


def history_of(count: int, lines: bytes) -> Run:
    """Return what is known of a run: the readings of machines, counted by window."""
    readings = tuple(
        Record(b"", 0.0, 1_000 + at * 10, at, f"m{at % MACHINES}", 1) for at in range(count)
    )
    query = QuerySpec("query", "sums", ("plant",), 1_000, 1_000, k=9)
    return Run(
        recording=False,
        streams=[StreamSpec("plant", "distinct", 0, None, readings)],
        queries=[query],
        names={"query": {"m": "s", "n": "count"}},
        prefix={"m": f"{NS}user/"},
        killed=["engine", "network", "engine and broker", "network"],
        holds={"lines/query.ndjson": lines},
    )


def has_records(log: Path) -> bool:
    return any(file.stat().st_size > 1_000 for file in log.glob("segment-*"))


def test_a_log_does_not_fill_up_while_no_window_closes(broker: Mosquitto, tmp_path: Path) -> None:
    catalog = CATALOG.format(port=broker.port, folder=tmp_path).replace("plant/+", "big")
    (tmp_path / "catalog.toml").write_text(
        catalog.replace("quietMs", f"maxLogBytes = {1 << 20}\nquietMs")
    )
    with Engine.from_catalog(
        tmp_path / "catalog.toml", runtime="local", state=tmp_path / "state"
    ) as engine:
        engine.register(QUERY, name="q")
        engine.start()
        message = b'{"id": "a", "t": 1500, "more": "%s"}' % (b"x" * 60_000)

        def is_past(record: int) -> bool:
            released = LogFolder(tmp_path / "log").released()
            return released is not None and released.record > record

        with closing(Publisher(broker.port)) as publisher:
            until(lambda: publisher.publish([("big", message)] * 5) or is_past(40))


class RepeatedMessages(Silent):
    """Observer that counts the messages that a source has dropped."""

    def __init__(self) -> None:
        self.count = 0

    def batch(self, seen: BatchSeen) -> None:
        self.count += seen.repeated


def known_by_id(port: int, folder: Path) -> str:
    """Return a catalog in which messages are known by their field ``id``."""
    catalog = CATALOG.format(port=port, folder=folder)
    return catalog.replace("quietMs", 'messageId = "field:id"\nquietMs')


def test_messages_that_are_published_twice_count_once_if_they_have_ids(
    broker: Mosquitto, tmp_path: Path
) -> None:
    (tmp_path / "catalog.toml").write_text(known_by_id(broker.port, tmp_path))
    answers, seen = tmp_path / "answers.ndjson", RepeatedMessages()
    with (
        closing(open_sink(f"canonical:{answers}")) as sink,
        Engine.from_catalog(tmp_path / "catalog.toml", runtime="local", observer=seen) as engine,
        closing(Publisher(broker.port)) as publisher,
    ):
        engine.register(QUERY, name="q", sinks=[sink])
        engine.start()
        until(lambda: publisher.publish([("plant/none", b"{}")]) or has_records(tmp_path / "log"))
        for _ in range(2):
            publisher.publish(readings(0, 100))
        publisher.publish(readings(100, 250))
        until(lambda: set(answered(answers)) >= set(expected(250)))
    assert answered(answers) == expected(250)
    assert seen.count == 100


@pytest.mark.slow
@pytest.mark.spark
def test_an_engine_on_spark_goes_on_behind_what_it_has_counted(
    broker: Mosquitto, spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "catalog.toml").write_text(known_by_id(broker.port, tmp_path))
    seen = RepeatedMessages()
    answers, log = tmp_path / "answers.ndjson", LogFolder(tmp_path / "log")

    @contextmanager
    def running() -> Iterator[None]:
        with (
            closing(open_sink(f"canonical:{answers}")) as sink,
            Engine.from_catalog(
                tmp_path / "catalog.toml", spark=spark, state=tmp_path / "state", observer=seen
            ) as engine,
        ):
            engine.register(QUERY, name="q", sinks=[sink])
            engine.start()
            yield

    with closing(Publisher(broker.port)) as publisher:
        with running():
            until(lambda: publisher.publish([("plant/none", b"{}")]) or has_records(log.path))
            for start, stop in ((0, 150), (150, 350)):
                publisher.publish(readings(start, stop))
                until(lambda count=stop: set(answered(answers)) >= set(expected(count)))
        # Nobody listens, but the broker keeps it.
        publisher.publish(readings(350, 400))
        before = log.released()
        with running():
            # Some of them for the second time, as after a broker went back to an older copy.
            publisher.publish(readings(300, 650))
            until(lambda: set(answered(answers)) >= set(expected(650)))
    assert answered(answers) == expected(650)
    assert seen.count == 100
    # The engine lets go of what it has counted and kept; Spark, which commits batches, of nothing.
    after = log.released()
    assert before is not None
    assert after is not None
    assert 0 < before.record < after.record


@pytest.mark.slow
@pytest.mark.spark
def test_plain_pyspark_reads_each_message_once(
    broker: Mosquitto, spark: SparkSession, tmp_path: Path
) -> None:
    values: list[list[str]] = []

    program = example_of("mqtt").replace("mqtt://127.0.0.1:1883", f"mqtt://127.0.0.1:{broker.port}")
    program = program.replace("plant/+/vibration", "spark/#").replace(
        "received/", str(tmp_path / "log")
    )
    program = program.replace(".load()", '.option("quietMs", "300").load()')

    def run() -> None:
        names: dict[str, Any] = {"spark": spark}
        exec(program, names)
        messages = names["messages"]
        words = messages.selectExpr("cast(value as string) as word", "topic", "position")
        writer = words.writeStream.foreachBatch(
            lambda rows, number: values.append(
                [row.word for row in rows.orderBy("position").collect()]
            )
        )
        query = (
            writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(100)

    run()
    with closing(Publisher(broker.port)) as publisher:
        for count in (3, 2):
            publisher.publish([("spark/a", b"%d" % (count * 10 + at)) for at in range(count)])
            run()
    assert [each for each in values if each] == [["30", "31", "32"], ["20", "21"]]


@THOROUGH
def test_the_plant_s_demo_answers() -> None:
    command = [
        sys.executable,
        "-m",
        "examples.manufacturing.demo",
        "--runtime",
        "local",
        "--windows",
        "2",
        "--json",
    ]
    done = programs.run(command, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == 2
    for answer in answers:
        scores = [row["score"] for row in answer["results"]]
        assert len(scores) == 5
        assert scores == sorted(scores, reverse=True)
        assert answer["spent"]["items"] <= answer["allowed"]["items"] == 8
