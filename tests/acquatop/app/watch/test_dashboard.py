"""Terminal displays: the live table, and the progress line of a recording."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rdflib import URIRef
from rich.console import Console

from acquatop.answer.answer import Answer, Row
from acquatop.app.cli.dashboard import LiveView
from acquatop.app.cli.progress import ReplayProgress
from acquatop.app.watch import AnswerSeen, BatchSeen, Several
from acquatop.app.watch.intake import Intake
from replica.budget import Budget, Spending
from tests.support.empty_answer import NOTHING


def console(*, terminal: bool = False, height: int = 24, width: int = 120) -> Console:
    return Console(
        file=io.StringIO(),
        width=width,
        height=height,
        force_terminal=terminal,
        color_system=None,
        _environ={},
    )


def text_of(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def picture(view: LiveView, *, height: int = 24) -> str:
    shown = console(height=height)
    shown.print(view)
    return text_of(shown)


def answer_of(query: str, who: str, window: int = 1) -> Answer:
    row = Row(1, {"user": URIRef(f"http://example.org/{who}")}, 0.5, True, 0.0)
    return replace(NOTHING, query=query, window=window, rows=(row,), latency_seconds=0.012)


class Time:
    """A clock that is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_present_answer_of_each_query_takes_the_place_of_the_one_before() -> None:
    view = LiveView(console(), Intake(), named=True)
    for answer in (answer_of("p", "ann"), answer_of("q", "bob"), answer_of("p", "mia", window=2)):
        view(answer)
    shown = picture(view)
    assert "ann" not in shown
    assert (
        shown.index("p  window 2")
        < shown.index("mia")
        < shown.index("q  window 1")
        < shown.index("bob")
    )


def test_the_line_above_says_how_things_stand() -> None:
    time = Time()
    intake = Intake()
    view = LiveView(console(), intake, named=False, clock=time, wall=lambda: 0.0)
    engine = Several([intake, view])
    assert picture(view).splitlines()[0] == "0 events/s · no answer yet"
    time.now = 2.0
    engine.batch(BatchSeen(stream="s", events=1, bad={"not JSON": 1}))
    assert picture(view).splitlines()[0].endswith(" · 1 bad · no answer yet, all items are bad")
    engine.batch(BatchSeen(stream="s", events=2999, late=2, watermark_ms=5_000))
    assert picture(view).splitlines()[0].endswith(" · no answer yet")
    engine.batch(BatchSeen(stream="t", events=0, watermark_ms=4_000))
    spent = replace(answer_of("q", "ann"), spending=Spending(3, 1), budget=Budget(8, 1, 1.0))
    view.answer(AnswerSeen(answer=spent))
    line = (
        "1,500 events/s · 2 late · 1 bad · watermark 00:00:04 · latency 12 ms · asked for 3 "
        "of 8 items · remote"
    )
    assert picture(view).splitlines()[0] == f"{line} ok"
    view.answer(AnswerSeen(answer=replace(spent, failure="it\x1b[31m failed")))
    failing = picture(view).splitlines()[0]
    assert failing.startswith(f"{line}: it")
    assert "\x1b" not in failing
    view.answer(AnswerSeen(answer=spent))
    assert picture(view).splitlines()[0].endswith("remote ok")


def test_below_it_stands_what_queries_wait_for_and_dates_that_are_not_of_today() -> None:
    words = ["nothing comes (3 s); send it"]
    view = LiveView(
        console(), Intake(), named=False, waiting=lambda: words[0], wall=lambda: 86_400.0
    )
    assert picture(view).splitlines()[1] == words[0]
    words[0] = 100 * "wrong "
    view(answer_of("p", "ann"))
    assert len(picture(view, height=16).splitlines()) <= 16
    words[0] = ""
    view(replace(answer_of("q", "ann"), opens_ms=1_000, closes_ms=7_000))
    assert picture(view).splitlines()[1] == ""
    assert "(1970-01-01 00:00:01, 00:00:07]" in picture(view)


