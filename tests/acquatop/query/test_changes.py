"""Growth, difference and rate of a remote's values over a time, and decay, against brute force."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from acquatop import Answer, Engine
from acquatop.answer.answer import Status
from acquatop.catalog.catalog import Catalog
from acquatop.plan.bind import BoundQuery, bind_query, bind_windowed
from acquatop.plan.check import check_query
from replica.past_values import PastValues
from rspql.compiler import analyse
from rspql.plan import TopKPlan
from tests.support.markers import THOROUGH

NS = "http://example.org/"
SLIDE, BACK = 1_000, 3_000
CATALOG = """
[prefixes]
"" = "http://example.org/"
[streams.":s"]
connector = "lines"
options = {{ path = "events" }}
arrivals = "distinct"
[streams.":s".mapping]
subject = "http://example.org/e/{{id}}"
time = "t"
properties = {{ ":by" = {{ field = "user", datatype = "http://example.org/user/{{}}" }}, \
":at" = {{ field = "t", datatype = "xsd:integer" }}, \
":when" = {{ field = "when", datatype = "xsd:dateTime" }}, \
":n" = {{ field = "n", datatype = "xsd:integer" }} }}
[services.":people"]
remote = "table"
path = "people.jsonl"
time = "since"
load = {load}
[services.":people".mapping]
key = "http://example.org/user/{{id}}"
properties = {{ ":followers" = {{ field = "followers", datatype = "xsd:integer" }} }}
[services.":people".refresh]
policy = "AT-TSM"
items = {items}
deadline = "1h"
"""
QUERY = """PREFIX : <http://example.org/>
SELECT ?user ?followers
  (change:difference(?followers, "PT3S"^^xsd:duration) AS ?more)
  (change:rate(?followers, "3s") AS ?rate)
  (change:before(?followers, "PT3S"^^xsd:dayTimeDuration) AS ?before)
  (change:growth(?followers, "PT3S"^^xsd:duration) AS ?growth)
