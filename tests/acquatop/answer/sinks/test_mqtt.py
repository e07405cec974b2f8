"""Answers sent to a real broker, over real sockets."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
from paho.mqtt.client import Client, MQTTMessage, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion

from acquatop.answer.sinks import open_sink
from acquatop.answer.sinks.mqtt import Broker, MqttSink
from acquatop.answer.sinks.registry import PASSWORD as PASSWORD_VARIABLE
from acquatop.answer.sinks.registry import USER as USER_VARIABLE
from acquatop.errors import EnvironmentProblem
from examples.server_process import free_port
from tests.support.certificate import CERTIFICATE
from tests.support.mqtt.mosquitto import MOSQUITTO, PASSWD, PASSWORD, USER, Mosquitto
from tests.support.sink_samples import QUERY, answer

needs_broker = pytest.mark.skipif(
    MOSQUITTO is None or PASSWD is None,
    reason="there is no mosquitto (a package of Debian's and Homebrew's)",
)
TOPIC = "answers/live/http:%2F%2Fexample.org%2Fout"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    running = Mosquitto(tmp_path_factory.mktemp("mosquitto"))
    yield running
    running.kill()


class Receiver:
    """Somebody who reads all answers."""

    def __init__(self, port: int) -> None:
        self.messages: queue.Queue[MQTTMessage] = queue.Queue()
        subscribed = threading.Event()
        self._client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
        self._client.on_message = lambda client, data, message: self.messages.put(message)
        self._client.on_subscribe = lambda *_: subscribed.set()
        self._client.on_connect = lambda client, *_: client.subscribe("answers/#", qos=1)
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        assert subscribed.wait(20)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@needs_broker
def test_every_answer_comes_once_in_order_with_what_tells_repeats(broker: Mosquitto) -> None:
    target = f"mqtt://127.0.0.1:{broker.port}/answers/live"
    with closing(Receiver(broker.port)) as receiver, closing(open_sink(target, {})) as sink:
        answers = [answer(window, query) for window in range(40) for query in (QUERY, "b+#")]
        sink.write(answers)
        sink.write(answers[-1:])
        for expected in [*answers, answers[-1]]:
            message = receiver.messages.get(timeout=20)
            assert message.topic == (TOPIC if expected.query == QUERY else "answers/live/b%2B%23")
            assert json.loads(message.payload) == json.loads(json.dumps(expected.to_json()))
            assert message.properties is not None
            assert dict(message.properties.UserProperty) == {
                "query": expected.query,
                "window": str(expected.window),
                "closes": str(expected.closes_ms),
            }
        assert receiver.messages.empty()


@needs_broker
def test_a_broker_that_is_killed_and_comes_back_gets_the_answers(broker: Mosquitto) -> None:
    with closing(MqttSink(Broker("127.0.0.1", broker.port), "answers")) as sink:
        sink.write([answer(1)])
        broker.kill()
        writer = threading.Thread(target=sink.write, args=([answer(2, "back")],))
        writer.start()
        broker.start()
        broker.wait_for("'answers/back'")
        writer.join(20)
        assert not writer.is_alive()


@needs_broker
def test_a_broker_that_does_not_reply_is_not_waited_for_longer_than_patience(
    broker: Mosquitto,
) -> None:
    sink = MqttSink(Broker("127.0.0.1", broker.port), "answers", patience_seconds=0.2)
    broker.freeze()
    try:
        with pytest.raises(
            EnvironmentProblem, match=r"has not acknowledged the answers within 0.2 s[^~]*hint: "
        ):
            sink.write([answer(1)])
        with pytest.raises(EnvironmentProblem, match=r"it does not reply"):
            sink.write([answer(1)])
    finally:
        broker.thaw()
    # What it was told before it forgot us comes, if late; what it is told now comes at once.
    with closing(MqttSink(Broker("127.0.0.1", broker.port), "answers")) as patient:
        patient.write([answer(1)])
    sink.close()
    sink.close()


@needs_broker
def test_who_we_are_is_told_to_the_broker_alone(broker: Mosquitto) -> None:
    known = {USER_VARIABLE: USER, PASSWORD_VARIABLE: PASSWORD}
    target = f"mqtt://127.0.0.1:{broker.guarded_port}"
    with closing(open_sink(f"{target}/answers", known)) as sink:
        sink.write([answer()])
        assert PASSWORD not in repr(vars(sink))
    with (
        closing(open_sink(f"{target}/elsewhere", known)) as sink,
        pytest.raises(
            EnvironmentProblem,
            match=r"refuses messages to elsewhere/http\S*: Not authorized\n  hint: ",
        ) as no,
    ):
        sink.write([answer()])
    for wrong in ({}, {USER_VARIABLE: USER}, {**known, PASSWORD_VARIABLE: "guessed-word"}):
        with pytest.raises(
            EnvironmentProblem, match=r"refuses the connection: Not authorized[^~]*MQTT_USER"
        ) as refused:
            open_sink(f"{target}/answers", wrong)
        for text in (str(refused.value), repr(refused.value.__cause__), str(no.value)):
            assert not any(word in text for word in (PASSWORD, "guessed", USER + " "))


@needs_broker
def test_tls_is_spoken_to_brokers_that_can_be_trusted(
    broker: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = f"mqtts://127.0.0.1:{broker.tls_port}/answers"
    with pytest.raises(EnvironmentProblem, match=r"cannot be reached: .*certificate"):
        open_sink(target, {})
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    with closing(open_sink(target, {})) as sink:
        sink.write([answer()])


def test_a_broker_that_is_not_there_is_named_at_once() -> None:
    port = free_port()
    with pytest.raises(
        EnvironmentProblem,
        match=rf"broker at 127.0.0.1:{port} cannot be reached: .*refused\n  hint: ",
    ):
        open_sink(f"mqtt://127.0.0.1:{port}/answers", {})
