from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import connectors.parquet
from connectors import ConnectorError
from connectors.columns import MISFIT
from connectors.offsets_by_file import Offset
from connectors.parquet import ParquetDataSource, ParquetReader
from connectors.read_limits import ReadAllAvailable, ReadMaxRows
from tests.support.offsets import reached_in

TYPES = {"n": pa.int64(), "user": pa.string()}


def write(file: Path, numbers: list[int], group: int = 3) -> None:
    table = pa.table({"user": [f"u{each}" for each in numbers], "n": numbers, "more": numbers})
    pq.write_table(table, file, row_group_size=group)


def rows_between(reader: ParquetReader, start: Offset, end: Offset) -> list[int]:
    batches = [
        batch
        for part in reader.partitions(start, end)
        for batch in pickle.loads(pickle.dumps(reader)).read(part)
    ]
    assert all(batch.schema.names == ["n", "user", MISFIT, "_file", "_row"] for batch in batches)
    return [number for batch in batches for number in batch.column("n").to_pylist()]


def read_all(reader: ParquetReader, limit: int, offset: Offset) -> tuple[list[int], Offset]:
    found = []
    while (end := reader.latestOffset(offset, ReadMaxRows(limit))) != offset:
        assert json.loads(json.dumps(end)) == end
        rows = rows_between(reader, offset, end)
        assert 0 < len(rows) <= limit
        found += rows
        offset = end
    return found, offset


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 7), max_size=3), st.integers(1, 9), st.integers(1, 4), st.integers(1, 3)
)
def test_every_row_comes_once_and_in_order_however_it_is_written_and_read(
    tmp_path_factory: pytest.TempPathFactory,
    lengths: list[int],
    limit: int,
    group: int,
    partitions: int,
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    reader = ParquetReader(folder, TYPES, limit, max_partitions=partitions)
    expected = [100 * file + row for file, length in enumerate(lengths) for row in range(length)]
    for file, length in enumerate(lengths):
        write(folder / f"{file}.parquet", [100 * file + row for row in range(length)], group)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connectors.parquet, "LEAST_PARTITION", 2)
        found, offset = read_all(reader, limit, {})
    assert found == expected
    write(folder / "0a.parquet", [7])
    assert read_all(reader, limit, offset)[0] == [7]


def test_files_in_the_making_and_folders_are_left_out(tmp_path: Path) -> None:
    for name in ("_temporary.parquet", ".a.parquet", "a.parquet.tmp", "a.csv"):
        (tmp_path / name).write_bytes(b"PAR1")
    (tmp_path / "folder.parquet").mkdir()
    reader = ParquetReader(tmp_path, TYPES, 10)
    assert reader.latestOffset({}, ReadAllAvailable()) == {}
    write(tmp_path / "_b", [1])
    (tmp_path / "_b").rename(tmp_path / "b.PARQUET")
    assert reached_in(reader.latestOffset({}, ReadAllAvailable())) == {"b.PARQUET": 1}


def test_only_what_is_there_is_read_when_that_is_wanted(tmp_path: Path) -> None:
    write(tmp_path / "b.parquet", [1, 2])
    reader = ParquetReader(tmp_path, TYPES, 10)
    reader.prepareForTriggerAvailableNow()
    write(tmp_path / "a.parquet", [3])
    assert read_all(reader, 1, {})[0] == [1, 2]


def test_a_single_file_may_have_any_name_and_appear_later(tmp_path: Path) -> None:
    reader = ParquetReader(tmp_path / "rows.data", TYPES, 10)
    assert reader.latestOffset({}, ReadAllAvailable()) == {}
    write(tmp_path / "rows.data", [1])
    assert read_all(reader, 10, {})[0] == [1]


