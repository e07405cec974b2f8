"""The clairvoyant against brute force, policies, and the limits that it must hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.app.cli import main
from acquatop.errors import UserError
from acquatop.lab.generate import KINDS, generate
from acquatop.lab.replay.bench import Bench
from acquatop.lab.replay.clairvoyant import Clairvoyant
from acquatop.lab.replay.data import Recorded
from acquatop.lab.replay.metrics import ndcg_at, precision_at, relevancies
from acquatop.lab.replay.oracle import Oracle
from acquatop.lab.replay.replay import Given
from acquatop.lab.replay.setting import CLAIRVOYANT, Setting
from acquatop.lab.replay.trace import Trace, open_trace
from replica.budget import Budget
from tests.support.recordings import BY_EVENT, COUNTED, REMOTE, Row, opened, query, write

USERS = "abcde"
EVENTS = st.lists(
    st.tuples(st.integers(1, 9), st.sampled_from(USERS), st.integers(0, 9)),
    min_size=2,
    max_size=12,
    unique_by=lambda row: row[1],
)
LATER = st.fixed_dictionaries({}, optional={user: st.integers(0, 30) for user in USERS})


def answers(trace: Trace, budget: int, k: int = 2, n: int = 0) -> list[Given]:
    return list(Clairvoyant(trace, Oracle(trace)).answers(Setting(CLAIRVOYANT, budget, k, n, 0)))


def worth(given: list[str], right: list[str], k: int) -> float:
    relevance = relevancies(right[:k])
    return ndcg_at(k, given, relevance) + precision_at(k, given, relevance)


def one_window(folder: str, events: list[Row], later: dict[str, int]) -> Trace:
    remote = [*((0, user, at) for at, user in enumerate(USERS))]
    changes = [(5, user, value) for user, value in later.items()]
    return opened(Path(folder), stream=events, remote=[*remote, *changes, (9, "z", 1)])


@given(EVENTS, LATER, st.integers(1, 3))
@settings(max_examples=60)
def test_nobody_chooses_one_refresh_better(
    events: list[Row], later: dict[str, int], k: int
) -> None:
    with TemporaryDirectory() as folder:
        trace = one_window(folder, events, later)
        (right,) = Oracle(trace)
        (chosen,) = answers(trace, 1, k)
        counts = {str(user): int(str(n)) for _, user, n in events}
        replica = {user: at for at, user in enumerate(USERS)}
        possible = []
        for refreshed in USERS:
            values = {**replica, refreshed: later.get(refreshed, replica[refreshed])}
            times = {str(user): int(str(time)) for time, user, _ in events}
            order = sorted(
                counts, key=lambda user: (-(2 * counts[user] + values[user]), -times[user], user)
            )
            names = [f"<http://example.org/user/{user}>" for user in order]
            possible.append(worth(names[:k], right.identities, k))
        assert worth(chosen.identities, right.identities, k) == pytest.approx(max(possible))


@given(EVENTS, LATER)
@settings(max_examples=30)
def test_it_is_right_where_the_budget_suffices(events: list[Row], later: dict[str, int]) -> None:
    with TemporaryDirectory() as folder:
        trace = one_window(folder, events, later)
        for given_, right in zip(answers(trace, 5), Oracle(trace), strict=True):
            assert worth(given_.identities, right.identities, 2) == pytest.approx(2)


@pytest.mark.parametrize("kind", KINDS)
def test_no_policy_is_better(kind: str, tmp_path: Path) -> None:
    made = generate(KINDS[kind], seed=5, users=120, windows=25)
    made.write(tmp_path)
    bench = Bench(Recorded(tmp_path, made.query, "query.rspql"), 1, tmp_path)
    for budget in (1, 5):
        gained = {
            policy: sum(
                each.ndcg + each.precision
                for each in bench.measured(Setting(policy, budget, 5, 10, 1))
            )
            for policy in ("AT-TSM", "AT-LRU", "ANY-IMP", CLAIRVOYANT)
        }
        assert max(gained, key=gained.__getitem__) == CLAIRVOYANT or len(set(gained.values())) == 1


def test_what_helps_nothing_is_saved_and_no_limit_is_exceeded(tmp_path: Path) -> None:
    made = generate(KINDS["bursts"], seed=5, users=60, windows=20)
    made.write(tmp_path)
    trace = open_trace(tmp_path, made.query)
    service = trace.bound.service
    assert service is not None
    for bank, limit, most in ((0, "", 2), (4, "", 6), (4, "3 items per 5m", 3)):
        refresh = replace(service.refresh, bank=Budget(bank, bank, 0.0))
        limits = service.limits
        if limit:
            (tmp_path / "catalog.toml").write_text(
                (tmp_path / "catalog.toml")
                .read_text()
                .replace("block_size = 1", f'block_size = 1\nlimits = ["{limit}"]')
            )
            limited = open_trace(tmp_path, made.query).bound.service
            assert limited is not None
            limits = limited.limits
        banked = replace(service, refresh=refresh, limits=limits)
        spent = [
            each.fetches
            for each in answers(replace(trace, bound=replace(trace.bound, service=banked)), 2, k=5)
        ]
        assert 0 < max(spent) <= most
        assert all(sum(spent[:at]) <= 2 * at + bank for at in range(1, len(spent)))
        if limit:
            assert all(sum(spent[at : at + 5]) <= 3 for at in range(len(spent)))


def test_it_looks_ahead(tmp_path: Path) -> None:
    # The last answer needs two fresh values, and the budget is one.
    events = [(1, "a", 9), (4, "b", 8), (8, "c", 1), (8, "d", 1), (8, "e", 1)]
    remote = [(0, "a", 0), (0, "b", 0), (0, "c", 100), (0, "d", 90), (0, "e", 10)]
    remote += [(2, "c", 0), (2, "d", 0), (9, "a", 1)]
    trace = opened(tmp_path, stream=events, remote=remote, query=query(width=3, slide=3, k=1))
    given_ = answers(trace, 1, k=1)
    assert [each.fetches for each in given_[:3]] == [1, 1, 0]
    for each, right in zip(given_, Oracle(trace), strict=True):
        assert each.identities == right.identities[:1]


def test_it_refuses_remotes_of_which_it_does_not_know_what_a_look_would_say(
    tmp_path: Path,
) -> None:
    trace = opened(tmp_path, remote=REMOTE, service='solutions = "many"')
    with pytest.raises(UserError, match="the clairvoyant knows remotes with one solution"):
        Clairvoyant(trace, Oracle(trace))


def test_evaluate_offers_it_and_advise_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("acquatop.lab.replay.runner.available_cores", lambda: 0)
    stream = [(time, f"u{(5 * time) % 7}", time % 4) for time in range(1, 40)]
    remote = [
        *((0, f"u{at}", at) for at in range(7)),
        *((time, f"u{time % 7}", time % 9) for time in range(1, 40)),
    ]
    folder = write(tmp_path / "trace", stream, remote)
    (tmp_path / "query.rspql").write_text(query(k=3), "utf-8")
    named = ["--trace", str(folder), "--query", str(tmp_path / "query.rspql")]
    named += ["--policies", f"AT-TSM,{CLAIRVOYANT}", "--budgets", "1,2"]
    out = tmp_path / "out"
    assert main(["evaluate", *named, "--out", str(out), "--no-plots"]) == 0
    assert f"│ {CLAIRVOYANT}" in capsys.readouterr().out
    assert f"\n{CLAIRVOYANT},2,3,10,1," in (out / "results.csv").read_text()
    page = (out / "report.html").read_text()
    assert f"<dt>{CLAIRVOYANT}</dt>" in page
    assert f"<b>{CLAIRVOYANT}</b>" not in page
    assert main(["advise", *named, "--target", "precision=0.5"]) == 2
    assert f'there is no policy "{CLAIRVOYANT}"' in capsys.readouterr().err


def test_it_answers_aggregates(tmp_path: Path) -> None:
    mapping = {"arrivals": "distinct", **BY_EVENT}
    trace = opened(tmp_path, query=query(COUNTED), **mapping)
    for each, right in zip(answers(trace, 3), Oracle(trace), strict=True):
        assert each.identities == right.identities[:2]
