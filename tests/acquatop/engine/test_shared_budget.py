"""Queries on one stream that ask one service: values and budget that they share."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from urllib.parse import unquote

import pytest

from acquatop import Answer, Engine, Status
from acquatop.catalog.catalog import Catalog
from acquatop.errors import UserError
from tests.support.crash.killing import strikes
from tests.support.crash.life import Life, content
from tests.support.crash.reaper import Point, Reaper
from tests.support.disks import quick_folder
from tests.support.json_server import Answer as Reply
from tests.support.json_server import Asked as Request
from tests.support.json_server import serving
from tests.support.markers import THOROUGH

NS = "http://example.org/"
USERS = [f"u{at}" for at in range(14)]
_CATALOG = """
[prefixes]
"" = "http://example.org/"
[streams.":stream"]
connector = "lines"
arrivals = "distinct"
options = {{ path = "{folder}/events", maxBytesPerBatch = {batch} }}
[streams.":stream".mapping]
subject = "http://example.org/event/{{id}}"
time = "t"
[streams.":stream".mapping.properties]
":user" = {{ field = "user", datatype = "iri" }}
":mentions" = {{ field = "mentions", datatype = "xsd:integer" }}
[services.":people"]
{remote}
{more}
[services.":people".mapping]
key = "http://example.org/{{user}}"
[services.":people".mapping.properties]
":followers" = {{ field = "followers", datatype = "xsd:integer" }}
[services.":people".refresh]
policy = "{policy}"
items = {items}
deadline = "60s"
{refresh}
"""
_TABLE = 'remote = "table"\npath = "people.csv"\ntime = "since"'


@dataclass(frozen=True)
class Asked:
    """A query by what it differs in; ``names`` are those of its variables of the SERVICE."""

    name: str
    width: int
    slide: int
    k: int
    factor: int = 1
    names: tuple[str, str] = ("user", "followers")

    @property
    def text(self) -> str:
        user, followers = self.names
        return f"""PREFIX : <{NS}>
            SELECT ?e ?{user} (?mentions * {self.factor} + ?{followers} AS ?score)
            FROM NAMED WINDOW :w ON :stream [RANGE {self.width}ms STEP {self.slide}ms]
            WHERE {{ WINDOW :w {{ ?e :user ?{user} ; :mentions ?mentions }}
                     SERVICE :people {{ ?{user} :followers ?{followers} }} }}
            ORDER BY DESC(?score) LIMIT {self.k}"""


@dataclass(frozen=True)
class World:
    """Events as (time, number, user, mentions), and each user's values since some times."""

    events: Sequence[tuple[int, int, str, int]]
    values: Mapping[str, Sequence[tuple[int, int]]]
    end_ms: int = field(default=300)

    @classmethod
    def drawn(cls, chance: Random) -> World:
        events = [
            (time_ms, time_ms, chance.choice(USERS), chance.randrange(20))
            for time_ms in range(1, 300)
            if chance.random() < 0.7
        ]
        values = {
            user: [
                (since, chance.randrange(60))
                for since in sorted({0, *chance.sample(range(1, 300), chance.randrange(7))})
            ]
            for user in USERS
        }
        return cls(events, values)

    def write(self, folder: Path) -> None:
        with (folder / "events").open("w", encoding="utf-8") as file:
            for time_ms, number, user, mentions in self.events:
                row = {"t": time_ms, "id": number, "user": NS + user, "mentions": mentions}
                file.write(json.dumps(row) + "\n")
        rows = ["since,user,followers"]
        rows += [f"{at},{user},{value}" for user, each in self.values.items() for at, value in each]
        (folder / "people.csv").write_text("\n".join(rows) + "\n", "utf-8")

    def value(self, user: str, at_ms: int) -> int:
        return [value for since, value in self.values[user] if since <= at_ms][-1]

    def best(self, query: Asked, answer: Answer, seen_ms: Callable[[str], int]) -> list[float]:
        """Return the right scores of a window, by each user's value at a time."""
        scores = (
            mentions * query.factor + self.value(user, seen_ms(user))
            for time_ms, _, user, mentions in self.events
            if answer.opens_ms < time_ms <= answer.closes_ms
        )
        return sorted(map(float, scores), reverse=True)[: query.k]


