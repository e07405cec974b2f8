from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadMaxRows

from connectors import coded
from connectors.columns import ColumnsMapping
from connectors.mapping import BAD, SUBJECT, Template
from connectors.parquet import ParquetDataSource

ROWS = 3 * coded.SAMPLE
texts = st.lists(st.none() | st.text(max_size=2), max_size=20)


@given(texts, st.integers(0, 5), st.booleans())
def test_coding_changes_no_value(values: list[str | None], skipped: int, is_coded: bool) -> None:
    column = pa.array(values, pa.string())
    column = (column.dictionary_encode() if is_coded else column).slice(skipped)
    for code in (coded.coded, coded.uncoded, coded.distinct):
        done = code(column)
        assert done.to_pylist() == values[skipped:]
        assert done.type == coded.CODED
        assert done.null_count == column.null_count
        assert coded.plain(done).to_pylist() == values[skipped:]
        assert len(done.dictionary) <= max(len(done), 0)
        assert None not in done.dictionary.to_pylist()
    each = coded.distinct(column).dictionary.to_pylist()
    assert len(each) == len(set(each))


@pytest.mark.parametrize(("keys", "written"), [(100, 100), (1_000, 1_000), (10**9, ROWS)])
@pytest.mark.parametrize("is_number", [True, False])
def test_each_distinct_name_is_written_once_unless_hardly_any_repeats(
    keys: int, written: int, is_number: bool
) -> None:
    numbers = pa.array(np.arange(ROWS, dtype=np.int64) * 7919 % keys)
    batch = pa.record_batch(
        [numbers if is_number else numbers.cast(pa.string()), pa.repeat(1, ROWS)], ["user", "t"]
    )
    records = ColumnsMapping(Template.parse("urn:{user}"), "t", {}).records(batch)
    assert len(records.column(SUBJECT).dictionary) == written
    expected = [f"<urn:{number}>" for number in numbers.to_pylist()]
    assert records.column(SUBJECT).to_pylist() == expected
    assert records.column(BAD).null_count == ROWS


@pytest.mark.parametrize("odd", ["a b", "é", "%zz", "%41", "<"])
def test_one_odd_name_among_usual_ones_is_judged_by_itself(odd: str) -> None:
    batch = pa.record_batch([pa.array(["a", odd, "b"]), pa.repeat(1, 3)], ["user", "t"])
    records = ColumnsMapping(Template.parse("urn:{user}"), "t", {}).records(batch)
    is_good = odd in ("é", "%41")
    assert records.column(SUBJECT).to_pylist() == [
        "<urn:a>",
        f"<urn:{odd}>" if is_good else None,
        "<urn:b>",
    ]


@pytest.mark.parametrize(
    ("keys", "limit", "is_coded"),
    [(100, 1 << 20, True), (ROWS // 3, 1 << 20, True), (ROWS, 1 << 20, False), (ROWS, 1, False)],
)
def test_a_file_is_read_as_a_dictionary_if_its_values_repeat(
    tmp_path: Path, keys: int, limit: int, is_coded: bool
) -> None:
    names = [f"user {number * 7919 % keys}" for number in range(ROWS)]
    pq.write_table(
        pa.table({"user": names}), tmp_path / "a.parquet", dictionary_pagesize_limit=limit
    )
    options = {
        "path": str(tmp_path),
        "columns": json.dumps({"user": "string"}),
        "coded": json.dumps(["user"]),
        "maxPartitions": "2",
    }
    reader = ParquetDataSource(options).streamReader(None)
    end = reader.latestOffset({}, ReadMaxRows(ROWS))
    batches = [batch for part in reader.partitions({}, end) for batch in reader.read(part)]
    columns = [batch.column("user") for batch in batches]
    assert [each for column in columns for each in column.to_pylist()] == names
    assert all((len(each.dictionary) < len(each)) == is_coded for each in columns)
