"""Compare queries that share the budget of one service with as many that have one each.

Queries with different windows, scores and numbers of results join one stream with one table that is
replayed along with it. They run in one engine, with several budgets, and each in an engine of its
own. Answers are compared with the right ones, by the values at each close.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from acquatop import Answer, Engine
from acquatop.catalog.catalog import Catalog
from acquatop.lab.replay.metrics import ndcg_at, precision_at, relevancies

NS = "http://example.org/"
USERS = 120
BUDGETS = (1, 2, 3, 5, 8, 12, 20)
_CATALOG = """
[prefixes]
"" = "http://example.org/"
[streams.":posts"]
connector = "lines"
arrivals = "latest"
options = {{ path = "{folder}/posts" }}
[streams.":posts".mapping]
subject = "http://example.org/{{user}}"
time = "t"
properties = {{ ":mentions" = {{ field = "mentions", datatype = "xsd:integer" }} }}
[services.":people"]
remote = "table"
path = "{folder}/people.csv"
time = "since"
solutions = "one"
[services.":people".mapping]
key = "http://example.org/{{user}}"
properties = {{ ":followers" = {{ field = "followers", datatype = "xsd:integer" }} }}
[services.":people".refresh]
items = {items}
"""


class Asked(NamedTuple):
    """A query: its window in seconds, its number of results, and the part of the followers."""

    width: int
    slide: int
    k: int
    part: float

    @property
    def text(self) -> str:
        """The query as RSP-QL."""
        return f"""PREFIX : <{NS}>
            SELECT ?u ((1 - {self.part}) * ?m + {self.part} * ?f AS ?score)
            FROM NAMED WINDOW :w ON :posts [RANGE {self.width}s STEP {self.slide}s]
            WHERE {{ WINDOW :w {{ ?u :mentions ?m }} SERVICE :people {{ ?u :followers ?f }} }}
            ORDER BY DESC(?score) LIMIT {self.k}"""

    def score(self, mentions: int, followers: int) -> float:
        """Return the score of a user."""
        return (1 - self.part) * mentions + self.part * followers


QUERIES = (
    *(Asked(width, 2, k, part) for width, k, part in ((6, 5, 0.5), (10, 3, 0.8), (4, 10, 0.3))),
    *(Asked(width, 4, k, part) for width, k, part in ((12, 5, 0.7), (8, 10, 0.5), (20, 5, 0.9))),
    *(Asked(width, 6, k, part) for width, k, part in ((18, 5, 0.4), (6, 3, 0.6))),
    *(Asked(width, 12, k, part) for width, k, part in ((24, 10, 0.8), (12, 5, 0.2))),
)


@dataclass(frozen=True)
class World:
    """Posts of a second each, and the followers of each user, who change at rates of their own."""

    posts: Sequence[tuple[int, str, int]]
    followers: Mapping[str, Sequence[tuple[int, int]]]

    @classmethod
    def drawn(cls, seed: int, seconds: int) -> World:
        """Draw users that a few posts in five come from, and values of which some change often."""
        chance = Random(seed)
        weights = [1 / (1 + at) ** 0.5 for at in range(USERS)]
        names = [f"u{at}" for at in range(USERS)]
        posts = [
            (1000 * second + 20 * at + 1, user, chance.randrange(100))
            for second in range(seconds)
            for at, user in enumerate(chance.choices(names, weights, k=8))
        ]
        return cls(posts, {name: cls._values(chance, seconds) for name in names})

    @staticmethod
    def _values(chance: Random, seconds: int) -> Sequence[tuple[int, int]]:
        rate, at, value = chance.choice((0.0, 0.01, 0.05, 0.2)), 0.0, chance.randrange(100)
        found = [(0, value)]
        while rate and (at := at + chance.expovariate(rate)) < seconds:
            value = min(99, max(0, value + round(chance.gauss(0, 25))))
            found.append((round(1000 * at), value))
        return found

    def write(self, folder: Path) -> None:
        """Write the stream and the table."""
        rows = ({"t": t, "user": user, "mentions": mentions} for t, user, mentions in self.posts)
        (folder / "posts").write_text("".join(json.dumps(row) + "\n" for row in rows))
        lines = (f"{t},{user},{n}\n" for user, each in self.followers.items() for t, n in each)
        (folder / "people.csv").write_text("since,user,followers\n" + "".join(lines))

    def right(self, query: Asked, answer: Answer) -> dict[str, float]:
        """Return the scores of all users of a window."""
        newest = {
            user: mentions
            for t, user, mentions in self.posts
            if answer.opens_ms < t <= answer.closes_ms
        }
        now = {
            user: [n for since, n in self.followers[user] if since <= answer.closes_ms][-1]
            for user in newest
        }
        return {user: query.score(mentions, now[user]) for user, mentions in newest.items()}


class Reached(NamedTuple):
    """Items and requests asked for, and the mean quality of the queries' answers."""

    items: int
    requests: int
    ndcg: float
    precision: float