def write_catalog(folder: Path, **settings: object) -> None:
    (folder / "catalog.toml").write_text(catalog_text(folder, **settings), "utf-8")


def catalog(folder: Path, **settings: object) -> Catalog:
    text = catalog_text(folder, **settings)
    return Catalog.parse(text, file=folder / "catalog.toml", variables={})


def catalog_text(folder: Path, **settings: object) -> str:
    values = {
        "remote": _TABLE,
        "more": "",
        "policy": "ANY-IMP",
        "items": 3,
        "refresh": "",
        "batch": 2_000,
        **settings,
    }
    return _CATALOG.format(folder=folder, **values)


def answers(
    made: Catalog, queries: Sequence[Asked], weights: Mapping[str, float] | None = None
) -> dict[str, list[Answer]]:
    """Return the answers of queries that an engine answers together."""
    found: defaultdict[str, list[Answer]] = defaultdict(list)
    with Engine(made, runtime="local", until_end=True, autostart=False) as engine:
        for query in queries:
            weight = (weights or {}).get(query.name, 1.0)
            engine.register(query.text, name=query.name, weight=weight)
        engine.start()
        for answer in engine.answers():
            found[answer.query].append(answer)
    return found


def scores(answer: Answer) -> list[float]:
    return [math.nan if row.score is None else row.score for row in answer.rows]


def said(found: Mapping[str, Sequence[Answer]]) -> dict[str, list[object]]:
    return {
        name: [
            (each.closes_ms, scores(each), each.status, each.expected, each.refreshed)
            for each in several
        ]
        for name, several in found.items()
    }


MANY = [
    Asked("a", 40, 10, 3),
    Asked("b", 90, 30, 2, factor=2),
    Asked("c", 20, 20, 4, names=("who", "n")),
    Asked("d", 60, 10, 1, factor=3),
]


def drawn(chance: Random) -> list[Asked]:
    return [
        Asked(
            f"q{at}",
            chance.choice([10, 20, 45, 90]),
            chance.choice([5, 10, 15, 30]),
            chance.randint(1, 4),
            chance.randint(1, 3),
            chance.choice([("user", "followers"), ("x", "y")]),
        )
        for at in range(chance.randint(2, 5))
    ]


@dataclass
class Judge:
    """Judge of all answers of one engine, by the world and by what was fetched when."""

    world: World
    queries: Mapping[str, Asked]
    fetched: dict[int, set[str]] = field(default_factory=dict)

    def judge(self, found: Mapping[str, Sequence[Answer]], *, knows_all: bool) -> None:
        """Check statuses and values; ``knows_all`` if nothing is known that was not fetched."""
        for answer in (each for several in found.values() for each in several):
            users = {str(key).removeprefix(NS) for key in answer.refreshed}
            self.fetched.setdefault(answer.closes_ms, users)
            assert self.fetched[answer.closes_ms] == users
        for name, several in found.items():
            for answer in several:
                self._judge(self.queries[name], answer, knows_all=knows_all)

    def _judge(self, query: Asked, answer: Answer, *, knows_all: bool) -> None:
        for row in answer.rows:
            number = int(str(row.bindings["e"]).rpartition("/")[2])
            user, mentions = self._event(number)
            seen_ms = answer.closes_ms - round(1000 * (row.age_seconds or 0.0))
            assert row.score == mentions * query.factor + self.world.value(user, seen_ms)
            assert row.refreshed is (user in self.fetched[answer.closes_ms])
            assert not knows_all or seen_ms == self._last(user, answer.closes_ms)
        if answer.status is Status.EXACT:
            assert scores(answer) == self.world.best(query, answer, lambda _: answer.closes_ms)
        if answer.status is Status.CERTIFIED and knows_all:
            assert scores(answer) == self.world.best(
                query, answer, lambda user: self._last(user, answer.closes_ms)
            )

    def _event(self, number: int) -> tuple[str, int]:
        return next((user, said) for _, at, user, said in self.world.events if at == number)

    def _last(self, user: str, until_ms: int) -> int:
        """Return when a user was fetched last, for any query."""
        return max(at for at, users in self.fetched.items() if at <= until_ms and user in users)


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(at, marks=THOROUGH) for at in range(4, 16))]
)
def test_what_is_fetched_for_one_is_known_to_all_and_nothing_is_called_exact_wrongly(
    seed: int,
) -> None:
    """Exact answers are those of the remote at the close; a close has one budget for all."""
    chance = Random(seed)
    world, queries, items = World.drawn(chance), drawn(chance), chance.randint(1, 6)
    load, capacity = chance.random() < 0.3, chance.choice(["", "", "capacity = 9"])
    bank = chance.choice(["", "bank = { items = 6 }"])
    with quick_folder() as folder:
        world.write(folder)
        found = answers(
            catalog(
                folder,
                items=items,
                more=f"load = {str(load).lower()}\n{capacity}",
                refresh=bank,
                policy=chance.choice(["ANY-IMP", "ANY-IMP", "AT-TSM", "AT-LRU", "WSJ-RND"]),
                batch=chance.choice([200, 2_000, 100_000]),
            ),
            queries,
        )
    named = {query.name: query for query in queries}
    assert found.keys() == named.keys()
    Judge(world, named).judge(found, knows_all=not load and not capacity)
    spent: dict[int, int] = {}
    for answer in (each for several in found.values() for each in several):
        assert answer.spending.items <= answer.budget.items
        assert spent.setdefault(answer.closes_ms, answer.spending.items) == answer.spending.items
    assert sum(spent.values()) <= items * len(spent) + (6 if bank else 0)


