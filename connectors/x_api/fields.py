"""Fields of posts by dotted names, with the Arrow types that read only these from JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

LISTS = (
    "attachments.media_keys",
    "context_annotations",
    "edit_history_tweet_ids",
    "entities.annotations",
    "entities.cashtags",
    "entities.hashtags",
    "entities.mentions",
    "entities.urls",
    "matching_rules",
    "referenced_tweets",
)
"""Fields of a post that hold lists, by their names in the API's documentation."""
_BESIDE = "matching_rules"
"""Field that is beside a post, not in it."""
POST = "data"
"""Field of a line of the stream that has the post."""

_Tree = dict[str, Any]


def list_of(field: str) -> str | None:
    """Return the list whose elements a field belongs to, None if it has one value per post.

    >>> list_of("entities.mentions.username"), list_of("public_metrics.like_count")
    ('entities.mentions', None)
    """
    return next((each for each in LISTS if field == each or field.startswith(f"{each}.")), None)


def only_list(fields: Iterable[str]) -> str | None:
    """Return the one list that fields come from, None if there is none; ValueError for several."""
    lists = sorted({name for name in map(list_of, fields) if name})
    if len(lists) > 1:
        raise ValueError(f"fields of one list may be used, not of both {lists[0]} and {lists[1]}")
    return lists[0] if lists else None


def schema_of_lines(fields: Mapping[str, pa.DataType]) -> pa.Schema:
    """Return the schema that reads some fields from lines of the stream.

    >>> schema_of_lines({"id": pa.string(), "entities.mentions.id": pa.string()})
    data: struct<id: string, entities: struct<mentions: list<item: struct<id: string>>>>
      child 0, id: string
      child 1, entities: struct<mentions: list<item: struct<id: string>>>
          child 0, mentions: list<item: struct<id: string>>
              child 0, item: struct<id: string>
                  child 0, id: string
    """
    tree: _Tree = {POST: {}}
    for name, type_ in fields.items():
        *outer, last = _place(name)
        place = tree
        for segment in outer:
            place = place.setdefault(segment, {})
        place[last] = type_
    return pa.schema([(name, _type(inner, name)) for name, inner in tree.items()])


def _place(field: str) -> list[str]:
    return field.split(".") if list_of(field) == _BESIDE else [POST, *field.split(".")]


def _type(tree: _Tree | pa.DataType, name: str) -> pa.DataType:
    """Return the type of a subtree: a list if the API has one there."""
    inner = tree
    if isinstance(tree, dict):
        inner = pa.struct([(each, _type(below, f"{name}.{each}")) for each, below in tree.items()])
    return pa.list_(inner) if name.removeprefix(f"{POST}.") in LISTS else inner


def value_of(lines: pa.Table, field: str) -> pa.Array:
    """Return a field's values, one per post. For fields of a list see :func:`elements_of`."""
    first, *rest = _place(field)
    column = lines.column(first).combine_chunks()
    return pc.struct_field(column, rest) if rest else column


def elements_of(elements: pa.Array, field: str) -> pa.Array:
    """Return a field's value in each element of its list."""
    rest = field.removeprefix(list_of(field) or "").lstrip(".")
    return pc.struct_field(elements, rest.split(".")) if rest else elements
