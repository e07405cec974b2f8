"""The verbs ``evaluate`` and ``advise`` on a small recording."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from acquatop.app.cli import main
from acquatop.lab.replay import runner
from acquatop.lab.replay.bench import Bench
from acquatop.lab.replay.measure import Measured
from acquatop.lab.replay.setting import Setting
from tests.support.markers import THOROUGH
from tests.support.recordings import query, write

STREAM = [(time, f"u{(5 * time) % 7}", time % 4) for time in range(1, 40)]
REMOTE = [
    *((0, f"u{at}", at) for at in range(7)),
    *((time, f"u{time % 7}", time % 9) for time in range(1, 40)),
]


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the options that name a recording; all is done in this process."""
    folder = write(tmp_path / "trace", STREAM, REMOTE)
    (tmp_path / "query.rspql").write_text(query(k=3), "utf-8")
    monkeypatch.setattr(runner, "available_cores", lambda: 0)
    return ["--trace", str(folder), "--query", str(tmp_path / "query.rspql")]


def test_a_summary_is_shown_and_everything_is_written(
    recording: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    code = main(
        [
            "evaluate",
            *recording,
            "--policies",
            "AT-TSM,WSJ-ASM",
            "--budgets",
            "1",
            "3",
            "--out",
            str(out),
        ]
    )
    said = capsys.readouterr()
    assert code == 0
    assert said.err == "".join(f"acquatop: replayed {done} of 3 settings\n" for done in range(1, 4))
    assert said.out.count("│ WSJ-ASM │ 1.000 │ 1.000 │") == 2
    assert f"report: {out / 'report.html'}" in said.out
    names = {file.name for file in out.iterdir()}
    tables = {
        "results.csv",
        "details.csv",
        "summary.csv",
        "improvements.csv",
        "right.csv",
        "report.html",
        "progress.ndjson",
    }
    drawn = {"errors", "budget", "budget-differences"}  # too few answers for what was expected
    assert names == tables | {f"{name}.{form}" for name in drawn for form in ("png", "svg")}


def test_k_and_n_are_the_query_s_and_the_catalog_s_unless_given(
    recording: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    def cells(*more: str) -> list[tuple[int, int]]:
        assert (
            main(
                ["evaluate", *recording, "--policies", "AT-TSM", "--budgets", "1", "--json", *more]
            )
            == 0
        )
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert all(
            each["ndcg"]["low"] <= each["ndcg"]["mean"] <= each["ndcg"]["high"] for each in found
        )
        return [(each["k"], each["n"]) for each in found]

    assert cells() == [(3, 10)]
    catalog = Path(recording[1]) / "catalog.toml"
    catalog.write_text(catalog.read_text("utf-8") + "n = 2\n", "utf-8")
    assert cells() == [(3, 2)]
    assert cells("-k", "1,2", "-n", "0", "5") == [(1, 0), (1, 5), (2, 0), (2, 5)]


def test_the_cheapest_is_advised(recording: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--policies", "AT-LRU", "-n", "0,4", "--budgets", "1,3,7,9"]
    assert main(["advise", *recording, "--target", "precision=0.9", *options, "--json"]) == 0
    advice = json.loads(capsys.readouterr().out)
    choice, after = advice["choice"], advice["next_step"]
    assert choice["metric"]["low"] >= 0.9
    assert after["budget"] > choice["budget"]
    assert advice["ceiling"]["mean"] == 1.0
    below = [str(each) for each in (1, 3, 7) if each < choice["budget"]]
    assert (
        main(
            [
                "advise",
                *recording,
                "--target",
                "precision=0.9",
                *options[:-1],
                ",".join(below),
                "--json",
            ]
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out)["choice"] is None


def test_advice_is_told_in_words(recording: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--policies", "AT-LRU", "-n", "4"]
    assert main(["advise", *recording, "--target", "ndcg=0.5", *options, "--budgets", "3,5"]) == 0
    said = capsys.readouterr().out
    assert (
        "ndcg of 0.5 or more, with a confidence of 95 %:\n"
        "  AT-LRU, 3 items per evaluation, N = 4: ndcg" in said
    )
    assert "the next step up, 2 items more, would buy" in said
    assert main(["advise", *recording, "--target", "ndcg=1", *options, "--budgets", "0"]) == 0
    assert (
        "nothing that was tried reaches it\n  the best is AT-LRU, 0 items"
        in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            [],
            "there is nothing to replay\n  hint: give --trace DIR and --query FILE, "
            "or --experiment NAME",
        ),
        (["--experiment", "1", "--trace", "x"], "leave out --trace and --query"),
        (
            ["--experiment", "nine"],
            "nine: the experiment cannot be read: No such file or directory\n  hint: name a TOML",
        ),
        (
            ["--experiment", "1", "--policies", "AT-TMS"],
            'no policy "AT-TMS"\n  hint: did you mean AT-TSM?',
        ),
        (["--kind", "list", "--trace", "x"], "name one with --experiment"),
        (["--experiment", "1", "--kind", "lits"], 'there is no kind "lits"\n  hint: known are'),
        (
            ["--experiment", "2", "--kind", "walks"],
            'the experiment says "changes", which walks data does not have\n  hint: it has',
        ),
    ],
)
def test_wrong_options_are_the_user_s_fault(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--budgets", "x"], ["--processes", "0"], ["-k", ","]])
def test_what_is_no_number_is_refused(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["evaluate", *options])
    assert "is not a" in capsys.readouterr().err


def test_answers_are_written_beside_the_right_ones(recording: list[str], tmp_path: Path) -> None:
    options = ["--policies", "AT-ASM,ANY-IMP", "--budgets", "2", "--no-plots", "--out"]
    assert main(["evaluate", *recording, *options, str(tmp_path)]) == 0
    right: dict[str, list[str]] = {}
    for row in table(tmp_path / "right.csv"):
        right.setdefault(row["close_ms"], []).append(row["result"])
    rows = table(tmp_path / "results.csv")
    for row in rows:
        shown = set(json.loads(row["answer"])) & set(right[row["close_ms"]])
        size = max(len(json.loads(row["answer"])), len(right[row["close_ms"]]))
        assert float(row["precision"]) == pytest.approx(len(shown) / size, abs=1e-6)
        assert 0 <= float(row["expected_precision"]) <= 1
        assert 0 <= float(row["expected_ndcg"]) <= 1
    assert {row["policy"] for row in rows} == {"AT-ASM", "ANY-IMP"}
    gains = table(tmp_path / "improvements.csv")
    assert {(row["new"], row["old"]) for row in gains} == {("ANY-IMP", "AT-ASM")}


def table(file: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with file.open(newline="", encoding="utf-8") as text:
        return list(csv.DictReader(text))


def test_variables_of_live_sources_need_no_values(
    recording: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LIVE_URL", raising=False)
    catalog = Path(recording[1]) / "catalog.toml"
    text = catalog.read_text("utf-8")
    live = text.replace('connector = "lines"', 'connector = "websocket"').replace(
        'path = "stream.csv"', 'url = "${LIVE_URL}", log = "log"'
    )
    catalog.write_text(live, "utf-8")
    options = ["--policies", "AT-TSM", "--budgets", "1"]
    assert main(["evaluate", *recording, *options]) == 0
    catalog.write_text(live.replace("time_ms", "${TIME}"), "utf-8")
    capsys.readouterr()
    assert main(["evaluate", *recording, *options]) != 0
    assert "time.is-not-set" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_what_is_done_and_says_so(
    number: signal.Signals,
    recording: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What runs in the background of a shell ignores SIGINT, and so do these tests there.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    measured = Bench.measured

    def stopped(bench: Bench, setting: Setting) -> Iterator[Measured]:
        if setting.budget == 3:
            os.kill(os.getpid(), number)
        return measured(bench, setting)

    options = ["evaluate", *recording, "--policies", "AT-TSM", "--no-plots", "--out", str(tmp_path)]
    options += ["--budgets", "1,2,4,5,3"]
    with monkeypatch.context() as patched:
        patched.setattr(Bench, "measured", stopped)
        assert main(options) == 130
    signal.signal(signal.SIGINT, before)
    said = capsys.readouterr().err
    assert "stopped when 4 of 5 settings were done\n  hint: the same command goes on" in said
    assert main(options) == 0
    assert "replayed 5 of 5 settings" in capsys.readouterr().err


@THOROUGH
def test_a_killed_run_goes_on(recording: list[str], tmp_path: Path) -> None:
    options = ["evaluate", *recording, "--budgets", "1,2,3", "--no-plots", "--out"]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert main([*options, str(whole)]) == 0
    command = [sys.executable, "-m", "acquatop", *options, killed, "--processes", "1"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    progress = killed / "progress.ndjson"
    while running.poll() is None and not (progress.exists() and progress.stat().st_size):
        with suppress(subprocess.TimeoutExpired):
            running.wait(0.05)
    running.kill()
    running.communicate(timeout=300)  # whoever works for it ends, too
    assert progress.stat().st_size > 0
    assert main([*options, str(killed)]) == 0
    for name in ("results.csv", "summary.csv", "report.html"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
