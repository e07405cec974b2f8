"""Messages from a real broker, over real sockets."""

from __future__ import annotations

import pickle
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from connectors import ConnectorError
from connectors.live import LEAST_LOG_BYTES, LiveReader
from connectors.mqtt import MqttDataSource
from connectors.read_limits import ReadAllAvailable
from examples.server_process import free_port
from tests.support.certificate import CERTIFICATE
from tests.support.mqtt.mosquitto import MOSQUITTO, PASSWD, PASSWORD, USER, Mosquitto
from tests.support.mqtt.proxy import Proxy
from tests.support.mqtt.publisher import Publisher
from tests.support.waiting import offset_at, until

pytestmark = pytest.mark.skipif(
    MOSQUITTO is None or PASSWD is None,
    reason="there is no mosquitto (a package of Debian's and Homebrew's)",
)
ALL = ReadAllAvailable()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    running = Mosquitto(tmp_path_factory.mktemp("mosquitto"), log="information")
    yield running
    running.kill()


@pytest.fixture
def publisher(broker: Mosquitto) -> Iterator[Publisher]:
    with closing(Publisher(broker.port)) as opened:
        yield opened


@contextmanager
def reading(folder: Path, port: int, **options: str) -> Iterator[LiveReader]:
    """A reader that is subscribed."""
    reader = opened(folder, port, **options)
    start = reader.initialOffset()
    reader.latestOffset(start, ALL)
    try:
        yield reader
    finally:
        reader.stop()


def opened(folder: Path, port: int, **options: str) -> LiveReader:
    said = {
        "url": f"mqtt://127.0.0.1:{port}",
        "topics": "#",
        "log": str(folder),
        "quietMs": "200",
        **options,
    }
    return MqttDataSource(said).streamReader(None)


