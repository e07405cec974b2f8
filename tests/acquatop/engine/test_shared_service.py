"""Queries on several streams that ask one service: values and budget that they share."""

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
USERS = [f"u{at}" for at in range(12)]
STREAMS = ("posts", "likes", "visits")
END_MS = 240
_PREFIXES = f'[prefixes]\n"" = "{NS}"\n'
_STREAM = """
[streams.":{name}"]
connector = "lines"
arrivals = "distinct"
options = {{ path = "{folder}/{name}", maxBytesPerBatch = {batch} }}
[streams.":{name}".mapping]
subject = "http://example.org/{name}/{{id}}"
time = "t"
[streams.":{name}".mapping.properties]
":user" = {{ field = "user", datatype = "iri" }}
":mentions" = {{ field = "mentions", datatype = "xsd:integer" }}
"""
_SERVICE = """
[services.":people"]
remote = "rest"
endpoint = "{url}/{{keys}}"
[services.":people".mapping]
key = "http://example.org/{{user}}"
[services.":people".mapping.properties]
":followers" = {{ field = "followers", datatype = "xsd:integer" }}
[services.":people".refresh]
items = {items}
deadline = "60s"
{refresh}
"""


@dataclass(frozen=True)
class Asked:
    """A query by what it differs in."""

    name: str
    stream: str
    width: int
    slide: int
    k: int = 2
    factor: int = 1

    @property
    def text(self) -> str:
        return f"""PREFIX : <{NS}>
            SELECT ?e ?user (?mentions * {self.factor} + ?followers AS ?score)
            FROM NAMED WINDOW :w ON :{self.stream} [RANGE {self.width}ms STEP {self.slide}ms]
            WHERE {{ WINDOW :w {{ ?e :user ?user ; :mentions ?mentions }}
                     SERVICE :people {{ ?user :followers ?followers }} }}
            ORDER BY DESC(?score) LIMIT {self.k}"""


QUERIES = [
    Asked(f"q{at}", STREAMS[at % 3], (40, 20, 60)[at % 3], (20, 20, 40)[at // 3 % 3], 1 + at % 3)
    for at in range(10)
]

Events = Mapping[str, Sequence[tuple[int, str, int]]]
"""Times, users and mentions of each stream."""


def drawn(chance: Random) -> Events:
    return {
        stream: [
            (time_ms, chance.choice(USERS), chance.randrange(20))
            for time_ms in range(1, END_MS)
            if chance.random() < 0.6
        ]
        for stream in STREAMS
    }


def reply(asked: Request) -> Reply:
    ids = unquote(asked.path).rpartition("/")[2].split(",")
    return Reply.json([{"user": each, "followers": int(each[1:])} for each in ids])


def asked_for(server: JsonServer) -> int:
    return sum(each.path.count(",") + 1 for each in server.asked)


def write(folder: Path, events: Events, **settings: object) -> Path:
    for stream, found in events.items():
        rows = (
            {"t": t, "id": at, "user": NS + user, "mentions": mentions}
            for at, (t, user, mentions) in enumerate(found)
        )
        (folder / stream).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    values = {"refresh": "", "items": 3, "batch": 100_000, **settings}
    streams = (_STREAM.format(name=name, folder=folder, batch=values["batch"]) for name in STREAMS)
    text = _PREFIXES + "".join(streams) + _SERVICE.format(**values)
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


def right(events: Events, query: Asked, answer: Answer) -> list[float]:
    scores = (
        float(mentions * query.factor + int(user[1:]))
        for t, user, mentions in events[query.stream]
        if answer.opens_ms < t <= answer.closes_ms
    )
    return sorted(scores, reverse=True)[: query.k]


def spent_by_close(found: Mapping[str, Sequence[Answer]], queries: Sequence[Asked]) -> Counter[int]:
    """Return what was spent by the time of a close; queries on a stream report the same."""
    of_stream = {
        (query.stream, answer.closes_ms): answer.spending.items
        for query in queries
        for answer in found[query.name]
    }
    spent: Counter[int] = Counter()
    for (_, closes_ms), items in of_stream.items():
        spent[closes_ms] += items
    return spent


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(n, marks=THOROUGH) for n in range(3, 16))]
)
def test_streams_share_one_budget_at_each_close_and_what_they_know(
    seed: int, tmp_path: Path
) -> None:
    """Whatever stream is ahead: a server counts, and statuses and scores are right."""
    chance = Random(seed)
    events, items = drawn(chance), chance.randint(1, 6)
    queries = [
        Asked(
            f"q{at}", chance.choice(STREAMS), chance.choice([20, 50]), chance.choice([10, 20, 30])
        )
        for at in range(chance.randint(2, 6))
    ]
    with serving(reply) as server:
        catalog = write(
            tmp_path, events, url=server.url, items=items, batch=chance.choice([500, 100_000])
        )
        found = answers(catalog, queries)
        spent = spent_by_close(found, queries)
        assert max(spent.values()) <= items
        assert sum(spent.values()) == asked_for(server)
        each = [answer.spending for several in found.values() for answer in several]
        parts = sum(spending.own.items for spending in each)
        assert parts == pytest.approx(asked_for(server))
    for query in queries:
        for answer in found[query.name]:
            assert answer.spending.items <= answer.budget.items <= items
            if answer.status in (Status.EXACT, Status.CERTIFIED):
                assert [row.score for row in answer.rows] == right(events, query, answer)


def test_ten_queries_on_three_streams_send_less_than_a_third_of_the_requests_of_each_alone(
    tmp_path: Path,
) -> None:
    """A server counts, also strictly: answers are as right as with budgets of their own."""
    events = drawn(Random(1))
    with serving(reply) as server:
        catalog = write(
            tmp_path,
            events,
            url=server.url,
            items=len(USERS),
            refresh=f'strict = true\nledger = "{tmp_path}/spent"',
        )
        together = answers(catalog, QUERIES)
        shared = len(server.asked)
        server.asked.clear()
        for query in QUERIES:
            (tmp_path / "spent").unlink()
            answers(catalog, [query])
        assert len(server.asked) >= 3 * shared > 0
    for query in QUERIES:
        for answer in together[query.name]:
            scores = [row.score for row in answer.rows]
            assert answer.status is Status.APPROXIMATE or scores == right(events, query, answer)


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=THOROUGH) for n in range(1, 5))])
def test_a_strict_budget_of_several_streams_is_spent_once_whatever_is_killed(seed: int) -> None:
    chance, items = Random(seed), 2
    closes = {close for query in QUERIES for close in range(query.slide, 400, query.slide)}

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
        assert 0 < asked_for(server) <= items * len(closes)
        for number in range(3):
            (folder / "spent").unlink()
            server.asked.clear()
            point = chance.choice(sorted(reaper.counts))
            mine = life(f"killed{number}")
            strikes(Point(point, chance.randint(1, reaper.counts[point])), mine.live)
            mine.live()
            assert asked_for(server) <= items * len(closes)
