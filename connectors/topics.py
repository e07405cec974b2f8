"""The topic that a message came by, as fields of its record: the whole of it, and its levels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from connectors.casts import fitted

TOPIC = "@topic"
"""In place of a field: the whole topic. With a dot and a number it is one of its levels, the first being 0."""
COLUMN = "topic"
"""The column in which sources say it."""
_FIELD = re.compile(rf"{TOPIC}(?:\.([0-9]{{1,5}}))?")


def is_topic(field: str) -> bool:
    """Say whether a field is the topic, or a level of it.

    >>> [is_topic(each) for each in ("@topic", "@topic.2", "@topic.x", "topic")]
    [True, True, False, False]
    """
    return _FIELD.fullmatch(field) is not None


def topic_fields(rows: pa.RecordBatch, fields: Iterable[str]) -> Mapping[str, pa.StringArray]:
    """Return some fields of rows' topics: null where a topic has no such level. Each topic is taken apart but once.

    >>> rows = pa.record_batch([pa.array(["plant/m7/heat", "plant"])], ["topic"])
    >>> topic_fields(rows, ["@topic.1"])["@topic.1"].to_pylist()
    ['m7', None]
    """
    said = rows.column(COLUMN) if COLUMN in rows.schema.names else pa.nulls(rows.num_rows, pa.string())
    coded = fitted(said, pa.dictionary(pa.int32(), pa.string()))
    levels = pc.split_pattern(coded.dictionary, "/")
    return {field: _part(field, coded.dictionary, levels).take(coded.indices) for field in fields}


def _part(field: str, topics: pa.StringArray, levels: pa.ListArray) -> pa.StringArray:
    match = _FIELD.fullmatch(field)
    assert match is not None, "is_topic says which fields are"
    if match[1] is None:
        return topics
    level = int(match[1])
    return pc.list_slice(levels, level, level + 1, return_fixed_size_list=True).flatten()
