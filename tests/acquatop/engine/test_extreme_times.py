"""Events at the ends of time.

The years 1 and 9999, what lies beyond them, and jumps from one end to the other.
"""

from __future__ import annotations

import io
import json
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from acquatop import Answer, Engine
from acquatop.answer.sinks.registry import PATHS, open_sink
from acquatop.app.cli import main
from acquatop.app.cli.print_answers import render
from acquatop.catalog.catalog import Catalog, CatalogError
from acquatop.engine.idle_timer import IdleTimer
from acquatop.engine.observer import BatchSeen, Silent
from acquatop.instants import instant_ms, instant_text
from acquatop.query.contract import MAX_EMPTY_WINDOWS
from acquatop.windows import Windows
from connectors.instants import EARLIEST_MS, LATEST_MS
from tests.support.event_time_queries import BEST, LAST_THREE, NS, PREFIX, SUMS, WHOLE

DAY_MS = 86_400_000
NOWS = (
    "SELECT ?s (NOW() AS ?now) FROM NAMED WINDOW :w ON :a {window} WHERE "
    "{{ WINDOW :w {{ ?s :p ?p }} }}"
)
JOIN = """SELECT ?s ?p ?f (?p + ?f AS ?score) FROM NAMED WINDOW :w ON :a {window}
          WHERE {{ WINDOW :w {{ ?s :p ?p }} SERVICE :people {{ ?s :f ?f }} }}
          ORDER BY DESC(?score) LIMIT 3"""
PAGES = """SELECT ?s ?f FROM NAMED WINDOW :w ON :a {window}
           WHERE {{ WINDOW :w {{ ?s :p ?p }} SERVICE :people {{ ?s :f ?f }} }}"""
LONGEST = "11574074d"
"""About the longest window that can be written."""
OVER_TIME = (
    "[RANGE 1s STEP 1s]",
    "[RANGE 9m STEP 3m]",
    "[RANGE 1ms STEP 1ms]",
    "[RANGE 1s STEP 365000d]",
    "[RANGE 3653000d STEP 365000d]",
    f"[RANGE {LONGEST} STEP {LONGEST}]",
    f"[RANGE {LONGEST} STEP 1000000d]",
    '[RANGE 5s STEP 3s START "0001-01-01T00:00:00Z"]',
    '[RANGE 5s STEP 3s START "9999-12-31T23:59:59.999Z"]',
)
FILES = tuple(kind for kind in PATHS if kind not in ("nt", "ttl"))


def catalog_text(
    folder: Path, *, arrivals: str = "distinct", extra: str = "", time_as: str = "milliseconds"
) -> str:
    """Return a stream, and a remote that is asked in the stream's time."""
    return f"""
        [streams."{NS}a"]
        connector = "lines"
        arrivals = "{arrivals}"
        late = "late"
        dead_letters = "bad"
        {extra}
        [streams."{NS}a".options]
        path = "{folder}/a"
        [streams."{NS}a".mapping]
        subject = "{NS}{{s}}"
        time = "t"
        time_as = "{time_as}"
        properties = {{ "{NS}p" = {{ field = "p", datatype = "xsd:integer" }} }}
        [services."{NS}people"]
        remote = "table"
        path = "{folder}/people.jsonl"
        time = "t"
        limits = ["3 requests per 1m"]
        [services."{NS}people".mapping]
        key = "{NS}{{s}}"
        properties = {{ "{NS}f" = {{ field = "f", datatype = "xsd:integer" }} }}
        [services."{NS}people".refresh]
        items = 5
        requests = 5
    """


def catalog(folder: Path, **said: str) -> Catalog:
    return Catalog.parse(catalog_text(folder, **said), file=folder / "catalog.toml", variables={})


