from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from connectors import ConnectorError
from connectors.lines import LinesDataSource, LinesReader
from connectors.offsets_by_file import Offset
from connectors.read_limits import ReadAllAvailable, ReadMaxBytes
from tests.support.offsets import reached_in


def lines_between(reader: LinesReader, start: Offset, end: Offset) -> list[tuple[str, int, bytes]]:
    rows = [
        row
        for part in reader.partitions(start, end)
        for batch in reader.read(part)
        for row in batch.to_pylist()
    ]
    return [(row["file"], row["position"], row["value"]) for row in rows]


def read_all(reader: LinesReader, limit: int) -> list[bytes]:
    offset, found = reader.initialOffset(), []
    while True:
        end = reader.latestOffset(offset, ReadMaxBytes(limit))
        assert json.loads(json.dumps(end)) == end
        if end == offset:
            return found
        found += [value for _, _, value in lines_between(reader, offset, end)]
        offset = end


texts = st.binary(max_size=12).filter(lambda line: b"\n" not in line)


@given(st.lists(texts, max_size=12), st.integers(1, 30), st.integers(0, 40))
def test_every_line_comes_once_and_in_order_however_it_is_written_and_read(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], limit: int, cut: int
) -> None:
    file = tmp_path_factory.mktemp("lines") / "a.txt"
    data = b"".join(line + b"\n" for line in lines)
    file.write_bytes(data[:cut])
    reader = LinesReader(file, limit)
    whole = data[:cut].count(b"\n")
    assert read_all(reader, limit) == lines[:whole]
    with file.open("ab") as stream:
        stream.write(data[cut:])
    assert read_all(reader, limit) == lines


def test_an_unfinished_line_waits_for_its_break(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"one\ntw")
    reader = LinesReader(tmp_path, 100)
    first = reader.latestOffset({}, ReadAllAvailable())
    assert lines_between(reader, {}, first) == [("a.txt", 0, b"one")]
    with file.open("ab") as stream:
        stream.write(b"o\n")
    assert lines_between(reader, first, reader.latestOffset(first, ReadAllAvailable())) == [
        ("a.txt", 4, b"two")
    ]
    assert lines_between(reader, {}, first) == [("a.txt", 0, b"one")]  # a batch can be read again


def test_the_end_of_a_file_ends_its_last_line_when_only_what_is_there_is_wanted(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\ntwo")
    reader = LinesReader(tmp_path, 100)
    reader.prepareForTriggerAvailableNow()
    (tmp_path / "b.txt").write_bytes(b"later\n")
    assert read_all(reader, 100) == [b"one", b"two"]


def test_files_that_are_added_are_read_and_hidden_ones_are_not(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_bytes(b"b\n")
    (tmp_path / ".hidden").write_bytes(b"x\n")
    (tmp_path / "_SUCCESS").write_bytes(b"x\n")
    (tmp_path / "folder").mkdir()
    reader = LinesReader(tmp_path, 100)
    first = reader.latestOffset({}, ReadAllAvailable())
    (tmp_path / "a.txt").write_bytes(b"a\n")
    second = reader.latestOffset(first, ReadAllAvailable())
    assert reached_in(first) == {"b.txt": 2}
    assert lines_between(reader, first, second) == [("a.txt", 0, b"a")]


def test_a_path_that_is_not_there_yet_is_an_empty_stream(tmp_path: Path) -> None:
    reader = LinesReader(tmp_path / "later.txt", 100)
    assert reader.latestOffset({}, ReadAllAvailable()) == {}


def test_a_file_that_shrinks_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\n")
    with pytest.raises(ConnectorError, match=r"a\.txt is not .*: it has shrunk from 10 to 4 bytes"):
        LinesReader(tmp_path, 100).latestOffset({"a.txt": 10}, ReadAllAvailable())


@settings(max_examples=40)
@given(st.lists(texts, max_size=12), st.integers(1, 5))
def test_a_long_file_is_shared_out_among_the_cores(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], cores: int
) -> None:
    file = tmp_path_factory.mktemp("lines") / "a.txt"
    file.write_bytes(b"\n".join(lines))
    reader = LinesReader(file, 1000, max_partitions=cores)
    reader.prepareForTriggerAvailableNow()
    end = reader.latestOffset({}, ReadAllAvailable())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("connectors.lines.LEAST_PARTITION", 1)
        parts = reader.partitions({}, end)
        found = [value for _, _, value in lines_between(reader, {}, end)]
    assert found == file.read_bytes().split(b"\n")[: len(found)]
    assert len(parts) <= max(cores, len(found))
    assert len(reader.partitions({}, end)) <= 1  # so little is not worth it


def test_a_last_line_without_a_break_is_read_however_long_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\n" + b"x" * 50)
    reader = LinesReader(tmp_path, 3)
    reader.prepareForTriggerAvailableNow()
    assert read_all(reader, 3) == [b"one", b"x" * 50]


def test_an_unknown_way_of_being_together_is_named() -> None:
    with pytest.raises(ConnectorError, match='one of "subject", "subject and graph", not "x"'):
        LinesDataSource({"path": "a", "together": "x"}).streamReader(None)


def test_a_missing_path_option_is_named() -> None:
    with pytest.raises(ConnectorError, match="needs the option path"):
        LinesDataSource({}).streamReader(None)


def test_it_works_in_plain_pyspark(spark: SparkSession, tmp_path: Path) -> None:
    folder, found = tmp_path / "in", []
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"one\ntwo\nthree")
    spark.dataSource.register(LinesDataSource)

    def keep(batch: Any, _number: int) -> None:
        found.append([bytes(row.value) for row in batch.collect()])

    def run() -> None:
        lines = (
            spark.readStream.format("lines")
            .option("path", str(folder))
            .option("maxBytesPerBatch", 5)
            .load()
        )
        writer = lines.writeStream.foreachBatch(keep).option(
            "checkpointLocation", str(tmp_path / "checkpoint")
        )
        writer.trigger(availableNow=True).start().awaitTermination()

    run()
    assert [value for batch in found for value in batch] == [b"one", b"two", b"three"]
    assert len(found) > 1
    (folder / "b.txt").write_bytes(b"four\n")
    run()  # goes on where the checkpoint says
    assert [value for batch in found for value in batch] == [b"one", b"two", b"three", b"four"]
