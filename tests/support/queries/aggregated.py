"""Random posts aggregated per user, and the right answers by brute force."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st

from acquatop.answer.answer import Answer
from acquatop.catalog.catalog import Catalog
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundQuery
from replica.budget import Budget
from replica.maintainer import Maintainer
from replica.store import ReplicaStore, Solution
from rspql.scoring import vectorise_condition
from tests.support.rspql.meaning import Rows, meant
from tests.support.single_query import ContinuousQuery
from tests.support.worlds import NS, STREAM, XSD, integer, with_optional

SPAN = 40


USERS = "abcdefghij"


CATALOG = """
[streams."http://example.org/stream"]
connector = "lines"
arrivals = "{arrivals}"
{start}
options = {{ path = "events" }}
[streams."http://example.org/stream".mapping]
subject = "http://example.org/{{s}}"
time = "t"
[streams."http://example.org/stream".mapping.properties]
"http://example.org/mentions" = {{ field = "mentions" }}
"http://example.org/x" = {{ field = "x", datatype = "xsd:integer" }}
"http://example.org/y" = {{ field = "y", datatype = "xsd:double" }}
[services."http://example.org/people"]
endpoint = "http://127.0.0.1:9/query"
{solutions}
[services."http://example.org/people".refresh]
{policy}
n = {n}
items = {items}
"""


TEXT = """PREFIX : <http://example.org/>
SELECT ?user {names} {followers} ({score} AS ?score)
FROM NAMED WINDOW :w ON :stream [RANGE {width}ms STEP {slide}ms]
WHERE {{
  WINDOW :w {{ SELECT ?user {columns} {{ {pattern} {filtered} }} GROUP BY ?user }}
  {service}
  {having}
}}
ORDER BY {direction}(?score) LIMIT {k} OFFSET {offset}"""


COUNT, SUM, AVG = "(COUNT(*) AS ?n)", "(SUM({}) AS ?s)", "(AVG({}) AS ?a)"


EXTREMES = "(MIN({}) AS ?lo) (MAX({}) AS ?hi)"


SCORES: dict[str, Callable[..., float]] = {
    "?n": lambda n, s, a, lo, hi: n,
    "?s - 2 * ?n": lambda n, s, a, lo, hi: s - 2 * n,
    "?a": lambda n, s, a, lo, hi: a,
    "?a + ?n / 4": lambda n, s, a, lo, hi: a + n / 4,
    "?n / ?s": lambda n, s, a, lo, hi: n / s,
    "?hi - ?lo": lambda n, s, a, lo, hi: hi - lo,
    "?lo": lambda n, s, a, lo, hi: lo,
    "?hi * 2 + ?n": lambda n, s, a, lo, hi: hi * 2 + n,
}


PATTERNS = {
    "?post :mentions ?user": (None, "all"),
    "?user :x ?x": ("x", "all"),
    "?user :y ?y": ("y", "all"),
    "?post :x ?user": ("user", "all"),
    "?post :mentions ?user ; :x ?x": ("x", "latest"),
    "?post :x ?x ; :mentions ?user ; :y ?y": ("y", "latest"),
}


HAVINGS: dict[str, Callable[[int], bool]] = {"": lambda n: True, "FILTER(?n > 1)": lambda n: n > 1}


@dataclass(frozen=True)
class Post:
    """Something that happened on the stream; it need not say all."""

    t: int
    s: str
    mentions: str | None
    x: int | None
    y: float | None

    def line(self) -> bytes:
        return json.dumps(
            {name: value for name, value in vars(self).items() if value is not None}
        ).encode()

    def says(self, pattern: str) -> dict[str, Any] | None:
        """Return the solution of a pattern that this makes."""
        subject = pattern.split()[0][1:]
        solution: dict[str, Any] = {subject: f"<{NS}{self.s}>"}
        for triple in pattern.split(" ", 1)[1].split(" ; "):
            predicate, variable = triple.split()
            value = getattr(self, predicate[1:])
            if value is None:
                return None
            solution[variable[1:]] = f'"{value}"' if isinstance(value, str) else value
        return solution


@dataclass(frozen=True)
class Shape:
    """One kind of query on one kind of stream; the seed fills it with events and changes."""

    seed: int
    pattern: str
    score: str
    columns: int
    latest: bool
    joined: bool
    filtered: bool
    having: str
    posts: int
    subjects: int
    users: int
    values: int
    width: int
    slide: int
    k: int
    offset: int
    n: int
    items: int
    changes: float
    descending: bool
    policy: str | None
    start: int | None
    preload: bool
    bounded: bool
    late: float
    distinct: bool = False

    @property
    def of(self) -> str | None:
        return PATTERNS[self.pattern][0]

    @property
    def needs_latest(self) -> bool:
        return PATTERNS[self.pattern][1] == "latest"

    @property
    def latest_only(self) -> bool:
        return self.needs_latest or self.latest

    @property
    def arrivals(self) -> str:
        return "distinct" if self.distinct else "latest" if self.latest_only else "all"

    @property
    def extremes(self) -> bool:
        return self.of is not None

    @property
    def own_score(self) -> str:
        """The score, or another if this pattern has not what it needs."""
        if self.of is None:
            return "?n"
        return self.score

    @property
    def filter(self) -> str:
        return f"FILTER(?{self.of} > 2)" if self.filtered and self.of else ""

    @property
    def sign(self) -> int:
        return 1 if self.descending else -1

    def text(self) -> str:
        selected = [COUNT]
        if self.of is not None:
            selected += [each.format(f"?{self.of}") for each in (SUM, AVG)]
        if self.extremes:
            selected.append(EXTREMES.format(f"?{self.of}", f"?{self.of}"))
        # Which are selected, and in which order, must not matter; those that are needed are.
        chosen = [
            each for at, each in enumerate(selected) if self.columns >> at & 1 or self.needs(each)
        ]
        if self.columns & 16:
            chosen.reverse()
        names = [part.split(")")[0] for each in chosen for part in each.split(" AS ")[1:]]
        score = self.own_score
        if self.joined:
            score = f"({score}) + {'5 * norm(?followers, 0, 5)' if self.bounded else '?followers'}"
        return TEXT.format(
            names=" ".join(names),
            followers="?followers" if self.joined else "",
            score=score,
            columns=" ".join(chosen),
            pattern=self.pattern,
            filtered=self.filter,
            service="SERVICE :people { ?user :followers ?followers }" if self.joined else "",
            having=self.having,
            direction="DESC" if self.descending else "ASC",
            **{name: getattr(self, name) for name in ("width", "slide", "k", "offset")},
        )

    def needs(self, column: str) -> bool:
        names = [part.split(")")[0] for part in column.split(" AS ")[1:]]
        return (
            any(name in self.own_score or name in self.having for name in names)
            or not self.columns % 16
        )

    def catalog(self) -> Catalog:
        values: dict[str, object] = {
            "arrivals": self.arrivals,
            "start": "" if self.start is None else f"start_ms = {self.start}",
            "solutions": "",
            "policy": self.policy,
            "n": self.n,
            "items": self.items,
        }
        text = CATALOG.format(**with_optional(values))
        return Catalog.parse(text, file=Path("catalog.toml"), variables={})

    def bind(self) -> BoundQuery:
        found = bind_query(self.text(), self.catalog())
        assert isinstance(found, BoundQuery), found.reason
        return found


shapes = st.builds(
    Shape,
    seed=st.integers(0, 2**32),
    pattern=st.sampled_from(list(PATTERNS)),
    score=st.sampled_from(list(SCORES)),
    columns=st.integers(0, 31),
    latest=st.booleans(),
    joined=st.booleans(),
    filtered=st.booleans(),
    having=st.sampled_from(list(HAVINGS)),
    posts=st.integers(0, 150),
    subjects=st.sampled_from([2, 10, 100]),
    users=st.integers(1, len(USERS)),
    values=st.sampled_from([1, 3, 20]),
    width=st.integers(1, 20),
    slide=st.integers(1, 12),
    k=st.integers(1, 4),
    offset=st.sampled_from([0, 0, 1, 2]),
    n=st.integers(0, 3),
    items=st.integers(0, 12),
    changes=st.sampled_from([0, 0.1, 0.5, 2]),
    descending=st.booleans(),
    policy=st.sampled_from([None, "AT-TSM", "AT-BSM", "AT-LRU", "AT-WST"]),
    start=st.none() | st.integers(0, 10),
    preload=st.booleans(),
    bounded=st.booleans(),
    late=st.sampled_from([0, 0, 0.05]),
    distinct=st.booleans(),
)


@dataclass
class Table:
    """A remote in memory, by the text of its keys."""

    followers: dict[str, int] = field(default_factory=dict)
    block_size: int = 2

    def fetch(self, keys: Iterable[str], timeout: float) -> list[Solution]:
        found = [key for key in keys if key in self.followers]
        return [{"user": key, "followers": integer(self.followers[key])} for key in found]

    def load(self, timeout: float, may_ask: object = None) -> Iterator[list[Solution]]:
        yield self.fetch(list(self.followers), timeout)


def text_of(key: Any) -> str:
    return integer(key) if isinstance(key, int) else str(key)


class Replay:
    """A query at work on a stream and a remote that chance has made."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.random = random.Random(shape.seed)
        self.numbers = itertools.count()
        self.posts = [self.post() for _ in range(shape.posts)]
        self.keys = sorted(
            {text_of(each["user"]) for post in self.posts if (each := post.says(shape.pattern))}
        )
        self.remote = Table({key: self.random.randint(0, shape.values) for key in self.keys[1:]})
        self.bound = shape.bind()
        self.handed_in: list[Post] = []
        keeper = None
        if shape.joined:
            store = ReplicaStore("user", ["user", "followers"])
            keeper = Maintainer(store, self.remote, Budget(shape.items, max(9, shape.items), 5.0))
            if shape.preload:
                keeper.load()
        self.query: Any = ContinuousQuery(self.bound, keeper)

    def post(self) -> Post:
        chance, shape = self.random, self.shape
        said = [
            None if chance.random() < 0.1 else value
            for value in (
                chance.choice(USERS[: shape.users]),
                chance.randint(-3, shape.values),
                chance.randint(-8, 4 * shape.values) / 4,
            )
        ]
        subject = next(self.numbers) if shape.distinct else chance.randrange(shape.subjects)
        return Post(chance.randint(0, SPAN), f"s{subject:02}", *said)  # type: ignore[arg-type]

    def change_remote(self) -> None:
        for key in self.keys:
            if self.random.random() < self.shape.changes / len(self.keys):
                if self.random.random() < 0.2:
                    self.remote.followers.pop(key, None)
                else:
                    self.remote.followers[key] = self.random.randint(0, 2 * self.shape.values)

    def answers(self) -> Iterator[Any]:
        """Yield the answers, time going on step by step,
        each post handed in at some step before it is due, or late.
        """
        waiting = sorted(self.posts, key=lambda each: each.t)
        for watermark in range(SPAN + 2 * self.shape.width):
            due = [each for each in waiting if each.t <= watermark or self.random.random() < 0.05]
            due = [each for each in due if self.random.random() >= self.shape.late]
            waiting = [each for each in waiting if each not in due]
            self.random.shuffle(due)
            cut = self.random.randint(0, len(due))
            for some in (due[:cut], due[cut:]):
                self.query.add(STREAM, decoded(self.bound, some))
            self.handed_in += due
            self.change_remote()
            yield from self.query.advance(STREAM, watermark)

    # What is right --------------------------------------------------------------------------------

    def solutions(self, opens: int, closes: int) -> list[tuple[int, dict[str, Any]]]:
        """Return a window's solutions before they are grouped, with their times."""
        inside = [post for post in self.handed_in if opens < post.t <= closes]
        if self.shape.latest_only:
            inside = list({post.s: post for post in sorted(inside, key=self.order)}.values())
        passes = [vectorise_condition(each) for each in self.bound.plan.stream_filters]
        said = [
            (post.t, solution)
            for post in inside
            if (solution := post.says(self.shape.pattern)) is not None
        ]
        return [
            (time, solution)
            for time, solution in said
            if all(
                holds({self.shape.of: pa.array([solution[self.shape.of]]).to_numpy()}).all()
                for holds in passes
            )
        ]

    def order(self, post: Post) -> tuple[Any, ...]:
        """Of two of one time the one with the greater terms counts, any more than none."""
        predicates = [
            triple.split()[0][1:] for triple in self.shape.pattern.split(" ", 1)[1].split(" ; ")
        ]
        return post.t, *(self.term(getattr(post, name)) for name in predicates)

    def term(self, value: Any) -> str:
        if isinstance(value, str):
            return f'"{value}"'
        if isinstance(value, float):
            text = pa.array([value]).cast(pa.string())[0].as_py()
            return f'"{text}"^^<{XSD}double>'
        return "" if value is None else text_of(value)

    def columns(self, opens: int, closes: int) -> tuple[Rows, dict[Any, int]]:
        """Return each key's aggregates, and its newest time."""
        found = self.solutions(opens, closes)
        newest: dict[Any, int] = {}
        for time, solution in found:
            newest[solution["user"]] = max(time, newest.get(solution["user"], time))
        assert self.bound.plan.aggregate is not None
        return meant(self.bound.plan.aggregate, [solution for _, solution in found]), newest

    def own_score(self, columns: tuple[tuple[Any, str], ...]) -> float | None:
        """Return the stream's part of a score; None where there is none."""
        assert self.bound.plan.aggregate is not None
        values = dict.fromkeys(("n", "s", "a", "lo", "hi"), math.nan)
        for column, (value, _) in zip(self.bound.plan.aggregate.columns, columns, strict=True):
            values[column.variable] = float(value)
        if not HAVINGS[self.shape.having](int(values["n"]) if values["n"] == values["n"] else 9):
            return None
        try:
            return SCORES[self.shape.own_score](**values)
        except ZeroDivisionError:
            return None

    def right(self, answer: Answer, followers: dict[str, int]) -> list[tuple[str, Any, float]]:
        """Return the right answer: key, columns, score."""
        rows, newest = self.columns(answer.opens_ms, answer.closes_ms)
        scored = []
        for key, columns in rows.items():
            score = self.own_score(columns)
            if score is None or (self.shape.joined and text_of(key) not in followers):
                continue
            if self.shape.joined:
                count = followers[text_of(key)]
                score += min(5, count) if self.shape.bounded else count
            scored.append((-self.shape.sign * score, -newest[key], text_of(key), columns, score))
        scored.sort(key=lambda row: row[:3])
        wanted = scored[self.shape.offset : self.shape.offset + self.shape.k]
        return [(key, columns, score) for _, _, key, columns, score in wanted]

    def known(self) -> dict[str, int]:
        store = self.query.maintainer.store if self.query.maintainer else None
        terms = {key: store.term("followers", key) for key in self.keys} if store else {}
        return {key: int(term.split('"')[1]) for key, term in terms.items() if term is not None}

    def shown(self, answer: Answer) -> list[tuple[str, Any, float]]:
        assert self.bound.plan.aggregate is not None
        return [
            (
                row.bindings["user"].n3(),
                tuple(
                    _python(row.bindings[each.variable])
                    for each in self.bound.plan.aggregate.columns
                ),
                row.score,
            )
            for row in answer.rows
        ]

    def assert_right(self, answer: Answer, followers: dict[str, int]) -> None:
        assert [row[:2] for row in self.shown(answer)] == [
            row[:2] for row in self.right(answer, followers)
        ]
        expected = [score for _, _, score in self.right(answer, followers)]
        assert [row.score for row in answer.rows] == pytest.approx(expected)

    def reach(self, answer: Answer) -> float:
        """Return the best merit that a key of the window with no value
        from the remote could have.
        """
        rows, _ = self.columns(answer.opens_ms, answer.closes_ms)
        unknown = [key for key in rows if self.query.maintainer.store.rows([text_of(key)])[0] < 0]
        scores = [score for key in unknown if (score := self.own_score(rows[key])) is not None]
        return max((self.best(score) for score in scores), default=-math.inf)

    def best(self, score: float) -> float:
        low, high = (0, 5) if self.shape.bounded else (-math.inf, math.inf)
        return score + high if self.shape.descending else -(score + low)


def _python(term: Any) -> tuple[Any, str]:
    datatype = str(term.datatype).removeprefix(XSD)
    return {"integer": int, "double": float, "decimal": Decimal}[datatype](str(term)), datatype


def plain(**changes: Any) -> Shape:
    values = {
        "seed": 0,
        "pattern": "?user :x ?x",
        "score": "?n",
        "columns": 1,
        "having": "",
        "posts": 0,
        "subjects": 1,
        "users": 1,
        "values": 1,
        "width": 9,
        "slide": 3,
        "k": 3,
        "offset": 0,
        "n": 0,
        "items": 0,
        "changes": 0.0,
        "descending": True,
        "policy": None,
        "start": None,
        "late": 0.0,
        **dict.fromkeys(("latest", "joined", "filtered", "preload", "bounded"), False),
        **changes,
    }
    return Shape(**values)


def decoded(bound: BoundQuery, posts: list[Post]) -> pa.RecordBatch:
    return bound.stream.mapping.records(
        pa.record_batch([pa.array([post.line() for post in posts], pa.binary())], ["value"])
    )
