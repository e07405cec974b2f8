"""Whole files as a stream."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors import ConnectorError
from connectors.files import Bounds, FilesDataSource, FilesReader
from connectors.offsets_by_file import Offset
from connectors.read_limits import ReadAllAvailable, ReadMaxBytes
from tests.support.offsets import reached_in


def read_all(reader: FilesReader, offset: Offset, limit: int) -> tuple[list[str], Offset]:
    found: list[str] = []
    while (end := reader.latestOffset(offset, ReadMaxBytes(limit))) != offset:
        assert json.loads(json.dumps(end)) == end
        for part in reader.partitions(offset, end):
            for batch in reader.read(part):
                found += batch.column("file").to_pylist()
        offset = end
    return found, offset


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.integers(0, 9)),
        max_size=6,
        unique_by=lambda each: each[0],
    ),
    st.integers(0, 6),
    st.integers(1, 20),
    st.integers(1, 3),
    st.integers(1, 3),
)
def test_every_file_comes_once_however_they_are_read(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[tuple[str, int]],
    first: int,
    limit: int,
    most: int,
    partitions: int,
) -> None:
    folder = tmp_path_factory.mktemp("files")
    reader = FilesReader(folder, Bounds(files=most), max_partitions=partitions)
    found: list[str] = []
    offset: Offset = {}
    for group in (files[:first], files[first:]):
        for name, size in group:
            (folder / name).write_bytes(b"x" * size)
        new, offset = read_all(reader, offset, limit)
        assert new == sorted(name for name, _ in group)
        found += new
    assert sorted(found) == sorted(offset) == sorted(name for name, _ in files)
    assert reader.progress(offset) == (sum(size for _, size in files),) * 2


def test_a_row_is_a_whole_file_and_one_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    for name, content in {
        "a.ttl": b"1\n2",
        "b.ttl": b"long",
        "_c.ttl": b"",
        ".d.ttl": b"",
        "e.txt": b"",
    }.items():
        (tmp_path / name).write_bytes(content)
    options = {
        "path": str(tmp_path),
        "ending": ".ttl",
        "maxBytesPerFile": "3",
        "maxPartitions": "1",
    }
    reader = FilesDataSource(options).streamReader(None)  # type: ignore[arg-type]
    end = reader.latestOffset({}, ReadAllAvailable())
    (batch,) = (batch for part in reader.partitions({}, end) for batch in reader.read(part))
    assert batch.column("value").to_pylist() == [b"1\n2", None]
    assert batch.column("_misfit").to_pylist() == [None, "longer than 3 bytes"]
    assert batch.column("received")[0].as_py().timestamp() == pytest.approx(
        (tmp_path / "a.ttl").stat().st_mtime
    )


def test_a_recording_ends_with_the_files_that_are_there(tmp_path: Path) -> None:
    reader = FilesReader(tmp_path / "later", Bounds())
    assert reader.latestOffset({}, ReadAllAvailable()) == {}
    with pytest.raises(ConnectorError, match="there is no file or folder"):
        reader.prepareForTriggerAvailableNow()
    (tmp_path / "a").write_bytes(b"")
    reader = FilesReader(tmp_path, Bounds())
    reader.prepareForTriggerAvailableNow()
    (tmp_path / "b").write_bytes(b"")
    found, offset = read_all(reader, {}, 9)
    assert (found, reached_in(offset)) == (["a"], {"a": 0})


def test_a_file_that_has_gone_is_an_error(tmp_path: Path) -> None:
    reader = FilesReader(tmp_path, Bounds())
    (part,) = reader.partitions({}, {"a": 1})
    with pytest.raises(ConnectorError, match="files must stay"):
        list(reader.read(part))