def rows(
    reader: LiveReader, count: int, start: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Return what has come since a start, once it is so much."""
    begin = start or {**reader.initialOffset()}
    end = offset_at(reader, begin["record"] + count, begin)
    batches = [batch for part in reader.partitions(begin, end) for batch in reader.read(part)]
    return [row for batch in batches for row in batch.to_pylist()]


def subscribed(
    broker: Mosquitto, publisher: Publisher, reader: LiveReader, topic: str
) -> dict[str, Any]:
    """Return the offset behind the first message that comes through."""
    start = reader.initialOffset()

    def came() -> bool:
        publisher.publish([(topic, b"?")])
        return bool(reader.latestOffset(start, ALL)["record"] > start["record"])

    until(came)
    # All that has been asked with comes before what is published now.
    publisher.publish([(topic, b"!")])
    end = start
    while True:
        until(lambda begin=end: reader.latestOffset(begin, ALL) != begin)
        begin, end = end, reader.latestOffset(end, ALL)
        values = [
            value
            for part in reader.partitions(begin, end)
            for batch in reader.read(part)
            for value in batch["value"].to_pylist()
        ]
        if values[-1] == b"!":
            return end


@pytest.mark.parametrize("version", ["5", "3.1.1"])
@pytest.mark.parametrize("qos", ["0", "1", "2"])
def test_messages_come_in_order_with_their_topics(
    broker: Mosquitto, publisher: Publisher, tmp_path: Path, qos: str, version: str
) -> None:
    topics = f"{version}{qos}/+/vibration, {version}{qos}/erp/#"
    with reading(tmp_path, broker.port, topics=topics, qos=qos, version=version) as reader:
        start = subscribed(broker, publisher, reader, f"{version}{qos}/m0/vibration")
        said = [
            (
                f"{version}{qos}/m{number % 3}/{'vibration' if number % 2 else 'heat'}",
                f"{number}".encode() * 9,
            )
            for number in range(120)
        ]
        said.append((f"{version}{qos}/erp/a/b", b""))
        publisher.publish(said, int(qos))
        found = rows(reader, 61, start)
        expected = [(topic, value) for topic, value in said if not topic.endswith("heat")]
        assert [(row["topic"], row["value"]) for row in found] == expected
        assert {row["qos"] for row in found} == {int(qos)}
        assert [row["position"] for row in found] == list(
            range(start["record"], start["record"] + 61)
        )


def test_a_session_brings_what_came_meanwhile_and_available_now_ends_with_it(
    broker: Mosquitto, publisher: Publisher, tmp_path: Path
) -> None:
    def now() -> list[bytes]:
        reader = opened(tmp_path, broker.port, topics="away/#")
        reader.prepareForTriggerAvailableNow()
        start = reader.initialOffset()
        end = reader.latestOffset(start, ALL)
        parts = reader.partitions(start, end)
        reader.commit(end)
        return [
            value
            for part in parts
            for batch in reader.read(part)
            for value in batch["value"].to_pylist()
        ]

    publisher.publish([("away/kept", b"kept")], retain=True)
    assert now() == [b"kept"]
    publisher.publish([("away/a", b"%d" % number) for number in range(30)])
    # What is kept at a topic does not come again: the broker knows that it has been sent.
    assert now() == [b"%d" % number for number in range(30)]
    assert now() == []


def test_shared_subscriptions_share_and_a_will_is_said_when_a_client_is_lost(
    broker: Mosquitto, publisher: Publisher, tmp_path: Path
) -> None:
    proxy = Proxy(broker.port)
    will = {"willTopic": "gone", "willMessage": "lost", "willQos": "1"}
    with (
        reading(tmp_path / "watch", broker.port, topics="gone") as watch,
        reading(tmp_path / "a", broker.port, topics="$share/g/jobs") as one,
        reading(tmp_path / "b", proxy.port, topics="$share/g/jobs", **will) as other,
    ):
        start = subscribed(broker, publisher, watch, "gone")
        begins = one.initialOffset(), other.initialOffset()
        for begin, reader in zip(begins, (one, other), strict=True):
            until(
                lambda begin=begin, reader=reader: (
                    publisher.publish([("jobs", b"?")]) or reader.latestOffset(begin, ALL) != begin
                )
            )
        proxy.cut()
        assert [row["value"] for row in rows(watch, 1, start)] == [b"lost"]
    proxy.close()


def test_a_full_log_stops_reading_and_goes_on_when_it_has_room(
    broker: Mosquitto, publisher: Publisher, tmp_path: Path
) -> None:
    with reading(
        tmp_path, broker.port, topics="big", maxLogBytes=str(LEAST_LOG_BYTES), receiveMaximum="2"
    ) as reader:
        last = subscribed(broker, publisher, reader, "big")
        publisher.publish([("big", bytes([number]) * 150_000) for number in range(25)])
        seen: list[int] = []
        while len(seen) < 25:
            until(lambda begin=last: reader.latestOffset(begin, ALL) != begin)
            end = reader.latestOffset(last, ALL)
            for part in reader.partitions(last, end):
                seen += [
                    value[0] for batch in reader.read(part) for value in batch["value"].to_pylist()
                ]
            reader.commit(end)
            last = end
        assert seen == list(range(25))
        assert sum(file.stat().st_size for file in tmp_path.iterdir()) < LEAST_LOG_BYTES + 700_000


def test_of_a_message_that_is_too_long_the_beginning_comes(
    broker: Mosquitto, publisher: Publisher, tmp_path: Path
) -> None:
    with reading(tmp_path, broker.port, topics="long", maxMessageBytes="2000") as reader:
        start = subscribed(broker, publisher, reader, "long")
        publisher.publish([("long", b"x" * 50_000_000), ("long", b"y")])
        first, second = rows(reader, 2, start)
        assert (first["size"], set(first["value"]), second["value"]) == (
            50_000_000,
            {ord("x")},
            b"y",
        )
        assert 1000 < len(first["value"]) < 1100


def test_who_we_are_is_told_to_the_broker_alone(
    broker: Mosquitto, publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANT_USER", USER)
    monkeypatch.setenv("PLANT_PASSWORD", PASSWORD)
    who = {"userVariable": "PLANT_USER", "passwordVariable": "PLANT_PASSWORD"}
    with reading(tmp_path / "known", broker.guarded_port, **who) as reader:
        until(lambda: reader.latestOffset(reader.initialOffset(), ALL) is not None)
    sent = pickle.dumps(opened(tmp_path / "sent", broker.guarded_port, **who))
    assert b"PLANT_PASSWORD" in sent
    assert PASSWORD.encode() not in sent
    monkeypatch.setenv("PLANT_PASSWORD", "guessed-word")
    with (
        pytest.raises(
            ConnectorError, match=r"refuses the connection: Not authorized\n.*PLANT_USER and"
        ) as said,
        reading(tmp_path / "unknown", broker.guarded_port, **who) as reader,
    ):
        until(lambda: reader.latestOffset(reader.initialOffset(), ALL) is None)
    assert not any(word in str(said.value) for word in (PASSWORD, "guessed", USER + " "))


def test_tls_is_spoken_to_brokers_that_can_be_trusted(
    broker: Mosquitto, publisher: Publisher, tmp_path: Path
) -> None:
    url = f"mqtts://127.0.0.1:{broker.tls_port}"
    with reading(tmp_path / "trusted", 0, url=url, topics="tls", caFile=str(CERTIFICATE)) as reader:
        # Another listener of the same broker: what is published there comes here.
        start = subscribed(broker, publisher, reader, "tls")
        publisher.publish([("tls", b"z" * 300_000), ("tls", b"secret")])
        assert [len(row["value"]) for row in rows(reader, 2, start)] == [300_000, 6]
    with (
        pytest.raises(ConnectorError, match=r"cannot be reached: .*certificate[^~]*hint: "),
        reading(tmp_path / "unknown", 0, url=url, patience="0") as reader,
    ):
        until(lambda: reader.latestOffset(reader.initialOffset(), ALL) is None)


def signed(folder: Path, name: str, signer: Path | None = None) -> Path:
    """Make a certificate, signed by another's key or its own, and return the file that holds it and
    its key.
    """
    key, certificate, whole = (folder / f"{name}.{kind}" for kind in ("key", "crt", "pem"))
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    command += ["-days", "2", "-subj", f"/CN={name}", "-keyout", str(key), "-out", str(certificate)]
    command += [] if signer is None else ["-CA", str(signer), "-CAkey", str(signer)]
    subprocess.run(command, check=True, capture_output=True)
    whole.write_bytes(key.read_bytes() + certificate.read_bytes())
    return whole


@pytest.mark.skipif(
    shutil.which("openssl") is None, reason="there is no openssl to make certificates with"
)
def test_a_broker_that_asks_for_a_certificate_is_shown_this_client_s(tmp_path: Path) -> None:
    authority = signed(tmp_path, "authority")
    known, stranger = signed(tmp_path, "known", authority), signed(tmp_path, "stranger")
    broker = Mosquitto(
        tmp_path, log="information", tls=f"require_certificate true\ncafile {authority}"
    )
    url = f"mqtts://127.0.0.1:{broker.tls_port}"
    trusted = {"url": url, "topics": "tls", "caFile": str(CERTIFICATE)}
    certificates = {
        "in one file": {"certificateFile": str(known)},
        "in two": {
            "certificateFile": str(known.with_suffix(".crt")),
            "keyFile": str(known.with_suffix(".key")),
        },
    }
    try:
        for name, shown in certificates.items():
            with (
                closing(Publisher(broker.port)) as publisher,
                reading(tmp_path / name, 0, **trusted, **shown) as reader,
            ):
                start = subscribed(broker, publisher, reader, "tls")
                publisher.publish([("tls", b"secret")])
                assert [row["value"] for row in rows(reader, 1, start)] == [b"secret"]
        refused = {"none": {}, "a stranger's": {"certificateFile": str(stranger)}}
        for name, shown in refused.items():
            with (
                pytest.raises(ConnectorError, match="cannot be reached"),
                reading(tmp_path / name, 0, **trusted, **shown, patience="0") as reader,
            ):
                until(
                    lambda reader=reader: reader.latestOffset(reader.initialOffset(), ALL) is None
                )
    finally:
        broker.kill()


def test_a_broker_that_is_not_there_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(ConnectorError, match=r"cannot be reached: .*refused\n  hint: is it running"),
        reading(tmp_path, free_port(), patience="0") as reader,
    ):
        until(lambda: reader.latestOffset(reader.initialOffset(), ALL) is None)