FROM NAMED WINDOW :w ON :s [RANGE 1s]
WHERE { WINDOW :w { ?e :by ?user } SERVICE :people { ?user :followers ?followers } }
ORDER BY DESC(?growth) LIMIT 3"""
Values = Mapping[int, Sequence[tuple[int, int]]]
"""Times from which a user has so many followers, in ascending order."""


def world(folder: Path, seed: int, *, items: int, load: bool) -> tuple[Catalog, Values]:
    """Write events of five users in each of ten windows, and a table of their followers."""
    random = Random(seed)
    values = {
        user: [(0, random.randrange(1, 50))]
        + [(at, random.randrange(1, 50)) for at in sorted(random.sample(range(1, 10_000), 6))]
        for user in range(5)
    }
    lines = [
        {"id": f"{at}-{user}", "t": at * SLIDE + 500, "user": user}
        for at in range(10)
        for user in range(5)
    ]
    rows = [
        {"id": user, "since": at, "followers": followers}
        for user, known in values.items()
        for at, followers in known
    ]
    write(folder / "events", lines)
    write(folder / "people.jsonl", sorted(rows, key=lambda row: row["since"]))
    text = CATALOG.format(items=items, load=str(load).lower())
    return Catalog.parse(text, file=folder / "catalog.toml", variables={}), values


def write(file: Path, rows: Iterable[Mapping[str, object]]) -> None:
    file.write_text("".join(json.dumps(each) + "\n" for each in rows))


def value_at(known: Sequence[tuple[int, int]], ms: int) -> int:
    return known[bisect_right(known, (ms, 10**9)) - 1][1]


def answers(catalog: Catalog, text: str) -> list[Answer]:
    with Engine(catalog, runtime="local", until_end=True) as engine:
        return list(engine.register(text, name="growing"))


@pytest.mark.parametrize(("items", "load"), [(100, False), (100, True), (2, False), (2, True)])
def test_changes_are_those_of_the_looks_at_a_key(tmp_path: Path, items: int, load: bool) -> None:
    """Brute force over the looks that the answers themselves report, in exact digits."""
    catalog, values = world(tmp_path, 7, items=items, load=load)
    looks: dict[int, list[tuple[int, int]]] = {user: [] for user in values}
    checked = 0
    for answer in answers(catalog, QUERY):
        if load and answer.closes_ms == SLIDE:
            for user, known in values.items():
                looks[user].append((SLIDE, value_at(known, SLIDE)))
        for key in answer.refreshed:
            user = int(str(key).rpartition("/")[2])
            looks[user].append((answer.closes_ms, value_at(values[user], answer.closes_ms)))
        expected, unknown = {}, 0
        for user, seen in looks.items():
            if not seen:
                unknown += 1
                continue
            before = [each for each in seen if each[0] <= answer.closes_ms - BACK]
            if before:
                expected[user] = (seen[-1][1], before[-1][1])
            else:
                unknown += 1
        best = sorted((Fraction(now - then, then) for now, then in expected.values()), reverse=True)
        shown = {int(str(row.bindings["user"]).rpartition("/")[2]): row for row in answer.rows}
        assert len(shown) == min(3, len(best))
        for user, row in shown.items():
            now, then = expected[user]
            assert row.bindings["followers"].value == now
            assert row.bindings["before"].value == then
            assert row.bindings["more"].value == now - then
            assert abs(float(row.bindings["rate"]) - (now - then) / 3) < 1e-12
            checked += 1
        ranked = [
            Fraction(expected[user][0] - expected[user][1], expected[user][1]) for user in shown
        ]
        assert ranked == best[:3]
        assert answer.status is (Status.APPROXIMATE if unknown else Status.CERTIFIED)
        said = ("look", "seen", "no value from the remote yet")
        assert any(each in (answer.reason or "") for each in said)
    assert checked > 5


def live_answers(
    catalog: Catalog, state: Path, last_close_ms: int, text: str = QUERY
) -> dict[int, object]:
    """Return the answers of a life that ends with the answer to a window."""
    found: dict[int, object] = {}
    with Engine(catalog, runtime="local", state=state, autostart=False) as engine:
        query = engine.register(text, name="growing")
        engine.start()
        for answer in query:
            found[answer.closes_ms] = answer.canonical()
            if answer.closes_ms >= last_close_ms:
                break
    return found


def forgetting(rows: Sequence[Mapping[str, int]], ms: int) -> Iterable[Mapping[str, int]]:
    """Return rows of a table that say nothing right of the time up to some milliseconds."""
    for user in range(5):
        own = [row for row in rows if row["id"] == user]
        last = max(row["since"] for row in own if row["since"] <= ms)
        yield {"id": user, "since": 0, "followers": 999}
        for row in own:
            if row["since"] >= last:
                yield {**row, "since": max(row["since"], ms + 1)}


def test_the_history_survives_a_restart(tmp_path: Path) -> None:
    catalog, _ = world(tmp_path, 3, items=2, load=False)
    rest = (tmp_path / "events").read_text().splitlines(keepends=True)
    whole = {each.closes_ms: each.canonical() for each in answers(catalog, QUERY)}
    (tmp_path / "events").write_text("".join(rest[:30]))
    first = live_answers(catalog, tmp_path / "state", 5 * SLIDE)
    with (tmp_path / "events").open("a") as file:
        file.write("".join(rest[30:]))
    rows = [json.loads(line) for line in (tmp_path / "people.jsonl").read_text().splitlines()]
    write(tmp_path / "people.jsonl", forgetting(rows, 5 * SLIDE))
    second = live_answers(catalog, tmp_path / "state", 9 * SLIDE)
    assert {**first, **second} == {close: whole[close] for close in range(SLIDE, 10 * SLIDE, SLIDE)}


COUNTS = """PREFIX : <http://example.org/>
SELECT ?user ?n (change:difference(?n, "PT3S"^^xsd:duration) AS ?more)
  (change:before(?n, "2500ms") AS ?before)
