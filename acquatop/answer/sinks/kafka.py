"""Sink that writes answers to a topic of Kafka, each write as one transaction."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from acquatop.answer.answer import Answer
from acquatop.answer.sinks.json_line import json_line
from acquatop.answer.sinks.window_files import utf8
from acquatop.errors import EnvironmentProblem
from connectors.kafka_client.library_log import LibraryLog

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, TopicPartition

    from connectors.kafka_client.settings import Brokers

_REQUEST_SECONDS = 5.0
_POLL_SECONDS = 0.1
_AFTERWARDS = "answers that were not written are given again at the next start"

Identity = tuple[bytes, bytes, bytes]
"""A query, and the number and the close of a window."""


class KafkaSink:
    """Sink that sends a message of JSON per answer to a topic, with the query's name as its key.

    Each call of :meth:`write` is a transaction: its answers are there together, or not at all. With
    it goes a note, as offsets of a consumer group, of where it begins; a new sink reads the topic
    from there, and leaves out the answers that are there already. So an engine that resumes from
    its state writes each answer once. ``writer`` is the transactional id: whoever opens a sink with
    the same one locks out the former.
    """

    def __init__(
        self,
        brokers: Brokers,
        topic: str,
        *,
        writer: str | None = None,
        patience_seconds: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._brokers = brokers
        self._topic = topic
        self._writer = writer or f"acquatop/{topic}"
        self._patience = patience_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._link: _Link | None = self._linked()

    def write(self, answers: Sequence[Answer]) -> None:
        """Write answers in one transaction, but for those that are there; wait for its end."""
        with self._lock:
            self._link = link = self._link or self._linked()
            try:
                link.send(answers)
            except BaseException:
                self._drop()
                raise

    def close(self) -> None:
        """Disconnect from the brokers."""
        with self._lock:
            self._drop()

    def _linked(self) -> _Link:
        return _Link(self._brokers, self._topic, self._writer, self._patience, self._clock)

    def _drop(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()


class _Link:
    """Producer, and what the last transaction of its writer holds."""

    def __init__(
        self,
        brokers: Brokers,
        topic: str,
        writer: str,
        patience: float,
        clock: Callable[[], float],
    ) -> None:
        from confluent_kafka import Consumer, Producer

        self._brokers = brokers
        self._topic = topic
        self._writer = writer
        self._patience = patience
        self._clock = clock
        self._trouble = ""
        settings = {**brokers.client(), "error_cb": self._note}
        reading = {
            "group.id": writer,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
        writing = {"transactional.id": writer, "linger.ms": 0, "partitioner": "murmur2_random"}
        self._consumer = Consumer({**settings, **reading}, logger=LibraryLog())
        self._producer = Producer({**settings, **writing}, logger=LibraryLog())
        try:
            self._patiently(self._check_topic)
            # From here on no former writer adds anything.
            self._patiently(lambda: self._producer.init_transactions(_REQUEST_SECONDS))
            self._written = self._patiently(self._last_written)
        except BaseException:
            self.close()
            raise

    def send(self, answers: Sequence[Answer]) -> None:
        """Write answers as one transaction, without those that the last one holds."""
        contents = {_identity(each): json_line(each.to_json())[:-1] for each in answers}
        new = {each: text for each, text in contents.items() if self._written.get(each) != text}
        if not new:
            return
        sent: list[Message] = []
        self._trouble = ""
        self._patiently(self._producer.begin_transaction)
        for identity, text in new.items():
            headers = list(zip(("query", "window", "closes"), identity, strict=True))
            self._producer.produce(
                self._topic,
                text,
                key=identity[0],
                headers=[("content-type", b"application/json"), *headers],
                on_delivery=lambda error, message: self._delivered(error, message, sent),
            )
        self._await(lambda: len(sent) == len(new))
        begins = self._begins(sent)
        group = self._consumer.consumer_group_metadata()
        self._patiently(lambda: self._producer.send_offsets_to_transaction(begins, group))
        self._patiently(lambda: self._producer.commit_transaction(_REQUEST_SECONDS))
        self._written = contents

    def close(self) -> None:
        """Disconnect; a transaction that has not ended is undone by the next writer."""
        self._producer.purge()
        self._producer.flush(0)
        self._consumer.close()

    def _check_topic(self) -> None:
        from confluent_kafka import KafkaException

        error = self._consumer.list_topics(self._topic, _REQUEST_SECONDS).topics[self._topic].error
        if error is not None:
            raise KafkaException(error)

    def _begins(self, sent: Sequence[Message]) -> list[TopicPartition]:
        """Return where the first message of each partition stands."""
        from confluent_kafka import TopicPartition

        first: dict[int, int] = {}
        for message in sent:
            place, at = message.partition(), message.offset()
            assert place is not None
            assert at is not None
            first[place] = min(at, first.get(place, at))
        return [TopicPartition(self._topic, place, at) for place, at in first.items()]

    def _last_written(self) -> dict[Identity, bytes]:
        """Return the answers from where the last transaction begins in each partition."""
        from confluent_kafka import KafkaException, TopicPartition

        known = self._consumer.list_topics(self._topic, _REQUEST_SECONDS).topics[self._topic]
        places = [TopicPartition(self._topic, number) for number in known.partitions]
        noted = self._consumer.committed(places, timeout=_REQUEST_SECONDS)
        begins = [each for each in noted if each.offset >= 0]
        self._consumer.assign(begins)
        left, found = {each.partition for each in begins}, dict[Identity, bytes]()
        until = self._clock() + self._patience
        while left and self._clock() < until:
            message = self._consumer.poll(_POLL_SECONDS)
            if message is None:
                continue
            error = message.error()
            if error is None:
                if identity := _identity_of(message):
                    found[identity] = bytes(message.value() or b"")
            elif error.code() == _codes()._PARTITION_EOF:
                left.discard(message.partition())
            else:
                raise KafkaException(error)
        if left:
            self._fail("does not send what was written last")
        self._consumer.unassign()
        return found

    def _delivered(self, error: KafkaError | None, message: Message, sent: list[Message]) -> None:
        if error is not None:
            self._trouble = error.str()
        else:
            sent.append(message)

    def _await(self, is_done: Callable[[], bool]) -> None:
        until = self._clock() + self._patience
        while not is_done():
            self._patiently(lambda: self._producer.poll(_POLL_SECONDS))
            if self._clock() >= until:
                self._fail(f"has not taken the answers within {self._patience:g} s")

    def _patiently(self, call: Callable[[], Any]) -> Any:
        """Return what a call returns; repeat it while the library says that it may succeed."""
        from confluent_kafka import KafkaException

        until = self._clock() + self._patience
        while True:
            try:
                return call()
            except KafkaException as problem:
                error: KafkaError = problem.args[0]
                self._producer.poll(0)
                if error.code() in _fenced():
                    self._fail(
                        f'has another writer "{self._writer}" by now',
                        "let only one engine write to a topic, or give each a name: ?writer=NAME",
                    )
                if not _may_pass(error) or self._clock() >= until:
                    self._trouble = self._trouble or error.str()
                    self._fail("refuses the answers" if not _may_pass(error) else "does not reply")

    def _fail(
        self, what: str, hint: str = "is it running there, and may this user write?"
    ) -> NoReturn:
        trouble = f": {self._trouble}" if self._trouble else ""
        raise EnvironmentProblem(
            f"Kafka at {self._brokers} {what}{trouble}, topic {self._topic}\n"
            f"  hint: {hint}; {_AFTERWARDS}"
        )

    def _note(self, error: KafkaError) -> None:
        self._trouble = error.str()


def _codes() -> Any:
    from confluent_kafka import KafkaError

    return KafkaError


def _fenced() -> tuple[int, ...]:
    codes = _codes()
    return codes._FENCED, codes.PRODUCER_FENCED, codes.INVALID_PRODUCER_EPOCH


def _may_pass(error: KafkaError) -> bool:
    """Return True if the same call may succeed later."""
    codes = _codes()
    passing = (codes._TIMED_OUT, codes._TRANSPORT, codes._ALL_BROKERS_DOWN)
    return error.retriable() or (error.code() in passing and not error.fatal())


def _identity(answer: Answer) -> Identity:
    return utf8(answer.query), str(answer.window).encode(), str(answer.closes_ms).encode()


def _identity_of(message: Message) -> Identity | None:
    said: Mapping[str, Any] = dict(message.headers() or ())
    match said.get("query"), said.get("window"), said.get("closes"):
        case (bytes() as query, bytes() as window, bytes() as closes):
            return query, window, closes
    return None
