"""Explanations of a query without an answer: one for each thing that it may wait for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from acquatop.catalog.catalog import Catalog, Stream
from acquatop.engine.engine import Engine
from acquatop.engine.observer import BatchSeen
from acquatop.engine.standstill import Hindrance, Standstill
from acquatop.engine.stream_time import Phase
from acquatop.engine.surroundings import Surroundings
from acquatop.engine.waiting.kinds import Waiting, WaitingKind
from acquatop.engine.waiting.remedies import remedy_of
from acquatop.engine.waiting.stream_checks import BUSY_SECONDS, END_SECONDS, QUIET_SECONDS, why
from acquatop.engine.waiting.stream_facts import OTHER, REASONS, StreamFacts
from acquatop.engine.waiting.view import StreamView
from acquatop.engine.waiting.window_words import open_window
from acquatop.ingest.place import Place
from acquatop.ingest.reduce.late_finder import TOO_FAR_AHEAD
from acquatop.plan.bind import bind_query
from connectors.source_status import SourceState, SourceStatus
from tests.support.waiting import until

NS = "http://example.org/"
NOON = 1_750_075_200_000
"""Noon of 2025-06-16."""
NOW = NOON / 1000
SECTION = """
[streams."http://example.org/{name}"]
connector = "lines"
options = {{ path = "{name}.jsonl" }}
{more}
[streams."http://example.org/{name}".mapping]
subject = "http://example.org/user/{{user}}"
time = "at"
{mapping}
properties = {{ "http://example.org/n" = {{ field = "n", datatype = "xsd:integer" }} }}
"""
QUERY = """PREFIX : <http://example.org/> SELECT ?s ?n FROM NAMED WINDOW :w ON :s [RANGE 10m]
WHERE { WINDOW :w { ?s :n ?n } } ORDER BY DESC(?n) LIMIT 3"""
PAIRS = """PREFIX : <http://example.org/> SELECT ?s ?n
FROM NAMED WINDOW :v ON :s [RANGE 10m] FROM NAMED WINDOW :w ON :t [RANGE 10m]
WHERE { WINDOW :v { ?s :n ?n } WINDOW :w { ?s :n ?n } }"""
COUNTED = QUERY.replace("[RANGE 10m]", "[ELEMENTS 5 STEP 5]")


def catalog(folder: Path = Path(), more: str = "", mapping: str = "") -> Catalog:
    text = "".join(SECTION.format(name=name, more=more, mapping=mapping) for name in "st")
    return Catalog.parse(text, file=folder / "catalog.toml", variables={})


def stream(**more: str) -> Stream:
    return catalog(**more).streams[NS + "s"]


def view(*seen: BatchSeen, at: float = NOW, **changes: Any) -> StreamView:
    """Return a stream that is carried, at noon, after some batches."""
    facts = StreamFacts(NOW - 60)
    for each in seen:
        facts.note(each, at)
    usual = StreamView(
        stream=stream(),
        now=NOW,
        facts=facts.now,
        status=SourceStatus(SourceState.CONNECTED, "host:1", "message", NOW - 12),
        phase=Phase.LISTENING,
        newest_ms=None,
        watermark_ms=None,
        is_idle=False,
        is_carried=True,
        is_live=True,
        has_status=True,
    )
    return replace(usual, **changes)


def batch(events: int = 1, **more: Any) -> BatchSeen:
    return BatchSeen(stream=NS + "s", events=events, **more)


def explained(seen: StreamView) -> Waiting:
    found = why(seen)
    assert found is not None
    return found


STATES: Mapping[SourceState, tuple[WaitingKind, str]] = {
    SourceState.CONNECTING: (WaitingKind.CONNECTING, "not connected to host:1: 3 attempts failed"),
    SourceState.ABSENT: (WaitingKind.ABSENT, "there is no file or folder host:1 yet"),
    SourceState.FULL: (WaitingKind.FULL, "the log of what was received from host:1 is full"),
    SourceState.EMPTY: (WaitingKind.EMPTY, "host:1 has no message yet"),
    SourceState.CONNECTED: (WaitingKind.SILENT, "connected to host:1, no message yet"),
    SourceState.PRESENT: (WaitingKind.SILENT, "no message of host:1 can be read yet"),
}


@pytest.mark.parametrize("state", SourceState)
def test_each_state_of_a_source_is_explained_with_the_remedy_of_its_connector(
    state: SourceState,
) -> None:
    attempts = 3 if state is SourceState.CONNECTING else 0
    problem = "Connection refused" if attempts else ""
    status = SourceStatus(state, "host:1", "message", NOW - 12, attempts, problem, "mend it")
    found = explained(view(status=status))
    kind, words = STATES[state]
    assert (found.kind, found.remedy, found.since) == (kind, "mend it", NOW - 12)
    assert found.text.startswith(words)
    assert found.text.endswith(problem)
    assert found.words(NOW) == f"{found.text} (12 s); mend it"


def test_without_a_status_the_reader_or_a_silence_is_named() -> None:
    assert explained(view(status=None)).text == "the reader is starting"
    found = explained(view(status=None, has_status=False))
    assert (found.kind, found.text) == (
        WaitingKind.SILENT,
        "nothing has come of <http://example.org/s> yet",
    )


def test_items_that_are_all_bad_are_counted_with_the_commonest_reason_its_place_and_remedy() -> (
    None
):
    place = Place("events", 30)
    bad = batch(3, bad={"not JSON": 2, "no time": 1}, bad_at={"not JSON": place})
    found = explained(view(bad, bad))
    assert found.kind is WaitingKind.BAD
    assert found.text == (
        "the last 6 items of <http://example.org/s> are bad: "
        "not JSON (4, the first at position 30 of events), and 1 more reason"
    )
    assert found.remedy is not None
    assert "format" in found.remedy
    assert why(view(bad, batch(1))) is None
    assert explained(view(batch(1), bad)).kind is WaitingKind.BAD


def test_times_that_are_all_ahead_or_late_are_told_from_other_bad_ones() -> None:
    assert explained(view(batch(1, bad={TOO_FAR_AHEAD: 1}))).kind is WaitingKind.AHEAD
    found = explained(view(batch(2, late=2), watermark_ms=NOON))
    assert (found.kind, found.is_trouble) == (WaitingKind.LATE, True)
    assert "windows up to 12:00:00 are closed" in found.text
    found = explained(view(batch(3, late=2, bad={"not JSON": 1})))
    assert found.text.endswith("2 are late")


def test_reasons_without_end_take_a_bounded_memory() -> None:
    many = {f"reason {at}": 1 for at in range(3 * REASONS)}
    bad = view(batch(len(many), bad=many)).facts.bad
    assert len(bad) == REASONS + 1
    assert bad[OTHER] == 2 * REASONS


@pytest.mark.parametrize(
    ("mapping", "is_told"), [("", True), ('time_as = "seconds"', False)], ids=["ms", "s"]
)
def test_seconds_that_are_read_as_milliseconds_are_told_whatever_closes(
    mapping: str, is_told: bool
) -> None:
    seconds = view(batch(), newest_ms=NOON // 1000, stream=stream(mapping=mapping))
    found = why(seconds)
    assert (found is not None) is is_told
    if found is not None:
        assert found.kind is WaitingKind.UNITS
        assert found.text == "the times of <http://example.org/s> are of 1970-01-21"
        assert found.remedy == 'did you mean time_as = "seconds"?'
    assert why(replace(seconds, newest_ms=NOON)) is None
    assert why(replace(seconds, newest_ms=10_000)) is None


@pytest.mark.parametrize(
    ("reason", "mapping", "words"),
    [
        ('the time in the field "at" is not in the years 1 to 9999', "", "microseconds"),
        (
            'the time in the field "at" is not in the years 1 to 9999',
            'time_as = "seconds"',
            'did you mean time_as = "milliseconds"?',
        ),
        ('the field "at" is not a time in milliseconds', "", "time_as"),
        ('no subject in the field "user"', "", "subject"),
        ('the field "n" is not an integer', "", "dead_letters"),
        (TOO_FAR_AHEAD, "", "ahead"),
    ],
)
def test_the_remedy_fits_the_reason(reason: str, mapping: str, words: str) -> None:
    assert words in remedy_of(reason, stream(mapping=mapping))


def test_a_time_that_stands_still_while_items_come_is_told() -> None:
    records = {Hindrance.NOT_NEWER: 5, Hindrance.LATE: 1}
    still = Standstill(watermark_ms=NOON, seconds=90.0, records=records)
    found = explained(view(batch(), watermark_ms=NOON, standstill=still))
    assert (found.kind, found.since, found.is_trouble) == (
        WaitingKind.STANDSTILL,
        NOW - 90.0,
        True,
    )
    assert "stands still at 12:00:00: most are not newer" in found.text


def test_a_batch_that_takes_long_and_a_stream_that_is_held_are_named() -> None:
    facts = StreamFacts(NOW)
    facts.note(batch(), NOW)
    facts.begin(NOW - BUSY_SECONDS)
    assert explained(view(facts=facts.now)).kind is WaitingKind.EVALUATING
    facts.end()
    assert why(view(facts=facts.now)) is None
    assert explained(view(facts=facts.now, phase=Phase.HELD)).kind is WaitingKind.JOIN


def test_a_silence_is_told_unless_the_clock_moves_the_time_on() -> None:
    silent = view(batch(), at=NOW - QUIET_SECONDS)
    found = explained(silent)
    assert (found.kind, found.since) == (WaitingKind.SILENT, NOW - QUIET_SECONDS)
    assert found.remedy is not None
    assert "idle" in found.remedy
    assert why(replace(silent, now=NOW - 1)) is None
    assert why(replace(silent, stream=stream(more='idle = "20s"'))) is None
    assert why(replace(silent, is_live=False)) is None


def test_a_file_that_was_read_to_its_end_names_the_option_for_recordings() -> None:
    status = SourceStatus(SourceState.PRESENT, "events")
    found = explained(view(batch(), at=NOW - END_SECONDS, status=status))
    assert found.kind is WaitingKind.END
    assert found.remedy is not None
    assert "--until-end" in found.remedy


# Windows ------------------------------------------------------------------------------------------


def test_the_open_window_says_when_it_closes_and_where_the_time_is() -> None:
    bound = bind_query(QUERY, catalog(more='lateness = "5s"'))
    late = stream(more='lateness = "5s"')
    here = view(batch(), stream=late, watermark_ms=NOON + 200_000, newest_ms=NOON + 205_001)
    found = open_window(bound, [here], {})
    assert (found.kind, found.is_trouble) == (WaitingKind.WINDOW, False)
    assert found.text == (
        "window 12:00:00 – 12:10:00 closes when the stream's time passes 12:10:00 "
        "(now at 12:03:20, lateness 5 s)"
    )
    tomorrow = replace(here, now=NOW + 86_400)
    assert "window 2025-06-16 12:00:00 – 12:10:00 closes" in open_window(bound, [tomorrow], {}).text


def test_a_query_that_joined_later_waits_for_the_first_window_that_opened_after_that() -> None:
    here = view(batch(), watermark_ms=NOON + 200_000)
    found = open_window(bind_query(QUERY, catalog()), [here], {NS + "s": NOON + 200_001})
    assert "window 12:10:00 – 12:20:00" in found.text


def test_the_slower_stream_of_a_join_is_named() -> None:
    bound = bind_query(PAIRS, catalog())
    ahead = view(batch(), watermark_ms=NOON + 700_000)
    behind = view(batch(), watermark_ms=NOON + 200_000, stream=replace(stream(), iri=NS + "t"))
    found = open_window(bound, [ahead, behind], {})
    assert found.kind is WaitingKind.JOIN
    assert "waits for <http://example.org/t>, which is at 12:03:20" in found.text
    assert open_window(bound, [ahead, replace(behind, is_idle=True)], {}).kind is WaitingKind.WINDOW


def test_windows_that_count_wait_for_elements() -> None:
    found = open_window(bind_query(COUNTED, catalog()), [view(batch())], {})
    assert (found.kind, "elements" in found.text) == (WaitingKind.WINDOW, True)


# An engine ----------------------------------------------------------------------------------------


@contextmanager
def engine(folder: Path, query: str = QUERY, **more: str) -> Iterator[Engine]:
    around = Surroundings(wall_clock=lambda: NOW)
    with Engine(catalog(folder, **more), runtime="local", surroundings=around) as running:
        running.register(query, name="q")
        yield running


def until_waits_for(running: Engine, kind: WaitingKind) -> Waiting:
    until(lambda: running.waiting()["q"].kind is kind)
    return running.waiting()["q"]


def write(file: Path, *times: int) -> None:
    with file.open("a") as lines:
        for at in times:
            lines.write(json.dumps({"at": at, "user": "a", "n": 1}) + "\n")


def test_an_engine_follows_a_file_from_its_absence_to_its_open_window(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    with engine(tmp_path) as running:
        until_waits_for(running, WaitingKind.ABSENT)
        file.touch()
        until_waits_for(running, WaitingKind.EMPTY)
        file.write_text("{\n")
        assert "not JSON (1" in until_waits_for(running, WaitingKind.BAD).text
        write(file, NOON + 60_000)
        found = until_waits_for(running, WaitingKind.WINDOW)
        assert "window 12:00:00 – 12:10:00" in found.text
        running.queries[0].stop()
        assert running.waiting() == {}


def test_before_its_start_an_engine_says_that_the_runtime_starts(tmp_path: Path) -> None:
    with Engine(catalog(tmp_path), runtime="local", autostart=False) as waits:
        waits.register(QUERY, name="q")
        found = waits.waiting()["q"]
        assert (found.kind, found.text) == (WaitingKind.STARTING, "the runtime is starting")


def test_of_a_join_the_stream_with_trouble_is_named(tmp_path: Path) -> None:
    write(tmp_path / "s.jsonl", NOON)
    with engine(tmp_path, PAIRS) as running:
        found = until_waits_for(running, WaitingKind.ABSENT)
        assert found.about == NS + "t"
