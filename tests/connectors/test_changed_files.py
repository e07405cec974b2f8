"""Files that are replaced, written over, cut or removed, while they are read or between runs."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connectors import ConnectorError
from connectors.divisible import step
from connectors.files import Bounds, FilesReader
from connectors.lines import LinesReader
from connectors.offsets_by_file import Offset
from connectors.parquet import ParquetReader
from connectors.read_limits import ReadAllAvailable, ReadMaxBytes, ReadMaxRows
from tests.support.offsets import reached_in

ALL = ReadAllAvailable()


def lines(path: Path) -> LinesReader:
    return LinesReader(path, 1 << 20)


def rows(path: Path) -> ParquetReader:
    return ParquetReader(path, {"n": pa.int64()}, 1 << 20)


def files(path: Path) -> FilesReader:
    return FilesReader(path, Bounds())


def content(kind: Any, numbers: range) -> bytes:
    """Return the content of a file for a kind of reader."""
    if kind is not rows:
        return b"".join(b"%d\n" % number for number in numbers)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"n": list(numbers)}), sink)
    return sink.getvalue().to_pybytes()


def values(reader: Any, start: Offset, end: Offset) -> list[Any]:
    found = [batch for part in reader.partitions(start, end) for batch in reader.read(part)]
    name = "n" if isinstance(reader, ParquetReader) else "value"
    return [value for batch in found for value in batch.column(name).to_pylist()]


def kept(offset: Offset) -> Offset:
    """Return an offset as a checkpoint keeps it."""
    kept: Offset = json.loads(json.dumps(offset))
    return kept


KINDS = [lines, rows, files]
OTHER = {"same length": range(200, 300), "longer": range(200, 500), "shorter": range(200, 210)}


def replaced(file: Path, data: bytes) -> None:
    (file.parent / "_new").write_bytes(data)
    (file.parent / "_new").rename(file)


def written_over(file: Path, data: bytes) -> None:
    with file.open("r+b") as stream:
        stream.write(data)
        stream.truncate()
    os.utime(file, ns=(1, 1))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("change", [replaced, written_over])
@pytest.mark.parametrize("data", OTHER)
@pytest.mark.parametrize("whole", [False, True])
def test_a_file_with_other_content_is_an_error_and_said(
    kind: Callable[[Path], Any],
    restarts: bool,
    change: Callable[[Path, bytes], None],
    data: str,
    whole: bool,
    folder: Path,
) -> None:
    file = folder / "a.parquet"
    old = content(kind, range(100, 200))
    file.write_bytes(old)
    reader = kind(folder if whole else file)
    end = reader.latestOffset({}, ALL)
    assert reader.latestOffset(end, ALL) == end
    change(file, content(kind, OTHER[data]))
    after = kind(folder if whole else file) if restarts else reader
    with pytest.raises(ConnectorError) as said:
        after.latestOffset(kept(end), ALL)
    assert f"{file} is not what has been read of it: it " in f"{said.value}".replace(
        "another file has taken its place", "it …"
    )
    assert "\n  hint: put back what was read and start again, or begin anew" in str(said.value)
    replaced(file, old)
    assert kind(folder if whole else file).latestOffset(kept(end), ALL) == end


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("restarts", [False, True])
def test_the_same_bytes_in_another_file_are_the_same(
    kind: Callable[[Path], Any], restarts: bool, tmp_path: Path, folder: Path
) -> None:
    (folder / "a.parquet").write_bytes(content(kind, range(100)))
    reader = kind(folder)
    end = reader.latestOffset({}, ALL)
    shutil.copytree(folder, tmp_path / "copy")
    shutil.rmtree(folder)
    folder.symlink_to(tmp_path / "copy")
    after = kind(folder) if restarts else reader
    assert after.latestOffset(kept(end), ALL) == end
    assert values(after, {}, end)


@pytest.mark.parametrize("kind", KINDS)
def test_a_link_that_points_to_another_folder_is_noticed(
    kind: Callable[[Path], Any], tmp_path: Path, folder: Path
) -> None:
    link = tmp_path / "link"
    for name, numbers in (("one", range(100)), ("two", range(1, 101))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.parquet").write_bytes(content(kind, numbers))
    link.symlink_to(tmp_path / "one")
    reader = kind(link)
    end = reader.latestOffset({}, ALL)
    link.unlink()
    link.symlink_to(tmp_path / "two")
    with pytest.raises(ConnectorError, match="another file has taken its place"):
        reader.latestOffset(end, ALL)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_changes_between_plan_and_reading_is_not_read(
    kind: Callable[[Path], Any], folder: Path
) -> None:
    file = folder / "a.parquet"
    old = content(kind, range(100, 200))
    file.write_bytes(old)
    end = kind(folder).latestOffset({}, ALL)
    for data in (content(kind, range(200, 300)), old[:-7], b""):
        file.write_bytes(data)
        with pytest.raises(ConnectorError, match=r"a\.parquet "):
            values(kind(folder), {}, end)
    file.unlink()
    with pytest.raises(ConnectorError, match=r"a\.parquet cannot be read: No such file(.|\n)*hint"):
        values(kind(folder), {}, end)
    file.write_bytes(old)
    assert values(kind(folder), {}, end)


@pytest.mark.parametrize("kind", [lines, rows])
def test_a_second_part_of_another_file_is_not_mixed_with_the_first(
    kind: Callable[[Path], Any], folder: Path
) -> None:
    file = folder / "a.parquet"
    file.write_bytes(content(kind, range(100, 200)))
    reader = kind(folder)
    limit = ReadMaxRows(50) if step(reader).counts_rows else ReadMaxBytes(200)
    middle = reader.latestOffset({}, limit)
    end = reader.latestOffset(middle, limit)
    assert len(values(reader, {}, middle)) == len(values(reader, middle, end)) == 50
    replaced(file, content(kind, range(200, 300)))
    for start, stop in (({}, middle), (middle, end)):
        with pytest.raises(ConnectorError, match="is not what has been read of it"):
            values(kind(folder), start, stop)
    file.unlink()
    with pytest.raises(ConnectorError, match="has gone before it was read to its end"):
        kind(folder).latestOffset(kept(middle), ALL)


def test_a_line_that_is_cut_is_no_item(folder: Path) -> None:
    file = folder / "a"
    file.write_bytes(b"one\ntwo\nthree\n")
    reader = lines(folder)
    end = reader.latestOffset({}, ALL)
    os.truncate(file, 6)
    with pytest.raises(ConnectorError, match="is not what has been read"):
        values(reader, {}, end)
    with pytest.raises(ConnectorError, match="it has shrunk from 14 to 6 bytes"):
        reader.latestOffset(end, ALL)


def test_a_recording_that_loses_a_file_does_not_end_without_it(folder: Path) -> None:
    for kind in KINDS:
        (folder / "a.parquet").write_bytes(content(kind, range(5)))
        (folder / "b.parquet").write_bytes(content(kind, range(5, 10)))
        reader = kind(folder)
        reader.prepareForTriggerAvailableNow()
        (folder / "b.parquet").unlink()
        with pytest.raises(ConnectorError, match=r"b\.parquet has gone before it was read"):
            reader.latestOffset({}, ALL)


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_were_read_may_be_cleared_away(
    kind: Callable[[Path], Any], folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a.parquet", "b.parquet"):
        (folder / name).write_bytes(content(kind, range(ord(name[0]), 200)))
    reader = kind(folder)
    end = reader.latestOffset({}, ALL)
    (folder / "a.parquet").unlink()
    (folder / "c.parquet").write_bytes(content(kind, range(7)))
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            later = reader.latestOffset(end, ALL)
    assert later.keys() == {"a.parquet", "b.parquet", "c.parquet"}
    assert reader.up_to(later).latestOffset(end, step(reader).limit(1 << 20)) == later
    (said,) = caplog.messages
    assert said.startswith(f"{folder}: 1 files that were read have gone (a.parquet)")
    shutil.rmtree(folder)
    with pytest.raises(ConnectorError, match="in has gone, after it was read"):
        reader.latestOffset(end, ALL)


@pytest.mark.parametrize("kind", [lines, rows])
@pytest.mark.parametrize("restarts", [False, True])
def test_a_file_that_was_renamed_is_not_read_again(
    kind: Callable[[Path], Any], restarts: bool, folder: Path
) -> None:
    (folder / "a.parquet").write_bytes(content(kind, range(100)))
    reader = kind(folder)
    end = reader.latestOffset({}, ALL)
    assert reader.latestOffset(end, ALL) == end
    (folder / "a.parquet").rename(folder / "b.parquet")
    after = kind(folder) if restarts else reader
    with pytest.raises(ConnectorError, match=r"b\.parquet was a\.parquet when it was read"):
        after.latestOffset(end, ALL)


def test_offsets_of_earlier_versions_are_continued(folder: Path) -> None:
    (folder / "a").write_bytes(b"one\ntwo\n")
    reader = lines(folder)
    end = reader.latestOffset({"a": 4}, ALL)
    assert values(reader, {"a": 4}, end) == [b"two"]
    assert reached_in(end) == {"a": 8}
    assert reader.latestOffset({"a": 8}, ALL) == {"a": 8}
    (folder / "a").write_bytes(b"")
    with pytest.raises(ConnectorError, match="shrunk"):
        reader.latestOffset({"a": 8}, ALL)


@contextmanager
def as_nobody() -> Iterator[None]:
    """Give up the rights of root, to which no file is closed."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_permission_that_is_lost_is_said(kind: Callable[[Path], Any]) -> None:
    # Not in pytest's own folder, into which only its user may look.
    folder = Path(f"/tmp/acquatop-rights-{os.getpid()}-{kind.__name__}")
    folder.mkdir()
    try:
        file = folder / "a.parquet"
        file.write_bytes(content(kind, range(10)))
        end = kind(folder).latestOffset({}, ALL)
        file.chmod(0)
        with as_nobody():
            for act in (
                lambda: kind(folder).latestOffset(end, ALL),
                lambda: values(kind(folder), {}, end),
            ):
                with pytest.raises(
                    ConnectorError, match=r"a\.parquet cannot be read: Permission denied\n  hint: "
                ):
                    act()
        folder.chmod(0)
        with as_nobody(), pytest.raises(ConnectorError, match=r"cannot be read: Permission"):
            kind(folder).latestOffset(end, ALL)
    finally:
        folder.chmod(0o700)
        shutil.rmtree(folder)