# Kills --------------------------------------------------------------------------------------------


def life(folder: Path, name: str) -> Life:
    texts = {query.name: query.text for query in MANY}
    place = folder / name
    return Life(folder / "catalog.toml", place / "state", place / "out", texts, only_lines=True)


def killed(folder: Path, chance: Random, counts: Mapping[str, int], name: str) -> Life:
    """Return a life that was killed at one of the points that a whole life has reached."""
    mine = life(folder, name)
    point = chance.choice(sorted(counts))
    strikes(Point(point, chance.randint(1, counts[point])), mine.live)
    return mine


@pytest.mark.parametrize("seed", [0, *(pytest.param(at, marks=THOROUGH) for at in range(1, 3))])
def test_kills_change_no_byte(seed: int) -> None:
    """The remote is a table over time, so what was asked for shows in the answers."""
    chance = Random(seed)
    with quick_folder() as folder:
        World.drawn(chance).write(folder)
        write_catalog(folder, items=chance.randint(1, 4), batch=700, more="load = false")
        whole, reaper = life(folder, "whole"), Reaper()
        with reaper.at_work():
            whole.live()
        for number in range(4):
            mine = killed(folder, chance, reaper.counts, f"killed{number}")
            mine.live()
            assert content(mine.out) == content(whole.out)


@pytest.mark.parametrize("seed", [0, *(pytest.param(at, marks=THOROUGH) for at in range(1, 3))])
def test_a_strict_budget_is_spent_once_for_all_whatever_is_killed(seed: int) -> None:
    """A server counts: no close has more than one budget, and no key is asked for twice in it."""
    chance, items = Random(seed), 2

    def reply(asked: Request) -> Reply:
        ids = unquote(asked.path).rpartition("/")[2].split(",")
        return Reply.json([{"user": each, "followers": int(each[1:])} for each in ids])

    with quick_folder() as folder, serving(reply) as server:
        world = World.drawn(chance)
        world.write(folder)
        write_catalog(
            folder,
            items=items,
            batch=700,
            policy="AT-TSM",
            remote=f'remote = "rest"\nendpoint = "{server.url}/{{keys}}"',
            refresh=f'strict = true\nledger = "{folder}/spent"',
        )
        whole, reaper = life(folder, "whole"), Reaper()
        with reaper.at_work():
            whole.live()
        closes = {close for query in MANY for close in range(query.slide, 400, query.slide)}
        assert 0 < len(server.asked) <= len(closes)
        once = len(server.asked)
        for number in range(4):
            (folder / "spent").unlink(missing_ok=True)
            server.asked.clear()
            killed(folder, chance, reaper.counts, f"killed{number}").live()
            keys = sum(each.path.count(",") + 1 for each in server.asked)
            assert keys <= items * len(closes)
            assert len(server.asked) <= once + 1