def test_values_that_do_not_fit_are_named_and_columns_that_are_not_there_are_null(
    tmp_path: Path,
) -> None:
    pq.write_table(pa.table({"n": [1.0, 1.5]}), tmp_path / "a.parquet")
    reader = ParquetReader(tmp_path, TYPES, 10)
    (part,) = reader.partitions({}, {"a.parquet": 2})
    (batch,) = reader.read(part)
    where = [{"_file": "a.parquet", "_row": row} for row in (0, 1)]
    assert batch.to_pylist() == [
        {"n": 1, "user": None, MISFIT: None, **where[0]},
        {"n": None, "user": None, MISFIT: 'the field "n" is not a whole number', **where[1]},
    ]
    pq.write_table(pa.table({"x": [1.0, 1.5]}), tmp_path / "b.parquet")
    (part,) = reader.partitions({"b.parquet": 1}, {"b.parquet": 2})
    assert [batch.num_rows for batch in reader.read(part)] == [1]


def test_files_that_cannot_be_read_or_have_shrunk_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"half a file")
    reader = ParquetReader(tmp_path, TYPES, 10)
    with pytest.raises(
        ConnectorError, match=r"a\.parquet cannot be read as Parquet(.|\n)*hint: write files under"
    ):
        reader.latestOffset({}, ReadAllAvailable())
    write(tmp_path / "a.parquet", [1, 2])
    assert reached_in(reader.latestOffset({}, ReadAllAvailable())) == {"a.parquet": 2}
    write(tmp_path / "a.parquet", [1])
    os.utime(tmp_path / "a.parquet", ns=(1, 1))
    with pytest.raises(
        ConnectorError, match=r"a\.parquet is not .*: it has shrunk from 2 to 1 rows"
    ):
        reader.latestOffset({"a.parquet": 2}, ReadAllAvailable())


@pytest.mark.parametrize("columns", [None, "x", '{"n": "date"}', "[1]", '{"n": []}'])
def test_missing_options_are_named(columns: str | None) -> None:
    options = {"path": "x"} if columns is None else {"path": "x", "columns": columns}
    with pytest.raises(ConnectorError, match="needs the option columns: a JSON object"):
        ParquetDataSource(options).schema()
    with pytest.raises(ConnectorError, match="needs the option path"):
        ParquetDataSource({"columns": '{"n": "bigint"}'}).streamReader(None)


def test_it_works_in_plain_pyspark(spark: SparkSession, tmp_path: Path) -> None:
    folder, found = tmp_path / "in", []
    folder.mkdir()
    write(folder / "a.parquet", [1, 2, 3])
    spark.dataSource.register(ParquetDataSource)
    options = {
        "path": str(folder),
        "columns": '{"n": "bigint", "user": "string"}',
        "maxRowsPerBatch": "2",
    }

    def keep(batch: Any, _number: int) -> None:
        found.append([(row.n, row.user, row["_misfit"]) for row in batch.collect()])

    rows = spark.readStream.format("parquet_rows").options(**options).load()
    writer = rows.writeStream.foreachBatch(keep).option(
        "checkpointLocation", str(tmp_path / "checkpoint")
    )
    writer.trigger(availableNow=True).start().awaitTermination()
    assert found == [[(1, "u1", None), (2, "u2", None)], [(3, "u3", None)]]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4)), min_size=1, max_size=4),
    st.integers(1, 12),
)
def test_a_batch_ends_with_a_row_group_if_it_is_half_full_by_then(
    files: list[tuple[int, int]], limit: int
) -> None:
    with TemporaryDirectory() as place:
        ends, total = {0}, 0
        for name, (count, group) in zip("abcd", files, strict=False):
            table = pa.table({"n": pa.array(range(count), pa.int64())})
            pq.write_table(table, Path(place) / f"{name}.parquet", row_group_size=group)
            ends |= {total + min(end, count) for end in range(group, count + group, group)}
            total += count
        reader = ParquetReader(Path(place), {"n": pa.int64()}, limit)
        begin, start = 0, reader.initialOffset()
        while (end := reader.latestOffset(start, ReadMaxRows(limit))) != start:
            taken = reader.size(start, end)
            most = min(limit, total - begin)
            whole = [each - begin for each in ends if limit - limit // 2 <= each - begin <= most]
            assert taken == (max(whole) if whole else most)
            begin, start = begin + taken, end
        assert begin == total