def test_of_a_recording_it_says_how_far_it_has_been_read() -> None:
    time = Time()
    view = LiveView(console(), Intake(), named=False, clock=time)
    for at in (1, 2):
        time.now = 10.0 * at
        view.batch(BatchSeen(stream="s", events=100, done=at, total=4))
    assert picture(view).startswith("50.0 % read · 10 events/s · 0:20 left · no answer yet")


def test_what_does_not_fit_is_left_out_and_counted() -> None:
    view = LiveView(console(), Intake(), named=True)
    for at in range(50):
        view(answer_of(f"query{at}", "ann"))
    view(answer_of("query7", "bob"))
    shown = picture(view, height=28)
    assert [name for name in ("query7", "query48", "query49") if f"{name}  window" in shown] == [
        "query7",
        "query48",
        "query49",
    ]
    assert "47 more queries not shown" in shown
    assert len(shown.splitlines()) <= 28


@pytest.mark.parametrize(
    ("time_ms", "shown"),
    [
        (253_402_300_799_999, "9999-12-31 23:59:59.999"),
        (-62_135_596_800_001, "0000-12-31 23:59:59.999"),
    ],
)
def test_a_watermark_of_any_year_is_shown(time_ms: int, shown: str) -> None:
    """With a lateness it may lie before the year 1."""
    view = LiveView(console(), Intake(), named=False)
    view.batch(BatchSeen(stream="s", events=1, watermark_ms=time_ms))
    assert f"watermark {shown}" in picture(view)


def test_it_is_drawn_on_a_terminal_and_stays_there_at_the_end() -> None:
    terminal = console(terminal=True)
    with LiveView(terminal, Intake(), named=False) as view:
        view(answer_of("q", "ann"))
    assert "ann" in text_of(terminal).splitlines()[-5]
    assert text_of(terminal).endswith("\x1b[?25h")


def reading(terminal: Console, time: Time) -> ReplayProgress:
    return ReplayProgress(terminal, clock=time)


def batch(done: int) -> BatchSeen:
    return BatchSeen(stream="s", events=1_000, done=done, total=100)


def test_a_line_tells_how_far_a_recording_has_been_read() -> None:
    time, terminal = Time(), console(terminal=True)
    with reading(terminal, time) as progress:
        progress.batch(batch(10))
        time.now = 1.0
        progress.batch(batch(20))
    clear = "\r\x1b[2K"
    lines = text_of(terminal).split(clear)
    assert lines == ["", "10.0 % read · 0 events/s", "20.0 % read · 1,000 events/s · 0:08 left", ""]


def test_it_is_drawn_a_few_times_per_second_at_most() -> None:
    time, terminal = Time(), console(terminal=True)
    progress = reading(terminal, time)
    for at in range(1000):
        time.now = at / 1000
        progress.batch(batch(at // 10))
    assert text_of(terminal).count("read") == 4


def test_it_makes_way_for_what_is_printed() -> None:
    time, terminal = Time(), console(terminal=True)
    progress = reading(terminal, time)
    progress.batch(batch(10))
    with progress.aside():
        progress.batch(batch(15))
        terminal.print("an answer")
    progress.batch(batch(20))
    assert "\r\x1b[2Kan answer\n\r\x1b[2K20.0 %" in text_of(terminal)
    assert "15.0" not in text_of(terminal)


def test_no_one_looks_at_a_file_or_at_a_stream_that_does_not_say_how_long_it_is() -> None:
    shown = console()
    with reading(shown, Time()) as progress:
        progress.batch(batch(10))
    assert text_of(shown) == ""
    terminal = console(terminal=True)
    with reading(terminal, Time()) as progress:
        progress.batch(BatchSeen(stream="s", events=5))
    assert text_of(terminal) == ""


def test_a_line_is_cut_to_the_terminal_s_width() -> None:
    terminal = console(terminal=True, width=12)
    reading(terminal, Time()).batch(batch(10))
    assert "\n" not in text_of(terminal)
    assert "10.0 % read" in text_of(terminal)
