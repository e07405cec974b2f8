"""A real Kafka broker: streams, answers and changes, with kills on both sides."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from acquatop import Engine
from acquatop.answer.sinks import open_sink
from acquatop.catalog.remotes import FeedSource
from acquatop.errors import EnvironmentProblem
from acquatop.refresh.open_replicas import open_feed
from connectors import ConnectorError
from connectors.kafka import KafkaDataSource, KafkaReader
from connectors.kafka_client.settings import PASSWORD as PASSWORD_VARIABLE
from connectors.kafka_client.settings import USER as USER_VARIABLE
from connectors.kafka_client.settings import brokers
from connectors.read_limits import ReadMaxRows
from replica.feeds import PushQueue
from replica.remotes.records import RecordReader, Star
from tests.support.guides import follow
from tests.support.kafka.broker import PASSWORD, USER, KafkaBroker
from tests.support.markers import THOROUGH
from tests.support.programs import run
from tests.support.remote_contract import FOLLOWERS, MAPPING, integer, record, user
from tests.support.sink_samples import answer
from tests.support.waiting import PATIENCE, until

ROOT = Path(__file__).parents[1]


@pytest.fixture
def kafka(_kafka: KafkaBroker) -> KafkaBroker:
    return _kafka


def reader_of(url: str, *topics: str, **options: str) -> KafkaReader:
    source = KafkaDataSource({"url": url, "topics": ",".join(topics), **options})
    return source.streamReader(None)


def rows_between(reader: KafkaReader, start: dict[str, int], end: dict[str, int]) -> pa.Table:
    batches = [batch for part in reader.partitions(start, end) for batch in reader.read(part)]
    return pa.Table.from_batches(batches) if batches else None


def by_partition(table: pa.Table | None) -> dict[str, list[tuple[int, bytes]]]:
    found = defaultdict(list)
    if table is not None:
        for row in table.to_pylist():
            found[row["file"]].append((row["position"], row["value"]))
    return dict(found)


def test_any_cut_into_batches_gives_what_is_committed_in_order(kafka: KafkaBroker) -> None:
    topic, random = kafka.topic(3), Random(7)
    expected: dict[str, list[bytes]] = defaultdict(list)
    producer = Producer({**kafka.settings, "transactional.id": topic})
    producer.init_transactions()
    for number in range(12):
        producer.begin_transaction()
        is_kept, sent = random.random() < 0.7, defaultdict(list)
        for at in range(random.randrange(8)):
            place, value = random.randrange(3), f"{number}-{at}".encode()
            producer.produce(topic, value, partition=place, timestamp=1000 + number)
            sent[f"{topic}/{place}"].append(value)
        producer.flush()
        if is_kept:
            producer.commit_transaction()
            for place, values in sent.items():
                expected[place] += values
        else:
            producer.abort_transaction()

    reader = reader_of(kafka.url, topic)
    reader.prepareForTriggerAvailableNow()
    found: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
    cuts = [reader.initialOffset()]
    while True:
        end = reader.latestOffset(cuts[-1], ReadMaxRows(random.randrange(1, 12)))
        if end == cuts[-1]:
            break
        for place, rows in by_partition(rows_between(reader, cuts[-1], end)).items():
            found[place] += rows
        cuts.append(end)
    assert {place: [value for _, value in rows] for place, rows in found.items()} == expected
    # Any two offsets are read again, by this reader and by another one.
    other = reader_of(kafka.url, topic, maxPartitions="1")
    for _ in range(4):
        first, last = sorted(random.sample(range(len(cuts)), 2))
        again = by_partition(rows_between(random.choice([reader, other]), cuts[first], cuts[last]))
        between = {
            place: [row for row in rows if cuts[first][place] <= row[0] < cuts[last][place]]
            for place, rows in found.items()
        }
        assert again == {place: rows for place, rows in between.items() if rows}
    reader.stop()
    other.stop()


def test_messages_that_are_gone_and_topics_that_are_not_there_are_errors(
    kafka: KafkaBroker,
) -> None:
    topic = kafka.topic()
    producer = Producer(kafka.settings)
    for at in range(5):
        producer.produce(topic, str(at))
    producer.flush()
    reader = reader_of(kafka.url, topic)
    start = reader.initialOffset()
    end = reader.latestOffset(start)
    kafka.remove(topic, 3)
    with pytest.raises(ConnectorError, match=f"{topic}/0 from 0 on are no longer there"):
        rows_between(reader, start, end)
    rest = rows_between(reader, reader.initialOffset(), end)
    assert [row["value"] for row in rest.to_pylist()] == [b"3", b"4"]
    with pytest.raises(ConnectorError, match="ends at 5, and was read up to 6"):
        reader.latestOffset({f"{topic}/0": 6})
    reader.stop()
    with pytest.raises(ConnectorError, match="no such topic"):
        reader_of(kafka.url, "missing", patience="0").initialOffset()


def test_a_stream_can_begin_at_the_end_and_show_a_group_how_far_it_is(kafka: KafkaBroker) -> None:
    topic = kafka.topic()
    producer = Producer(kafka.settings)
    producer.produce(topic, "old")
    producer.flush()
    reader = reader_of(kafka.url, topic, begin="latest", group=f"of-{topic}")
    start = reader.initialOffset()
    producer.produce(topic, "new")
    producer.flush()
    until(lambda: reader.latestOffset(start) != start)
    end = reader.latestOffset(start)
    assert [row["value"] for row in rows_between(reader, start, end).to_pylist()] == [b"new"]

    def is_shown() -> bool:
        reader.latestOffset(end)
        return kafka.shown(f"of-{topic}", topic) == end[f"{topic}/0"]

    until(is_shown)
    reader.stop()


def test_passwords_come_from_the_environment(
    kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, url = kafka.topic(), f"kafka://127.0.0.1:{kafka.guarded_port}"
    monkeypatch.setenv(USER_VARIABLE, USER)
    monkeypatch.setenv(PASSWORD_VARIABLE, "wrong")
    with pytest.raises(ConnectorError, match="Kafka refuses") as refused:
        reader_of(url, topic).initialOffset()
    assert "wrong" not in str(refused.value)
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    assert reader_of(url, topic).initialOffset() == {f"{topic}/0": 0}


def test_a_compacted_topic_tells_of_changes_and_deletions(kafka: KafkaBroker) -> None:
    topic = kafka.topic(2, cleanup_policy="compact")
    producer = Producer(kafka.settings)
    feed = FeedSource("kafka", "", None, MAPPING, brokers(kafka.url), topic)
    queue = PushQueue()
    heard = open_feed(
        feed, RecordReader(MAPPING, Star("u", {"f": FOLLOWERS})), lambda: 1.0, Random(1)
    )
    heard.start(queue)
    known: dict[str, list[str]] = {}

    def is_known(expected: dict[str, list[str]]) -> bool:
        for pushed in queue.drain(100):
            known.update({key: [] for key in pushed.asked})
            for solution in pushed.solutions:
                known[solution["u"]].append(solution["f"])
        return known == expected

    record_of = json.dumps({"public_metrics": {"followers_count": 5}})
    producer.produce(topic, record_of, key="1")
    producer.produce(topic, json.dumps(record("7", 6)), key="another id")
    producer.flush()
    until(lambda: is_known({user(1): [integer(5)], user(7): [integer(6)]}))
    producer.produce(topic, None, key="1")
    producer.flush()
    until(lambda: is_known({user(1): [], user(7): [integer(6)]}))
    assert heard.failure is None
    heard.stop()


def read_all(kafka: KafkaBroker, topic: str) -> list[tuple[str, int]]:
    """Return what a topic holds: the query and the close of each answer, by partition in order."""
    reader = reader_of(kafka.url, topic)
    reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    table = rows_between(reader, start, reader.latestOffset(start))
    reader.stop()
    rows = [] if table is None else table.to_pylist()
    headers = [dict(row["headers"]) for row in rows]
    return [(each["query"].decode(), int(each["closes"])) for each in headers]


def test_answers_are_written_once_and_a_former_writer_is_locked_out(kafka: KafkaBroker) -> None:
    topic = kafka.topic(2)
    target = f"{kafka.url}/{topic}"
    first = open_sink(target)
    first.write([answer(1), answer(1, query="other")])
    first.write([answer(2)])
    first.write([answer(2)])
    second = open_sink(target)
    # What was given last is given again, and what was not is new.
    second.write([answer(2), answer(3)])
    with pytest.raises(EnvironmentProblem, match="another writer"):
        first.write([answer(4)])
    first.close()
    second.close()
    found = read_all(kafka, topic)
    assert sorted(found) == sorted(
        [(answer().query, 1000), ("other", 1000), (answer().query, 2000), (answer().query, 3000)]
    )
    assert [closes for query, closes in found if query == answer().query] == [1000, 2000, 3000]


CATALOG = """[prefixes]
"" = "http://example.org/"

