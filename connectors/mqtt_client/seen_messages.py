"""Detection of messages that a broker sends again because it lacks their acknowledgement."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

_ROW = np.dtype([("packet", "<u2"), ("print", "<u8")])


class SeenMessages:
    """Messages of a session that may come again, by the numbers that the broker gave them.

    If a connection is lost before a message's acknowledgement arrives, a broker sends the message
    again: marked as repeated, with the same number, in order and before anything new. So messages
    are remembered until the acknowledgement has certainly arrived: until the broker has answered a
    later packet. A marked message is known if the newest message of its number is remembered and
    has the same topic and content. At most 65 535 messages are remembered, one per number; O(1)
    each.

    One case cannot be distinguished: a message whose number was used just before for an equal one,
    and which was lost together with the broker's answer. Brokers use numbers in turn, so there are
    some 65 000 messages between.

    >>> seen = SeenMessages()
    >>> seen.note(1, b"a", b"x"); seen.note(2, b"a", b"y")
    >>> seen.knows(1, b"a", b"x"), seen.knows(1, b"a", b"y"), seen.knows(3, b"a", b"x")
    (True, False, False)
    >>> seen.forget_oldest(1); seen.knows(1, b"a", b"x"), seen.knows(2, b"a", b"y")
    (False, True)
    """

    def __init__(self) -> None:
        self._prints: dict[int, tuple[int, int]] = {}
        """For each number: the message's count from the first one, and its fingerprint."""
        self.count = 0
        """Number of messages noted."""

    def note(self, packet: int, topic: bytes, payload: bytes) -> None:
        """Note a message that is durable, or will be before the next one is processed."""
        self._prints.pop(packet, None)
        self.count += 1
        self._prints[packet] = self.count, _print(topic, payload)

    def knows(self, packet: int, topic: bytes, payload: bytes) -> bool:
        """Return True if a message marked as repeated has come before."""
        known = self._prints.get(packet)
        return known is not None and known[1] == _print(topic, payload)

    def forget_oldest(self, count: int) -> None:
        """Forget the messages among the first ``count`` noted: they will not come again."""
        # The entries are in the order of their notes.
        gone = itertools.takewhile(lambda packet: self._prints[packet][0] <= count, self._prints)
        for packet in list(gone):
            del self._prints[packet]

    def forget(self) -> None:
        """Forget all: the broker has lost the session, and will repeat nothing of it."""
        self._prints.clear()

    # Persistence ------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Return the state as bytes, 10 per message."""
        return np.array(
            [(packet, known) for packet, (_, known) in self._prints.items()], _ROW
        ).tobytes()

    def load(self, content: bytes, since: Iterable[pa.RecordBatch]) -> None:
        """Load the state from bytes, and note the messages logged since then."""
        rows = np.frombuffer(content, _ROW).tolist()
        self._prints = {packet: (at, known) for at, (packet, known) in enumerate(rows, start=1)}
        self.count = len(rows)
        for batch in since:
            packets, topics, payloads = (
                batch.column(name).to_pylist() for name in ("packet", "topic", "value")
            )
            for packet, topic, payload in zip(packets, topics, payloads, strict=True):
                if packet:
                    self.note(packet, topic.encode(), payload)


def _print(topic: bytes, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(topic)) << 32 | len(payload)
