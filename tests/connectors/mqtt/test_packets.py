"""Packets in any pieces, and what is told of messages that come again."""

from __future__ import annotations

import itertools
import struct
from unittest.mock import Mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors import ConnectorError
from connectors.mqtt_client.options import Will, read_options
from connectors.mqtt_client.packets import KEPT_OF_LONG, Message, TappedSocket
from connectors.mqtt_client.seen_messages import SeenMessages
from tests.support.live_sources import records

LONGEST = 3000


class Pieces:
    """A socket that brings bytes in pieces of some lengths, and takes a few at a time."""

    def __init__(self, content: bytes, cuts: list[int]) -> None:
        edges = [0, *sorted(cut % (len(content) + 1) for cut in cuts), len(content)]
        self._pieces = [
            content[start:stop] for start, stop in itertools.pairwise(edges) if stop > start
        ]
        self.sent = b""

    def recv(self, size: int) -> bytes:
        if not self._pieces:
            raise BlockingIOError
        return self._pieces.pop(0)

    def send(self, content: bytes) -> int:
        self.sent += bytes(content[:3])
        return min(3, len(content))


def packet(kind: int, body: bytes) -> bytes:
    length, written = len(body), b""
    while True:
        length, digit = divmod(length, 128)
        written += bytes([digit | (128 if length else 0)])
        if not length:
            return bytes([kind]) + written + body


def published(message: Message, properties: bytes) -> bytes:
    topic = struct.pack(">H", len(message.topic)) + message.topic
    number = struct.pack(">H", message.packet) if message.qos else b""
    kind = 0x30 | message.again << 3 | message.qos << 1 | message.retain
    return packet(kind, topic + number + packet(0, properties)[1:] + message.payload)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    qos = draw(st.integers(0, 2))
    payload = draw(st.binary(max_size=40)) * draw(st.sampled_from([1, 1, 7, 60]))
    topic = draw(st.text(min_size=1, max_size=9)).encode("utf-8", "replace")
    number = draw(st.integers(1, 65535)) if qos else 0
    return Message(
        topic, payload, qos, draw(st.booleans()), draw(st.booleans()), number, len(payload)
    )


OTHERS = st.sampled_from([packet(0x20, b"\0\0\0"), packet(0x90, b"\0\1\0\1"), packet(0xD0, b"")])


@given(
    st.lists(st.one_of(messages(), OTHERS, st.integers(1, 65535)), max_size=12),
    st.binary(max_size=200),
    st.lists(st.integers(0, 5000), max_size=12),
)
def test_what_is_published_is_taken_out_and_the_rest_left_in_its_order(
    said: list[Message | bytes | int], properties: bytes, cuts: list[int]
) -> None:
    content, released = b"", b""
    for each in said:
        match each:
            case Message():
                content += published(each, properties)
            case bytes():
                content += each
            case number:
                content += packet(0x62, struct.pack(">H", number))
                released += packet(0x70, struct.pack(">H", number))
    socket = Pieces(content, cuts)
    tap = TappedSocket(socket, has_properties=True, max_message_bytes=LONGEST)
    while tap.fill():
        pass
    tap.flush()
    assert tap.messages == [each for each in said if isinstance(each, Message)]
    assert b"".join(iter(lambda: tap.recv(2) if tap.pending() else b"", b"")) == b"".join(
        each for each in said if isinstance(each, bytes)
    )
    assert socket.sent == released
    tap.acknowledge([(1, 7), (2, 258)])
    assert socket.sent == released + b"\x40\x02\x00\x07\x50\x02\x01\x02\xc0\x00"