def write(folder: Path, times: Sequence[int], first: int = 0) -> None:
    lines = [
        json.dumps({"t": time, "s": f"s{first + at}", "p": at % 3}) for at, time in enumerate(times)
    ]
    with (folder / "a").open("a") as file:
        file.writelines(f"{line}\n" for line in lines)
    rows = [
        {"t": time, "s": f"s{key}", "f": key}
        for time in (EARLIEST_MS, 0, LATEST_MS)
        for key in range(20)
    ]
    (folder / "people.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


class Read(Silent):
    """Tells when all is read that a stream holds, and counts what was bad."""

    def __init__(self) -> None:
        self.all = threading.Event()
        self.bad: Counter[str] = Counter()

    def batch(self, seen: BatchSeen) -> None:
        self.bad.update(seen.bad)
        if seen.done == seen.total:
            self.all.set()


@dataclass
class Life:
    """Answers of an engine until its end, and the bad items by reason."""

    answers: list[Answer]
    bad: Counter[str]


def live(folder: Path, streams: Catalog, text: str, *, ends: bool = True) -> Life:
    """Let an engine with a state directory and files of all kinds answer a query for a while."""
    read = Read()
    sinks = [open_sink(f"{kind}:{folder / 'out' / kind}") for kind in FILES]
    with Engine(
        streams, runtime="local", state=folder / "state", until_end=ends, observer=read
    ) as engine:
        query = engine.register(PREFIX + text, name="q", sinks=sinks)
        engine.start()
        if not ends:
            read.all.wait()
            engine.stop()
        return Life(list(query), read.bad)


def times() -> st.SearchStrategy[int]:
    """Times near the ends of the calendar, of what 64 bits hold, and of today."""
    ends = (
        EARLIEST_MS,
        LATEST_MS,
        0,
        1_750_000_000_000,
        EARLIEST_MS - DAY_MS,
        LATEST_MS + DAY_MS,
        10**18,
    )
    beyond = (-(2**63), -(2**63) - 1, 2**63 - 1, 2**63, 10**30)
    # Few windows lie between those that are near, or more than are answered one by one.
    near = st.builds(
        lambda at, by: at + by, st.sampled_from(ends), st.sampled_from([-20, -1, 0, 0, 1, 20])
    )
    return st.one_of(near, st.sampled_from(beyond))


@settings(max_examples=40, deadline=None)
@given(
    first=st.lists(times(), max_size=6),
    then=st.lists(times(), max_size=6),
    text=st.sampled_from([BEST, SUMS, WHOLE, NOWS, JOIN, PAGES]),
    window=st.sampled_from(OVER_TIME),
    arrivals=st.sampled_from(["distinct", "latest", "all"]),
    extra=st.sampled_from(
        ["", 'lateness = "1s"', 'lateness = "3650d"', f"start_ms = {EARLIEST_MS}"]
    ),
)
def test_times_of_all_years_are_answered_over_a_restart_and_what_is_beyond_is_bad(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[int],
    then: list[int],
    text: str,
    window: str,
    arrivals: str,
    extra: str,
) -> None:
    folder = tmp_path_factory.mktemp("ends")
    streams = catalog(folder, arrivals=arrivals, extra=extra)
    write(folder, first)
    query = text.format(window=window)
    before = live(folder, streams, query, ends=not first)
    write(folder, then, first=len(first))
    after = live(folder, streams, query)

    good = [time for time in (*first, *then) if EARLIEST_MS <= time <= LATEST_MS]
    assert sum((before.bad + after.bad).values()) == len(first) + len(then) - len(good)
    # The last answers before the restart are given once more.
    answers = list(
        {answer.closes_ms: answer for answer in (*before.answers, *after.answers)}.values()
    )
    check_windows(answers)
    check_shown(answers)
    check_files(folder, answers)
    if text == WHOLE and arrivals == "all" and not any(answer.counts.late for answer in answers):
        for answer in answers:
            assert len(answer.rows) == sum(
                answer.opens_ms < time <= answer.closes_ms for time in good
            )


def check_windows(answers: Sequence[Answer]) -> None:
    """Check that each window is answered, or counted as one that is left out, and none twice."""
    windows = [answer.window for answer in answers]
    assert windows == sorted(set(windows))
    gaps = [second - first - 1 for first, second in pairwise(windows)]
    assert [answer.counts.skipped for answer in answers[1:]] == gaps
    assert all(gap == 0 or gap > MAX_EMPTY_WINDOWS for gap in gaps)


def check_shown(answers: Sequence[Answer]) -> None:
    """Check that answers can be shown, with their windows' bounds."""
    for answer in answers:
        document = json.loads(json.dumps(answer.to_json()))["window"]
        assert (instant_ms(document["opens"]), instant_ms(document["closes"])) == (
            answer.opens_ms,
            answer.closes_ms,
        )
        screen = Console(file=io.StringIO(), width=200)
        screen.print(render(answer, named=True))
        for row in answer.rows:
            if "now" in row.bindings:
                assert (
                    instant_ms(f"{str(row.bindings['now']).removesuffix('Z')}Z") == answer.closes_ms
                )


def check_files(folder: Path, answers: Sequence[Answer]) -> None:
    """Check that each answer has a file, or a line, in the order of time."""
    expected = [answer.canonical() for answer in answers]
    lines = folder / "out" / "canonical" / "q.ndjson"
    assert (
        [json.loads(line) for line in lines.read_text().splitlines()]
        if answers
        else not lines.exists()
    )
    assert not answers or [json.loads(line) for line in lines.read_text().splitlines()] == expected
    for kind in ("srj", "csv", "tsv", "parquet"):
        files = sorted(path.name for path in (folder / "out" / kind).rglob(f"*.{kind}"))
        assert len(files) == len(answers)
    named = sorted((folder / "out" / "tsv" / "q").glob("*.tsv")) if answers else []
    assert [path.read_text().count("\n") - 1 for path in named] == [
        len(answer.rows) for answer in answers
    ]


@pytest.mark.parametrize("text", [BEST, SUMS, NOWS])
def test_elements_of_all_years_are_counted(tmp_path: Path, text: str) -> None:
    write(tmp_path, [EARLIEST_MS, EARLIEST_MS, 0, LATEST_MS, LATEST_MS])
    found = live(tmp_path, catalog(tmp_path, arrivals="distinct"), text.format(window=LAST_THREE))
    assert [answer.closes_ms for answer in found.answers] == [
        EARLIEST_MS,
        EARLIEST_MS,
        0,
        LATEST_MS,
        LATEST_MS,
    ]
    assert [answer.opens_ms for answer in found.answers] == [EARLIEST_MS - 1] * 3 + [
        EARLIEST_MS - 1,
        -1,
    ]
    check_shown(found.answers)


def test_what_is_said_of_a_time_that_no_instant_is(tmp_path: Path) -> None:
    """An offset may take an instant out of the years that its text is in; none ends the engine."""
    texts = ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00-14:00", "9999-12-31T23:59:59.999Z")
    beyond = ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999-00:01")
    with (tmp_path / "a").open("w") as file:
        file.writelines(
            json.dumps({"t": text, "s": f"s{at}", "p": 1}) + "\n"
            for at, text in enumerate(texts + beyond)
        )
    (tmp_path / "people.jsonl").touch()
    streams = catalog(tmp_path, time_as="dateTime")
    found = live(tmp_path, streams, WHOLE.format(window="[RANGE 1s STEP 1s]"))
    assert found.bad == {'the time in the field "t" is not in the years 1 to 9999': 2}
    assert len((tmp_path / "bad").read_text().splitlines()) == 2
    closes = [instant_text(answer.closes_ms) for answer in found.answers if answer.rows]
    assert closes == [
        "0001-01-01T00:00:00.000Z",
        "0001-01-01T14:00:00.000Z",
        "10000-01-01T00:00:00.000Z",
    ]


@pytest.mark.parametrize("since", [EARLIEST_MS, 10**12])
@pytest.mark.parametrize(
    ("text", "arrivals"), [(BEST, "distinct"), (BEST, "latest"), (SUMS, "all"), (WHOLE, "all")]
)
def test_a_query_that_joins_a_stream_begins_with_the_next_window_in_whatever_year(
    tmp_path: Path, text: str, arrivals: str, since: int
) -> None:
    """Windows before 1970 have numbers below 0."""
    write(tmp_path, [since, since + 1_000])
    read = Read()
    streams = catalog(tmp_path, arrivals=arrivals)
    with Engine(streams, runtime="local", observer=read) as engine:
        engine.register(PREFIX + text.format(window="[RANGE 1s STEP 1s]"), name="first")
        engine.start()
        read.all.wait()
        later = engine.register(PREFIX + text.format(window="[RANGE 2s STEP 2s]"), name="later")
        write(tmp_path, [since + at * 1_000 for at in range(2, 9)], first=2)
        closes = [answer.closes_ms - since for answer in later.answers(limit=2)]
    assert closes == [4_000, 6_000]


@pytest.mark.parametrize("shown", ["--json", "table"])
def test_the_command_line_shows_the_first_and_the_last_millisecond_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shown: str
) -> None:
    (tmp_path / "catalog.toml").write_text(catalog_text(tmp_path))
    (tmp_path / "query.rspql").write_text(PREFIX + WHOLE.format(window="[RANGE 9m STEP 3m]"))
    command = [
        "run",
        str(tmp_path / "query.rspql"),
        "--catalog",
        str(tmp_path / "catalog.toml"),
        "--runtime",
        "local",
    ]
    command += [
        "--until-end",
        "--state",
        str(tmp_path / "state"),
        *(["--json"] if shown == "--json" else []),
    ]
    written = []
    for time in (EARLIEST_MS, LATEST_MS):
        write(tmp_path, [time])
        assert main(command) == 0
        written.append(capsys.readouterr().out)
    if shown == "--json":
        windows = [json.loads(line)["window"] for out in written for line in out.splitlines()]
        assert windows[0]["opens"] == "0000-12-31T23:51:00.000Z"
        assert windows[-1]["closes"] == "10000-01-01T00:06:00.000Z"
    else:
        assert "(0000-12-31 23:51:00, 0001-01-01 00:00:00]" in written[0]
        assert "(9999-12-31 23:57:00, 10000-01-01 00:06:00]" in written[1]


