"""Topic of a message as fields of its record: the whole topic, and its levels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from connectors.casts import fitted

TOPIC = "@topic"
"""Name of the field for the whole topic. With a dot and a number it is one level, from 0."""
COLUMN = "topic"
"""Column in which sources give the topic."""
_FIELD = re.compile(rf"{TOPIC}(?:\.([0-9]{{1,5}}))?")


def is_topic(field: str) -> bool:
    """Return True if a field is the topic or one of its levels.

    >>> [is_topic(each) for each in ("@topic", "@topic.2", "@topic.x", "topic")]
    [True, True, False, False]
    """
    return _FIELD.fullmatch(field) is not None


def topic_fields(rows: pa.RecordBatch, fields: Iterable[str]) -> Mapping[str, pa.StringArray]:
    """Return fields of rows' topics; null if a topic has no such level.

    Each distinct topic is split only once.

    >>> rows = pa.record_batch([pa.array(["plant/m7/heat", "plant"])], ["topic"])
    >>> topic_fields(rows, ["@topic.1"])["@topic.1"].to_pylist()
    ['m7', None]
    """
    said = (
        rows.column(COLUMN) if COLUMN in rows.schema.names else pa.nulls(rows.num_rows, pa.string())
    )
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