FROM NAMED WINDOW :w ON :s [RANGE 2s STEP 1s]
WHERE { WINDOW :w { SELECT ?user (COUNT(*) AS ?n) WHERE { ?e :by ?user } GROUP BY ?user } }
ORDER BY DESC(?more) LIMIT 9"""


def counted(folder: Path) -> tuple[Catalog, list[dict[str, int]]]:
    catalog, _ = world(folder, 1, items=1, load=False)
    random = Random(11)
    events = [
        {"id": at, "t": random.randrange(1, 12_000), "user": random.randrange(4)}
        for at in range(40)
    ]
    events.sort(key=lambda each: each["t"])
    write(folder / "events", events)
    return catalog, events


def counts_at(events: Sequence[Mapping[str, int]], close_ms: int) -> Mapping[str, int]:
    """Return the events of each user in the window that closes."""
    inside = (each["user"] for each in events if close_ms - 2_000 < each["t"] <= close_ms)
    return Counter(f"{NS}user/{user}" for user in inside)


def test_changes_of_a_stream_are_those_between_its_windows(tmp_path: Path) -> None:
    catalog, events = counted(tmp_path)
    found = answers(catalog, COUNTS)
    first = found[0].closes_ms
    for answer in found:
        now, three = counts_at(events, answer.closes_ms), counts_at(events, answer.closes_ms - BACK)
        shown = {str(row.bindings["user"]): row for row in answer.rows}
        if answer.closes_ms - BACK < first:
            assert answer.status is Status.APPROXIMATE
            assert "compared with" in (answer.reason or "")
            assert not shown
            continue
        assert answer.status is Status.EXACT
        more = {user: now[user] - three[user] for user in now if user in three}
        assert {user: row.bindings["more"].value for user, row in shown.items()} == more
        for user, row in shown.items():
            assert row.bindings["before"].value == three[user]
    assert sum(len(answer.rows) for answer in found) > 10


def test_the_history_of_a_stream_survives_a_restart(tmp_path: Path) -> None:
    catalog, _ = counted(tmp_path)
    lines = (tmp_path / "events").read_text().splitlines(keepends=True)
    whole = {each.closes_ms: each.canonical() for each in answers(catalog, COUNTS)}
    (tmp_path / "events").write_text("".join(lines[:20]))
    close_ms = json.loads(lines[19])["t"] // SLIDE * SLIDE
    first = live_answers(catalog, tmp_path / "state", close_ms, COUNTS)
    with (tmp_path / "events").open("a") as file:
        file.write("".join(lines[20:]))
    second = live_answers(catalog, tmp_path / "state", 11 * SLIDE, COUNTS)
    assert max(first) < max(second)
    assert {**first, **second} == {close: whole[close] for close in {**first, **second}}


def test_a_late_record_makes_what_is_compared_with_uncertain(tmp_path: Path) -> None:
    catalog, events = counted(tmp_path)
    at = next(at for at, each in enumerate(events) if each["t"] > 7_000)
    late = {"id": 99, "t": 3_500, "user": 0}
    write(tmp_path / "events", [*events[:at], late, *events[at:]])
    statuses = {each.closes_ms: each.status for each in answers(catalog, COUNTS)}
    assert statuses[8_000] is Status.APPROXIMATE
    assert statuses[max(statuses)] is Status.EXACT


@pytest.mark.spark
def test_spark_gives_the_same_answers(tmp_path: Path, spark: SparkSession) -> None:
    catalog, _ = world(tmp_path, 5, items=3, load=True)
    expected = [answer.canonical() for answer in answers(catalog, QUERY)]
    with Engine(catalog, spark=spark, until_end=True) as engine:
        found = [answer.canonical() for answer in engine.register(QUERY, name="growing")]
    assert found == expected


def test_a_query_that_looks_back_says_what_it_keeps(tmp_path: Path) -> None:
    catalog, _ = world(tmp_path, 3, items=2, load=False)
    plan = check_query(QUERY, catalog=catalog).plan
    assert isinstance(plan, TopKPlan)
    assert plan.join is not None
    (service,) = plan.join.services
    assert {each.back_ms for each in service.past} == {BACK}
    (part,) = plan.windowed.remotes
    assert part.past == service.past


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"DESC(?growth)": "(?growth)"},
        {"[RANGE 1s]": "[RANGE 3s STEP 1s]"},
        {"[RANGE 1s]": "[RANGE 3s STEP 1s]", "LIMIT 3": "LIMIT 1"},
        {"?followers }": '?followers } FILTER(change:growth(?followers, "3s") > 0.1)'},
        {"SERVICE": "OPTIONAL { SERVICE", "?followers }": "?followers } }"},
        {
            '(change:growth(?followers, "PT3S"^^xsd:duration) AS': (
                '(COALESCE(change:growth(?followers, "3s"), 7) AS'
            )
        },
        {
            '(change:growth(?followers, "PT3S"^^xsd:duration) AS': (
                '(norm(change:rate(?followers, "2s") + change:difference(?followers, "4s"), 0, 9)'
                " AS"
            )
        },
        {"{ ?e :by ?user }": "{ SELECT ?user (COUNT(*) AS ?n) { ?e :by ?user } GROUP BY ?user }"},
        {"ORDER BY DESC(?growth)": "ORDER BY DESC(?growth) ?followers"},
    ],
)
def test_changes_are_the_same_over_whole_windows(tmp_path: Path, changes: dict[str, str]) -> None:
    catalog, _ = world(tmp_path, 9, items=100, load=False)
    text = QUERY
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new, 1)
    bound = bind_query(text, catalog, name="growing")
    assert isinstance(bound, BoundQuery)
    with Engine(catalog, runtime="local", until_end=True) as engine:
        windowed = bind_windowed(bound.plan.windowed, catalog, text=text, name="whole")
        whole = list(engine.run(windowed))
    found = answers(catalog, text)
    assert [each.closes_ms for each in found] == [each.closes_ms for each in whole]
    assert sum(len(each.rows) for each in found) > 5
    for one, other in zip(found, whole, strict=True):
        assert shown_in(one) == shown_in(other)
        assert one.status is not Status.EXACT
        if other.status is Status.CERTIFIED:
            assert one.status is Status.CERTIFIED


def _told(term: Any) -> str:
    """Return a term's text; of a double, which engines spell in their own ways, its value."""
    is_double = str(getattr(term, "datatype", "")).endswith("#double")
    return str(float(term)) if is_double else repr(term)


