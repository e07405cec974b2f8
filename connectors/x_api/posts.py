"""Decoder of X's posts: a line becomes one record, or one per element of a list in it.

No triples and no Python object per post are built: JSON becomes columns, and lists are unfolded
there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.fields import FAULT, ROW
from connectors.lexical import XSD
from connectors.mapping import DATATYPES, FieldMapping, TermProperty, in_json
from connectors.objects import Datatype
from connectors.scalars import SCALAR, scalars_of
from connectors.x_api.fields import elements_of, list_of, only_list, schema_of_lines, value_of
from connectors.x_api.line_parser import LineParser

ITEM = "item"
"""Own field: a post's id with the number of the list's element, unique for each record."""
CREATED = "created_at"
_NOBODY = "urn:x:nobody"


@dataclass(frozen=True)
class PostsMapping(FieldMapping):
    """Mapping from posts to records: the fields of the subject, the time and the properties.

    Fields are named as in the API's description of a post (``public_metrics.like_count``), and
    ``matching_rules.tag`` beside it. If a field belongs to a list's elements, such as
    ``entities.mentions.id``, each element is a record, with the post's other fields. The fields may
    use only one list. A post with an empty list is a record without that list's fields; if the
    subject is one of them, the record has nothing but its time. The field ``item`` is the post's
    id, a hyphen and the number of the element: a subject that no other record has.

    >>> from connectors.mapping import IRI, Property, Template
    >>> of, user = "http://example.org/of", Template.parse("http://example.org/user/{}")
    >>> mentions = PostsMapping(
    ...     Template.parse("http://example.org/mention/{item}"),
    ...     properties={of: Property("entities.mentions.id", IRI, user)},
    ... )
    >>> line = (
    ...     b'{"data": {"id": "7", "created_at": "1970-01-01T00:00:01Z",'
    ...     b' "entities": {"mentions": [{"id": "12"}]}}}'
    ... )
    >>> mentions.records(pa.record_batch({"value": [line]})).to_pylist()
    [{'time_ms': 1000, 'subject': '<http://example.org/mention/7-0>', 'p0': '<http://example.org/user/12>',
      'bad': None, '.': 0}]
    """

    time: str = CREATED
    time_as: str = "dateTime"

    def __post_init__(self) -> None:
        for each in self.properties.values():
            if isinstance(each, TermProperty):
                _check_kinds(each)
            elif self.types[each.field] != DATATYPES[each.datatype]:
                raise ValueError(
                    f'the field "{each.field}" cannot be read both as a text and as a number'
                )
            if each.field == self.subject.field and list_of(each.field):
                raise ValueError(
                    f'the field "{each.field}" cannot be both the subject and a property'
                )
        only_list(self.types)
        if list_of(self.time):
            raise ValueError(f'the field "{self.time}" is not one time per post')

    @property
    def types(self) -> Mapping[str, pa.DataType]:
        """The needed fields, with the type that each must have."""
        return {**super().types, "id": pa.string()}

    @property
    def asked_for(self) -> tuple[str, ...]:
        """The fields to request from X: the first names of the needed fields.

        >>> from connectors.mapping import Property, Template
        >>> of = Property("entities.mentions.id", "iri")
        >>> PostsMapping(Template.parse("urn:{item}"), properties={"urn:of": of}).asked_for
        ('created_at', 'entities')
        """
        given = {"id", "text", ITEM, "matching_rules"}
        return tuple(sorted({name.partition(".")[0] for name in self.types} - given))

    def check_arrivals(self, arrivals: str) -> None:
        """Raise ValueError if a stream's ``arrivals`` setting is wrong for these records."""
        if self._list is None or self.subject.field == ITEM:
            return
        if arrivals == "distinct" or (arrivals == "latest" and list_of(self.subject.field) is None):
            raise ValueError(
                f'with arrivals = "{arrivals}" the records of one post must not share a subject: '
                f'use {{{ITEM}}} in the subject, or arrivals = "all"'
            )

    def named(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records in a batch of lines; empty lines are skipped.

        Each line is a post in the column ``value``.
        """
        rows = _Unfolded(LineParser(self.line_schema).parse(batch.column("value")), self._list)
        types = self.types
        fields = {
            name: scalars_of(rows[name]) if type_ == SCALAR else rows[name]
            for name, type_ in types.items()
        }
        if list_of(self.subject.field):
            # A record without a subject has no properties, so its subject may be any.
            said = {name: pc.if_else(rows.is_empty, None, each) for name, each in fields.items()}
            fields = {**said, self.time: fields[self.time]}
            subjects = pc.if_else(
                rows.is_empty, "" if self.subject.prefix else _NOBODY, fields[self.subject.field]
            )
            fields[self.subject.field] = subjects
        return self.items(pa.table({**fields, FAULT: rows.fault, ROW: rows.row}), batch)

    @cached_property
    def line_schema(self) -> pa.Schema:
        """The schema of the fields read from a line."""
        types = {
            name: self.likely(name) if type_ == SCALAR else type_
            for name, type_ in self.types.items()
        }
        return schema_of_lines({name: type_ for name, type_ in types.items() if name != ITEM})

    @cached_property
    def _list(self) -> str | None:
        return only_list(self.types)


def _check_kinds(about: TermProperty) -> None:
    """Raise ValueError if a field of X, which has one type, should have several."""
    if Datatype(XSD + "decimal") in about.objects.kinds:
        raise ValueError(
            f'the field "{about.field}" of a post is no decimal: use xsd:integer or xsd:double'
        )
    if len({in_json(each) for each in about.objects.kinds}) > 1:
        raise ValueError(
            f'the field "{about.field}" of a post has one type of JSON: declare one of its '
            'datatypes, or read the lines with format = "json"'
        )


class _Unfolded:
    """Fields of posts, a row per element of a list; one row if the list is empty or missing."""

    def __init__(self, lines: pa.Table, list_: str | None) -> None:
        self._lines, self._list = lines, list_
        self._posts: pa.Array | None = None
        self.is_empty = pa.repeat(False, len(lines))
        if list_ is None:
            return
        lists = value_of(lines, list_)
        lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
        rows = np.maximum(lengths, 1)
        starts = np.cumsum(rows) - rows
        posts = np.repeat(np.arange(len(rows)), rows)
        self._number = np.arange(len(posts)) - starts[posts]
        has_none = lengths[posts] == 0
        places = (np.cumsum(lengths) - lengths)[posts] + self._number
        self._posts, self.is_empty = pa.array(posts), pa.array(has_none)
        self._elements = pc.list_flatten(lists).take(pa.array(places, mask=has_none))

    def __getitem__(self, field: str) -> pa.Array:
        if field == ITEM:
            return self._items()
        if self._list is not None and list_of(field) == self._list:
            return elements_of(self._elements, field)
        return self._of_posts(value_of(self._lines, field))

    @property
    def fault(self) -> pa.StringArray:
        """The fault of the post that a row belongs to."""
        return self._of_posts(self._lines.column(FAULT).combine_chunks())

    @property
    def row(self) -> pa.Int32Array:
        """The index of the line that a row's post stood in."""
        return self._of_posts(self._lines.column(ROW).combine_chunks())

    def _items(self) -> pa.StringArray:
        ids = self._of_posts(value_of(self._lines, "id"))
        if self._list is None:
            return ids
        numbers = pa.array(self._number).cast(pa.string())
        return pc.if_else(self.is_empty, ids, pc.binary_join_element_wise(ids, numbers, "-"))

    def _of_posts(self, column: pa.Array) -> pa.Array:
        return column if self._posts is None else column.take(self._posts)
