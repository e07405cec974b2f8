"""Stream of messages of Kafka's topics: every committed message once, in batches that come again.

In plain PySpark, which already uses the name ``kafka``::

    from connectors.kafka import KafkaDataSource

    spark.dataSource.register(KafkaDataSource)
    messages = (
        spark.readStream.format("kafka_messages")
        .option("url", "kafka://127.0.0.1:9092")
        .option("topics", "mentions")
        .load()
    )

A row is a message: its content (``value``), ``key`` and ``headers``, its ``topic``, Kafka's time of
it (``received``), its partition as ``TOPIC/NUMBER`` (``file``), and its offset there
(``position``). A message without a content says nothing. Messages of transactions that are not
committed are not read.

Offsets are those of the partitions. The engine, or Spark's checkpoint, keeps them: groups at the
brokers decide nothing, and every batch can be read again while the topic keeps its messages. If
more is there than a batch may hold, all partitions are read up to the same time of Kafka's, so that
none runs ahead of the others. New partitions are noticed after some seconds and read from their
beginning. A lost broker is waited for. Messages that were removed before they were read are an
error.

Options:

- ``url``: the brokers, ``kafka://HOST[:PORT][,HOST…]``, or ``kafkas://`` for TLS.
- ``topics``: topics separated by commas, or a JSON list of them.
- ``begin``: ``earliest``, the default, or ``latest`` to leave out what is there at the first start.
- ``group``: a consumer group whose offsets show Kafka's tools how far the stream was read.
- ``maxRowsPerBatch``: maximum number of messages in one batch, 200 000 by default.
- ``maxPartitions``: maximum number of parts of a batch, one per core by default.
- ``patience``: seconds within which the first connection must succeed, 30 by default.
- ``encoding``: ``avro``, ``protobuf`` or ``json-schema`` for content in the wire format of schema
  registries, which becomes JSON; ``plain`` by default.
- ``registry``: the registry's address, ``http://…`` or ``https://…``.
- ``settingsFile``: a file of ``NAME=VALUE`` lines with settings of librdkafka, such as
  ``sasl.mechanism``; the file in ``ACQUATOP_KAFKA_SETTINGS`` by default.
- ``userVariable``, ``passwordVariable``: the environment variables with the user and the password,
  ``ACQUATOP_KAFKA_USER`` and ``ACQUATOP_KAFKA_PASSWORD`` by default.
"""

from __future__ import annotations

import copy
import functools
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar

import pyarrow as pa

from connectors import ConnectorError
from connectors.kafka_client.no_reply import NoReplyError
from connectors.kafka_client.options import KafkaOptions, read_options
from connectors.kafka_client.plan import batch_end, size
from connectors.ranges import Range, cut_ranges
from connectors.read_limits import ALL, ReadLimit, ReadMaxRows, TriggerAvailableNow
from connectors.source_status import Link, SourceStatus
from connectors.spark_classes import DataSource, DataSourceStreamReader, InputPartition

if TYPE_CHECKING:
    from connectors.kafka_client.columns import Decode
    from connectors.kafka_client.ends import TopicEnds
    from connectors.kafka_client.fetching import Fetcher

T = TypeVar("T")
Offset = dict[str, int]
LEAST_PARTITION = 1 << 16
"""Minimum number of messages of a part of a batch; the last one may be smaller."""
_SCHEMA = (
    "value binary, key binary, headers map<string,binary>, topic string, received timestamp, "
    "file string, position bigint"
)
_ASK_SECONDS = 0.02
"""Least time between two questions for the ends of topics."""
_RETRY_SECONDS = 0.2


class KafkaDataSource(DataSource):
    """The data source ``kafka_messages``."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name; PySpark has one called ``kafka``."""
        return "kafka_messages"

    def schema(self) -> str:
        """Return the columns of a row."""
        return _SCHEMA

    def streamReader(self, schema: Any) -> KafkaReader:  # noqa: N802 (the name is PySpark's)
        """Return a reader for the options given; it connects when first asked for new data."""
        return KafkaReader(read_options(self.options))


@dataclass
class _Messages(InputPartition):
    """The messages in some ranges of partitions."""

    ranges: tuple[Range, ...]