@given(st.integers(LONGEST, 20_000), st.lists(st.integers(0, 25_000), max_size=12))
def test_of_a_long_message_the_beginning_is_kept_and_no_more_is_held(
    size: int, cuts: list[int]
) -> None:
    long = Message(b"a/b", bytes(range(250)) * (size // 250 + 1), 1, False, False, 9, 0)
    short = Message(b"c", b"after", 1, False, False, 10, 5)
    socket = Pieces(published(long, b"") + published(short, b""), cuts)
    tap = TappedSocket(socket, has_properties=True, max_message_bytes=LONGEST)
    while tap.fill():
        assert tap.incomplete <= LONGEST + 20_000
    first, second = tap.messages
    assert (first.size, first.packet, second) == (len(long.payload), 9, short)
    assert long.payload.startswith(first.payload)
    assert KEPT_OF_LONG - 10 < len(first.payload) <= KEPT_OF_LONG + 4


@given(
    st.lists(st.tuples(st.integers(1, 9), st.sampled_from([b"x", b"y"])), max_size=40), st.data()
)
def test_messages_are_known_again_until_they_are_forgotten_also_by_another_that_reads_the_log(
    came: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    forgotten = data.draw(st.integers(0, len(came)))
    at = data.draw(st.integers(forgotten, len(came)))
    seen, other = SeenMessages(), SeenMessages()
    for packet, payload in came[:at]:
        seen.note(packet, b"t", payload)
    seen.forget_oldest(forgotten)
    since = records([payload for _, payload in came[at:]])
    since = since.append_column("packet", pa.array([packet for packet, _ in came[at:]], pa.int32()))
    since = since.append_column("topic", pa.array(["t"] * (len(came) - at), pa.string()))
    other.load(seen.to_bytes(), [since])
    for packet, payload in came[at:]:
        seen.note(packet, b"t", payload)
    expected = dict(came[forgotten:])
    for known in (seen, other):
        for packet, payload in itertools.product(range(1, 10), (b"x", b"y")):
            assert known.knows(packet, b"t", payload) == (expected.get(packet) == payload)
            assert not known.knows(packet, b"other", payload)


def test_acknowledgements_have_come_when_something_later_is_answered() -> None:
    socket = Pieces(packet(0xD0, b"") + packet(0xD0, b""), [2])
    tap = TappedSocket(socket, has_properties=True, max_message_bytes=LONGEST)
    tap.acknowledge([(1, 1), (1, 2)])
    tap.acknowledge([])
    tap.acknowledge([(2, 3)])
    assert tap.processed == 0
    assert (tap.fill(), tap.processed) == (True, 2)
    assert (tap.fill(), tap.processed, tap.fill()) == (True, 3, False)
    assert socket.sent.endswith(b"\x50\x02\x00\x03\xc0\x00")


def test_why_a_connection_was_lost_is_known() -> None:
    said = OSError("certificate required")
    tap = TappedSocket(
        Mock(recv=Mock(side_effect=said)), has_properties=True, max_message_bytes=LONGEST
    )
    assert (tap.fill(), tap.recv(1), tap.lost_by) == (False, b"", said)


def test_options_say_where_and_what() -> None:
    said = read_options(
        {
            "url": "mqtt://h:7",
            "topics": '["a,b/+", "$share/g/c/#", "#"]',
            "qos": "2",
            "willTopic": "gone",
            "willMessage": "yes",
            "willRetain": "true",
            "caFile": "/ca",
        }
    )
    assert (said.host, said.port, said.tls, said.qos, said.ca_file) == ("h", 7, False, 2, "/ca")
    assert said.topics == ("a,b/+", "$share/g/c/#", "#")
    assert said.will == Will("gone", "yes", 0, True)
    assert read_options({"url": "mqtts://h", "topics": "a"}).port == 8883


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"url": ""}, "needs the option url\n  hint: write mqtt://HOST"),
        ({"url": "http://h"}, "names no broker"),
        ({"url": "mqtt://h:x"}, "cannot be read"),
        (
            {"url": "mqtt://ann:xyzzy@h"},
            "holds no user and no password\n  hint: set ACQUATOP_MQTT_USER",
        ),
        ({"topics": ""}, "needs the option topics"),
        ({"topics": "a,,b"}, '"" is no topic filter'),
        ({"topics": "a/#/b"}, '"a/#/b" is no topic filter'),
        ({"topics": "a/b+"}, '"a/b\\+" is no'),
        ({"topics": "$share/g"}, "is no topic filter"),
        ({"topics": "[1"}, "is no topic filter"),
        ({"qos": "3"}, "qos .* from 0 to 2"),
        ({"patience": "-1"}, "patience .* from 0 on"),
        ({"version": "4"}, "version .* is 5 or 3.1.1"),
        ({"session": "x"}, "persistent or clean"),
        ({"willTopic": "a/#"}, "willTopic"),
    ],
)
def test_options_that_will_not_do_are_named(changed: dict[str, str], message: str) -> None:
    with pytest.raises(ConnectorError, match=message) as said:
        read_options({"url": "mqtt://h", "topics": "a", **changed})
    assert "xyzzy" not in str(said.value)