def reached(world: World, folder: Path, items: int, groups: Sequence[Sequence[Asked]]) -> Reached:
    """Run groups of queries, an engine for each, and judge all their answers."""
    text = _CATALOG.format(folder=folder, items=items)
    catalog = Catalog.parse(text, file=folder / "catalog.toml", variables={})
    items_asked, requests, qualities = 0, 0, []
    for group in groups:
        spent: dict[int, tuple[int, int]] = {}
        by_query: dict[str, list[tuple[float, float]]] = {}
        for query, answer in _answers(catalog, group):
            spent[answer.closes_ms] = answer.spending.items, answer.spending.requests
            by_query.setdefault(answer.query, []).append(_quality(world, query, answer))
        items_asked += sum(each for each, _ in spent.values())
        requests += sum(each for _, each in spent.values())
        qualities += [
            (fmean(each for each, _ in found), fmean(each for _, each in found))
            for found in by_query.values()
        ]
    return Reached(
        items_asked,
        requests,
        fmean(ndcg for ndcg, _ in qualities),
        fmean(precision for _, precision in qualities),
    )


def _answers(catalog: Catalog, group: Sequence[Asked]) -> Iterator[tuple[Asked, Answer]]:
    with Engine(catalog, runtime="local", until_end=True, autostart=False) as engine:
        named = {
            engine.register(each.text, name=f"q{at}").name: each for at, each in enumerate(group)
        }
        engine.start()
        for answer in engine.answers():
            yield named[answer.query], answer


def _quality(world: World, query: Asked, answer: Answer) -> tuple[float, float]:
    right = world.right(query, answer)
    found = [str(row.bindings["u"]).removeprefix(NS) for row in answer.rows]
    best = sorted(right, key=lambda user: -right[user])[: query.k]
    relevance = relevancies(best)
    return ndcg_at(query.k, found, relevance), precision_at(query.k, found, relevance)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench shared_budget", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the drawn world (%(default)s)")
    parser.add_argument("--seconds", type=int, default=240, help="of the stream (%(default)s)")
    options = parser.parse_args()
    world = World.drawn(options.seed, options.seconds)
    ways: Mapping[str, Sequence[Sequence[Asked]]] = {
        "shared": [QUERIES],
        "one each": [[query] for query in QUERIES],
    }
    table = Table(title=f"{len(QUERIES)} queries, {options.seconds} s")
    for column in ("budget", "items per close", "items", "requests", "1 − nDCG", "1 − precision"):
        table.add_column(column, justify="right")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        world.write(folder)
        for way, groups in ways.items():
            for budget in BUDGETS:
                found = reached(world, folder, budget, groups)
                errors = [f"{100 * (1 - each):.1f} %" for each in (found.ndcg, found.precision)]
                table.add_row(way, str(budget), f"{found.items}", f"{found.requests}", *errors)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
