"""Words about a broker that brings nothing: the topic, the port, the password, the certificate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from connectors import ConnectorError
from connectors.live import LiveReader
from connectors.mqtt import MqttDataSource
from connectors.read_limits import ReadAllAvailable
from connectors.source_status import SourceState, SourceStatus
from examples.server_process import free_ports
from tests.support.mqtt.mosquitto import MOSQUITTO, PASSWD, Mosquitto
from tests.support.mqtt.publisher import Publisher
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(
    MOSQUITTO is None or PASSWD is None,
    reason="there is no mosquitto (a package of Debian's and Homebrew's)",
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    running = Mosquitto(tmp_path_factory.mktemp("mosquitto"), log="information")
    yield running
    running.kill()


@contextmanager
def receiving(folder: Path, url: str, topics: str = "plant/#") -> Iterator[LiveReader]:
    reader = MqttDataSource({"url": url, "topics": topics, "log": str(folder)}).streamReader(None)
    reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    try:
        yield reader
    finally:
        reader.stop()


def status_when(reader: LiveReader, happened: Callable[[SourceStatus], bool]) -> SourceStatus:
    found: list[SourceStatus] = []

    def has_happened() -> bool:
        reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
        status = reader.status()
        if status is not None and happened(status):
            found.append(status)
        return bool(found)

    until(has_happened)
    return found[0]


def test_a_wrong_topic_is_accepted_and_named_as_that_of_which_nothing_comes(
    broker: Mosquitto, tmp_path: Path
) -> None:
    with (
        closing(Publisher(broker.port)) as publisher,
        receiving(tmp_path, f"mqtt://127.0.0.1:{broker.port}", "plnat/#") as reader,
    ):
        said = status_when(reader, lambda status: status.state is SourceState.CONNECTED)
        publisher.publish([("plant/one", b"{}")])
        assert said.where == f"the MQTT broker at 127.0.0.1:{broker.port}"
        assert said.what == "message on topic 'plnat/#'"
        assert "(topics)" in said.hint


def test_a_closed_port_is_told_with_the_number_of_attempts(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with receiving(tmp_path, f"mqtt://127.0.0.1:{port}") as reader:
        said = status_when(reader, lambda status: status.attempts > 1)
        assert (said.state, said.problem) == (SourceState.CONNECTING, "Connection refused")
        assert "(url)" in said.hint


def test_an_unknown_certificate_is_told_while_the_attempts_go_on(
    broker: Mosquitto, tmp_path: Path
) -> None:
    with receiving(tmp_path, f"mqtts://127.0.0.1:{broker.tls_port}") as reader:
        said = status_when(reader, lambda status: status.attempts > 0)
        assert "caFile" in said.hint
        assert "certificate" in said.problem


def test_a_bad_password_ends_the_stream_at_once_with_the_names_of_the_variables(
    broker: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACQUATOP_MQTT_USER", "ann")
    monkeypatch.setenv("ACQUATOP_MQTT_PASSWORD", "guessed")
    with (
        pytest.raises(ConnectorError, match="ACQUATOP_MQTT_USER and ACQUATOP_MQTT_PASSWORD"),
        receiving(tmp_path, f"mqtt://127.0.0.1:{broker.guarded_port}") as reader,
    ):
        status_when(reader, lambda status: False)