def shown_in(answer: Answer) -> Counter[tuple[str, ...]]:
    """Return the scores of an answer, and all rows above the last of these, in any order."""
    scores = [row.score for row in answer.rows]
    rows = [
        tuple(f"{name} {_told(value)}" for name, value in sorted(row.bindings.items()))
        for row in answer.rows
        if row.score != scores[-1]
    ]
    return Counter([*rows, tuple(map(repr, scores))])


def timed(folder: Path, seed: int, arrivals: str) -> Catalog:
    """Write events with instants; their subjects come again, unless arrivals are distinct."""
    world(folder, seed, items=100, load=False)
    random = Random(seed)
    events = [
        {
            "id": number if arrivals == "distinct" else random.randrange(30),
            "t": (at := random.randrange(1, 12_000)),
            "user": random.randrange(5),
            "n": random.randrange(9),
            "when": f"1970-01-01T00:00:{at // 1000:02}.{at % 1000:03}+00:00",
        }
        for number in range(90)
    ]
    write(folder / "events", sorted(events, key=lambda each: each["t"]))
    text = CATALOG.format(items=100, load="false").replace("distinct", arrivals)
    return Catalog.parse(text, file=folder / "catalog.toml", variables={})


ON = "FROM NAMED WINDOW :w ON :s [RANGE 3s STEP 1s]"
PER_USER = "{ SELECT ?user (SUM(?m) AS ?n) (MAX(?at) AS ?last) WHERE \
{ ?e :by ?user ; :n ?m ; :at ?at } GROUP BY ?user }"
OF_PEOPLE = "SERVICE :people { ?user :followers ?followers }"
DECAYED = f"SELECT ?user ?n (?n * change:decay(?last, '0.7s') AS ?score) {ON} WHERE \
{{ WINDOW :w {PER_USER} }} ORDER BY DESC(?score) LIMIT 3"
MORE = f"SELECT ?user ?n (change:difference(?n, '2s') AS ?more) {ON} WHERE \
{{ WINDOW :w {PER_USER} }} ORDER BY DESC(?more) LIMIT 3"


AT_CLOSE = [
    f"SELECT ?e ?n (?n * change:decay(?at, '0.7s') AS ?score) {ON} "
    "WHERE { WINDOW :w { ?e :n ?n ; :at ?at } } ORDER BY DESC(?score) LIMIT 3",
    f"SELECT ?e (?n - 4 * change:decay(?when, '2.5s') AS ?score) {ON} "
    "WHERE { WINDOW :w { ?e :n ?n ; :when ?when } FILTER(?n > 2) } ORDER BY ?score LIMIT 3",
    f"SELECT ?e ?user (change:decay(?at, '9s') AS ?score) {ON} WHERE {{ WINDOW :w "
    "{ ?e :by ?user ; :at ?at } } ORDER BY DESC(?score) ?e LIMIT 2 PER ?user WITH TIES",
    f"SELECT ?e (?followers * change:decay(?at, '1s') AS ?score) {ON} WHERE {{ WINDOW :w "
    f"{{ ?e :by ?user ; :at ?at }} {OF_PEOPLE} }} ORDER BY DESC(?score) LIMIT 3",
    f"SELECT ?e (?n * change:decay(?at, '1s') + change:rate(?followers, '2s') AS ?score) {ON} "
    f"WHERE {{ WINDOW :w {{ ?e :by ?user ; :at ?at ; :n ?n }} {OF_PEOPLE} }} "
    "ORDER BY DESC(?score) LIMIT 3",
    DECAYED,
    MORE,
    MORE.replace("{ WINDOW :w", f"{{ {OF_PEOPLE} WINDOW :w").replace("DESC(?more)", "(?more)"),
    MORE.replace(f"WINDOW :w {PER_USER}", f"WINDOW :w {PER_USER} FILTER(?more > 0)").replace(
        "?more > 0", "change:difference(?n, '2s') + ?n > 3"
    ),
    MORE.replace("(change", "(change:decay(?last, '1s') * change"),
    MORE.replace("AS ?more)", "AS ?more) (change:before(?last, '1s') AS ?before)"),
    f"SELECT ?e ?n (change:growth(?n, '1s') AS ?score) {ON} "
    "WHERE { WINDOW :w { ?e :n ?n } } ORDER BY DESC(?score) LIMIT 3",
    f"SELECT ?user (change:rate(?n, '1s') + ?often AS ?score) {ON} FROM NAMED WINDOW :v ON :s "
    f"[RANGE 5s STEP 2s] WHERE {{ WINDOW :w {PER_USER} WINDOW :v "
    "{ SELECT ?user (COUNT(*) AS ?often) { ?e :by ?user } GROUP BY ?user } } "
    "ORDER BY DESC(?score) LIMIT 4",
]


