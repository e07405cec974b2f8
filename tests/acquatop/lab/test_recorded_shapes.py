"""Every shape of query that asks a remote is evaluated: right rows, and answers of any budget."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from acquatop.app.cli import main
from acquatop.errors import UserError
from acquatop.lab.replay import runner
from acquatop.lab.replay.bench import RowBench, ScoreBench
from acquatop.lab.replay.measure import Measured
from acquatop.lab.replay.right_rows import right_rows
from acquatop.lab.replay.row_trace import RowTrace, open_recorded, row_trace_of
from acquatop.lab.replay.setting import Setting
from acquatop.lab.replay.trace import Trace, catalog_in
from acquatop.plan.bind import bind_query
from tests.support.markers import THOROUGH
from tests.support.recorded_shapes import RecordedShape, asking
from tests.support.shapes import QueryShape

EVERYTHING = Setting("WSJ-ASM", 0, 3, 100, 1)
LITTLE = Setting("ANY-IMP", 1, 3, 3, 1)
SHAPES = pytest.mark.parametrize("shape", asking(), ids=lambda each: each.name)


def by_rows(folder: Path, world: RecordedShape) -> RowTrace:
    """Return a recording as those are opened whose answers are judged by their rows."""
    catalog = catalog_in(folder)
    return row_trace_of(folder, bind_query(world.query, catalog), catalog)


def counted(rows: list[Mapping[str, object]]) -> Counter[frozenset[tuple[str, object]]]:
    return Counter(frozenset(row.items()) for row in rows)


@SHAPES
@pytest.mark.parametrize("seed", [1, 2])
def test_the_right_rows_are_those_of_sparql(tmp_path: Path, shape: QueryShape, seed: int) -> None:
    world = RecordedShape(tmp_path, shape, seed)
    rows = 0
    for right in right_rows(by_rows(tmp_path, world)):
        expected = world.right(right.closes_ms)
        found: list[Mapping[str, object]] = [dict(each) for each in right.contents]  # type: ignore[call-overload]
        assert counted(found) == counted([*expected])
        assert len(set(right.names)) == len(right.names)
        if expected and "score" in expected[0]:
            assert [row["score"] for row in found] == [row["score"] for row in expected]
        rows += len(found)
    assert rows > 20


@SHAPES
def test_who_fetches_everything_is_right(tmp_path: Path, shape: QueryShape) -> None:
    world = RecordedShape(tmp_path, shape, 1)
    trace = open_recorded(tmp_path, world.query)
    bench = ScoreBench(trace) if isinstance(trace, Trace) else RowBench(trace)
    for bench_ in (bench, RowBench(by_rows(tmp_path, world))):
        measured = list(bench_.measured(EVERYTHING))
        assert len(measured) > 8
        for each in measured:
            assert (each.ndcg, each.precision, each.stale) == (1, 1, 0)
            assert each.status != "approximate" or "change:" in world.query
        few = list(bench_.measured(LITTLE))
        assert all(each.fetches <= 1 * (1 + world.query.count("SERVICE")) for each in few)
        assert any(is_wrong(each) for each in few)
        assert all(not is_wrong(each) for each in few if each.status == "exact")


@THOROUGH
@SHAPES
def test_a_recording_by_the_verbs_is_evaluated_and_advised(
    tmp_path: Path,
    shape: QueryShape,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner, "available_cores", lambda: 0)
    world = RecordedShape(tmp_path, shape, 1)
    files = {each: str(tmp_path / each) for each in ("catalog.toml", "query.rspql", "out")}
    out = tmp_path / "out"
    said = ["--catalog", files["catalog.toml"], "--query", files["query.rspql"]]
    count = len(world.posts) * (2 if ":likes [" in world.query else 1)
    ends = ["--events", str(count), "--snapshot-every", "3m", "--json"]
    assert main(["record", *said, "--out", files["out"], *ends]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["events"], told["left_out"]) == (count, {})

    recording = ["--trace", str(out), "--query", str(out / "query.rspql")]
    policies = ["--policies", "WSJ-ASM,ANY-IMP", "--budgets", "1,100", "-n", "100"]
    assert main(["evaluate", *recording, *policies, "--json"]) == 0
    cells = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = {(each["policy"], each["budget"]): each for each in cells}
    for everything in (found["WSJ-ASM", 100], found["ANY-IMP", 100]):
        assert everything["precision"]["mean"] == everything["ndcg"]["mean"] == 1
        assert everything["stale"]["mean"] == 0
    assert found["ANY-IMP", 1]["stale"]["mean"] + 1 - found["ANY-IMP", 1]["ndcg"]["mean"] > 0
    assert main(["advise", *recording, *policies, "--target", "ndcg=1", "--json"]) == 0
    advice = json.loads(capsys.readouterr().out)
    assert advice["choice"]["metric"]["mean"] == advice["ceiling"]["mean"] == 1


def test_windows_count_the_elements_after_the_start(tmp_path: Path) -> None:
    (shape,) = (each for each in asking() if each.part == "counted")
    world = RecordedShape(tmp_path, shape, 1)
    catalog = tmp_path / "catalog.toml"
    start_ms = world.posts[9]["t"]
    text = catalog.read_text("utf-8")
    section = '[streams.":posts"]\n'
    assert text.count(section) == 1
    catalog.write_text(text.replace(section, f"{section}start_ms = {start_ms}\n"), "utf-8")
    world.posts = world.posts[10:]
    checked = 0
    for right in right_rows(by_rows(tmp_path, world)):
        found: list[Mapping[str, object]] = [dict(each) for each in right.contents]  # type: ignore[call-overload]
        assert counted(found) == counted([*world.right(right.closes_ms)])
        checked += len(found)
    assert checked > 20
    catalog.write_text(text.replace(section, f"{section}start_ms = {10**12}\n"), "utf-8")
    with pytest.raises(UserError, match="no event of the recording comes after"):
        by_rows(tmp_path, world)


def is_wrong(measured: Measured) -> bool:
    return measured.stale > 0 or measured.precision < 1 or measured.ndcg < 1
