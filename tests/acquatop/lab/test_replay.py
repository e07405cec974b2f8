"""The engine's answers against the oracle's:
where everything is fetched they must be the same, whatever happens.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.lab.generate import KINDS, generate
from acquatop.lab.replay.bench import Bench, RowBench
from acquatop.lab.replay.oracle import Oracle
from acquatop.lab.replay.replay import Replay
from acquatop.lab.replay.row_trace import RowTrace, open_recorded
from acquatop.lab.replay.setting import Setting
from acquatop.lab.replay.trace import Trace, open_trace
from tests.support.recordings import (
    BY_EVENT,
    COUNTED,
    JOINED,
    REMOTE,
    STREAM,
    Row,
    catalog,
    opened,
    query,
    write,
)

USERS = st.sampled_from("abcde")
EVENTS = st.lists(st.tuples(st.integers(1, 40), USERS, st.integers(0, 3)), min_size=1, max_size=40)
VALUES = st.lists(
    st.tuples(st.integers(1, 40), USERS, st.integers(0, 4)),
    max_size=25,
    unique_by=lambda row: row[:2],
)
FORMS = (
    ("latest", {}, JOINED, ""),
    ("all", {}, JOINED, ""),
    ("all", BY_EVENT, COUNTED.replace(" ; :count ?count", ""), "COUNT(?event)"),
    ("latest", BY_EVENT, COUNTED, "MAX(?count)"),
    ("distinct", BY_EVENT, COUNTED, "SUM(?count)"),
    ("distinct", BY_EVENT, COUNTED, "AVG(?count)"),
    ("distinct", BY_EVENT, COUNTED, "COUNT(DISTINCT ?count)"),
    (
        "all",
        BY_EVENT,
        COUNTED.replace(" }} SERVICE", " HAVING(MIN(?count) > 0) }} SERVICE"),
        "SUM(?count)",
    ),
)

OF_ROWS = (
    JOINED.replace("(?score) LIMIT", "(?score) STR(?user) LIMIT"),
    JOINED.replace("(?score) LIMIT", "(?score) DESC(STR(?user)) LIMIT"),
    JOINED.replace("SELECT ?user ?mentions", "SELECT DISTINCT (STR(?user) AS ?name)"),
    JOINED.replace("SELECT ?user ?mentions", "SELECT DISTINCT ?followers"),
    JOINED + " WITH TIES",
    JOINED + " PER ?followers",
)


def compare(trace: Trace, setting: Setting) -> None:
    right = {each.window: each for each in Oracle(trace)}
    answers = list(Replay(trace).answers(setting))
    assert [answer.window for answer in answers] == list(trace.windows())
    for answer in answers:
        expected = right[answer.window]
        assert answer.identities == expected.identities[: setting.k]
        assert answer.merits.tolist() == expected.merits[: setting.k].tolist()
        assert answer.status != "approximate"


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form[0]} {form[3] or 'joined'}")
@given(
    events=EVENTS,
    values=VALUES,
    direction=st.sampled_from(["DESC", "ASC"]),
    step=st.sampled_from([2, 3, 4]),
)
@settings(max_examples=12)
def test_who_fetches_everything_is_always_right(
    form: tuple[str, dict[str, str], str, str],
    events: list[Row],
    values: list[Row],
    direction: str,
    step: int,
) -> None:
    arrivals, mapping, text, function = form
    asked = query(text, direction=direction, slide=step, function=function)
    remote = [*((0, user, 1) for user in "abcd"), *values]  # e has a value later, or never
    with TemporaryDirectory() as folder:
        ending = [*events, (45, "a", 1)]
        trace = opened(
            Path(folder),
            stream=ending,
            remote=remote,
            query=asked,
            arrivals=arrivals,
            service="",
            **mapping,
        )
        compare(trace, Setting("WSJ-ASM", 0, 2, 0, 0))


@pytest.mark.parametrize("text", OF_ROWS)
@pytest.mark.parametrize("arrivals", ["latest", "all"])
@given(events=EVENTS, values=VALUES, direction=st.sampled_from(["DESC", "ASC"]))
@settings(max_examples=12)
def test_who_fetches_everything_has_the_right_rows(
    text: str, arrivals: str, events: list[Row], values: list[Row], direction: str
) -> None:
    asked = query(text, direction=direction)
    remote = [*((0, user, 1) for user in "abcd"), *values]
    with TemporaryDirectory() as name:
        folder = write(Path(name), [*events, (45, "a", 1)], remote, catalog(arrivals=arrivals))
        trace = open_recorded(folder, asked)
        assert isinstance(trace, RowTrace)
        for each in RowBench(trace).measured(Setting("WSJ-ASM", 0, 2, 0, 0)):
            assert (each.precision, each.ndcg, each.stale) == (1, 1, 0)
            assert each.status != "approximate"


def test_budget_k_and_n_are_the_setting_s(tmp_path: Path) -> None:
    replay = Replay(opened(tmp_path))
    for budget in (0, 1, 2):
        answers = list(replay.answers(Setting("AT-LRU", budget, 1, 2, 0)))
        assert {len(answer.identities) for answer in answers} <= {0, 1}
        assert max(answer.fetches for answer in answers) == budget
        assert all(answer.requests <= 1 for answer in answers)


def test_an_evaluation_may_send_as_many_requests_as_its_items_need(tmp_path: Path) -> None:
    replay = Replay(opened(tmp_path, service="block_size = 1"))
    answers = list(replay.answers(Setting("ALL-LRU", 3, 2, 2, 0)))
    assert [answer.requests for answer in answers] == [answer.fetches for answer in answers]
    assert max(answer.requests for answer in answers) == 3


def test_limits_over_time_are_the_recording_s_time(tmp_path: Path) -> None:
    replay = Replay(opened(tmp_path, service='limits = ["1 item per 6ms"]'))
    answers = list(replay.answers(Setting("ALL-LRU", 3, 2, 2, 0)))
    assert [answer.fetches for answer in answers][:4] == [1, 0, 1]


def test_the_same_setting_gives_the_same_answers_and_chance_depends_on_the_seed(
    tmp_path: Path,
) -> None:
    rows = [(time, f"u{(7 * time) % 13}", time % 5) for time in range(1, 200)]
    values = [
        *((0, f"u{at}", at) for at in range(13)),
        *((time, f"u{time % 13}", time % 7) for time in range(1, 200)),
    ]
    replay = Replay(opened(tmp_path, stream=rows, remote=values))

    def found(seed: int) -> list[tuple[list[str], list[float]]]:
        answers = replay.answers(Setting("WSJ-RND", 2, 3, 2, seed))
        return [(answer.identities, answer.merits.tolist()) for answer in answers]

    assert found(1) == found(1)
    assert found(1) != found(2)


def test_what_was_replayed_before_does_not_matter(tmp_path: Path) -> None:
    events = [
        (time, user, 1 + time % 3) for time, user in enumerate("abcaebdcabeadcbb" * 2, start=1)
    ]
    remote = [
        *((0, user, 1) for user in "abcde"),
        *((time, "abcde"[time % 5], time % 7) for time in range(2, 32, 3)),
    ]
    asked = query(COUNTED, function="SUM(?count)")
    trace = opened(
        tmp_path, stream=events, remote=remote, query=asked, arrivals="distinct", **BY_EVENT
    )
    replay = Replay(trace)
    for policy in ("AT-LRU", "WSJ-LRU", "ANY-IMP", "AT-LRU"):
        setting = Setting(policy, 2, 3, 1, 0)
        again, alone = (list(each.answers(setting)) for each in (replay, Replay(trace)))
        assert [each.identities for each in again] == [each.identities for each in alone]
        assert [each.fetches for each in again] == [each.fetches for each in alone]


def test_staleness_and_ages_are_measured(tmp_path: Path) -> None:
    from acquatop.lab.replay.data import Recorded

    opened(tmp_path, stream=STREAM, remote=REMOTE)
    bench = Bench(Recorded(tmp_path, query(), "query"), 0, tmp_path)
    never = list(bench.measured(Setting("WSJ-WST", 1, 2, 2, 0)))
    always = list(bench.measured(Setting("WSJ-ASM", 1, 2, 2, 0)))
    assert {each.stale for each in always} == {0.0}
    assert {each.age_seconds for each in always} == {0.0}
    assert any(each.stale > 0 for each in never)
    assert never[-1].age_seconds == pytest.approx(never[-1].close_ms / 1000)


@pytest.mark.parametrize(("said", "most"), [("", 7 + 21), ('limits = ["12 items per 5m"]', 7)])
def test_the_default_saves_and_spends_more_later_but_never_more_than_allowed(
    said: str, most: int, tmp_path: Path
) -> None:
    made = generate(KINDS["tails"], seed=5, users=150, windows=40)
    made.write(tmp_path)
    file = tmp_path / "catalog.toml"
    bank = "" if said else "\nbank = { items = 21, requests = 21 }\n"
    file.write_text(file.read_text().replace("block_size = 1", f"block_size = 1\n{said}") + bank)
    answers = Replay(open_trace(tmp_path, made.query)).answers(Setting("ANY-IMP", 7, 5, 10, 1))
    spent = [answer.fetches for answer in answers]
    assert max(spent) <= most
    assert min(spent) < 7
    if said:
        # Paced: some is left for later in every period, not all spent at its begin.
        assert all(sum(spent[at : at + 5]) <= 12 for at in range(len(spent)))
        assert sum(map(bool, spent)) > 25
    else:
        assert max(spent) > 7
        assert all(
            sum(spent[begin:end]) <= 7 * (end - begin) + 21
            for begin in range(len(spent))
            for end in range(begin + 1, len(spent) + 1)
        )
