"""Fetching of messages between two offsets: always the same ones, whoever asks, and how often."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from connectors import ConnectorError
from connectors.kafka_client.ends import SECONDS, refused, topic_partition
from connectors.kafka_client.library_log import LibraryLog
from connectors.ranges import Range

_WAIT_SECONDS = 0.1
_SILENT_SECONDS = 300.0
"""Time without a message that was promised after which reading fails."""
_ATTEMPTS = 10
"""Number of times that a range is asked for that is said not to be there, and is."""
_HELD = 10_000
"""Number of messages that may wait behind the end of a partition's range."""
_GONE = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)
_FINAL = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)
SETTINGS = {
    "group.id": "acquatop",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "fetch.wait.max.ms": 50,
    "queued.max.messages.kbytes": 16_384,
}


class _OutOfRangeError(Exception):
    """Error: a range is said not to be there."""

    def __init__(self, wanted: Range, reason: str) -> None:
        super().__init__(reason)
        self.range = wanted


class Fetcher:
    """Consumer of partitions that goes on where it has ended, if that is what is asked for.

    Only committed messages count. Offsets without a message, of transactions and of compacted
    topics, are passed over.
    """

    def __init__(
        self,
        settings: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = {**settings, **SETTINGS}
        self._consumer = Consumer(self._settings, logger=LibraryLog())
        self._clock = clock
        self._next: dict[str, int] = {}
        """The offset from which on each partition's messages are held, or come."""
        self._held: defaultdict[str, list[Message]] = defaultdict(list)
        self._paused: set[str] = set()

    def close(self) -> None:
        """Disconnect."""
        self._consumer.close()

    def fetch(self, ranges: Sequence[Range]) -> list[Message]:
        """Return the messages in some ranges of different partitions, each partition's in order."""
        for left in reversed(range(_ATTEMPTS)):
            try:
                return self._fetched(ranges)
            except _OutOfRangeError as lost:
                # The library also says so of requests that a busy broker did not answer in time.
                self._check_there(lost.range)
                if not left:
                    raise ConnectorError(
                        f"Kafka does not give {lost.range.place}: {lost}"
                    ) from None
                self._next.clear()
                self._consumer.unassign()
                self._consumer.poll(_WAIT_SECONDS)
        raise AssertionError("the last attempt returns, or raises")

    def _fetched(self, ranges: Sequence[Range]) -> list[Message]:
        self._assign(ranges)
        found: dict[str, list[Message]] = {each.place: self._from_held(each) for each in ranges}
        open_ranges = {each.place: each for each in ranges if not self._is_over(each)}
        heard = self._clock()
        while open_ranges:
            messages = self._poll(sum(each.end - each.begin for each in open_ranges.values()))
            for message in messages:
                self._take(message, open_ranges, found)
            self._pause(open_ranges)
            if messages:
                heard = self._clock()
            elif self._clock() - heard > _SILENT_SECONDS:
                raise ConnectorError(
                    f"Kafka has sent nothing of {', '.join(open_ranges)} for {_SILENT_SECONDS:g} s"
                    "\n  hint: see that it is running; a start with the same state goes on"
                )
            for place in [each for each, range_ in open_ranges.items() if self._is_over(range_)]:
                del open_ranges[place]
        for each in ranges:
            self._next[each.place] = each.end
        return [message for each in ranges for message in found[each.place]]

    def _check_there(self, wanted: Range) -> None:
        """Raise an error if the beginning of a range was removed."""
        try:
            first, _ = self._consumer.get_watermark_offsets(
                topic_partition(wanted.place), timeout=SECONDS
            )
        except KafkaException:
            return  # it cannot be told now
        if first > wanted.begin:
            raise ConnectorError(
                f"messages of {wanted.place} from {wanted.begin} on are no longer there\n"
                "  hint: keep them longer (retention.ms), or begin anew with another state "
                "directory"
            )

    def _assign(self, ranges: Sequence[Range]) -> None:
        """Go to the beginnings of ranges; what has been read on from there is still of use."""
        if any(self._next.get(each.place) != each.begin for each in ranges):
            if self._next:
                # A consumer tells its former position for a while, as if a range were over.
                self._consumer.close()
                self._consumer = Consumer(self._settings, logger=LibraryLog())
            self._next |= {each.place: each.begin for each in ranges}
            self._held.clear()
            self._paused.clear()
            self._consumer.assign([topic_partition(*each) for each in self._next.items()])
        elif waiting := self._paused.intersection(each.place for each in ranges):
            self._consumer.resume([topic_partition(each) for each in waiting])
            self._paused -= waiting

    def _from_held(self, wanted: Range) -> list[Message]:
        held = self._held.pop(wanted.place, [])
        inside = [each for each in held if _offset(each) < wanted.end]
        if len(inside) < len(held):
            self._held[wanted.place] = held[len(inside) :]
        return inside

    def _is_over(self, wanted: Range) -> bool:
        """Return True if no more messages of a range will come."""
        if self._held.get(wanted.place):
            return True
        (at,) = self._consumer.position([topic_partition(wanted.place)])
        return bool(at.offset >= wanted.end)

    def _poll(self, most: int) -> list[Message]:
        """Return some messages, and wait for the first one."""
        first = self._consumer.poll(_WAIT_SECONDS)
        return [] if first is None else [first, *self._consumer.consume(min(most, 100_000), 0)]

    def _take(
        self, message: Message, ranges: Mapping[str, Range], found: Mapping[str, list[Message]]
    ) -> None:
        error = message.error()
        place = f"{message.topic()}/{message.partition()}"
        if error is not None:
            _check(error, place, ranges)
        elif place in ranges and _offset(message) < ranges[place].end:
            found[place].append(message)
        else:
            self._held[place].append(message)

    def _pause(self, ranges: Mapping[str, Range]) -> None:
        """Let what runs ahead of the others wait at the brokers."""
        ahead = [
            place
            for place, held in self._held.items()
            if len(held) > _HELD and place not in self._paused and place not in ranges
        ]
        if ahead:
            self._consumer.pause([topic_partition(each) for each in ahead])
            self._paused.update(ahead)


def _offset(message: Message) -> int:
    return int(message.offset())


def _check(error: KafkaError, place: str, ranges: Mapping[str, Range]) -> None:
    """Raise an error that waiting does not mend."""
    if error.code() in _GONE and place in ranges:
        raise _OutOfRangeError(ranges[place], error.str())
    if refused(error) or error.code() in _FINAL:
        raise ConnectorError(f"Kafka refuses {place}: {error.str()}")
