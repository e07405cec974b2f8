"""Several windows joined by key, against a SPARQL engine over the same windows, close by close."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from acquatop import Answer, Engine
from acquatop.answer.answer import Status
from acquatop.catalog.catalog import Catalog
from acquatop.errors import EvaluationError
from acquatop.plan.bind import bind_query, bind_windowed
from acquatop.plan.bound import BoundQuery, BoundWindowed
from acquatop.plan.check import check_query

CATALOG = """
[prefixes]
"" = "http://example.org/"
[streams.":posts"]
connector = "lines"
options = {{ path = "posts" }}
{arrivals}
[streams.":posts".mapping]
subject = "http://example.org/post/{{id}}"
time = "t"
[streams.":posts".mapping.properties]
":by" = {{ field = "user", datatype = "http://example.org/user/{{}}" }}
":in" = {{ field = "city" }}
":n" = {{ field = "n", datatype = "xsd:integer" }}
[streams.":likes"]
connector = "lines"
options = {{ path = "likes" }}
{arrivals}
[streams.":likes".mapping]
subject = "http://example.org/post/{{id}}"
time = "t"
properties = {{ ":likes" = {{ field = "n", datatype = "xsd:integer" }}, \
":of" = {{ field = "user", datatype = "http://example.org/user/{{}}" }} }}
[services.":people"]
remote = "table"
path = "people.jsonl"
time = "since"
[services.":people".mapping]
key = "http://example.org/user/{{id}}"
properties = {{ ":followers" = {{ field = "followers", datatype = "xsd:integer" }} }}
[services.":people".refresh]
items = {items}
deadline = "1h"
"""
COUNTS = "SELECT ?user (COUNT(*) AS ?{0}) {{ ?e :by ?user }} GROUP BY ?user"
W, V = "FROM NAMED WINDOW :w ON :posts [RANGE 3s STEP 1s]", "FROM NAMED WINDOW :v ON "
SHAPES = {
    "two counts of one stream": f"""SELECT ?user ?n ?m (?n - ?m AS ?score)
{W} {V} :posts [RANGE 9s STEP 1s] {{
  WINDOW :w {{ {COUNTS.format("n")} }} WINDOW :v {{ {COUNTS.format("m")} }}
}} ORDER BY DESC(?score) LIMIT 3""",
    "other slides": f"""SELECT ?user ?n (10 * ?n / ?m AS ?score)
{W} {V} :posts [RANGE 5s STEP 2s] {{
  WINDOW :w {{ {COUNTS.format("n")} }} WINDOW :v {{ {COUNTS.format("m")} }}
}} ORDER BY DESC(?score) LIMIT 2""",
    "sums and a filter on both": f"""SELECT ?user (?s + ?m AS ?score)
{W} {V} :posts [RANGE 6s STEP 3s] {{
  WINDOW :w {{ SELECT ?user (SUM(?n) AS ?s) (MAX(?n) AS ?most) {{ ?e :by ?user ; :n ?n }}
    GROUP BY ?user HAVING (SUM(?n) > 3) }}
  WINDOW :v {{ {COUNTS.format("m")} }} FILTER(?most > ?m)
}} ORDER BY DESC(?score) LIMIT 3""",
    "solutions of two streams": f"""SELECT ?post ?user ?likes (?n + ?likes AS ?score)
{W} {V} :likes [RANGE 4s STEP 1s] {{
  WINDOW :w {{ ?post :n ?n ; :by ?user }} WINDOW :v {{ ?post :likes ?likes }} FILTER(?likes > 1)
}} ORDER BY DESC(?score) LIMIT 4""",
    "solutions with counts": f"""SELECT ?post ?user (?n * ?m AS ?score)
{W} {V} :likes [RANGE 6s STEP 2s] {{
  WINDOW :w {{ ?post :n ?n ; :by ?user OPTIONAL {{ ?post :in ?city }} }}
  WINDOW :v {{ SELECT ?user (COUNT(*) AS ?m) {{ ?e :of ?user }} GROUP BY ?user }}
}} ORDER BY DESC(?score) ?post LIMIT 4""",
    "one window twice": f"""SELECT ?user ?one ?other (?n + ?o AS ?score)
{W} {{ WINDOW :w {{ ?one :n ?n ; :by ?user }} WINDOW :w {{ ?other :n ?o ; :by ?user }}
  FILTER(?n > ?o) }} ORDER BY DESC(?score) LIMIT 3""",
    "one pattern twice": f"""SELECT ?one ?user (?n - ?m AS ?score)
{W} {V} :posts [RANGE 9s STEP 1s] {{ WINDOW :w {{ ?one :n ?n ; :by ?user }}
  WINDOW :w {{ ?one :n ?n ; :by ?user }} WINDOW :v {{ {COUNTS.format("m")} }} FILTER(?n < 4)
}} ORDER BY DESC(?score) LIMIT 3""",
    "several keys": f"""SELECT DISTINCT ?user (?n - ?m AS ?score)
{W} {V} :posts [RANGE 9s STEP 1s] {{
  WINDOW :w {{ SELECT ?user ?city (COUNT(*) AS ?n) {{ ?e :by ?user ; :in ?city }}
    GROUP BY ?user ?city }}
  WINDOW :v {{ SELECT ?city ?user (COUNT(*) AS ?m) {{ ?e :by ?user ; :in ?city }}
    GROUP BY ?user ?city }}
}} ORDER BY DESC(?score) LIMIT 3""",
    "three windows": f"""SELECT ?user (?n + ?m + ?k AS ?score)
{W} {V} :posts [RANGE 6s STEP 2s] FROM NAMED WINDOW :u ON :likes [RANGE 5s STEP 1s] {{
  WINDOW :w {{ {COUNTS.format("n")} }} WINDOW :v {{ {COUNTS.format("m")} }}
  WINDOW :u {{ SELECT ?user (COUNT(*) AS ?k) {{ ?e :of ?user }} GROUP BY ?user }}
}} ORDER BY ?score LIMIT 3""",
    "with a SERVICE": f"""SELECT ?user ?followers ((?n - ?m) * ?followers AS ?score)
{W} {V} :posts [RANGE 9s STEP 1s] {{
  WINDOW :w {{ {COUNTS.format("n")} }} WINDOW :v {{ {COUNTS.format("m")} }}
  SERVICE :people {{ ?user :followers ?followers }}
}} ORDER BY DESC(?score) LIMIT 3""",
}


def world(
    folder: Path, seed: int, *, arrivals: str = "", items: int = 100, late: bool = True
) -> Catalog:
    """Write two streams of some 60 records in twenty seconds, some late, and a table."""
    random = Random(seed)
    for name, count in (("posts", 70), ("likes", 50)):
        events = [
            {
                "id": number if "distinct" in arrivals else random.randrange(40),
                "t": random.randrange(1, 20_000),
                "user": random.randrange(5),
                "n": random.randrange(6),
                **({"city": random.choice("ab")} if random.random() < 0.8 else {}),
            }
            for number in range(count)
        ]
        events.sort(key=lambda each: each["t"])
        for _ in range(3 if late else 0):
            events.insert(random.randrange(len(events)), events.pop(random.randrange(20)))
        write(folder / name, events)
    rows = [
        {"id": user, "since": at, "followers": random.randrange(1, 9)}
        for at in (0, 7_000, 14_000)
        for user in range(5)
    ]
    write(folder / "people.jsonl", rows)
    text = CATALOG.format(arrivals=arrivals, items=items)
    return Catalog.parse(text, file=folder / "catalog.toml", variables={})


def write(file: Path, rows: Sequence[Mapping[str, object]]) -> None:
    file.write_text("".join(json.dumps(each) + "\n" for each in rows))


def query(name: str) -> str:
    return f"PREFIX : <http://example.org/>\n{SHAPES[name]}"


def both(catalog: Catalog, text: str) -> Iterator[tuple[Answer, Answer]]:
    """Yield the answers from windows that are joined, and from whole windows."""
    bound = bind_query(text, catalog, name="joined")
    assert isinstance(bound, BoundQuery)
    assert bound.parts
    with Engine(catalog, runtime="local", until_end=True, autostart=False) as engine:
        one = engine.run(bound)
        windowed = bind_windowed(bound.plan.windowed, catalog, text=text, name="whole")
        other = engine.run(windowed)
        engine.start()
        yield from zip(one, other, strict=True)


def shown_in(answer: Answer) -> Counter[tuple[str, ...]]:
    """Return the scores of an answer, and all rows above the last of these, in any order."""
    scores = [row.score for row in answer.rows]
    rows = [
        tuple(f"{name} {value!r}" for name, value in sorted(row.bindings.items()))
        for row in answer.rows
        if row.score != scores[-1]
    ]
    return Counter([*rows, tuple(f"{score:.9g}" for score in scores if score is not None)])


@pytest.mark.parametrize("name", SHAPES)
def test_answers_are_those_of_whole_windows(tmp_path: Path, name: str) -> None:
    for seed, arrivals in enumerate(("", 'arrivals = "distinct"', 'arrivals = "latest"')):
        catalog = world(tmp_path, seed, arrivals=arrivals)
        checked = 0
        for one, other in both(catalog, query(name)):
            assert shown_in(one) == shown_in(other)
            assert (one.opens_ms, one.closes_ms) == (other.opens_ms, other.closes_ms)
            assert one.windows == other.windows
            assert one.status is other.status
            checked += len(one.rows)
        assert checked > 10


ORDERED = {
    "a text": f"""SELECT ?post ?city ?likes
{W} {V} :likes [RANGE 4s STEP 1s] {{
  WINDOW :w {{ ?post :by ?user ; :in ?city }} WINDOW :v {{ ?post :likes ?likes }}
}} ORDER BY DESC(?city) ?post ?likes LIMIT 4""",
    "a group": f"""SELECT ?user ?m ?n
{W} {V} :posts [RANGE 9s STEP 1s] {{
  WINDOW :w {{ {COUNTS.format("n")} }} WINDOW :v {{ {COUNTS.format("m")} }}
}} ORDER BY DESC(?user) LIMIT 3""",
    "computed": f"""SELECT ?post ?user ?m (CONCAT(STR(?m), STR(?user)) AS ?score)
{W} {V} :likes [RANGE 6s STEP 2s] {{
  WINDOW :w {{ ?post :n ?n ; :by ?user }}
  WINDOW :v {{ SELECT ?user (COUNT(*) AS ?m) {{ ?e :of ?user }} GROUP BY ?user }}
}} ORDER BY ?score ?post ?n LIMIT 4""",
}


@pytest.mark.parametrize("name", ORDERED)
def test_terms_of_several_windows_order_what_they_join_to(tmp_path: Path, name: str) -> None:
    for seed, arrivals in enumerate(("", 'arrivals = "distinct"', 'arrivals = "latest"')):
        catalog = world(tmp_path, seed, arrivals=arrivals)
        rows = []
        for one, other in both(catalog, f"PREFIX : <http://example.org/>\n{ORDERED[name]}"):
            shown = [[dict(row.bindings) for row in each.rows] for each in (one, other)]
            assert shown[0] == shown[1]
            assert one.status is other.status
            rows += shown[0]
        assert len(rows) > 10


def test_a_sum_that_is_too_large_to_be_joined_is_said(tmp_path: Path) -> None:
    catalog = world(tmp_path, 0, arrivals='arrivals = "distinct"')
    numbers = {0: 2**63 - 1, 1: 1, 2: 5}
    write(
        tmp_path / "posts",
        [{"id": each, "t": 1_000, "user": each, "n": n} for each, n in numbers.items()],
    )
    text = query("sums and a filter on both").replace("FILTER(?most > ?m)", "")
    statuses = Counter[Status]()
    for one, other in both(catalog, text.replace("HAVING (SUM(?n) > 3)", "")):
        statuses[one.status] += 1
        if one.status is Status.EXACT:
            assert shown_in(one) == shown_in(other)
    assert statuses[Status.APPROXIMATE] > 0


@pytest.mark.parametrize(("count", "is_refused"), [(50, False), (1_500, True)])
def test_what_windows_join_to_is_bounded(tmp_path: Path, count: int, is_refused: bool) -> None:
    """All records of one user join each other."""
    catalog = world(tmp_path, 0)
    for name in ("posts", "likes"):
        write(tmp_path / name, [{"id": at, "t": 1_000, "user": 0, "n": at} for at in range(count)])
    text = f"""PREFIX : <http://example.org/>
      SELECT ?post ?other (?n + ?m AS ?score) {W} {V} :likes [RANGE 3s STEP 1s] {{
        WINDOW :w {{ ?post :n ?n ; :by ?user }} WINDOW :v {{ ?other :likes ?m ; :of ?user }}
      }} ORDER BY DESC(?score) LIMIT 1"""
    refused = pytest.raises(EvaluationError, match="the windows join to 2e")
    with Engine(catalog, runtime="local", until_end=True) as engine:
        running = engine.register(text)
        with refused if is_refused else nullcontext():
            assert {str(row.bindings["score"]) for each in running for row in each.rows} == {
                str(2 * count - 2)
            }


def test_a_tight_budget_is_said(tmp_path: Path) -> None:
    """Brute force: an answer is exact only if it is right for the values of that time."""
    catalog, seen = world(tmp_path, 4, items=2), Counter[Status]()
    rich = world(tmp_path, 4, items=100)
    with Engine(catalog, runtime="local", until_end=True) as engine:
        tight = list(engine.register(query("with a SERVICE")))
    with Engine(rich, runtime="local", until_end=True) as engine:
        right = list(engine.register(query("with a SERVICE")))
    for one, other in zip(tight, right, strict=True):
        seen[one.status] += 1
        if one.status is Status.EXACT:
            assert shown_in(one) == shown_in(other)
    assert seen[Status.APPROXIMATE] + seen[Status.CERTIFIED] > 3


@pytest.mark.parametrize("items", [1, 3])
def test_an_answer_is_exact_only_if_no_one_else_can_have_joined(tmp_path: Path, items: int) -> None:
    """Users gain and lose their followers, and few of them are asked for at a close."""
    wanted = "SERVICE :people { ?user :followers ?followers }"
    text = f"""PREFIX : <http://example.org/>
      SELECT ?post ?other ?user (?n - ?m AS ?score) {W} {V} :likes [RANGE 6s STEP 2s] {{
        WINDOW :w {{ ?post :n ?n ; :by ?user }} WINDOW :v {{ ?other :likes ?m ; :of ?user }}
        {wanted} }} ORDER BY DESC(?score) LIMIT 4"""
    compared = 0
    for seed in range(4):
        tight = world(tmp_path, seed, items=items, late=False)
        rich = world(tmp_path, seed, items=100, late=False)
        random = Random(seed)
        some = [
            {"id": user, "since": at, **({"followers": 1} if random.random() < 0.6 else {})}
            for at in range(0, 20_000, 3_000)
            for user in range(5)
        ]
        write(tmp_path / "people.jsonl", some)
        answers = []
        for catalog in (tight, rich):
            with Engine(catalog, runtime="local", until_end=True) as engine:
                answers.append(list(engine.register(text)))
        for one, other in zip(*answers, strict=True):
            if one.status is Status.EXACT:
                assert shown_in(one) == shown_in(other)
                compared += 1
    assert compared > 10


def lives(catalog: Catalog, state: Path, text: str, last_ms: int) -> dict[int, object]:
    """Return the answers of a life that ends with the answer to a window."""
    found: dict[int, object] = {}
    with Engine(catalog, runtime="local", state=state, autostart=False) as engine:
        running = engine.register(text, name="joined")
        engine.start()
        for answer in running:
            found[answer.closes_ms] = answer.canonical()
            if answer.closes_ms >= last_ms:
                break
    return found


@pytest.mark.parametrize(
    ("name", "until_ms"),
    [
        ("other slides", 8_000),
        ("other slides", 9_000),
        ("solutions with counts", 8_000),
        ("solutions with counts", 9_000),
        ("with a SERVICE", 8_000),
    ],
)
def test_a_restart_gives_the_same_answers(tmp_path: Path, name: str, until_ms: int) -> None:
    catalog = world(tmp_path, 5, late=False)
    with Engine(catalog, runtime="local", until_end=True) as engine:
        whole = {a.closes_ms: a.canonical() for a in engine.register(query(name), name="joined")}
    rest = {file: (tmp_path / file).read_text().splitlines(True) for file in ("posts", "likes")}
    for file, lines in rest.items():
        first = [line for line in lines if json.loads(line)["t"] < until_ms + 500]
        (tmp_path / file).write_text("".join(first))
    one = lives(catalog, tmp_path / "state", query(name), until_ms)
    for file, lines in rest.items():
        (tmp_path / file).write_text("".join(lines))
    other = lives(catalog, tmp_path / "state", query(name), 17_000)
    assert max(one) < max(other)
    assert {**one, **other} == {close: whole[close] for close in {**one, **other}}


@pytest.mark.spark
def test_spark_gives_the_same_answers(tmp_path: Path, spark: SparkSession) -> None:
    catalog = world(tmp_path, 6, late=False)
    for name in ("solutions with counts", "with a SERVICE"):
        with Engine(catalog, runtime="local", until_end=True) as engine:
            local = [answer.canonical() for answer in engine.register(query(name), name="q")]
        with Engine(catalog, spark=spark, until_end=True) as engine:
            assert [each.canonical() for each in engine.register(query(name), name="q")] == local


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("{ ?e :of ?user } GROUP BY ?user", "{ ?e :of ?u } GROUP BY ?u", "share no variable"),
        ("(COUNT(*) AS ?m)", "(AVG(?l) AS ?m)", "is an average"),
        (
            "?post :n ?n ; :by ?user OPTIONAL",
            "?post :n ?n OPTIONAL { ?post :by ?user } OPTIONAL",
            "may be unbound",
        ),
    ],
)
def test_others_are_evaluated_over_whole_windows(
    tmp_path: Path, old: str, new: str, reason: str
) -> None:
    text = query("solutions with counts")
    assert old in text
    text = text.replace(old, new).replace("?e :of ?user }", "?e :of ?user ; :likes ?l }")
    text = text.replace(
        "SELECT ?user (COUNT(*) AS ?m) { ?e :of ?u }", "SELECT ?u (COUNT(*) AS ?m) { ?e :of ?u }"
    )
    analysis = check_query(text, catalog=world(tmp_path, 0))
    assert analysis.reason is not None
    assert reason in analysis.reason.message


@pytest.mark.parametrize(
    "joined",
    [
        "WINDOW :v { ?other :of ?user ; :likes ?m } FILTER(?post != ?other)",
        "WINDOW :v { ?other :of ?user ; :likes ?m } FILTER(?post < ?other || ?n > 3)",
    ],
)
def test_filters_that_compare_no_numbers_are_decided_over_whole_windows(
    tmp_path: Path, joined: str
) -> None:
    text = f"""PREFIX : <http://example.org/>
      SELECT ?post ?user (?n + ?m AS ?score) {W} {V} :likes [RANGE 6s STEP 2s] {{
        WINDOW :w {{ ?post :n ?n ; :by ?user }} {joined} }} ORDER BY DESC(?score) LIMIT 4"""
    bound = bind_query(text, world(tmp_path, 0))
    assert isinstance(bound, BoundWindowed)
    assert bound.reason is not None
    assert "a filter needs a number in ?post" in bound.reason.message
