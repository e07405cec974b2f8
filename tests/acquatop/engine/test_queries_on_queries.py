"""Queries that read the answers of others: what they answer, what it is worth, who may go."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from pyspark.sql import SparkSession

from acquatop.answer.answer import Answer, Status
from acquatop.catalog.catalog import Catalog
from acquatop.engine.answers_streams.worth import MOST_KEPT, Worth
from acquatop.engine.engine import Engine
from acquatop.engine.surroundings import Surroundings
from acquatop.errors import AcquaTopError, EvaluationLost, UserError
from acquatop.query.sparql.engine import Graphs, LocalEngine
from rspql.diagnostics import QueryError
from tests.support.empty_answer import NOTHING
from tests.support.queries.networks import (
    PREFIX,
    Event,
    Network,
    Right,
    catalog_text,
    networks,
    right_answers,
)
from tests.support.worlds import NS

IN_PROCESS = Surroundings(
    open_sparql=lambda content, functions, limits: LocalEngine(content, functions)
)


def answers_of(
    texts: Sequence[str], catalog: Catalog, surroundings: Surroundings | None = None
) -> list[list[Answer]]:
    """Run queries over the recording, and return their answers."""
    with Engine(
        catalog, runtime="local", until_end=True, autostart=False, surroundings=surroundings
    ) as engine:
        running = [engine.register(text) for text in texts]
        engine.start()
        return [list(each) for each in running]


def results(answer: Answer) -> list[Any]:
    """Return what an answer says, as brute force does."""
    if answer.form == "select":
        rows = [
            {name: term.n3().replace("^^xsd:", "^^") for name, term in row.bindings.items()}
            for row in answer.rows
        ]
        return sorted(rows, key=lambda each: sorted(each.items()))
    subjects: dict[str, list[tuple[str, str]]] = {}
    for line in answer.triples:
        subject, predicate, rest = line.split(" ", 2)
        subjects.setdefault(subject, []).append((predicate, rest.removesuffix(" .")))
    return sorted(
        ("" if subject.startswith("_:") else subject, sorted(said))
        for subject, said in subjects.items()
    )


@settings(deadline=None, max_examples=40)
@given(networks)
def test_each_query_answers_what_it_would_over_the_elements_of_the_one_before(
    network: Network,
) -> None:
    with TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "events.jsonl").write_text(network.recording())
        catalog = Catalog.parse(
            catalog_text(network.batch_bytes), file=place / "catalog.toml", variables={}
        )
        found = answers_of(network.texts(), catalog, IN_PROCESS)
    for answers, right in zip(found, right_answers(network), strict=True):
        assert [Right(each.closes_ms, results(each)) for each in answers] == right
        assert {str(each.status) for each in answers} <= {"exact"}


# What an answer is worth --------------------------------------------------------------------------

RANKED = f"""
[services.":ranks"]
remote = "table"
path = "ranks.csv"
time = "t"
load = false
mapping = {{ key = "{NS}user/{{id}}", properties = {{ ":rank" = {{ field = "rank", datatype = "xsd:integer" }} }} }}
refresh = {{ n = 1, items = 1, requests = 1, deadline = "60s" }}
"""  # noqa: E501
CERTAIN = (
    PREFIX
    + """REGISTER {output} :a AS SELECT ?user (?m * ?r AS ?score)
    FROM NAMED WINDOW :w ON :events [RANGE 4ms STEP 2ms]
    WHERE {{ WINDOW :w {{ ?e :user ?user ; :m ?m }} SERVICE :ranks {{ ?user :rank ?r }} }}
    ORDER BY DESC(?score) LIMIT 2"""
)
ANY = (
    PREFIX
    + """SELECT ?row FROM NAMED WINDOW :w ON :a [RANGE 5ms STEP 3ms]
    WHERE { WINDOW :w { ?row :user ?user } }"""
)
BEST = (
    PREFIX
    + """SELECT ?user (MAX(?n) AS ?most) FROM NAMED WINDOW :w ON :a [RANGE 5ms STEP 3ms]
    WHERE { WINDOW :w { ?row :user ?user ; :score ?n } }
    GROUP BY ?user ORDER BY DESC(?most) LIMIT 2"""
)
ORDER = ["exact", "certified", "approximate"]


def ranked(folder: Path, random: Random) -> Catalog:
    """Return a catalog with a table of which one key is asked at a time, and a recording."""
    rows = [f"{t},{user},{random.randrange(9)}" for t in (0, 11) for user in "abcd"]
    (folder / "ranks.csv").write_text("t,id,rank\n" + "\n".join(rows) + "\n")
    events = [Event(t, random.choice("abcd"), random.randrange(9), None) for t in range(1, 25)]
    network = Network("events", "RSTREAM", ((1, 1),) * 3, tuple(events), 300)
    (folder / "events.jsonl").write_text(network.recording())
    return Catalog.parse(catalog_text(300) + RANKED, file=folder / "catalog.toml", variables={})


@pytest.mark.parametrize("output", ["STREAM", "ISTREAM"])
def test_no_answer_is_worth_more_than_those_that_it_is_made_of(output: str, tmp_path: Path) -> None:
    seen: set[str] = set()
    for seed in range(6):
        folder = tmp_path / str(seed)
        folder.mkdir()
        texts = [CERTAIN.format(output=output), ANY, BEST]
        source, *behind = answers_of(texts, ranked(folder, Random(seed)), IN_PROCESS)
        worth = {each.closes_ms: ORDER.index(each.status) for each in source}
        if output == "ISTREAM":
            # What is new follows from the answer before, too.
            before = {each.closes_ms: worth.get(each.closes_ms - 2, 0) for each in source}
            worth = {closes: max(own, before[closes]) for closes, own in worth.items()}
        for answer in (each for answers in behind for each in answers):
            held = [w for t, w in worth.items() if answer.opens_ms < t <= answer.closes_ms]
            assert answer.status == ORDER[max(held, default=0)], answer
            seen.add(str(answer.status))
            if answer.status != "exact":
                said = f"an answer of <{NS}a> in the window is {answer.status}"
                assert said in str(answer.reason)
                assert answer.expected is None
    assert seen >= {"certified", "approximate"}


class Losing(LocalEngine):
    """Engine that loses each answer about ann."""

    def select(self, text: str, graphs: Graphs, *, on_nothing: bool = False) -> bytes:
        found = super().select(text, graphs, on_nothing=on_nothing)
        if b"/ann" in found and not on_nothing:
            raise EvaluationLost("memory", "it was too large")
        return found


def test_a_lost_answer_makes_those_behind_it_approximate(tmp_path: Path) -> None:
    users = {3: "bob", 7: "ann", 13: "bob", 20: "bob"}
    network = Network(
        "events",
        "RSTREAM",
        ((5, 5), (10, 5), (10, 10)),
        tuple(Event(t, user, 1, None) for t, user in users.items()),
        10_000,
    )
    (tmp_path / "events.jsonl").write_text(network.recording())
    catalog = Catalog.parse(catalog_text(10_000), file=tmp_path / "catalog.toml", variables={})
    losing = Surroundings(open_sparql=lambda content, functions, limits: Losing(content, functions))
    first, second, third = answers_of(network.texts(), catalog, losing)
    assert [each.closes_ms for each in first] == [5, 15, 20]
    statuses = {each.closes_ms: str(each.status) for each in second}
    assert statuses == {5: "exact", 10: "approximate", 15: "approximate", 20: "exact", 25: "exact"}
    reason = next(each.reason for each in second if each.closes_ms == 10)
    assert reason == (
        f"an answer of <{NS}a> in the window is approximate: it was lost: it was too large"
    )
    assert [str(each.status) for each in third] == ["approximate", "approximate", "exact"]


def test_an_answer_beyond_all_years_is_missed_behind_it(tmp_path: Path) -> None:
    last = 253_402_300_800_000
    events = tuple(Event(t, "ann", 1, None) for t in (last - 30, last - 5))
    network = Network("events", "RSTREAM", ((10, 10), (60, 60), (60, 60)), events, 10_000)
    (tmp_path / "events.jsonl").write_text(network.recording())
    catalog = Catalog.parse(catalog_text(10_000), file=tmp_path / "catalog.toml", variables={})
    first, second, _ = answers_of(network.texts(), catalog, IN_PROCESS)
    assert [(each.closes_ms, len(each.rows)) for each in first if each.rows] == [
        (last - 30, 1),
        (last, 1),
    ]
    (answer,) = second
    assert (answer.closes_ms, str(answer.status)) == (last, "approximate")
    assert "it is not in the years 1 to 9999" in str(answer.reason)


def test_notes_are_bounded_and_never_milder_for_it() -> None:
    worth = Worth("urn:a", compares=False)
    for at in range(MOST_KEPT + 5):
        status = Status.APPROXIMATE if at == 3 else Status.CERTIFIED
        worth.note(replace(NOTHING, closes_ms=at, status=status))
    assert len(worth.state()["notes"]) == MOST_KEPT
    kept = Worth("urn:a", compares=False)
    kept.resume(json.loads(json.dumps(worth.state())))
    for each in (worth, kept):
        oldest, newest = each.within(3, 4), each.within(MOST_KEPT, MOST_KEPT + 9)
        assert (oldest and oldest.status, newest and newest.status) == ("approximate", "certified")
        assert each.within(MOST_KEPT + 4, MOST_KEPT + 9) is None


# Who may read, come and go ------------------------------------------------------------------------


@pytest.fixture
def live(tmp_path: Path) -> Iterator[tuple[Engine, Path]]:
    """Return an engine that reads a growing file, and the file."""
    (file := tmp_path / "events.jsonl").touch()
    catalog = Catalog.parse(catalog_text(10_000), file=tmp_path / "catalog.toml", variables={})
    with Engine(catalog, runtime="local", surroundings=IN_PROCESS) as engine:
        yield engine, file


def write(file: Path, *times: int) -> None:
    events = tuple(Event(t, "ann", t, None) for t in times)
    with file.open("a") as lines:
        lines.write(Network("events", "RSTREAM", ((1, 1),) * 3, events, 1).recording())


def texts_of(first: str = "SELECT ?user ?m", **changes: str) -> tuple[str, str]:
    """Return a query whose windows tumble every 10 ms, and one that reads it every 20."""
    source = f"""{PREFIX}REGISTER STREAM :a AS {first}
        FROM NAMED WINDOW :w ON :events [RANGE 10ms STEP 10ms]
        WHERE {{ WINDOW :w {{ ?e :user ?user ; :m ?m }} }}"""
    reader = f"""{PREFIX}SELECT ?m FROM NAMED WINDOW :w ON :a [RANGE 20ms STEP 20ms]
        WHERE {{ WINDOW :w {{ ?row :m ?m }} }} ORDER BY ?m"""
    return source, reader


def test_a_reader_that_comes_later_begins_with_the_first_whole_window(
    live: tuple[Engine, Path],
) -> None:
    engine, file = live
    source, reader = texts_of()
    making = engine.register(source)
    write(file, 1, 12, 33)
    assert [each.closes_ms for each in making.answers(3)] == [10, 20, 30]
    reading = engine.register(reader)
    write(file, 41, 45, 52, 61, 85)
    (answer,) = reading.answers(1)
    # The window from 20 to 40 was open when it came, and one of its answers given.
    assert (answer.opens_ms, answer.closes_ms) == (40, 60)
    assert [str(row.bindings["m"]) for row in answer.rows] == ["41", "45", "52"]


def test_time_goes_on_behind_a_query_that_answers_nothing(live: tuple[Engine, Path]) -> None:
    engine, file = live
    source, reader = texts_of()
    engine.register(source)
    reading = engine.register(reader)
    write(file, 5, 100)
    closes = [(each.closes_ms, len(each.rows)) for each in reading.answers(4)]
    assert closes == [(20, 1), (40, 0), (60, 0), (80, 0)]


def test_a_query_is_not_stopped_while_others_read_it(live: tuple[Engine, Path]) -> None:
    engine, _ = live
    source, reader = texts_of()
    making, reading = engine.register(source), engine.register(reader, name="reader")
    with pytest.raises(UserError, match=r"is read by reader.*\n  hint: stop what reads it first"):
        making.stop()
    assert engine.readers(making.name) == ["reader"]
    reading.stop()
    making.stop()
    assert engine.queries == []


def test_who_reads_a_query_that_fails_fails_with_it(tmp_path: Path) -> None:
    class Full:
        def write(self, answers: Sequence[Answer]) -> None:
            raise OSError("the disk is full")

        def close(self) -> None:
            pass

    (file := tmp_path / "events.jsonl").touch()
    catalog = Catalog.parse(catalog_text(10_000), file=tmp_path / "catalog.toml", variables={})
    with Engine(catalog, runtime="local", surroundings=IN_PROCESS) as engine:
        source, reader = texts_of()
        making = engine.register(source, sinks=[Full()])
        reading = engine.register(reader)
        write(file, 5, 100)
        with pytest.raises(AcquaTopError, match="which it reads: the disk is full"):
            list(reading)
        assert isinstance(making.error, OSError)


def test_two_streams_of_which_one_is_made_of_the_other(live: tuple[Engine, Path]) -> None:
    """Neither waits for the other for ever, though the window over events is the smaller."""
    engine, file = live
    source, _ = texts_of()
    engine.register(source)
    both = engine.register(
        f"""{PREFIX}SELECT ?m ?n FROM NAMED WINDOW :v ON :events [RANGE 1ms STEP 1ms]
        FROM NAMED WINDOW :w ON :a [RANGE 10ms STEP 10ms]
        WHERE {{ WINDOW :v {{ ?e :m ?m }} WINDOW :w {{ ?row :m ?n }} }}"""
    )
    for at in range(1, 60, 4):
        write(file, at)
    found = [each for each in both.answers(40) if each.rows]
    assert {(str(row.bindings["m"]), str(row.bindings["n"])) for row in found[0].rows} == {
        ("13", "1"),
        ("13", "5"),
        ("13", "9"),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (texts_of()[1], "the catalog has no stream <http://example.org/a>"),
        (
            texts_of()[0].replace("ON :events", "ON :a"),
            "<http://example.org/a> is made of what this query answers: queries read in a circle",
        ),
    ],
)
def test_what_reads_too_early_or_itself_is_refused(
    live: tuple[Engine, Path], text: str, message: str
) -> None:
    with pytest.raises(QueryError, match=re.escape(message)):
        live[0].register(text)


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        ("ASK", "the answers of ASK are no elements of a stream"),
        ("CONSTRUCT { ?e ?user ?m }", "its template has a variable as a predicate"),
    ],
)
def test_what_makes_no_stream_is_not_read(
    live: tuple[Engine, Path], first: str, reason: str
) -> None:
    source, reader = texts_of(first)
    live[0].register(source)
    with pytest.raises(QueryError, match=f"makes no stream: {reason}"):
        live[0].register(reader)


def test_a_recording_that_has_begun_is_not_read_behind(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").touch()
    catalog = Catalog.parse(catalog_text(10_000), file=tmp_path / "catalog.toml", variables={})
    with Engine(catalog, runtime="local", until_end=True) as engine:
        engine.register(texts_of()[0])
        # It may be over by now: then nobody makes the stream any more.
        with pytest.raises((UserError, QueryError), match=r"autostart=False|has no stream"):
            engine.register(texts_of()[1])


def test_what_is_waited_for_is_that_of_the_source(live: tuple[Engine, Path]) -> None:
    engine, file = live
    for text in texts_of():
        engine.register(text, name=None)
    file.unlink()
    waits = engine.waiting()
    assert waits["query"].text == f"it reads what {NS}a answers: {waits[NS + 'a'].text}"


LATE = f"""{PREFIX}REGISTER {{output}} :a AS SELECT ?user ?m
    FROM NAMED WINDOW :w ON :events [RANGE 20ms STEP 10ms]
    WHERE {{{{ WINDOW :w {{{{ ?e :user ?user ; :m ?m }}}} }}}}"""
EACH = f"""{PREFIX}SELECT ?m FROM NAMED WINDOW :w ON :a [RANGE 1ms STEP 1ms]
    WHERE {{ WINDOW :w {{ ?row :m ?m }} }}"""


@pytest.mark.parametrize("was_read", [False, True])
def test_a_change_is_worth_no_more_than_the_answer_before_that_nobody_read(
    was_read: bool, live: tuple[Engine, Path]
) -> None:
    engine, file = live
    making = engine.register(LATE.format(output="ISTREAM"))
    former = engine.register(EACH, name="former") if was_read else None
    write(file, 1, 12)
    assert [each.closes_ms for each in making.answers(1)] == [10]
    if former is not None:
        former.stop()
    write(file, 5)  # It is late for the first window, and the second lacks it.
    write(file, 22)
    assert [str(each.status) for each in making.answers(1)] == ["approximate"]
    reading = engine.register(EACH)
    write(file, 33, 44, 55)
    assert [str(each.status) for each in making.answers(2)] == ["exact", "exact"]
    found = {each.closes_ms: str(each.status) for each in reading.answers(25)}
    assert (found[30], found[40]) == ("approximate", "exact")


def test_a_change_of_unknown_origin_is_approximate() -> None:
    worth = Worth("urn:a", compares=True)
    worth.pass_by(None)
    for at in (1, 2):
        worth.note(replace(NOTHING, closes_ms=at, status=Status.EXACT))
    first = worth.within(0, 1)
    assert (first and first.status, worth.within(1, 2)) == ("approximate", None)


@pytest.mark.parametrize(
    "pattern",
    [
        "{ SELECT ?user (SUM(?m) AS ?n) WHERE { ?row :user ?user ; :m ?m } GROUP BY ?user }",
        "{ ?row :user ?user ; :m ?n }",
    ],
)
@pytest.mark.parametrize("limit", ["ORDER BY DESC(?more) LIMIT 3", ""])
def test_a_difference_is_worth_no_more_than_what_it_is_computed_with(
    pattern: str, limit: str, live: tuple[Engine, Path]
) -> None:
    """Windows that are shown hold nothing from 10 to 20 ms ago."""
    engine, file = live
    making = engine.register(LATE.format(output="RSTREAM"))
    reading = engine.register(
        f"""{PREFIX}SELECT ?user (change:difference(?n, "PT0.025S"^^xsd:duration) AS ?more)
        FROM NAMED WINDOW :w ON :a [RANGE 10ms STEP 10ms] WHERE {{ WINDOW :w {pattern} }} {limit}"""
    )
    write(file, 1, 12)
    assert [each.closes_ms for each in making.answers(1)] == [10]
    write(file, 5)
    write(file, 22, 33, 44, 55, 66, 77)
    statuses = {each.closes_ms: str(each.status) for each in making.answers(6)}
    assert {closes for closes, status in statuses.items() if status != "exact"} == {20}
    found = {each.closes_ms: str(each.status) for each in reading.answers(7)}
    # The values of the window that closes at 20 are those of 25 ms before 50.
    assert [found[closes] for closes in (40, 50, 60, 70)] == [
        "exact",
        "approximate",
        "exact",
        "exact",
    ]


def test_windows_of_elements_that_are_not_full_lack_what_was_lost(tmp_path: Path) -> None:
    users = {3: "ann", 7: "bob", 13: "bob", 20: "bob"}
    events = tuple(Event(t, user, 1, None) for t, user in users.items())
    network = Network("events", "RSTREAM", ((5, 5), (5, 5), (5, 5)), events, 10_000)
    (tmp_path / "events.jsonl").write_text(network.recording())
    catalog = Catalog.parse(catalog_text(10_000), file=tmp_path / "catalog.toml", variables={})
    losing = Surroundings(open_sparql=lambda content, functions, limits: Losing(content, functions))
    counting = f"""{PREFIX}SELECT ?user FROM NAMED WINDOW :w ON :a [ELEMENTS 2 STEP 1]
        WHERE {{ WINDOW :w {{ ?row :user ?user }} }}"""
    ranking = counting.replace("?user FROM", "?user ?e FROM").replace("}", "; :e ?e }", 1)
    ranking += " ORDER BY ?e LIMIT 2"
    _, *behind = answers_of([network.texts()[0], counting, ranking], catalog, losing)
    for found in behind:
        # One more than the first of these should have come before it.
        assert [str(each.status) for each in found] == ["approximate", "exact", "exact"]


@pytest.mark.spark
@pytest.mark.slow
def test_the_same_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    events = tuple(Event(t, "ab"[t % 2], t % 5, None) for t in range(1, 40))
    network = Network("most mentioned", "RSTREAM", ((6, 2), (6, 3), (4, 4)), events, 300)
    (tmp_path / "events.jsonl").write_text(network.recording())
    catalog = Catalog.parse(catalog_text(300), file=tmp_path / "catalog.toml", variables={})
    with Engine(catalog, spark=spark, until_end=True, autostart=False) as engine:
        running = [engine.register(text) for text in network.texts()]
        engine.start()
        found = [list(each) for each in running]
    assert [
        [Right(each.closes_ms, results(each)) for each in answers] for answers in found
    ] == right_answers(network)
