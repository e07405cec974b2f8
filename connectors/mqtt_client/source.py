"""Connection to a broker as a live source: messages in batches, acknowledged once durable."""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pyarrow as pa
from paho.mqtt.client import Client, MQTTv5, MQTTv311
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from connectors import ConnectorError
from connectors.live_source import LiveSource
from connectors.log.writer import Remembered
from connectors.mqtt_client.options import MqttOptions
from connectors.mqtt_client.packets import Message, TappedSocket
from connectors.mqtt_client.seen_messages import SeenMessages
from connectors.source_status import Link

SCHEMA = pa.schema(
    [
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("received", pa.timestamp("us", "UTC")),
        ("qos", pa.int32()),
        ("retain", pa.bool_()),
        ("packet", pa.int32()),
        ("size", pa.int64()),
    ]
)
AT_A_TIME = 20_000
"""Approximate maximum number of messages that are made durable at once."""
BYTES_AT_A_TIME = 4 << 20
SHORTEST_PAUSE, LONGEST_PAUSE = 0.1, 4.0
"""Seconds between two attempts to reach a broker."""
CONNECT_SECONDS = 5.0
"""Maximum duration of one attempt to reach a broker, in seconds."""
_IF_NEW = 1
"""Retain handling of a subscription: retained messages are sent only if the subscription is new."""
_TAKEN_OVER = 0x8E
_PASSING = ("unavailable", "busy", "moved", "rate")
"""Words of refusals that may be temporary."""
_NOTHING = json.dumps({"topics": []}).encode() + b"\n"


class TappedClient(Client):
    """Client of the client library on sockets from which published messages are taken out."""

    def __init__(self, options: MqttOptions, client_id: str) -> None:
        self._has_properties = options.version == "5"
        self._longest = options.max_message_bytes
        protocol = MQTTv5 if self._has_properties else MQTTv311
        clean = None if self._has_properties else options.session == "clean"
        super().__init__(
            CallbackAPIVersion.VERSION2, client_id, clean_session=clean, protocol=protocol
        )
        self.tap: TappedSocket | None = None

    def _create_socket(self) -> Any:
        plain = super()._create_socket()
        self.tap = TappedSocket(
            plain, has_properties=self._has_properties, max_message_bytes=self._longest
        )
        return self.tap