[streams.":mentioned"]
connector = "kafka"
lateness = "15s"
arrivals = "distinct"
options = {{ url = "{url}", topics = ["{topic}"], maxRowsPerBatch = 40 }}

[streams.":mentioned".mapping]
subject = "http://example.org/mention/{{id}}"
time = "t"

[streams.":mentioned".mapping.properties]
":user" = {{ field = "@key" }}
":via" = {{ field = "@header.via" }}
":at" = {{ field = "@timestamp", datatype = "xsd:integer" }}
":part" = {{ field = "@topic" }}
"""
QUERY = """PREFIX : <http://example.org/>
SELECT ?user ?n FROM NAMED WINDOW :w ON :mentioned [RANGE 1s STEP 1s]
WHERE { WINDOW :w { SELECT ?user (COUNT(*) AS ?n)
  { ?e :user ?user ; :via "web" ; :at ?at ; :part ?topic } GROUP BY ?user } }
ORDER BY DESC(?n) ?user LIMIT 3
"""
PARTITIONS, PER_SECOND = 3, 5


class Mentions:
    """Producer of mentions, of which some say nothing, and what becomes of them."""

    def __init__(self, kafka: KafkaBroker) -> None:
        self.topic = kafka.topic(PARTITIONS)
        self._producer = Producer(kafka.settings)
        self._count = 0
        self._random = Random(11)
        self._counts: dict[int, Counter[str]] = defaultdict(Counter)

    def send(self, count: int) -> None:
        for at in range(self._count, self._count + count):
            time_ms, user = 10_000 + at * 1000 // PER_SECOND, f"u{self._random.randrange(5)}"
            via = self._random.choice(["web", "web", "app"])
            self._producer.produce(
                self.topic,
                json.dumps({"id": at, "t": time_ms}),
                key=user,
                headers=[("via", "?"), ("via", via)],
                timestamp=time_ms,
                partition=at % PARTITIONS,
            )
            if via == "web":
                self._counts[-(-time_ms // 1000) * 1000][user] += 1
        self._count += count
        assert self._producer.flush(PATIENCE) == 0

    @property
    def answers(self) -> list[tuple[int, list[tuple[str, int]]]]:
        """The answers of all windows of the recording."""
        last = 10_000 + (self._count - 1) * 1000 // PER_SECOND
        return [
            (closes, sorted(self._counts[closes].items(), key=lambda each: (-each[1], each[0]))[:3])
            for closes in range(10_000, last + 1000, 1000)
        ]


def answers_in(kafka: KafkaBroker, topic: str) -> list[tuple[int, list[tuple[str, int]]]]:
    """Return what a topic's answers say, in order."""
    reader = reader_of(kafka.url, topic)
    reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    table = rows_between(reader, start, reader.latestOffset(start))
    reader.stop()
    found = []
    for row in [] if table is None else table.to_pylist():
        rows = [each["bindings"] for each in json.loads(row["value"])["results"]]
        counts = [(each["user"]["value"], int(each["n"]["value"])) for each in rows]
        found.append((int(dict(row["headers"])["closes"]), counts))
    return found


