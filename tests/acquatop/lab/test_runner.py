"""Experiments: the same bytes however they are run, stopped, killed or gone on with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from acquatop.lab.replay.bench import Bench
from acquatop.lab.replay.data import Generated, Recorded
from acquatop.lab.replay.experiment import Experiment
from acquatop.lab.replay.measure import Measured
from acquatop.lab.replay.runner import PROGRESS, run
from acquatop.lab.replay.setting import Setting
from acquatop.lab.replay.summary import ReplaySummary
from acquatop.lab.report import write_output
from tests.support.markers import THOROUGH
from tests.support.recordings import REMOTE, STREAM, query, write

SMALL = Experiment(
    tuple(
        Generated("redrawn", {"changes": each}, {"changes": each}, users=30, windows=4)
        for each in (20.0, 60.0)
    ),
    policies=("AT-TSM", "WSJ-RND", "WSJ-ASM"),
    budgets=(1, 3),
    ks=(3,),
    ns=(2,),
    seeds=(1, 2),
    items_per_request=100,
)


def files(folder: Path) -> dict[str, bytes]:
    found = (file for file in folder.rglob("*") if file.is_file() and file.name != PROGRESS)
    return {str(file.relative_to(folder)): file.read_bytes() for file in found}


def written(experiment: Experiment, folder: Path, *, processes: int = 0) -> dict[str, bytes]:
    write_output(ReplaySummary(run(experiment, folder, processes=processes)), folder, plots=False)
    return files(folder)


class Counting:
    """Counts what is measured anew."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.settings: list[Setting] = []
        measured = Bench.measured

        def counted(bench: Bench, setting: Setting) -> Sequence[Measured]:
            self.settings.append(setting)
            return list(measured(bench, setting))

        monkeypatch.setattr(Bench, "measured", counted)


@THOROUGH
def test_two_processes_write_the_same_bytes_as_one(tmp_path: Path) -> None:
    one, two = (
        written(SMALL, tmp_path / str(processes), processes=processes) for processes in (0, 2)
    )
    assert one == two
    assert {"changes-20/results.csv", "changes-60/details.csv", "summary.csv", "report.html"} < set(
        one
    )


def test_what_is_not_held_to_a_budget_is_run_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = Counting(monkeypatch)
    results = run(SMALL, tmp_path, processes=0)
    of_all = [setting for setting in counting.settings if setting.policy == "WSJ-ASM"]
    assert (len(counting.settings), len(of_all)) == (20, 4)
    assert len(results.measured) == 24
    name = SMALL.data[0].name
    budgets = [
        results.measured[name, Setting("WSJ-ASM", budget, 3, 2, 1)] for budget in SMALL.budgets
    ]
    assert budgets[0] == budgets[1]


def test_policies_without_randomness_replay_a_recording_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "trace", STREAM, REMOTE)
    data = (Recorded(folder, query(), "query"),)
    counting = Counting(monkeypatch)
    results = run(replace(SMALL, data=data, budgets=(1,)), tmp_path / "out", processes=0)
    run_of = sorted((each.policy, each.seed) for each in counting.settings)
    assert run_of == [("AT-TSM", 1), ("WSJ-ASM", 1), ("WSJ-RND", 1), ("WSJ-RND", 2)]
    one, two = (results.measured["", Setting("AT-TSM", 1, 3, 2, seed)] for seed in (1, 2))
    assert one == two


def test_it_goes_on_where_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = written(SMALL, tmp_path / "whole")
    counting = Counting(monkeypatch)

    def stop(done: int, total: int) -> None:
        if done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(SMALL, tmp_path / "stopped", processes=0, told=stop)
    progress = tmp_path / "stopped" / PROGRESS
    # As a kill would leave it: the last line is not whole.
    progress.write_bytes(progress.read_bytes()[:-40])
    before = len(counting.settings)
    assert written(SMALL, tmp_path / "stopped") == whole
    assert len(counting.settings) - before == 20 - 6


def test_what_is_done_is_used_again_and_more_may_be_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(SMALL, tmp_path, processes=0)
    counting = Counting(monkeypatch)
    run(replace(SMALL, budgets=(3, 1)), tmp_path, processes=0)
    assert counting.settings == []
    run(replace(SMALL, budgets=(1, 2, 3)), tmp_path, processes=0)
    assert {setting.budget for setting in counting.settings} == {2}


def test_another_recording_is_measured_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "trace", STREAM, REMOTE)
    experiment = replace(SMALL, data=(Recorded(folder, query(), "query"),), policies=("AT-TSM",))
    run(experiment, tmp_path / "out", processes=0)
    write(folder, STREAM, [*REMOTE, (14, "ann", 7)])
    counting = Counting(monkeypatch)
    run(experiment, tmp_path / "out", processes=0)
    assert len(counting.settings) == 2


def test_results_have_the_columns_that_are_promised(tmp_path: Path) -> None:
    found = written(replace(SMALL, data=SMALL.data[:1]), tmp_path)
    header, first, *rest = found["changes-20/results.csv"].decode().splitlines()
    assert header == (
        "policy,budget,k,n,seed,window,close_ms,ndcg,ndcg_positional,precision,fetches,requests,status"
        ",expected_precision,expected_ndcg,answer"
    )
    assert first.startswith("AT-TSM,1,3,2,1,0,100000,")
    assert ",1,1,certified,0." in first
    assert '"[""<http://example.org/user/' in first
    assert len(rest) == 3 * 2 * 2 * 4 - 1
    assert len(found["summary.csv"].decode().splitlines()) == 1 + 3 * 2 * 10
