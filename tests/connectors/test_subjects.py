"""Subjects that are left as names: the same terms, written for whoever asks for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.coded import CODED
from connectors.columns import ColumnsMapping, together
from connectors.mapping import IRI, Property, Template
from connectors.parquet import ParquetReader
from connectors.subjects import SUBJECT, named_records, subjects_of, written

TEMPLATE = Template.parse("http://example.org/{id}#it")
names = st.one_of(
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=9),
    st.lists(st.none() | st.text("ab c\u00e9", max_size=3), max_size=9),
)


def term(name: int | str | None) -> str | None:
    return None if name is None or " " in str(name) else f"<http://example.org/{name}#it>"


@given(names, st.booleans(), st.data())
def test_names_become_the_terms_that_are_written_at_once(
    values: list[int] | list[str], is_coded: bool, data: st.DataObject
) -> None:
    column = pa.array(values, pa.string() if str in map(type, values) else pa.int64())
    column = column.dictionary_encode() if is_coded else column
    batch = pa.record_batch({"id": column, "t": pa.array([1] * len(values), pa.int64())})
    mapping = ColumnsMapping(TEMPLATE, "t", {})
    named = named_records(mapping, batch)
    expected = list(map(term, values))
    assert subjects_of(named).to_pylist() == expected
    assert written(named).equals(mapping.records(batch))
    assert written(written(named)).column(SUBJECT).to_pylist() == expected
    at = data.draw(st.lists(st.integers(0, max(0, len(values) - 1)), max_size=4 * bool(values)))
    some = named.take(pa.array(at, pa.int64()))
    assert subjects_of(some).to_pylist() == [expected[each] for each in at]
    assert subjects_of(some.slice(1)).type == CODED


@pytest.mark.parametrize("datatype", [IRI, "http://www.w3.org/2001/XMLSchema#string"])
def test_integers_are_texts_where_texts_are_asked_for(datatype: str) -> None:
    properties = {
        "urn:plain": Property("n", datatype),
        "urn:in": Property("id", IRI, Template.parse("urn:{id}")),
    }
    ids = pa.array([7, None, 7])
    batch = pa.record_batch({"id": ids, "n": ids, "t": pa.array([1, 2, 3])})
    records = ColumnsMapping(TEMPLATE, "t", properties).records(batch)
    expected = [("7", "<urn:7>"), (None, None), ("7", "<urn:7>")]
    if datatype == IRI:  # a number is none
        expected = [(None, None)] * 3
    found = zip(*(records.column(name).to_pylist() for name in ("p0", "p1")), strict=True)
    assert list(found) == expected


def test_files_with_integers_and_files_with_texts_are_read_together(tmp_path: Path) -> None:
    for number, type_ in enumerate((pa.int64(), pa.string(), pa.int32(), pa.uint64())):
        ids = pa.array([1, 2]).cast(type_)
        pq.write_table(pa.table({"id": ids, "t": [1, 2]}), tmp_path / f"{number}.parquet")
    mapping = ColumnsMapping(TEMPLATE, "t", {})
    reader = ParquetReader(tmp_path, mapping.types, 100, max_partitions=1)
    (partition,) = reader.partitions({}, reader.latestOffset({}))
    records = mapping.records(together(list(reader.read(partition))))
    assert records.column(SUBJECT).to_pylist() == list(map(term, [1, 2] * 4))


def test_numbers_beyond_64_bits_keep_their_digits() -> None:
    greatest = 2**64 - 1
    batch = pa.record_batch({"id": pa.array([greatest], pa.uint64()), "t": pa.array([1])})
    records = ColumnsMapping(TEMPLATE, "t", {}).records(batch)
    assert records.column(SUBJECT).to_pylist() == [term(greatest)]


def test_names_of_rows_that_are_left_out_are_not_written() -> None:
    numbers = np.arange(50_000)
    batch = pa.record_batch({"id": pa.array(numbers), "t": pa.array(numbers)})
    named = named_records(ColumnsMapping(TEMPLATE, "t", {}), batch)
    assert pa.types.is_integer(named.column(SUBJECT).type)