def test_spark_gives_the_same_answers(
    kafka: KafkaBroker, tmp_path: Path, spark: SparkSession, executors: None
) -> None:
    mentions = Mentions(kafka)
    mentions.send(100)
    catalog = tmp_path / "catalog.toml"
    catalog.write_text(CATALOG.format(url=kafka.url, topic=mentions.topic))
    with Engine.from_catalog(catalog, spark=spark, until_end=True) as engine:
        found = [
            (
                each.closes_ms,
                [(str(row.bindings["user"]), int(str(row.bindings["n"]))) for row in each.rows],
            )
            for each in engine.register(QUERY)
        ]
    assert found == mentions.answers


@THOROUGH
def test_every_mention_counts_once_when_engine_and_broker_are_killed(
    kafka: KafkaBroker, tmp_path: Path
) -> None:
    mentions, out = Mentions(kafka), kafka.topic()
    (tmp_path / "catalog.toml").write_text(CATALOG.format(url=kafka.url, topic=mentions.topic))
    (tmp_path / "busiest.rspql").write_text(QUERY)
    command = [sys.executable, "-m", "acquatop", "run", "busiest.rspql"]
    command += ["--catalog", "catalog.toml", "--runtime", "local", "--state", "state"]
    command += ["--to", f"{kafka.url}/{out}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def live(kills_broker: bool) -> None:
        before = len(answers_in(kafka, out))
        child = subprocess.Popen(command, cwd=tmp_path, env=environment)
        try:
            mentions.send(70)
            if kills_broker:
                kafka.kill()
                kafka.start()
            mentions.send(70)
            until(lambda: child.poll() is not None or len(answers_in(kafka, out)) > before + 1)
            assert child.poll() is None
        finally:
            child.kill()
            child.wait()

    for kills_broker in (False, True, False):
        live(kills_broker)
    done = run([*command, "--until-end"], cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert answers_in(kafka, out) == mentions.answers


@THOROUGH
def test_the_page_about_kafka_can_be_followed(
    kafka: KafkaBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KAFKA", kafka.url)
    follow(ROOT / "docs" / "howto" / "kafka.md")
