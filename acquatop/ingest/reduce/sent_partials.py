"""Partial aggregates as executors send them: keys as hashes, texts only of those not known.

A row has its key's hash, and its numbers in as few bytes as hold them. Panes are runs of rows, told
in the metadata, as are the texts with their rows.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from acquatop.ingest.reduce.packing import PACKED, PACKED_FROM
from acquatop.ingest.reduce.panes import runs_of
from acquatop.ingest.reduce.partial_columns import FIRST, LAST, NEWEST
from acquatop.ingest.scoring import BoolArray
from acquatop.ingest.solution_columns import KEY
from acquatop.topk.contract import AnyArray
from connectors.coded import compact

_PANES, _TEXTS = b"sums", b"texts"
_AT = "at"
_SMALL = np.iinfo(np.int32)


def sent(table: pa.Table, is_known: BoolArray) -> pa.Table:
    """Return partials with hashes as they are sent; ``is_known`` is a mask of the rows."""
    firsts, lasts, newest = (_numbers(table, name) for name in (FIRST, LAST, NEWEST))
    panes, newest = [], newest.copy()
    for first, last, at in runs_of(firsts, lasts):
        base = int(newest[at].min())
        newest[at] -= base
        panes.append([first, last, at.stop - at.start, base])
    new = np.flatnonzero(~is_known)
    numbers = {
        name: small(_numbers(table, name))
        for name in table.column_names
        if name not in (FIRST, LAST, KEY, NEWEST)
    }
    keys = compact(table.column(KEY).combine_chunks().take(pa.array(new)))
    texts = pa.record_batch({_AT: new.astype(np.int32), KEY: keys})
    metadata = {_PANES: json.dumps(panes).encode(), _TEXTS: _packed(texts)}
    return pa.table({**numbers, NEWEST: small(newest)}).replace_schema_metadata(metadata)


def received(table: pa.Table) -> pa.Table:
    """Return partials that were sent; the keys of those without a text are null.

    Others are returned as they are.
    """
    if _PANES not in (table.schema.metadata or {}):
        return table
    panes = json.loads(table.schema.metadata[_PANES])
    firsts, lasts, sizes, bases = np.array(panes, dtype=np.int64).reshape(-1, 4).T
    texts = pa.ipc.open_stream(table.schema.metadata[_TEXTS]).read_all()
    keys = texts.column(KEY).combine_chunks()
    indices = np.full(len(table), -1, dtype=np.int32)
    indices[np.asarray(texts.column(_AT).to_numpy())] = keys.indices.to_numpy()
    coded = pa.DictionaryArray.from_arrays(pa.array(indices, mask=indices < 0), keys.dictionary)
    numbers = {name: _wide(_numbers(table, name)) for name in table.column_names}
    numbers[NEWEST] = numbers[NEWEST] + np.repeat(bases, sizes)
    spans = {FIRST: np.repeat(firsts, sizes), LAST: np.repeat(lasts, sizes)}
    return pa.table({**spans, KEY: coded, **numbers})


def _numbers(table: pa.Table, name: str) -> AnyArray:
    return np.asarray(table.column(name).to_numpy())


def small(column: AnyArray) -> AnyArray:
    """Return whole numbers in 32 bits, if they fit."""
    if column.dtype != np.int64 or not len(column):
        return column
    fits = column.min() >= _SMALL.min and column.max() <= _SMALL.max
    return column.astype(np.int32) if fits else column


def _wide(column: AnyArray) -> AnyArray:
    return column.astype(np.int64) if column.dtype == np.int32 else column


def _packed(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    # What is packed of a table does not include its metadata.
    options = PACKED if batch.nbytes >= PACKED_FROM else None
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())
