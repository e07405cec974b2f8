"""Beginnings and ends of topics' partitions, as brokers say them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from connectors import ConnectorError
from connectors.kafka_client.library_log import LibraryLog
from connectors.kafka_client.no_reply import NoReplyError

SECONDS = 3.0
"""Maximum duration of a request to the brokers."""
_METADATA_SECONDS = 5.0
"""Seconds after which new partitions are looked for."""
_REFUSED = (
    KafkaError._AUTHENTICATION,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError._SSL,
)
"""Errors that another attempt would not mend."""


def refused(error: KafkaError) -> bool:
    """Return True for an error that another attempt would not mend."""
    return error.code() in _REFUSED


class TopicEnds:
    """Client that asks for the offsets of all partitions of some topics at once.

    ``group`` is the consumer group in which progress is shown to others; None for none.
    """

    def __init__(
        self,
        settings: Mapping[str, str],
        topics: Iterable[str],
        group: str | None,
        clock: Callable[[], float],
    ) -> None:
        self._topics = tuple(topics)
        self._group = group
        self._clock = clock
        self._refusal: KafkaError | None = None
        common = {**settings, "error_cb": self._note}
        self._admin = AdminClient(common, logger=LibraryLog())
        self._consumer = Consumer(
            {**common, "group.id": group or "acquatop", "enable.auto.commit": False},
            logger=LibraryLog(),
        )
        self._partitions: tuple[str, ...] = ()
        self._asked_at: float | None = None

    def close(self) -> None:
        """Disconnect."""
        self._consumer.close()

    def earliest(self) -> dict[str, int]:
        """Return where each partition begins now."""
        return {place: found.offset for place, found in self._ask(OffsetSpec.earliest()).items()}

    def latest(self) -> dict[str, int]:
        """Return where each partition ends now: behind what is not committed nothing is read."""
        return {place: found.offset for place, found in self._ask(OffsetSpec.latest()).items()}

    def times(self) -> tuple[int, int]:
        """Return the least and the greatest time of a message, in milliseconds."""
        firsts = [each.timestamp for each in self._ask(OffsetSpec.for_timestamp(0)).values()]
        lasts = [each.timestamp for each in self._ask(OffsetSpec.max_timestamp()).values()]
        return min((each for each in firsts if each >= 0), default=0), max(lasts, default=0)

    def at(self, time_ms: int) -> dict[str, int]:
        """Return the first offset of each partition from a time on, if there is one."""
        found = self._ask(OffsetSpec.for_timestamp(time_ms))
        return {place: each.offset for place, each in found.items() if each.offset >= 0}

    def show(self, offsets: Mapping[str, int]) -> None:
        """Let the group's offsets show to Kafka's own tools how far it is read."""
        if self._group is not None and offsets:
            committed = [topic_partition(place, at) for place, at in offsets.items()]
            self._consumer.commit(offsets=committed, asynchronous=True)
            self._consumer.poll(0)

    def _ask(self, spec: OffsetSpec) -> dict[str, Any]:
        wanted = {topic_partition(place): spec for place in self._known()}
        asked = self._admin.list_offsets(
            wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=SECONDS
        )
        found = {}
        for place, future in asked.items():
            try:
                found[place_of(place)] = future.result()
            except KafkaException as error:
                raise self._problem(error.args[0]) from None
        return found

    def _known(self) -> tuple[str, ...]:
        now = self._clock()
        if self._asked_at is None or now - self._asked_at >= _METADATA_SECONDS:
            self._partitions = tuple(self._places())
            self._asked_at = now
        return self._partitions

    def _places(self) -> Iterable[str]:
        for topic in self._topics:
            try:
                said = self._consumer.list_topics(topic, SECONDS).topics[topic]
            except KafkaException as error:
                raise self._problem(error.args[0]) from None
            if said.error is not None:
                raise self._problem(said.error, f'the topic "{topic}": ')
            yield from (f"{topic}/{number}" for number in sorted(said.partitions))

    def _note(self, error: KafkaError) -> None:
        if refused(error):
            self._refusal = error

    def _problem(self, error: KafkaError, about: str = "") -> Exception:
        self._admin.poll(0)
        error = self._refusal or error
        if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return NoReplyError(f"{about}there is no such topic")
        if refused(error):
            hint = "see the user, the password and the settings for TLS, and the access list"
            return ConnectorError(f"Kafka refuses: {about}{error.str()}\n  hint: {hint}")
        return NoReplyError(f"{about}{error.str()}")


def topic_partition(place: str, offset: int = -1001) -> TopicPartition:
    """Return a partition, named ``TOPIC/NUMBER``, as the client library knows it."""
    topic, _, number = place.rpartition("/")
    return TopicPartition(topic, int(number), offset)


def place_of(partition: TopicPartition) -> str:
    """Return the name of a partition."""
    return f"{partition.topic}/{partition.partition}"
