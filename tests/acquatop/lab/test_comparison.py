"""Two runs of an evaluation, compared."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from acquatop.app.cli import main
from acquatop.errors import UserError
from acquatop.lab.replay.bootstrap import interval
from acquatop.lab.replay.data import Generated
from acquatop.lab.replay.experiment import Experiment
from acquatop.lab.replay.runner import run
from acquatop.lab.replay.summary import Cell, ReplaySummary
from acquatop.lab.report import write_output
from acquatop.lab.report.comparison import EvaluatedRun, RunComparison

BASE = Experiment(
    (Generated("redrawn", {"changes": 20.0}, {}, users=30, windows=20),),
    policies=("ANY-IMP", "WSJ-LRU"),
    budgets=(1, 3),
    ks=(3,),
    ns=(2,),
    seeds=(1, 2),
)


def evaluated(folder: Path, experiment: Experiment) -> ReplaySummary:
    summary = ReplaySummary(run(experiment, folder, processes=0))
    write_output(summary, folder, plots=False)
    return summary


def comparison(old: Path, new: Path) -> RunComparison:
    return RunComparison(EvaluatedRun(old), EvaluatedRun(new))


def test_a_run_does_not_differ_from_itself(tmp_path: Path) -> None:
    summary = evaluated(tmp_path, BASE)
    found = comparison(tmp_path, tmp_path)
    assert len(found.differences) == 3 * len(summary.cells)
    assert {each.difference for each in found.differences} == {(0.0, 0.0, 0.0)}
    assert {each.verdict for each in found.differences} == {""}
    assert not found.differing
    assert not found.only_in_one


def test_differences_are_those_of_the_same_windows(tmp_path: Path) -> None:
    one, other = replace(BASE, budgets=(1,)), replace(BASE, budgets=(7,), policies=("ANY-IMP",))
    before = evaluated(tmp_path / "old", one)
    after = evaluated(tmp_path / "new", other)
    found = comparison(tmp_path / "old", tmp_path / "new")
    assert found.differing == {"budget": (1, 7)}
    assert found.only_in_one == {"policy": (["WSJ-LRU"], [])}
    by_measure = {each.measure: each for each in found.differences}
    (name,) = {cell.data for cell in before.cells}
    for measure, each in by_measure.items():
        old, new = (
            summary.series(Cell(name, "ANY-IMP", budget, 3, 2), measure)
            for summary, budget in ((before, 1), (after, 7))
        )
        assert each.windows == old.size
        np.testing.assert_allclose(each.difference, interval(new - old), atol=2e-6)
    assert by_measure["ndcg"].verdict == "better"
    assert by_measure["fetches"].verdict == "worse"


def test_the_verb_prints_tables_and_json_and_writes_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluated(tmp_path / "old", BASE)
    evaluated(tmp_path / "new", replace(BASE, seeds=(2, 3), budgets=(3,)))
    folders = [str(tmp_path / "old"), str(tmp_path / "new")]
    page = tmp_path / "diff.html"
    assert main(["compare", *folders, "--out", str(page)]) == 0
    said = capsys.readouterr().out
    assert "budget only in old: 1." in said
    assert "nDCG, mean per window" in said
    text = page.read_text("utf-8")
    assert text.count("<tr>") == 3 * (1 + 2)
    assert "http" not in text
    assert main(["compare", *folders, "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {line["policy"] for line in lines} == {"ANY-IMP", "WSJ-LRU"}
    assert {line["difference"] for line in lines} == {0.0}


def test_what_cannot_be_compared_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds no results\.csv"):
        EvaluatedRun(tmp_path)
    evaluated(tmp_path / "old", BASE)
    evaluated(tmp_path / "new", replace(BASE, policies=("AT-TSM", "AT-BSM")))
    with pytest.raises(UserError, match="no setting and window in common"):
        _ = comparison(tmp_path / "old", tmp_path / "new").differences
    (tmp_path / "old" / "results.csv").write_text("policy,budget\nx,y\n", "utf-8")
    with pytest.raises(UserError, match="no table of results"):
        EvaluatedRun(tmp_path / "old")


def test_other_right_answers_are_another_question(tmp_path: Path) -> None:
    evaluated(tmp_path / "old", BASE)
    evaluated(tmp_path / "new", BASE)
    assert comparison(tmp_path / "old", tmp_path / "new").is_of_one_question
    right = next((tmp_path / "new").rglob("right.csv"))
    head, *rows = right.read_text("utf-8").splitlines()
    columns = [row.split(",", 3) for row in rows]
    changed = [",".join([*each[:3], f"x{each[3]}"]) for each in columns]
    right.write_text("\n".join([head, *changed]) + "\n", "utf-8")
    assert not comparison(tmp_path / "old", tmp_path / "new").is_of_one_question
