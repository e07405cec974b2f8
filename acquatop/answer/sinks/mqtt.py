"""Sink that sends answers as messages to an MQTT broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from acquatop.answer.answer import Answer
from acquatop.answer.sinks.json_line import json_line
from acquatop.answer.sinks.window_files import utf8
from acquatop.errors import EnvironmentProblem
from replica.http.auth import Secret

if TYPE_CHECKING:
    from paho.mqtt.client import Client
    from paho.mqtt.properties import Properties

AT_A_TIME = 1000
"""Maximum number of messages that wait for the broker; their 16-bit ids repeat after 65 535."""
LONGEST_PAUSE = 4
"""Maximum number of seconds between two attempts to reach a broker that was lost."""
_UNCHANGED = ":@!$&'()*,;=~"


@dataclass(frozen=True)
class Broker:
    """Address of a broker, and the credentials for it."""

    host: str
    port: int = 1883
    tls: bool = False
    user: Secret | None = None
    password: Secret | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class MqttSink:
    """Sink that sends a message of JSON per answer to the topic ``PREFIX/QUERY``, with QoS 1.

    Writing returns when the broker has acknowledged every message. It fails if the broker has not
    acknowledged one for ``patience_seconds``; a broker that is lost is reached again meanwhile. At
    least once: receivers recognise repeats by ``query`` and ``closes``, which are in the JSON and
    in the message's user properties (MQTT 5). A query's messages come in order.
    """

    def __init__(
        self,
        broker: Broker,
        prefix: str,
        *,
        patience_seconds: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._prefix = prefix
        self._broker = broker
        self._patience = patience_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._link: _Link | None = self._linked()

    def write(self, answers: Sequence[Answer]) -> None:
        """Send a message per answer, and wait until the broker has acknowledged them."""
        with self._lock:
            self._link = link = self._link or self._linked()
            try:
                for some in _batches(answers):
                    link.send([(self._topic(answer), answer) for answer in some])
            except BaseException:
                self._drop()
                raise

    def close(self) -> None:
        """Disconnect from the broker."""
        with self._lock:
            self._drop()

    def _linked(self) -> _Link:
        return _Link(self._broker, self._patience, self._clock)

    def _drop(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    def _topic(self, answer: Answer) -> str:
        return f"{self._prefix}/{topic_level(answer.query)}"


def topic_level(query: str) -> str:
    """Return a query's name as one level of a topic, with other characters percent-encoded.

    >>> topic_level("busiest"), topic_level("http://example.org/out#1")
    ('busiest', 'http:%2F%2Fexample.org%2Fout%231')
    """
    return quote(query, safe=_UNCHANGED, errors="surrogatepass")


class _Link:
    """Connection to a broker, restored when it is lost, and the broker's acknowledgements."""

    def __init__(self, broker: Broker, patience: float, clock: Callable[[], float]) -> None:
        self._broker = broker
        self._patience = patience
        self._clock = clock
        self._news = threading.Condition()
        self._connected = False
        self._acknowledged: dict[int, str | None] = {}
        """Result of each message; None is success."""
        self._refusal: str | None = None
        self._trouble = "it does not reply"
        self._client = self._connect()

    def send(self, messages: Sequence[tuple[str, Answer]]) -> None:
        """Send messages, and return when the broker has acknowledged all of them."""
        with self._news:
            self._acknowledged.clear()
        numbers = [
            self._client.publish(
                topic, json_line(answer.to_json())[:-1], qos=1, properties=_properties(answer)
            ).mid
            for topic, answer in messages
        ]
        self._wait(lambda: len(self._acknowledged) == len(numbers))
        for number, (topic, _) in zip(numbers, messages, strict=True):
            refusal = self._acknowledged[number]
            if refusal is not None:
                raise self._problem(
                    f"refuses messages to {topic}: {refusal}",
                    "see what its access list lets this user publish",
                )

    def close(self) -> None:
        """Disconnect, and forget messages that were not acknowledged."""
        self._client.disconnect()
        self._client.loop_stop()

    def _connect(self) -> Client:
        from paho.mqtt.client import Client, MQTTv5
        from paho.mqtt.enums import CallbackAPIVersion

        client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
        if self._broker.user is not None:
            password = self._broker.password
            client.username_pw_set(
                self._broker.user.reveal(), None if password is None else password.reveal()
            )
        if self._broker.tls:
            client.tls_set()
        client.connect_timeout = self._patience
        client.reconnect_delay_set(1, LONGEST_PAUSE)
        client.on_connect, client.on_disconnect, client.on_publish = (
            self._on_connect,
            self._on_disconnect,
            self._on_ack,
        )
        try:
            client.connect(self._broker.host, self._broker.port)
        except (OSError, ValueError) as error:
            raise self._problem(
                f"cannot be reached: {getattr(error, 'strerror', None) or error}",
                "is it running there?",
            ) from error
        client.loop_start()
        self._client = client
        try:
            self._wait(lambda: self._connected)
        except BaseException:
            self.close()
            raise
        return client

    def _wait(self, done: Callable[[], bool]) -> None:
        """Wait until a condition holds; raise an error if no acknowledgement comes for too long."""
        with self._news:
            known, until = -1, 0.0
            while not done():
                if self._refusal is not None:
                    raise self._problem(
                        f"refuses the connection: {self._refusal}",
                        "ACQUATOP_MQTT_USER and ACQUATOP_MQTT_PASSWORD say who you are to it",
                    )
                if len(self._acknowledged) > known:
                    known, until = len(self._acknowledged), self._clock() + self._patience
                if not self._news.wait(max(0.0, until - self._clock())) and self._clock() >= until:
                    raise self._problem(
                        "has not acknowledged the answers within "
                        f"{self._patience:g} s: {self._trouble}",
                        "is it running there, and well? Answers are given again at the next start",
                    )

    def _problem(self, what: str, hint: str) -> EnvironmentProblem:
        return EnvironmentProblem(f"the MQTT broker at {self._broker} {what}\n  hint: {hint}")

    def _on_connect(
        self, client: Client, data: Any, flags: Any, code: Any, properties: Any
    ) -> None:
        with self._news:
            self._connected = not code.is_failure
            self._refusal = str(code) if code.is_failure else None
            self._trouble = "it does not reply"
            self._news.notify_all()

    def _on_disconnect(
        self, client: Client, data: Any, flags: Any, code: Any, properties: Any
    ) -> None:
        with self._news:
            self._connected = False
            self._trouble = f"the connection was lost ({code})"
            self._news.notify_all()

    def _on_ack(self, client: Client, data: Any, number: int, code: Any, properties: Any) -> None:
        with self._news:
            self._acknowledged[number] = str(code) if code.is_failure else None
            self._news.notify_all()


def _properties(answer: Answer) -> Properties:
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    properties.ContentType = "application/json"
    properties.UserProperty = [
        ("query", utf8(answer.query).decode()),
        ("window", str(answer.window)),
        ("closes", str(answer.closes_ms)),
    ]
    return properties


def _batches(answers: Sequence[Answer]) -> Iterator[Sequence[Answer]]:
    for start in range(0, len(answers), AT_A_TIME):
        yield answers[start : start + AT_A_TIME]