class KafkaReader(DataSourceStreamReader, TriggerAvailableNow):
    """Reader of messages from offsets on; the module describes it."""

    def __init__(
        self,
        options: KafkaOptions,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._clock = clock
        self._link = Link(
            f"Kafka at {options.brokers}",
            what=f"message of {', '.join(options.topics)}",
            silence_hint="see that something is produced to the topic (topics)",
        )
        self._clients = _Clients(options, clock)
        self._has_been_reached = False
        self._target: Offset | None = None
        self._known: tuple[float, Offset] | None = None
        self._shown: Offset = {}

    # Offsets ---------------------------------------------------------------------------------

    def initialOffset(self) -> Offset:  # noqa: N802
        """Return the offset at which a new stream begins."""
        ends = self._reached(lambda: self._clients.ends().earliest())
        if self._options.begin == "latest":
            ends = self._reached(lambda: self._clients.ends().latest())
        return dict(sorted(ends.items()))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit of one batch."""
        return ReadMaxRows(self._options.max_rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Take the present ends of the partitions as the end of the stream."""
        self._target = self._reached(lambda: self._clients.ends().latest())

    def latestOffset(  # noqa: N802
        self, start: Offset | None = None, limit: ReadLimit = ALL
    ) -> Offset:
        """Return the offset after the next batch; the start while no broker answers."""
        start = self.initialOffset() if start is None else start
        end = self._target
        if end is None:
            end = self._ends(start)
        if end is None or end == start:
            return start
        for place, at in start.items():
            if end.get(place, 0) < at:
                raise ConnectorError(
                    f"{place} ends at {end.get(place, 0)}, and was read up to {at}\n"
                    "  hint: it is not the same topic; begin anew with another state directory"
                )
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else size(start, end)
        planned = self._planned(start, end, most)
        return start if planned is None else dict(sorted(planned.items()))

    def _planned(self, start: Offset, end: Offset, most: int) -> Offset | None:
        if size(start, end) <= most:
            return end
        found = self._tried(lambda: self._clients.ends().times())
        if found is None:
            return None
        at = self._clients.ends().at
        return self._tried(lambda: batch_end(start, end, most, found, at))

    def _ends(self, start: Offset) -> Offset | None:
        """Return the ends of the partitions as they were lately; None if no broker answers."""
        now = self._clock()
        if self._known is None or now - self._known[0] >= _ASK_SECONDS:
            if self._has_been_reached:
                found = self._tried(lambda: self._clients.ends().latest())
            else:
                found = self._reached(lambda: self._clients.ends().latest())
            if found is None:
                return None
            self._known = self._clock(), found
            if start != self._shown:
                self._clients.ends().show(start)
                self._shown = start
        return self._known[1]

    def _tried(self, ask: Callable[[], T]) -> T | None:
        """Return an answer; None if the brokers cannot be reached now."""
        try:
            found = ask()
        except NoReplyError as error:
            self._link.failed(str(error), "see that it is running, and that the topic exists")
            return None
        self._link.made()
        self._has_been_reached = True
        return found

    def _reached(self, ask: Callable[[], T]) -> T:
        """Return an answer; wait for it as long as the patience lasts."""
        until = self._clock() + self._options.patience
        while (found := self._tried(ask)) is None:
            if self._clock() >= until:
                raise ConnectorError(
                    f"{self._link.status.where} cannot be read: {self._link.status.problem}\n"
                    "  hint: see that it is running, and that the topic and the address are right"
                )
            threading.Event().wait(_RETRY_SECONDS)
        return found

    def up_to(self, end: Offset) -> Self:
        """Return a reader of the same topics that ends at an offset."""
        reader = copy.copy(self)
        reader._target = end
        return reader

    def size(self, start: Offset, end: Offset) -> int:
        """Return how many offsets are between two."""
        return size(start, end)

    def is_mixed(self, start: Offset, end: Offset) -> bool:
        """Say whether messages of several partitions are between two offsets."""
        return sum(at > start.get(place, 0) for place, at in end.items()) > 1

    def progress(self, offset: Offset) -> tuple[int, int]:
        """Return the sum of the offsets, and what it will be at the end."""
        return sum(offset.values()), sum((self._target or offset).values())

    def status(self) -> SourceStatus | None:
        """Return the status of the brokers; None where nothing is planned."""
        return self._link.status

    # Messages --------------------------------------------------------------------------------

    def partitions(self, start: Offset, end: Offset) -> Sequence[_Messages]:
        """Return the messages between two offsets, cut so that every core has some."""
        ranges = [Range(place, start.get(place, 0), at) for place, at in sorted(end.items())]
        parts = self._options.max_partitions or os.cpu_count() or 1
        return [_Messages(part) for part in cut_ranges(ranges, parts, LEAST_PARTITION)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a part's messages as one Arrow batch."""
        from connectors.kafka_client.columns import batch_of

        assert isinstance(partition, _Messages)
        messages = self._clients.fetcher().fetch(partition.ranges)
        if messages:
            yield batch_of(messages, self._clients.decode())

    def stop(self) -> None:
        """Disconnect."""
        self._clients.close()


class _Clients:
    """Connections of a reader, made when they are needed; another process makes its own."""

    def __init__(self, options: KafkaOptions, clock: Callable[[], float]) -> None:
        self._options = options
        self._clock = clock
        self._ends: TopicEnds | None = None
        self._fetcher: Fetcher | None = None

    def __reduce__(self) -> Any:
        return _Clients, (self._options, self._clock)

    def ends(self) -> TopicEnds:
        """Return the client that asks for offsets."""
        if self._ends is None:
            ends = _loaded().TopicEnds
            self._ends = ends(
                self._options.brokers.client(),
                self._options.topics,
                self._options.group,
                self._clock,
            )
        return self._ends

    def fetcher(self) -> Fetcher:
        """Return the client that fetches messages."""
        if self._fetcher is None:
            _loaded()
            from connectors.kafka_client.fetching import Fetcher

            self._fetcher = Fetcher(self._options.brokers.client(), self._clock)
        return self._fetcher

    @functools.cached_property
    def _decoder(self) -> Decode | None:
        if self._options.registry is None:
            return None
        from connectors.kafka_client.encodings import decoder

        return decoder(self._options.encoding, self._options.registry)

    def decode(self) -> Decode | None:
        """Return what makes JSON of messages' contents; None if nothing is to be done."""
        return self._decoder

    def close(self) -> None:
        """Disconnect."""
        ends, self._ends = self._ends, None
        fetcher, self._fetcher = self._fetcher, None
        for client in (ends, fetcher):
            if client is not None:
                client.close()


def _loaded() -> Any:
    """Return the module that needs the client library, or say how to get that."""
    try:
        from connectors.kafka_client import ends
    except ModuleNotFoundError as missing:
        if missing.name != "confluent_kafka":
            raise
        raise ConnectorError(
            'the connector "kafka" needs confluent-kafka\n  hint: pip install "acquatop[kafka]"'
        ) from None
    return ends
