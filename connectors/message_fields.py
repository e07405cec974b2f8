"""Fields of a record that are beside a message's content: its topic, key, headers and time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from connectors.casts import fitted
from connectors.row_origins import ARRIVED
from connectors.topics import is_topic, topic_fields

KEY = "@key"
"""Name of the field for a message's key, a text."""
HEADER = "@header."
"""Beginning of the names of fields for headers, which are texts."""
TIMESTAMP = "@timestamp"
"""Name of the field for the broker's time of a message, in milliseconds."""


def is_text(field: str) -> bool:
    """Return True if a field is a text beside a message's content.

    >>> [is_text(each) for each in ("@topic.1", "@key", "@header.trace", "@timestamp", "key")]
    [True, True, True, False, False]
    """
    return is_topic(field) or (is_of_envelope(field) and field != TIMESTAMP)


def is_of_envelope(field: str) -> bool:
    """Return True if a field is a message's key, one of its headers, or its time."""
    return field in (KEY, TIMESTAMP) or (field.startswith(HEADER) and field != HEADER)


def is_beside(field: str) -> bool:
    """Return True if a field does not stand in a message's content."""
    return is_topic(field) or is_of_envelope(field)


def fields_beside(rows: pa.RecordBatch, fields: Iterable[str]) -> Mapping[str, pa.Array]:
    """Return fields of rows that are beside the content; null where a message lacks one.

    >>> rows = pa.record_batch([pa.array([b"m7", None, b"\\xff"])], ["key"])
    >>> fields_beside(rows, ["@key"])["@key"].to_pylist()
    ['m7', None, None]
    """
    wanted = list(fields)
    found = dict(topic_fields(rows, filter(is_topic, wanted)))
    return found | {each: _of_envelope(rows, each) for each in wanted if is_of_envelope(each)}


def _of_envelope(rows: pa.RecordBatch, field: str) -> pa.Array:
    if field == TIMESTAMP:
        return fitted(rows.column(ARRIVED), pa.int64())
    if field == KEY:
        return _texts(rows.column("key"))
    headers = rows.column("headers")
    return _texts(pc.map_lookup(headers, field.removeprefix(HEADER), "last"))


def _texts(said: pa.BinaryArray) -> pa.StringArray:
    """Return bytes as texts; what is not UTF-8 is null."""
    try:
        return said.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([_text(each) for each in said.to_pylist()], pa.string())


def _text(said: bytes | None) -> str | None:
    try:
        return None if said is None else said.decode()
    except UnicodeDecodeError:
        return None
