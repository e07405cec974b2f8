"""Byte planes of columns: what is sent is what was there, in fewer bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import event, given, settings
from hypothesis import strategies as st

from acquatop.ingest.reduce.byte_planes import planed, planed_at, whole
from acquatop.ingest.reduce.contract import Facts, Part

NOWHERE = np.empty((0, 2), dtype=np.int64)
CODED = pa.dictionary(pa.int32(), pa.string())
KINDS = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.int32(): st.integers(-9, 9),
    pa.int16(): st.integers(0, 9),
    pa.float64(): st.floats() | st.integers(0, 9).map(float),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=3),
    CODED: st.sampled_from("abc"),
}


@st.composite
def columns(draw: Any, count: int) -> pa.ChunkedArray:
    type_ = draw(st.sampled_from(list(KINDS)))
    value = KINDS[type_]
    some = draw(st.lists(value if draw(st.booleans()) else value | st.none(), min_size=1))
    # Many values repeat, as in a stream.
    values = [some[at % len(some)] for at in range(count + 2)]
    cut = draw(st.integers(1, count + 1))
    chunks = [pa.array(each, type_) for each in (values[:cut], values[cut:])]
    return pa.chunked_array(chunks, type_).slice(1, count)


@st.composite
def tables(draw: Any) -> pa.Table:
    count = draw(st.integers(0, 300))
    several = draw(st.lists(columns(count), min_size=1, max_size=4))
    return pa.table(several, [f"c{at}" for at in range(len(several))]).replace_schema_metadata(
        {"said": "so"}
    )


def same(one: pa.Table, other: pa.Table) -> bool:
    """Return True for the same values, where NaN is as good as NaN."""
    assert one.schema.equals(other.schema, check_metadata=True)
    return all(
        np.array_equal(*(np.array(each.to_pylist(), dtype=object) for each in (a, b)))
        or repr(a.to_pylist()) == repr(b.to_pylist())
        for a, b in zip(one.columns, other.columns, strict=True)
    )


@given(tables())
def test_planes_give_back_what_they_were_made_of(table: pa.Table) -> None:
    there, at = planed(table)
    event(f"{len(at)} of {table.num_columns} columns")
    assert same(whole(there, at), table)
    # Any column may be chosen that has numbers or codes of four bytes or eight, and no gaps.
    numbers = [
        number
        for number, column in enumerate(table.columns)
        if column.type in (pa.int64(), pa.int32(), pa.float64(), CODED) and not column.null_count
    ]
    assert set(at) <= set(numbers)
    assert same(whole(planed_at(table, numbers), numbers), table)


@settings(max_examples=20)
@given(tables())
def test_large_parts_are_sent_as_they_are(table: pa.Table) -> None:
    # A part is packed from so many bytes on.
    again = np.arange(len(table) and 1 << 16) % max(1, len(table))
    large = table.take(pa.array(again))
    part = Part(Facts(events=3), NOWHERE, large)
    found = Part.from_bytes(part.to_bytes())
    assert same(found.table, large)
    assert found.facts == part.facts


def test_times_numbers_and_codes_take_half_as_many_bytes() -> None:
    random, count = np.random.default_rng(1), 50_000
    keys = pa.array([f"key/{at}" for at in random.integers(0, 1_000, count)]).dictionary_encode()
    table = pa.table(
        {
            "time": 1_700_000_000_000 + np.arange(count) * 5,
            "event": np.arange(count),
            "key": keys,
            "value": random.integers(0, 100_000, count) / 16,
            "hash": random.integers(-(2**63), 2**63 - 1, count),
        }
    )
    there, at = planed(table)
    assert [table.column_names[each] for each in at] == ["time", "event", "key", "value"]

    def size(sent: pa.Table) -> int:
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", 1))
        with pa.ipc.new_stream(sink, sent.schema, options=options) as writer:
            writer.write_table(sent)
        return int(sink.getvalue().size)

    assert size(there.drop_columns("hash")) < 0.6 * size(table.drop_columns("hash"))
