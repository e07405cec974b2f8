"""Sources that find their own end, as versions of Spark before 4.2 do not ask for it."""

from __future__ import annotations

from pathlib import Path

from connectors.ending_source import prepared
from connectors.lines import LinesDataSource
from connectors.read_limits import ALL


def test_a_last_line_without_a_break_is_read_with_the_end(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\ntwo")
    source = LinesDataSource(options={"path": str(tmp_path / "a")})
    assert source.streamReader(None).latestOffset(None, ALL)["a"][0] == len(b"one\n")
    source = prepared(LinesDataSource)(options={"path": str(tmp_path / "a")})
    assert source.name() == LinesDataSource.name()
    reader = source.streamReader(None)
    end = reader.latestOffset(None, ALL)
    read = [reader.read(part) for part in reader.partitions(reader.initialOffset(), end)]
    lines = [line for part in read for batch in part for line in batch.column("value").to_pylist()]
    assert lines == [b"one", b"two"]


def test_the_end_stays_where_it_was_found_first(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"one\n")
    reader = prepared(LinesDataSource)(options={"path": str(file)}).streamReader(None)
    end = reader.latestOffset(None, ALL)
    file.write_bytes(b"one\ntwo\n")
    assert reader.latestOffset(end, ALL) == end
