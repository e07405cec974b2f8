"""Which messages a broker sends again, because it does not know that they have come."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

_ROW = np.dtype([("packet", "<u2"), ("print", "<u8")])


class SeenMessages:
    """The messages of a session that may come again, by the numbers that the broker gave them.

    A broker sends a message again, marked as such and with the same number, after a connection was lost before its
    acknowledgement had come, in order and before anything new. So messages are remembered until it is certain that it
    has: until the broker has answered something that was sent later. A marked message is known if the newest message
    of its number is remembered and has the same topic and content. At most 65 535 are, as many as there are numbers;
    O(1) each.

    What cannot be told apart is a message whose number was used just before for an equal one, and which was lost
    together with the broker's answer. Brokers use numbers in turn, so that there are some 65 000 messages between.

    >>> seen = SeenMessages()
    >>> seen.note(1, b"a", b"x"); seen.note(2, b"a", b"y")
    >>> seen.knows(1, b"a", b"x"), seen.knows(1, b"a", b"y"), seen.knows(3, b"a", b"x")
    (True, False, False)
    >>> seen.forget_oldest(1); seen.knows(1, b"a", b"x"), seen.knows(2, b"a", b"y")
    (False, True)
    """

    def __init__(self) -> None:
        self._prints: dict[int, tuple[int, int]] = {}
        """For each number, which message it was, counted from the first, and what is known of that."""
        self.count = 0
        """How many messages have been noted."""

    def note(self, packet: int, topic: bytes, payload: bytes) -> None:
        """Note a message that is durable, or will be before any other is looked at."""
        self._prints.pop(packet, None)
        self.count += 1
        self._prints[packet] = self.count, _print(topic, payload)

    def knows(self, packet: int, topic: bytes, payload: bytes) -> bool:
        """Say whether a message that is marked as sent again has come before."""
        known = self._prints.get(packet)
        return known is not None and known[1] == _print(topic, payload)

    def forget_oldest(self, count: int) -> None:
        """Forget the first messages that were noted, so many of them: they will not come again."""
        # They are in the order in which they were noted.
        gone = itertools.takewhile(lambda packet: self._prints[packet][0] <= count, self._prints)
        for packet in list(gone):
            del self._prints[packet]

    def forget(self) -> None:
        """Forget all: the broker has forgotten the session, and will send nothing of it again."""
        self._prints.clear()

    # What is kept -----------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return it as bytes, 10 for each message."""
        return np.array([(packet, known) for packet, (_, known) in self._prints.items()], _ROW).tobytes()

    def load(self, content: bytes, since: Iterable[pa.RecordBatch]) -> None:
        """Take what was kept, and the messages that have come since, as they were logged."""
        rows = np.frombuffer(content, _ROW).tolist()
        self._prints = {packet: (at, known) for at, (packet, known) in enumerate(rows, start=1)}
        self.count = len(rows)
        for batch in since:
            packets, topics, payloads = (batch.column(name).to_pylist() for name in ("packet", "topic", "value"))
            for packet, topic, payload in zip(packets, topics, payloads, strict=True):
                if packet:
                    self.note(packet, topic.encode(), payload)


def _print(topic: bytes, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(topic)) << 32 | len(payload)