# Weights ------------------------------------------------------------------------------------------


def test_a_query_that_weighs_more_has_more_of_what_it_wants(tmp_path: Path) -> None:
    """Two queries over different users, of which a close can ask for one."""
    users = {"a": "u1", "b": "u2"}
    events = [(at, at, user, 1) for at in range(1, 200) for user in users.values()]
    events = [(at, 2 * at + (user == "u2"), user, 1) for at, _, user, _ in events]
    values = {user: [(at, at % 50) for at in range(0, 200, 3)] for user in USERS}
    World(events, values).write(tmp_path)
    queries = {name: of_user(name, user) for name, user in users.items()}

    def looks(weights: Mapping[str, float]) -> dict[str, int]:
        found: Counter[str] = Counter()
        made = catalog(tmp_path, items=1, more="load = false")
        with Engine(made, runtime="local", until_end=True, autostart=False) as engine:
            for name, text in queries.items():
                engine.register(text, name=name, weight=weights.get(name, 1.0))
            engine.start()
            for answer in engine.answers():
                found.update({answer.query: sum(row.refreshed is True for row in answer.rows)})
        return found

    even, uneven = looks({}), looks({"b": 8.0})
    assert uneven["b"] > even["b"] > 0
    assert uneven["a"] > 0, "it does not starve"


def of_user(name: str, user: str) -> str:
    plain = Asked(name, 10, 10, 1).text
    pattern = "?e :user ?user ; :mentions ?mentions"
    return plain.replace(pattern, f"{pattern} FILTER(?user = <{NS}{user}>)")


@pytest.mark.parametrize("weight", [0.0, -1.0, math.nan, math.inf])
def test_a_weight_that_is_none_is_refused(tmp_path: Path, weight: float) -> None:
    World([], {user: [(0, 1)] for user in USERS}).write(tmp_path)
    with (
        Engine(catalog(tmp_path), runtime="local") as engine,
        pytest.raises(UserError, match="cannot weigh"),
    ):
        engine.register(MANY[0].text, weight=weight)


def test_queries_do_not_share_if_the_catalog_says_so(tmp_path: Path) -> None:
    """Each asks as alone: as it would if no other query was there."""
    World.drawn(Random(3)).write(tmp_path)
    made = catalog(tmp_path, refresh="shared = false")
    together = said(answers(made, MANY))
    assert together == {query.name: said(answers(made, [query]))[query.name] for query in MANY}
    shared = catalog(tmp_path)
    assert said(answers(shared, MANY)) != together


# Requests -----------------------------------------------------------------------------------------


def test_ten_queries_are_as_good_as_with_three_times_the_requests_of_their_own(
    tmp_path: Path,
) -> None:
    """A server counts, also strictly: each query alone asks for the same keys again."""

    def reply(asked: Request) -> Reply:
        ids = unquote(asked.path).rpartition("/")[2].split(",")
        return Reply.json([{"user": each, "followers": int(each[1:])} for each in ids])

    widths, slides = (40, 20, 60, 80, 30), (20, 20, 20, 40, 40)
    queries = [
        Asked(f"q{at}", widths[at % 5], slides[at % 5], 1 + at % 3, 1 + at // 5) for at in range(10)
    ]
    events = World.drawn(Random(7)).events
    world = World(events, {user: [(0, int(user[1:]))] for user in USERS})
    world.write(tmp_path)
    with serving(reply) as server:
        made = catalog(
            tmp_path,
            items=len(USERS),
            remote=f'remote = "rest"\nendpoint = "{server.url}/{{keys}}"',
            refresh=f'strict = true\nledger = "{tmp_path}/spent"',
        )
        together = answers(made, queries)
        shared = len(server.asked)
        server.asked.clear()
        alone: dict[str, list[Answer]] = {}
        for query in queries:
            (tmp_path / "spent").unlink()
            alone |= answers(made, [query])
    assert len(server.asked) >= 3 * shared > 0
    for query in queries:
        told = [
            [(each.status, scores(each)) for each in by[query.name]] for by in (together, alone)
        ]
        assert told[0] == told[1]
        right = [world.best(query, answer, lambda _: 0) for answer in together[query.name]]
        assert [found for _, found in told[0]] == right
