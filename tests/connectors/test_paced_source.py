"""Sources whose batches keep to a size that is written while they are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.lines import LinesDataSource
from connectors.paced_source import PaceFile, paced
from connectors.read_limits import PLANS_WITHIN_LIMITS, ReadMaxBytes

pytestmark = pytest.mark.skipif(not PLANS_WITHIN_LIMITS, reason="Spark asks for all that is there")


def test_a_batch_is_as_large_as_was_said_last(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"123456789\n" * 100)
    file, most = PaceFile(tmp_path / "pace"), ReadMaxBytes(500)
    source = paced(LinesDataSource, tmp_path / "pace")
    assert source.name() == LinesDataSource.name()
    reader = source(options={"path": str(tmp_path / "a")}).streamReader(None)
    start = reader.initialOffset()
    assert reader.latestOffset(start, most)["a"][0] == 500
    ends, end = [], start
    for size in (100, 200, 10_000):
        file.write(size)
        end = reader.latestOffset(end, most)
        ends.append(end["a"][0])
    # Equal parts of what could be read, and no small rest.
    assert ends == [100, 260, 760]
    assert reader.latestOffset(end, most)["a"][0] == 1_000


def test_files_side_by_side_are_not_cut(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    for name in "ab":
        (tmp_path / "files" / name).write_bytes(b"123456789\n" * 100)
    PaceFile(tmp_path / "pace").write(10)
    options = {"path": str(tmp_path / "files")}
    reader = paced(LinesDataSource, tmp_path / "pace")(options=options).streamReader(None)
    end = reader.latestOffset(reader.initialOffset(), ReadMaxBytes(500))
    assert sum(place[0] for place in end.values()) == 500
