"""Generated traces: what they hold, that seeds decide it, and that they can be read back."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from acquatop.app.cli import main
from acquatop.app.cli.generate import KINDS as KINDS_OF_THE_COMMAND
from acquatop.catalog.catalog import Catalog
from acquatop.lab.generate import KINDS, GeneratedTrace, KindOfData, Redrawn, generate
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundQuery


def windows_of(trace: GeneratedTrace) -> list[np.ndarray]:
    times = trace.mentions.times_ms
    starts = range(0, 60_000 * trace.windows, 60_000)
    return [trace.mentions.users[(times > start) & (times <= start + 100_000)] for start in starts]


def files_of(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("seed", range(5))
def test_mentions_are_like_those_of_the_paper(seed: int) -> None:
    inside = windows_of(generate(KINDS["rare"], seed=seed))
    counts = [len(users) for users in inside]
    assert 20 <= min(counts) <= 32
    assert 35 <= np.median(counts) <= 41
    assert 48 <= max(counts) <= 70
    assert 27 <= np.mean([len(np.unique(users)) for users in inside]) <= 33


@pytest.mark.parametrize("changes", [5, 20, 80])
def test_as_many_values_change_in_a_call_as_is_said(changes: int) -> None:
    made = [
        len(generate(KindOfData(Redrawn(changes)), seed=seed).changes) - 400 for seed in range(5)
    ]
    assert np.mean(made) / (150 * 4) == pytest.approx(changes / 0.84, rel=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_everyone_has_a_value_from_the_start(kind: str) -> None:
    changes = generate(KINDS[kind], seed=3).changes
    assert changes.users[changes.times_ms == 0].tolist() == list(range(400))
    assert np.all(np.diff(changes.times_ms) >= 0)
    assert changes.times_ms[-1] <= 9_040_000
    if kind != "tails":
        assert len(np.unique(changes.values)) == len(changes)


def test_zeros_of_heavy_tails_stay_and_others_change_every_minute() -> None:
    changes = generate(KINDS["tails"], seed=3).changes
    order = np.lexsort((changes.times_ms, changes.users))
    users, values, times = (
        each[order] for each in (changes.users, changes.values, changes.times_ms)
    )
    lasts = np.append(times[1:], 0) - times
    lasts = np.where(np.append(users[1:], -1) == users, lasts, 9_040_000 - times) / 60_000
    zero = values == 0
    present = values[np.searchsorted(users, range(400))]
    assert 0.25 < np.mean(present == 0) < 0.6
    assert values.max() > 50 * np.median(values[~zero])
    rates = [
        np.sum(np.append(users[1:], -1)[which] == users[which]) / lasts[which].sum()
        for which in (zero, ~zero)
    ]
    assert rates[0] < 0.05
    assert 0.4 < rates[1] < 1.0


def test_some_values_are_noisy_and_others_move_seldom() -> None:
    counts = np.bincount(generate(KINDS["mixed"], seed=3).changes.users) - 1
    assert 0.3 < np.mean(counts > 60) < 0.5
    assert 0.4 < np.mean(counts < 15) < 0.7


def test_few_keys_are_few_and_users_return() -> None:
    few = windows_of(generate(KINDS["few"], seed=3))
    assert 6 < np.mean([len(np.unique(users)) for users in few]) < 16
    inside = [set(users.tolist()) for users in windows_of(generate(KINDS["returning"], seed=3))]
    assert 20 < np.mean([len(users) for users in inside]) < 50
    gone = [users - inside[at + 5] for at, users in enumerate(inside[:60])]
    back = [users & set().union(*inside[at + 30 :]) for at, users in enumerate(gone)]
    assert np.mean([len(users) for users in gone]) > 12
    assert sum(map(len, back)) > 0.8 * sum(map(len, gone))


def test_a_list_has_a_row_for_each_mention(tmp_path: Path) -> None:
    made = generate(KINDS["list"], seed=3, windows=4)
    made.write(tmp_path)
    bound = bind_query(made.query, Catalog.load(tmp_path / "catalog.toml"))
    assert isinstance(bound, BoundQuery)
    assert bound.plan.aggregate is None
    assert len(np.unique(made.mentions.numbers)) > 20


def test_bursts_are_of_few_users_at_a_time_and_rare_changes_are_rare() -> None:
    def changing(kind: str) -> list[int]:
        changes = generate(KINDS[kind], seed=1).changes
        minutes = changes.times_ms // 60_000
        return [len(np.unique(changes.users[minutes == minute])) for minute in range(1, 150)]

    bursts = generate(KINDS["bursts"], seed=1).changes
    assert 10 < np.mean(changing("bursts")) < 60
    assert len(bursts) > 1.4 * sum(changing("bursts"))
    assert np.mean(changing("rare")) < 12


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_makes_the_same_files_again(kind: str, tmp_path: Path) -> None:
    for name, seed in (("one", 4), ("again", 4), ("other", 5)):
        generate(KINDS[kind], seed=seed, windows=5).write(tmp_path / name)
    assert files_of(tmp_path / "one") == files_of(tmp_path / "again")
    one, other = files_of(tmp_path / "one"), files_of(tmp_path / "other")
    assert all(one[name] != other[name] for name in ("stream.csv", "remote.csv"))


def test_what_is_written_is_what_was_made_and_the_query_can_be_bound(tmp_path: Path) -> None:
    made = generate(KINDS["walks"], seed=1, windows=4)
    made.write(tmp_path)
    with (tmp_path / "remote.csv").open(newline="") as file:
        *rows, last = csv.DictReader(file)
    assert last == {**rows[-1], "time_ms": "280000"}
    assert [int(row["time_ms"]) for row in rows] == made.changes.times_ms.tolist()
    assert [float(row["value"]) for row in rows] == made.changes.values.tolist()
    assert rows[0]["subject"] == "http://example.org/user/0"
    assert (tmp_path / "stream.csv").read_text().startswith("time_ms,subject,value\n")
    catalog = Catalog.load(tmp_path / "catalog.toml")
    bound = bind_query((tmp_path / "query.rspql").read_text(), catalog)
    assert isinstance(bound, BoundQuery)
    assert (bound.plan.k, bound.windows.width_ms, bound.windows.slide_ms, bound.windows.t0_ms) == (
        5,
        100_000,
        60_000,
        0,
    )


def test_the_command_makes_what_the_function_makes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        "generate",
        str(tmp_path / "a"),
        "--kind",
        "redrawn",
        "--changes",
        "40",
        "--seed",
        "2",
        "--windows",
        "3",
    ]
    assert main(arguments) == 0
    generate(KindOfData(Redrawn(40)), seed=2, windows=3).write(tmp_path / "b")
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
    assert "mentions" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--changes", "85"], "from 0 to 84"),
        (["--kind", "walks", "--changes", "5"], "--changes is for --kind redrawn"),
        (["--users", "0"], "at least one user"),
    ],
)
def test_what_cannot_be_made_is_said(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", str(tmp_path / "a"), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


def test_the_command_knows_all_kinds() -> None:
    assert tuple(KINDS) == KINDS_OF_THE_COMMAND