def test_bounds_fit_into_64_bits_whatever_the_window() -> None:
    ends = np.array([EARLIEST_MS, LATEST_MS])
    for start in (None, EARLIEST_MS, LATEST_MS):
        for width, slide in ((1, 1), (10**15, 1), (10**15, 10**15), (1, 10**15)):
            windows = Windows(width, slide, start)
            for time, first, last in zip(
                ends.tolist(), *(each.tolist() for each in windows.spans(ends)), strict=True
            ):
                assert (first, last) == (windows.first(time), windows.last(time))
                assert all(
                    abs(bound) < 2**52
                    for window in (first, last)
                    for bound in windows.bounds(window)
                )


def test_a_start_is_in_the_years_that_events_are_in(tmp_path: Path) -> None:
    for start in (EARLIEST_MS, LATEST_MS):
        assert catalog(tmp_path, extra=f"start_ms = {start}").streams[NS + "a"].start_ms == start
    for start in (EARLIEST_MS - 1, LATEST_MS + 1):
        with pytest.raises(CatalogError, match=r'"start_ms" must be at (least|most)'):
            catalog(tmp_path, extra=f"start_ms = {start}")


def test_a_timer_sleeps_for_what_is_due_in_a_thousand_years() -> None:
    """The system itself knows no such sleep."""
    asked = threading.Semaphore(0)

    def due() -> float:
        asked.release()
        return 1e13

    timer = IdleTimer(due, lambda: None)
    timer.start("acquatop-idle-for-long")
    assert asked.acquire(timeout=60)
    timer.wake()
    assert asked.acquire(timeout=60)
    assert asked.acquire(timeout=60)
    timer.stop()
