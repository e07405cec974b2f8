"""Queries of several kinds that ask the same services: values and budgets that they share."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from urllib.parse import unquote

import pytest

from acquatop import Answer, Engine, Status
from acquatop.catalog.catalog import Catalog
from tests.support.crash.killing import strikes
from tests.support.crash.life import Life
from tests.support.crash.reaper import Point, Reaper
from tests.support.disks import quick_folder
from tests.support.json_server import Answer as Reply
from tests.support.json_server import Asked as Request
from tests.support.json_server import JsonServer, serving
from tests.support.markers import THOROUGH

NS = "http://example.org/"
COUNT = 10
SERVICES = ("people", "friends", "places")
_CATALOG = """
[prefixes]
"" = "http://example.org/"
[streams.":posts"]
connector = "lines"
arrivals = "distinct"
options = {{ path = "{folder}/posts", maxBytesPerBatch = {batch} }}
[streams.":posts".mapping]
subject = "http://example.org/post/{{id}}"
time = "t"
[streams.":posts".mapping.properties]
":user" = {{ field = "user", datatype = "iri" }}
":mentions" = {{ field = "mentions", datatype = "xsd:integer" }}
"""
_SERVICE = """
[services.":{name}"]
remote = "rest"
endpoint = "{url}/{name}/{{keys}}"
solutions = "{solutions}"
[services.":{name}".mapping]
key = "http://example.org/{{user}}"
[services.":{name}".mapping.properties]
":followers" = {{ field = "followers", datatype = "xsd:integer" }}
":friend" = {{ field = "friend", datatype = "iri" }}
[services.":{name}".refresh]
items = {items}
deadline = "60s"
{refresh}
"""
PARTS = {
    "people": "SERVICE :people { ?user :followers ?f }",
    "places": "SERVICE :places { ?user :followers ?g }",
    "of friend": "SERVICE :friends { ?user :friend ?x } SERVICE :people { ?x :followers ?h }",
}
TERMS = {"people": "?f", "places": "?g", "of friend": "?h"}


@dataclass(frozen=True)
class Asked:
    """A query by the parts that it joins, and its window."""

    name: str
    parts: tuple[str, ...]
    width: int = 40
    slide: int = 20
    k: int = 2
    kind: str = "top"

    @property
    def text(self) -> str:
        shape = "ELEMENTS {} STEP {}" if self.kind == "counted" else "RANGE {}ms STEP {}ms"
        window = shape.format(self.width, self.slide)
        joined = " ".join(PARTS[each] for each in self.parts)
        terms = " + ".join(TERMS[each] for each in self.parts)
        pair = self.kind == "pairs"
        other = f"FROM NAMED WINDOW :v ON :posts [{window}]" if pair else ""
        beside = "WINDOW :v { ?d :user ?user }" if pair else ""
        order = "" if self.kind == "whole" else f"ORDER BY DESC(?score) LIMIT {self.k}"
        return f"""PREFIX : <{NS}>
            SELECT ?e (?mentions + {terms} AS ?score)
            FROM NAMED WINDOW :w ON :posts [{window}] {other}
            WHERE {{ WINDOW :w {{ ?e :user ?user ; :mentions ?mentions }} {beside} {joined} }}
            {order}"""


QUERIES = (
    Asked("people", ("people",)),
    Asked("places", ("places",), 60, 20, 3),
    Asked("both", ("people", "places"), 20, 20),
    Asked("friends", ("of friend",), 40, 40),
    Asked("all", ("people", "of friend", "places"), 60, 20, 1),
    Asked("whole", ("people",), 20, 20, kind="whole"),
    Asked("whole and more", ("people", "places"), 40, 40, kind="whole"),
    Asked("counted", ("people",), 12, 6, 2, "counted"),
    Asked("counted too", ("places", "people"), 10, 10, 1, "counted"),
    Asked("pairs", ("people",), 40, 20, 2, "pairs"),
)
Events = Sequence[tuple[int, int, int]]
"""Times, users and mentions."""


def drawn(chance: Random) -> Events:
    return [
        (time_ms, chance.randrange(COUNT), chance.randrange(20))
        for time_ms in range(1, 200)
        if chance.random() < 0.6
    ]


def value(service: str, user: int) -> int:
    return user * user % 17 if service == "places" else 3 * user


def friend(user: int) -> int:
    return (user + 3) % COUNT


def reply(asked: Request) -> Reply:
    _, service, ids = unquote(asked.path).split("/")
    return Reply.json(
        [
            {
                "user": each,
                "followers": value(service, int(each[1:])),
                "friend": f"{NS}u{friend(int(each[1:]))}",
            }
            for each in ids.split(",")
        ]
    )


def part_of(event: tuple[int, int, int], part: str) -> int:
    _, user, _ = event
    return value("people", friend(user)) if part == "of friend" else value(part, user)


def right(events: Events, query: Asked, answer: Answer) -> list[float]:
    shown = [event for event in events if answer.opens_ms < event[0] <= answer.closes_ms]
    users = Counter(user for _, user, _ in shown)
    scores = [
        float(event[2] + sum(part_of(event, part) for part in query.parts))
        for event in shown
        for _ in range(users[event[1]] if query.kind == "pairs" else 1)
    ]
    return sorted(scores, reverse=True)[: None if query.kind == "whole" else query.k]


def scores(answer: Answer) -> list[float]:
    shown = (float(str(row.bindings["score"])) for row in answer.rows)
    return sorted(shown, reverse=True)


def asked_for(server: JsonServer) -> Counter[str]:
    """Return the number of keys that each service was asked for."""
    found: Counter[str] = Counter()
    for each in server.asked:
        _, service, ids = unquote(each.path).split("/")
        found[service] += ids.count(",") + 1
    return found


def write(folder: Path, events: Events, **settings: object) -> Path:
    rows = (
        {"t": t, "id": at, "user": f"{NS}u{user}", "mentions": mentions}
        for at, (t, user, mentions) in enumerate(events)
    )
    (folder / "posts").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    values = {"refresh": "", "items": 3, "batch": 100_000, "solutions": "many", **settings}
    services = (_SERVICE.format(name=name, **values) for name in SERVICES)
    text = _CATALOG.format(folder=folder, **values) + "".join(services)
    (folder / "catalog.toml").write_text(text, "utf-8")
    return folder / "catalog.toml"


def answers(catalog: Path, queries: Sequence[Asked]) -> dict[str, list[Answer]]:
    found: defaultdict[str, list[Answer]] = defaultdict(list)
    made = Catalog.load(catalog)
    with Engine(made, runtime="local", until_end=True, autostart=False) as engine:
        for query in queries:
            engine.register(query.text, name=query.name)
        engine.start()
        for answer in engine.answers():
            found[answer.query].append(answer)
    return found


def closes_of(found: Mapping[str, Sequence[Answer]]) -> set[int]:
    """Return the times of closes, of elements too: each has one budget."""
    return {answer.closes_ms for several in found.values() for answer in several}


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(n, marks=THOROUGH) for n in range(3, 16))]
)
def test_joins_share_the_budget_of_each_service(seed: int, tmp_path: Path) -> None:
    """A server counts; what is called right is, and each answer accounts for its part."""
    chance = Random(seed)
    events, items = drawn(chance), chance.randint(1, 6)
    queries = chance.sample(QUERIES, chance.randint(2, len(QUERIES)))
    with serving(reply) as server:
        found = answers(
            write(
                tmp_path,
                events,
                url=server.url,
                items=items,
                batch=chance.choice([500, 100_000]),
                solutions=chance.choice(["one", "many"]),
            ),
            queries,
        )
        asked = asked_for(server)
    assert all(count <= items * len(closes_of(found)) for count in asked.values())
    own = sum(each.spending.own.items for several in found.values() for each in several)
    assert own == pytest.approx(sum(asked.values()))
    for query in queries:
        for answer in found[query.name]:
            if answer.status is not Status.APPROXIMATE:
                assert scores(answer) == right(events, query, answer)


def test_joins_ask_once_for_what_others_have_asked_for(tmp_path: Path) -> None:
    """With room for all: no value is asked for twice at a close, and all answers are right."""
    events = drawn(Random(3))
    with serving(reply) as server:
        catalog = write(tmp_path, events, url=server.url, items=COUNT)
        together = answers(catalog, QUERIES)
        shared = asked_for(server)
        server.asked.clear()
        for query in QUERIES:
            answers(catalog, [query])
        alone = asked_for(server)
    assert 2 * sum(shared.values()) < sum(alone.values())
    for query in QUERIES:
        for answer in together[query.name]:
            assert scores(answer) == right(events, query, answer)


@pytest.mark.parametrize("items", [2, 3])
def test_no_query_starves(items: int, tmp_path: Path) -> None:
    """In the end all know what they need, also by keys that follow from what another one says."""
    with serving(reply) as server:
        found = answers(write(tmp_path, drawn(Random(5)), url=server.url, items=items), QUERIES)
    for query in QUERIES:
        assert found[query.name][-1].status is not Status.APPROXIMATE


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=THOROUGH) for n in range(1, 5))])
def test_strict_budgets_of_joins_are_spent_once_whatever_is_killed(seed: int) -> None:
    chance, items = Random(seed), 2

    def life(name: str) -> Life:
        texts = {query.name: query.text for query in QUERIES}
        place = folder / name
        return Life(folder / "catalog.toml", place / "state", place / "out", texts, only_lines=True)

    with quick_folder() as folder, serving(reply) as server:
        write(
            folder,
            drawn(chance),
            url=server.url,
            items=items,
            batch=1_500,
            refresh=f'strict = true\nledger = "{folder}/spent"',
        )
        reaper = Reaper()
        with reaper.at_work():
            life("whole").live()
        # Windows that count may close with any event.
        most = items * (len(range(20, 260, 20)) + len(range(6, 200, 6)) + len(range(10, 200, 10)))
        assert 0 < max(asked_for(server).values()) <= most
        for number in range(2):
            (folder / "spent").unlink()
            server.asked.clear()
            point = chance.choice(sorted(reaper.counts))
            mine = life(f"killed{number}")
            strikes(Point(point, chance.randint(1, reaper.counts[point])), mine.live)
            mine.live()
            assert max(asked_for(server).values()) <= most
