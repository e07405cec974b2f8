"""A compacted topic of Kafka as a feed: the newest record of each key, and its changes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from replica.clocks import Clock
from replica.feeds.contract import ChangeSink
from replica.feeds.record_forwarder import RecordForwarder
from replica.remotes.records import RecordReader

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message

MakeConsumer = Callable[[Mapping[str, Any]], "Consumer"]
"""Maker of a client of the brokers from what it needs besides addresses and secrets."""

_SETTINGS = {
    "group.id": "acquatop",
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
}
_MOST = 10_000
_WAIT_SECONDS = 0.2
_REQUEST_SECONDS = 5.0
_RETRY_SECONDS = 1.0


class KafkaFeed:
    """Feed that reads a topic from its beginning, and then what is added.

    A message's content is a record, and its key the record's id (the field ``id_field``), if the
    record has none itself. A message without a content says that the key has been deleted. Nothing
    is lost while the brokers are away. New partitions are read after the next start.
    """

    def __init__(
        self,
        topic: str,
        reader: RecordReader,
        *,
        id_field: str,
        consumer: MakeConsumer,
        clock: Clock,
        deleted: str = "deleted",
    ) -> None:
        self.failure: str | None = "not connected yet"
        self._topic = topic
        self._id = json.dumps(id_field).encode()
        self._consumer = consumer
        self._forwarder = RecordForwarder(reader, deleted, clock)
        self._ended = threading.Event()

    def start(self, sink: ChangeSink) -> None:
        """Start reading the topic."""
        self._forwarder.start(sink)
        threading.Thread(target=self._run, name=f"following {self._topic}", daemon=True).start()

    def stop(self) -> None:
        """Stop; no call of the sink follows."""
        self._ended.set()
        self._forwarder.stop()

    def _run(self) -> None:
        try:
            consumer = self._consumer({**_SETTINGS, "error_cb": self._failed})
            try:
                self._follow(consumer)
            finally:
                consumer.close()
        except Exception as error:
            self.failure = f"{self._topic} is followed no longer: {type(error).__name__}: {error}"
            raise

    def _follow(self, consumer: Consumer) -> None:
        while not self._ended.is_set() and not self._assign(consumer):
            self._ended.wait(_RETRY_SECONDS)
        while not self._ended.is_set():
            messages = consumer.consume(_MOST, _WAIT_SECONDS)
            self._forwarder.forward(self._records(messages))

    def _assign(self, consumer: Consumer) -> bool:
        """Begin to read all partitions; return whether the brokers know the topic."""
        from confluent_kafka import KafkaException, TopicPartition

        try:
            said = consumer.list_topics(self._topic, _REQUEST_SECONDS).topics[self._topic]
        except KafkaException as error:
            self._failed(error.args[0])
            return False
        if said.error is not None:
            self._failed(said.error)
            return False
        consumer.assign([TopicPartition(self._topic, each, 0) for each in said.partitions])
        self.failure = None
        return True

    def _records(self, messages: Iterable[Message]) -> Iterable[bytes]:
        for message in messages:
            error = message.error()
            if error is not None:
                self._failed(error)
                continue
            self.failure = None
            yield self._record(message.key(), message.value())

    def _record(self, key: bytes | str | None, content: bytes | str | None) -> bytes:
        """Return a message as a record; what stands in the record itself counts."""
        content = content.encode() if isinstance(content, str) else content
        key = key.encode() if isinstance(key, str) else key
        record = b"{}" if content is None else content.strip()
        if key is None or not record.startswith(b"{"):
            return record
        id_ = json.dumps(key.decode(errors="replace")).encode()
        rest = record[1:].lstrip()
        return b"{%s: %s%s%s" % (self._id, id_, b"" if rest.startswith(b"}") else b", ", rest)

    def _failed(self, error: KafkaError) -> None:
        self.failure = f"{self._topic}: {error.str()}"
