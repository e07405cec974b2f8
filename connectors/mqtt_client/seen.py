"""Which messages a broker sends again, because it does not know that they have come."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

_ROW = np.dtype([("packet", "<u2"), ("print", "<u8")])


class SeenMessages:
    """The newest messages of a session, by the numbers that the broker gave them.

    A broker sends a message again, marked as such and with the same number, after a connection was lost before its
    acknowledgement had come. It waits for the acknowledgements of so many messages at most, and these are the
    newest. So a marked message is known if the newest message of its number is among the newest ``limit`` and has the
    same topic and content. What cannot be told apart is a message that is equal to another one of the same
    number, acknowledged just before; brokers use numbers in turn, so that there are some 65 000 messages between.

    >>> seen = SeenMessages(limit=2)
    >>> seen.note(1, b"a", b"x"); seen.note(2, b"a", b"y")
    >>> seen.knows(1, b"a", b"x"), seen.knows(1, b"a", b"y"), seen.knows(3, b"a", b"x")
    (True, False, False)
    >>> seen.note(3, b"a", b"x"); seen.knows(1, b"a", b"x")
    False
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._prints: dict[int, int] = {}

    def note(self, packet: int, topic: bytes, payload: bytes) -> None:
        """Note a message that is durable, or will be before any other is looked at."""
        self._prints.pop(packet, None)
        self._prints[packet] = _print(topic, payload)
        if len(self._prints) > self._limit:
            del self._prints[next(iter(self._prints))]

    def knows(self, packet: int, topic: bytes, payload: bytes) -> bool:
        """Say whether a message that is marked as sent again has come before."""
        return self._prints.get(packet) == _print(topic, payload)

    def forget(self) -> None:
        """Forget all: the broker has forgotten the session, and will send nothing of it again."""
        self._prints.clear()

    # What is kept -----------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return it as bytes, 10 for each message."""
        return np.array(list(self._prints.items()), _ROW).tobytes()

    def load(self, content: bytes, since: Iterable[pa.RecordBatch]) -> None:
        """Take what was kept, and the messages that have come since, as they were logged."""
        self._prints = dict(np.frombuffer(content, _ROW).tolist())
        for batch in since:
            packets, topics, payloads = (batch.column(name).to_pylist() for name in ("packet", "topic", "value"))
            for packet, topic, payload in zip(packets, topics, payloads, strict=True):
                if packet:
                    self.note(packet, topic.encode(), payload)


def _print(topic: bytes, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(topic)) << 32 | len(payload)