class MqttSource(LiveSource):
    """Messages of some topics; those of QoS 1 and 2 are acknowledged when they are durable.

    A lost connection is made again, at growing intervals. The broker then repeats the messages
    whose acknowledgement it lacks, and
    :class:`~connectors.mqtt_client.seen_messages.SeenMessages` detects them. The first
    connection must succeed within ``patience`` seconds.
    """

    schema = SCHEMA

    def __init__(
        self,
        options: MqttOptions,
        client_id: str,
        *,
        environment: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._options = options
        self._clock = clock
        self._wall_clock = wall_clock
        self._seen = SeenMessages()
        self._noted_before = 0
        """Number of messages noted before the connection was made; it does not acknowledge them."""
        self._has_news = False
        """True if a new message has come on this connection; repeated ones come before new ones."""
        self._subscribed: tuple[str, ...] = ()
        self._asked: dict[int, str] = {}
        self._acknowledgements: list[tuple[int, int]] = []
        self._error: ConnectorError | None = None
        self._is_ready = self._must_remember = False
        self._has_been_reached = False
        self._reach_until = clock() + options.patience
        self._next_attempt, self._pause = clock(), SHORTEST_PAUSE
        self._last_message = clock()
        self._trouble = "it does not reply"
        self.link = Link(
            f"the MQTT broker at {options}",
            what=f"message on {_topics(options)}",
            silence_hint=(
                "see that something is published on a topic that matches (topics), and that the "
                "broker's access list lets this user read it"
            ),
            wall_clock=wall_clock,
        )
        self._client = self._made(client_id, environment)

    # Interface of a live source ---------------------------------------------------------------

    def open(self, remembered: Remembered) -> None:
        """Load the state of the session; the first :meth:`receive` connects."""
        head, _, prints = (remembered.memory or _NOTHING).partition(b"\n")
        self._subscribed = tuple(json.loads(head)["topics"])
        self._seen.load(prints, remembered.since)

    def receive(self, wait_seconds: float) -> pa.RecordBatch | None:
        """Return the published messages, without those that were returned before."""
        tap = self._connected(wait_seconds)
        if tap is None:
            return None
        self._read(tap, wait_seconds)
        self._serve(tap)
        if self._has_news:
            self._seen.forget_oldest(self._noted_before + tap.processed)
        messages, tap.messages = tap.messages, []
        if not messages:
            return None
        self._last_message = self._clock()
        new = self._without_seen(messages)
        if not new:
            # The repeated messages are durable.
            self.acknowledge()
            return None
        return self._batch(new)

    def acknowledge(self) -> None:
        """Acknowledge the messages returned by :meth:`receive`."""
        acknowledgements, self._acknowledgements = self._acknowledgements, []
        if self._client.tap is not None:
            self._client.tap.acknowledge(acknowledgements)

    def is_caught_up(self) -> bool:
        """Return True if nothing has come for a while on a subscribed connection."""
        return (
            self._is_ready and self._clock() - self._last_message >= self._options.quiet_ms / 1000
        )

    def memory(self) -> bytes:
        """Return the subscriptions, and the messages that may come again."""
        return (
            json.dumps({"topics": list(self._subscribed)}).encode() + b"\n" + self._seen.to_bytes()
        )

    def has_forgotten(self) -> bool:
        """Return True if the broker has begun a new session, or the subscription has changed."""
        must, self._must_remember = self._must_remember, False
        return must

    def close(self) -> None:
        """Disconnect; the broker keeps the session."""
        with suppress(OSError, ValueError):
            self._client.disconnect()
            if self._client.tap is not None:
                self._client.tap.flush()
                self._client.tap.close()

    # Messages ---------------------------------------------------------------------------------

    def _read(self, tap: TappedSocket, wait_seconds: float) -> None:
        """Read the available messages, about a batch at most; wait for the first one."""
        if not tap.holds_back() and not tap.messages:
            writes = [tap] if tap.has_unsent() else []
            select.select([tap], writes, [], wait_seconds)
        tap.flush()
        size = 0
        while len(tap.messages) < AT_A_TIME and size < BYTES_AT_A_TIME:
            before = len(tap.messages)
            if not tap.fill():
                return
            size += sum(len(message.payload) for message in tap.messages[before:])

    def _without_seen(self, messages: list[Message]) -> list[Message]:
        """Return the messages that have not come before; note all for the next acknowledgement."""
        new = []
        for message in messages:
            if message.qos:
                self._acknowledgements.append((message.qos, message.packet))
                self._has_news = self._has_news or not message.again
                known = message.again and self._seen.knows(
                    message.packet, message.topic, message.payload
                )
                self._seen.note(message.packet, message.topic, message.payload)
                if known:
                    continue
            new.append(message)
        return new

    def _batch(self, messages: list[Message]) -> pa.RecordBatch:
        topics, payloads, qos, retain, _, packets, sizes = zip(*messages, strict=True)
        now = int(self._wall_clock() * 1_000_000)
        try:
            names = pa.array(topics, pa.binary()).cast(pa.string())
        except pa.ArrowInvalid:
            names = pa.array([topic.decode("utf-8", "replace") for topic in topics], pa.string())
        received = pa.array([now], SCHEMA.field("received").type)
        columns = [
            pa.array(payloads, pa.binary()),
            names,
            received.take(pa.array([0] * len(messages))),
            pa.array(qos, pa.int32()),
            pa.array(retain, pa.bool_()),
            pa.array(packets, pa.int32()),
            pa.array(sizes, pa.int64()),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)

    # The connection ---------------------------------------------------------------------------

    def _connected(self, wait_seconds: float) -> TappedSocket | None:
        """Return the connection's socket if it is ready; else work on that for ``wait_seconds``."""
        if self._client.socket() is None:
            self._is_ready = False
            if self._clock() < self._next_attempt:
                time.sleep(min(wait_seconds, max(0.0, self._next_attempt - self._clock())))
                return None
            self._pause, self._next_attempt = (
                min(2 * self._pause, LONGEST_PAUSE),
                self._clock() + self._pause,
            )
            self._attempt()
        tap = self._client.tap
        if self._client.socket() is None or tap is None:
            self._check_patience()
            return None
        if not self._is_ready:
            select.select([tap], [tap] if tap.has_unsent() else [], [], wait_seconds)
            tap.flush()
            tap.fill()
            self._serve(tap)
            self._check_patience()
            # Returned next time only, so that a forgotten session is durably forgotten first.
            return None
        return tap

    def _attempt(self) -> None:
        self._acknowledgements.clear()
        self._noted_before, self._has_news = self._seen.count, False
        self._trouble = "it does not reply"
        try:
            self._client.reconnect()
        except (OSError, ValueError) as error:
            self._note_trouble(_said(error), is_attempt=True)

    def _note_trouble(self, words: str, *, is_attempt: bool = False) -> None:
        self._trouble = words
        self.link.failed(words, _hint(words, self._options), is_attempt=is_attempt)

    def _serve(self, tap: TappedSocket) -> None:
        """Pass the client library its packets, and keep the connection alive."""
        while tap.pending() and self._client.socket() is not None:
            self._client.loop_read()
        if self._client.want_write():
            self._client.loop_write()
        self._client.loop_misc()
        if self._error is not None:
            raise self._error

    def _check_patience(self) -> None:
        if not self._has_been_reached and self._clock() >= self._reach_until:
            raise self._problem(f"cannot be reached: {self._trouble}", "is it running there?")

    def _made(self, client_id: str, environment: Mapping[str, str]) -> TappedClient:
        options = self._options
        client = TappedClient(options, client_id)
        if options.tls or options.ca_file or options.certificate_file:
            try:
                client.tls_set(options.ca_file, options.certificate_file, options.key_file)
            except (OSError, ValueError) as error:
                hint = "see caFile, certificateFile, keyFile"
                raise self._problem(f"cannot be spoken to with TLS: {error}", hint) from None
        user, password = (
            environment.get(options.user_variable),
            environment.get(options.password_variable),
        )
        if user:
            client.username_pw_set(user, password)
        if options.will is not None:
            will = options.will
            client.will_set(will.topic, will.message, will.qos, will.retain)
        client.on_connect, client.on_subscribe = self._on_connect, self._on_subscribe
        client.on_disconnect = self._on_disconnect
        client.connect_timeout = CONNECT_SECONDS
        client.suppress_exceptions = False
        clean: Any = options.session == "clean"
        if options.version == "5":
            properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
            properties.SessionExpiryInterval = 0 if clean else options.session_expiry
            properties.ReceiveMaximum = options.receive_maximum
            client.connect_async(
                options.host,
                options.port,
                options.keep_alive,
                clean_start=clean,
                properties=properties,
            )
        else:
            client.connect_async(options.host, options.port, options.keep_alive)
        return client

    def _problem(self, what: str, hint: str) -> ConnectorError:
        return ConnectorError(f"the MQTT broker at {self._options} {what}\n  hint: {hint}")

    # Callbacks of the client library ----------------------------------------------------------

    def _on_connect(
        self, client: Client, data: Any, flags: Any, code: Any, properties: Any
    ) -> None:
        if code.is_failure:
            self._note_trouble(str(code), is_attempt=True)
            if not any(word in str(code).lower() for word in _PASSING):
                names = f"{self._options.user_variable} and {self._options.password_variable}"
                self._error = self._problem(
                    f"refuses the connection: {code}",
                    f"the environment variables {names} say who you are to it",
                )
            return
        self._has_been_reached, self._pause = True, SHORTEST_PAUSE
        self._last_message = self._clock()
        if not flags.session_present:
            self._seen.forget()
            self._subscribed = ()
            self._must_remember = True
        self._subscribe(client)

    def _subscribe(self, client: Client) -> None:
        """Subscribe to new topics only: each subscription would bring retained messages again."""
        wanted = [f"{self._options.qos} {topic}" for topic in self._options.topics]
        gone = [each for each in self._subscribed if each not in wanted]
        names = {each.partition(" ")[2] for each in wanted}
        for each in gone:
            if each.partition(" ")[2] not in names:
                client.unsubscribe(each.partition(" ")[2])
        new = [each for each in wanted if each not in self._subscribed]
        self._asked = {}
        for each in new:
            topic = each.partition(" ")[2]
            if self._options.version == "5":
                _, number = client.subscribe(
                    topic, options=SubscribeOptions(self._options.qos, retainHandling=_IF_NEW)
                )
            else:
                _, number = client.subscribe(topic, self._options.qos)
            self._asked[number or 0] = each
        if gone:
            self._must_remember = True
        self._subscribed = tuple(each for each in self._subscribed if each in wanted)
        self._note_subscribed()

    def _note_subscribed(self) -> None:
        self._is_ready = not self._asked
        if self._is_ready:
            self.link.made()

    def _on_subscribe(
        self, client: Client, data: Any, number: int, codes: Any, properties: Any
    ) -> None:
        asked = self._asked.pop(number, None)
        if asked is None:
            return
        if codes[0].is_failure:
            self._error = self._problem(
                f"refuses the subscription to {asked.partition(' ')[2]}: {codes[0]}",
                "see what its access list lets this user read",
            )
            return
        self._subscribed = (*self._subscribed, asked)
        self._must_remember = True
        self._note_subscribed()

    def _on_disconnect(
        self, client: Client, data: Any, flags: Any, code: Any, properties: Any
    ) -> None:
        lost_by = None if self._client.tap is None else self._client.tap.lost_by
        why = code if lost_by is None else _said(lost_by)
        self._note_trouble(f"the connection was lost ({why})")
        if getattr(code, "value", 0) == _TAKEN_OVER:
            hint = "give each stream a clientId of its own"
            self._error = self._problem("says that another client has the same name", hint)


def _said(error: Exception) -> str:
    # OpenSSL's strerror is the whole text with the place in its source.
    return getattr(error, "verify_message", "") or getattr(error, "strerror", None) or str(error)


def _topics(options: MqttOptions) -> str:
    names = ", ".join(f"'{topic}'" for topic in options.topics)
    return f"topic{'s' if len(options.topics) > 1 else ''} {names}"


def _hint(words: str, options: MqttOptions) -> str:
    if "certificate" in words.lower() or "ssl" in words.lower():
        return "see that caFile has the certificate that signed the broker's own"
    if options.tls:
        return "see that it is running, and that this is its port with TLS (url)"
    return "see that it is running, and that the address is right (url)"
