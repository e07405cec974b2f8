"""Options of the connector ``kafka``, parsed and checked."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from connectors import ConnectorError
from connectors.kafka_client.settings import PASSWORD, USER, Brokers, brokers

BEGINNINGS = ("earliest", "latest")
ENCODINGS = ("plain", "avro", "protobuf", "json-schema")
ROWS_PER_BATCH = 200_000
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True)
class KafkaOptions:
    """Options of a stream of Kafka's; :mod:`connectors.kafka` describes them."""

    brokers: Brokers
    topics: tuple[str, ...]
    begin: str = BEGINNINGS[0]
    group: str | None = None
    max_rows: int = ROWS_PER_BATCH
    max_partitions: int | None = None
    patience: float = 30.0
    encoding: str = ENCODINGS[0]
    registry: str | None = None


def read_options(options: Mapping[str, str]) -> KafkaOptions:
    """Return the parsed options; raise :class:`~connectors.ConnectorError` for invalid ones.

    >>> read_options({"url": "kafka://127.0.0.1", "topics": "mentions, likes"}).topics
    ('mentions', 'likes')
    """
    for name in ("url", "topics"):
        if not options.get(name):
            raise ConnectorError(f'the connector "kafka" needs the option {name}')
    encoding, registry = _choice(options, "encoding", ENCODINGS), options.get("registry")
    if (encoding != ENCODINGS[0]) != bool(registry):
        raise ConnectorError(
            'the options encoding and registry of the connector "kafka" go together\n'
            f'  hint: encoding = "{ENCODINGS[1]}" needs the address of the schema registry'
        )
    return KafkaOptions(
        brokers=brokers(
            options["url"],
            settings_file=options.get("settingsFile"),
            user_variable=options.get("userVariable", USER),
            password_variable=options.get("passwordVariable", PASSWORD),
        ),
        topics=_topics(options["topics"]),
        begin=_choice(options, "begin", BEGINNINGS),
        group=options.get("group"),
        max_rows=_number(options, "maxRowsPerBatch", ROWS_PER_BATCH, least=1),
        max_partitions=_number(options, "maxPartitions", 0) or None,
        patience=float(_number(options, "patience", 30)),
        encoding=encoding,
        registry=registry,
    )


def _topics(text: str) -> tuple[str, ...]:
    try:
        written = json.loads(text) if text.lstrip().startswith("[") else text.split(",")
        topics = tuple(str(each).strip() for each in written)
    except ValueError:
        topics = ("",)
    for topic in topics:
        if not _TOPIC.fullmatch(topic):
            raise ConnectorError(
                f'in the option topics of the connector "kafka" "{topic}" is no topic'
            )
    return topics


def _choice(options: Mapping[str, str], name: str, known: tuple[str, ...]) -> str:
    value = options.get(name, known[0])
    if value not in known:
        raise ConnectorError(
            f'the option {name} of the connector "kafka" is {", ".join(known)}, not "{value}"'
        )
    return value


def _number(options: Mapping[str, str], name: str, default: int, least: int = 0) -> int:
    text = options.get(name, str(default))
    if not text.isdecimal() or int(text) < least:
        raise ConnectorError(
            f'the option {name} of the connector "kafka" is a whole number from {least} on'
        )
    return int(text)
