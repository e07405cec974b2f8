"""Sources whose plans keep to some batches of a size that is written while they are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.lines import LinesDataSource
from connectors.paced_source import BATCHES, PlanNotes, paced
from connectors.read_limits import PLANS_WITHIN_LIMITS, ReadMaxBytes

pytestmark = pytest.mark.skipif(not PLANS_WITHIN_LIMITS, reason="Spark asks for all that is there")


def test_a_plan_holds_some_batches_of_the_size_that_was_said_last(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"123456789\n" * 1_000)
    notes, most = PlanNotes(tmp_path), ReadMaxBytes(500)
    source = paced(LinesDataSource, tmp_path)
    assert source.name() == LinesDataSource.name()
    reader = source(options={"path": str(tmp_path / "a")}).streamReader(None)
    start = reader.initialOffset()
    assert reader.latestOffset(start, most)["a"][0] == 500
    ends, end = [], start
    for size in (100, 20, 10_000):
        notes.note_pace(size)
        end = reader.latestOffset(end, most)
        assert notes.has_more(end)
        ends.append(end["a"][0])
    assert ends == [BATCHES * 100, BATCHES * 120, BATCHES * 620]
    while not (done := end["a"][0] == 10_000):
        assert notes.has_more(end)
        end = reader.latestOffset(end, most)
    assert done
    assert not notes.has_more(end)


def test_what_is_less_than_a_batch_is_planned_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"123456789\n" * 20)
    notes = PlanNotes(tmp_path)
    notes.note_pace(1_000)
    reader = paced(LinesDataSource, tmp_path)(options={"path": str(tmp_path)}).streamReader(None)
    end = reader.latestOffset(reader.initialOffset(), ReadMaxBytes(500))
    assert end["a"][0] == 200
    assert not notes.has_more(end)


def test_files_side_by_side_are_not_cut(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    for name in "ab":
        (tmp_path / "files" / name).write_bytes(b"123456789\n" * 100)
    PlanNotes(tmp_path).note_pace(10)
    options = {"path": str(tmp_path / "files")}
    reader = paced(LinesDataSource, tmp_path)(options=options).streamReader(None)
    end = reader.latestOffset(reader.initialOffset(), ReadMaxBytes(500))
    assert sum(place[0] for place in end.values()) == 500
