"""Subjects of records whose IRIs are written only where somebody needs them.

Most records of a stream are added up or left out, and nobody asks for their subjects. So a decoder
may leave a column of names (texts or integers), and the template in which they stand is noted with
the column. Whoever needs the terms calls :func:`subjects_of`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

from connectors.coded import CODED, coded, uncoded
from connectors.properties import SUBJECT

if TYPE_CHECKING:
    from connectors.contract import RecordDecoder

_TEMPLATE = b"template"


@runtime_checkable
class NamesSubjects(Protocol):
    """Decoder that can leave subjects as names."""

    def named(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records in a batch of a source's rows, as ``records`` does, but for that."""


def named_records(decoder: RecordDecoder, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the records in a batch of rows, with subjects as names if the decoder can do so."""
    return decoder.named(batch) if isinstance(decoder, NamesSubjects) else decoder.records(batch)


def subject_field(names: pa.Array, prefix: str, suffix: str) -> pa.Field:
    """Return the field of a column of names that stand between a prefix and a suffix in an IRI.

    >>> names = pa.array([7])
    >>> field = subject_field(names, "http://example.org/", "")
    >>> subjects_of(pa.record_batch([names], pa.schema([field]))).to_pylist()
    ['<http://example.org/7>']
    """
    said = {_TEMPLATE: json.dumps([f"<{prefix}", f"{suffix}>"]).encode()}
    return pa.field(SUBJECT, names.type, metadata=said)


def subjects_of(records: pa.RecordBatch) -> pa.DictionaryArray:
    """Return records' subjects as terms: N-Triples IRIs, each name of a dictionary written once."""
    column = records.column(SUBJECT)
    said = (records.schema.field(SUBJECT).metadata or {}).get(_TEMPLATE)
    if said is None:
        return uncoded(column)
    before, after = json.loads(said)
    names = coded(column)
    texts = names.dictionary.cast(pa.string())
    terms = pc.binary_join_element_wise(before, texts, after, "")
    return pa.DictionaryArray.from_arrays(names.indices, terms)


def written(records: pa.RecordBatch) -> pa.RecordBatch:
    """Return records with their subjects as terms."""
    at = records.schema.get_field_index(SUBJECT)
    if not (records.schema.field(at).metadata or {}).get(_TEMPLATE):
        return records
    return records.set_column(at, pa.field(SUBJECT, CODED), subjects_of(records))