@THOROUGH
@pytest.mark.parametrize(
    ("arrivals", "seed", "several"),
    [("distinct", 1, AT_CLOSE), ("all", 2, AT_CLOSE[::3]), ("latest", 3, AT_CLOSE[1::4])],
    ids=["distinct", "all", "latest"],
)
def test_values_of_a_close_are_the_same_over_whole_windows(
    tmp_path: Path, arrivals: str, seed: int, several: Sequence[str]
) -> None:
    catalog = timed(tmp_path, seed, arrivals)
    texts = [f"PREFIX : <{NS}> {text}" for text in several]
    with Engine(catalog, runtime="local", until_end=True, autostart=False) as engine:
        both = []
        for at, text in enumerate(texts):
            bound = bind_query(text, catalog, name=f"q{at}")
            assert isinstance(bound, BoundQuery), (text, bound.reason)
            plan = bound.plan.windowed
            windowed = bind_windowed(plan, catalog, text=text, name=f"whole{at}")
            both.append((engine.run(bound), engine.run(windowed)))
        engine.start()
        compared = [(list(one), list(other)) for one, other in both]
    for text, (found, whole) in zip(texts, compared, strict=True):
        assert [each.closes_ms for each in found] == [each.closes_ms for each in whole]
        assert sum(len(each.rows) for each in found) > 5, text
        for one, other in zip(found, whole, strict=True):
            assert shown_in(one) == shown_in(other), text
            if OF_PEOPLE not in text:
                assert one.status is other.status, text


def test_scores_halve_with_their_age(tmp_path: Path) -> None:
    catalog, _ = world(tmp_path, 1, items=1, load=False)
    text = """PREFIX : <http://example.org/>
    SELECT ?e (change:decay(?at, "PT0.5S"^^xsd:duration) AS ?score)
    FROM NAMED WINDOW :w ON :s [RANGE 2s STEP 1s] WHERE { WINDOW :w { ?e :at ?at } }
    ORDER BY DESC(?score) LIMIT 10"""
    for answer in answers(catalog, text):
        for row in answer.rows:
            at = int(str(row.bindings["e"]).rpartition("/")[2].split("-")[0]) * SLIDE + 500
            assert float(row.bindings["score"]) == 0.5 ** ((answer.closes_ms - at) / 500)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('change:growth(?followers, "soon")', "is not a duration"),
        ("change:growth(?followers)", "takes a value and a duration"),
        ('change:growth(?user, "3s")', None),
        ('change:growth(?e, "3s")', "neither a SERVICE nor a WINDOW says ?e"),
        ('change:growth(1 + ?followers, "3s")', "looks back at a variable"),
        ('change:grow(?followers, "3s")', "there is no function <urn:acquatop:change:grow>"),
    ],
)
def test_mistakes_are_named(call: str, message: str | None) -> None:
    text = f"""PREFIX : <{NS}> SELECT ?user FROM NAMED WINDOW :w ON :s [RANGE 1s]
    WHERE {{ WINDOW :w {{ ?e :by ?user }} SERVICE :people {{ ?user :followers ?followers }} }}
    ORDER BY DESC({call}) LIMIT 3"""
    errors = [each.message for each in analyse(text).diagnostics if each.is_error]
    assert bool(errors) == (message is not None), errors
    assert message is None or any(message in each for each in errors)


def test_memory_is_bounded_by_the_time_looked_back() -> None:
    past = PastValues(("f",), longest=10.0)
    for time in range(1_000):
        past.note("<urn:a>", float(time), (str(time),))
        past.forget(["<urn:a>"], float(time))
        assert past.at("<urn:a>", time - 10.0) == (None if time < 10 else (str(time - 10),))
    assert len(past) == 11
    other = PastValues(("f",), longest=10.0)
    other.resume(past.snapshot())
    assert other.snapshot() == past.snapshot()
    past.keep_only(lambda key: False)
    assert len(past) == 0
