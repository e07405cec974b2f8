"""Messages as columns: content, key, headers, topic, time, and where they stand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

SCHEMA = pa.schema(
    [
        ("value", pa.binary()),
        ("key", pa.binary()),
        ("headers", pa.map_(pa.string(), pa.binary())),
        ("topic", pa.string()),
        ("received", pa.timestamp("us", "UTC")),
        ("file", pa.string()),
        ("position", pa.int64()),
    ]
)

Decode = Callable[[bytes], bytes]
"""Function from a message's content to what a format reads."""


def batch_of(messages: Sequence[Message], decode: Decode | None) -> pa.RecordBatch:
    """Return messages as a batch of rows; of several headers of one name the last one counts."""
    values = [_bytes(each.value()) for each in messages]
    if decode is not None:
        values = [None if each is None else decode(each) for each in values]
    columns = [
        pa.array(values, pa.binary()),
        pa.array([_bytes(each.key()) for each in messages], pa.binary()),
        pa.array([_headers(each) for each in messages], SCHEMA.field("headers").type),
        pa.array([each.topic() for each in messages], pa.string()),
        pa.array([_micros(each) for each in messages], SCHEMA.field("received").type),
        pa.array([f"{each.topic()}/{each.partition()}" for each in messages], pa.string()),
        pa.array([each.offset() for each in messages], pa.int64()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _bytes(content: bytes | str | None) -> bytes | None:
    return content.encode() if isinstance(content, str) else content


def _headers(message: Message) -> list[tuple[str, bytes | None]]:
    said = message.headers()
    return list({name: _bytes(value) for name, value in said}.items()) if said else []


def _micros(message: Message) -> int | None:
    kind, millis = message.timestamp()
    return None if kind == TIMESTAMP_NOT_AVAILABLE else 1000 * millis
