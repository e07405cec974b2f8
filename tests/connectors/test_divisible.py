"""Planned batches cut into smaller ones: all of each, once, and in whole records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connectors.divisible import Divisible, cut, step
from connectors.files import Bounds, FilesReader
from connectors.lines import LinesReader
from connectors.live import LiveReader, log_options
from connectors.log.folder import LogFolder
from connectors.log.writer import LogWriter
from connectors.parquet import ParquetReader

LOG = pa.schema([("value", pa.binary())])


def lines(folder: Path) -> LinesReader:
    for name, count in (("a", 40), ("b", 7), ("c", 90)):
        (folder / name).write_text("".join(f"{name}{at:03}\n" for at in range(count)))
    return LinesReader(folder, 1 << 20)


def statements(folder: Path) -> LinesReader:
    (folder / "a.nt").write_text("".join(f"<u:{at // 4}> <u:p> <u:{at}> .\n" for at in range(60)))
    return LinesReader(folder, 1 << 20, together="subject")


def rows(folder: Path) -> ParquetReader:
    for name, count in (("a", 40), ("b", 7), ("c", 90)):
        pq.write_table(
            pa.table({"n": [f"{name}{at}" for at in range(count)]}), folder / f"{name}.parquet"
        )
    return ParquetReader(folder, {"n": pa.string()}, 1_000)


def files(folder: Path) -> FilesReader:
    for at in range(12):
        (folder / f"{at:02}.ttl").write_text("#" * (at + 1))
    return FilesReader(folder, Bounds())


def log(folder: Path) -> LiveReader:
    writer = LogWriter(LogFolder(folder / "log"), LOG, 1 << 20)
    for at in range(30):
        writer.append(pa.record_batch([pa.array([b"%d" % at] * 3)], schema=LOG))
    end = writer.end.to_json()
    writer.close()
    return LiveReader(
        lambda: pytest.fail("nothing is received"), log_options("x", {"log": str(folder / "log")})
    ).up_to(end)


READERS = [lines, statements, rows, files, log]


def read(reader: Any, start: Any, end: Any) -> list[Any]:
    found = [batch for part in reader.partitions(start, end) for batch in reader.read(part)]
    name = "n" if isinstance(reader, ParquetReader) else "value"
    return [value for batch in found for value in batch.column(name).to_pylist()]


def steps(reader: Any, start: Any, end: Any, size: int) -> Iterator[tuple[Any, Any]]:
    while start != end:
        stop = reader.up_to(end).latestOffset(start, step(reader).limit(size))
        assert stop != start
        yield start, stop
        start = json.loads(json.dumps(stop))


@pytest.mark.parametrize("make", READERS)
@pytest.mark.parametrize("size", [1, 17, 60, 10_000])
def test_a_plan_is_read_in_steps(make: Callable[[Path], Any], size: int, tmp_path: Path) -> None:
    reader = make(tmp_path)
    assert isinstance(reader, Divisible)
    start, largest = reader.initialOffset(), step(reader).limit(1 << 30)
    end = reader.latestOffset(start, largest)
    assert reader.is_mixed(start, end) is (make is lines)
    if make is statements:
        # The last subject may go on.
        assert reader.size(start, end) < (tmp_path / "a.nt").stat().st_size
    cut = list(steps(reader, start, end, size))
    assert (len(cut) == 1) is (size == 10_000)
    found: Sequence[Any] = [value for begin, stop in cut for value in read(reader, begin, stop)]
    assert sorted(found) == sorted(read(reader, start, end)) != []
    assert sum(reader.size(begin, stop) for begin, stop in cut) == reader.size(start, end)
    if make is statements:
        subjects = [
            {value.split()[0] for value in read(reader, begin, stop)} for begin, stop in cut
        ]
        assert sum(map(len, subjects)) == len(set.union(*subjects))


def test_a_plan_is_cut_into_like_parts(tmp_path: Path) -> None:
    reader = rows(tmp_path)
    start, end, sizes = (
        dict[str, int](),
        {"a.parquet": 40, "b.parquet": 7, "c.parquet": 90},
        list[int](),
    )
    while start != end:
        stop = cut(reader, start, end, 50)
        sizes.append(reader.size(start, stop))
        start = stop
    # The first file is read to its end, as more than half of a part is.
    assert sizes == [40, 49, 48]


def test_what_comes_meanwhile_is_not_part_of_a_plan(tmp_path: Path) -> None:
    reader = lines(tmp_path)
    end = reader.latestOffset({}, step(reader).limit(1 << 20))
    for name in ("a", "d"):
        with (tmp_path / name).open("a") as file:
            file.write("more\n")
    assert list(steps(reader, {}, end, 50))[-1][1] == end
