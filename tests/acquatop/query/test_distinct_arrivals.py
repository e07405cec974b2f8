"""Streams the arrivals of which are distinct: reduced where they are, and right all the same."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from hypothesis import event, given, settings
from hypothesis import strategies as st
from pyspark import cloudpickle

from acquatop.answer.answer import Answer, Status
from acquatop.catalog.catalog import Catalog
from acquatop.ingest.reduce.contract import Part
from acquatop.ingest.reduce.job import Job
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundQuery
from replica.budget import Budget
from replica.maintainer import Maintainer
from replica.store import ReplicaStore
from tests.support.markers import THOROUGH
from tests.support.single_query import ContinuousQuery
from tests.support.worlds import NS, STREAM, TableRemote, user_term, with_optional

USERS = "abcdef"
SPAN = 40

CATALOG = """
[streams."http://example.org/stream"]
connector = "lines"
arrivals = "distinct"
options = {{ path = "events" }}
[streams."http://example.org/stream".mapping]
subject = "http://example.org/post/{{id}}"
time = "t"
[streams."http://example.org/stream".mapping.properties]
"http://example.org/by" = {{ field = "by", datatype = "iri" }}
"http://example.org/value" = {{ field = "value", datatype = "xsd:integer" }}
[services."http://example.org/people"]
endpoint = "http://127.0.0.1:9/query"
[services."http://example.org/people".refresh]
{policy}
n = {n}
items = {items}
requests = 9
deadline = "5s"
"""

TEXT = """PREFIX : <http://example.org/>
SELECT ?post ?value ?followers ({score} AS ?score)
FROM NAMED WINDOW :w ON :stream [RANGE {width}ms STEP {slide}ms]
WHERE {{ WINDOW :w {{ ?post :by ?user ; :value ?value {filtered} }} {service} }}
ORDER BY {direction}(?score) LIMIT {k}"""


@dataclass(frozen=True)
class Post:
    """Something that one of the users has said."""

    t: int
    number: int
    by: str
    value: int | None

    def line(self) -> bytes:
        said = {"t": self.t, "id": self.number, "by": f"{NS}user/{self.by}", "value": self.value}
        return json.dumps(
            {name: value for name, value in said.items() if value is not None}
        ).encode()


@dataclass(frozen=True)
class Shape:
    """One kind of query on one kind of stream; the seed fills it with events and changes."""

    seed: int
    posts: int
    values: int
    width: int
    slide: int
    k: int
    n: int
    items: int
    changes: float
    descending: bool
    joined: bool
    preload: bool
    filtered: bool
    late: float
    policy: str | None

    @property
    def sign(self) -> int:
        return 1 if self.descending else -1

    def bind(self) -> BoundQuery:
        text = TEXT.format(
            score="2 * ?value + ?followers" if self.joined else "2 * ?value",
            service="SERVICE :people { ?user :followers ?followers }" if self.joined else "",
            filtered="FILTER(?value > 1)" if self.filtered else "",
            direction="DESC" if self.descending else "ASC",
            **{name: getattr(self, name) for name in ("width", "slide", "k")},
        )
        catalog = CATALOG.format(
            **with_optional({"policy": self.policy, "n": self.n, "items": self.items})
        )
        found = bind_query(text, Catalog.parse(catalog, file=Path("catalog.toml"), variables={}))
        assert isinstance(found, BoundQuery), found.reason
        return found


shapes = st.builds(
    Shape,
    seed=st.integers(0, 2**32),
    posts=st.integers(0, 150),
    values=st.sampled_from([1, 3, 20]),
    width=st.integers(1, 20),
    slide=st.integers(1, 12),
    k=st.integers(1, 4),
    n=st.integers(0, 3),
    items=st.integers(0, 8),
    changes=st.sampled_from([0, 0.1, 0.5, 2]),
    descending=st.booleans(),
    joined=st.booleans(),
    preload=st.booleans(),
    filtered=st.booleans(),
    late=st.sampled_from([0, 0, 0.05]),
    policy=st.sampled_from([None, "AT-TSM", "AT-WBM", "WSJ-LRU"]),
)


class Replay:
    """A query on a stream and a remote made by chance, its records in several partitions."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.random = random.Random(shape.seed)
        self.posts = [self.post(number) for number in range(shape.posts)]
        self.remote = TableRemote(
            {user: self.random.randint(0, shape.values) for user in USERS if user != "c"}
        )
        self.bound = shape.bind()
        self.keeper: Maintainer[ReplicaStore] | None = None
        if shape.joined:
            store = ReplicaStore("user", ["user", "followers"])
            self.keeper = Maintainer(store, self.remote, Budget(shape.items, 9, 5.0))
            if shape.preload:
                self.keeper.load()
        self.query = ContinuousQuery(self.bound, self.keeper)
        self.handed_in: list[Post] = []

    def post(self, number: int) -> Post:
        chance = self.random
        value = None if chance.random() < 0.1 else chance.randint(0, self.shape.values)
        return Post(chance.randint(0, SPAN), number, chance.choice(USERS), value)

    def add(self, posts: Sequence[Post]) -> None:
        """Hand in posts as an executor would: the job travels there, and its parts back."""
        lines = pa.record_batch([pa.array([post.line() for post in posts], pa.binary())], ["value"])
        job = Job(self.bound.stream.mapping, self.query.reducers(STREAM))
        parts = [
            Part.from_bytes(part.to_bytes())
            for part in cloudpickle.loads(cloudpickle.dumps(job))([lines])
        ]
        if parts:
            self.query.evaluation.add(STREAM, parts, self.query.names)
        self.handed_in += posts

    def answers(self) -> Iterator[Answer]:
        waiting = sorted(self.posts, key=lambda each: each.t)
        for watermark in range(SPAN + 2 * self.shape.width):
            due = [each for each in waiting if each.t <= watermark or self.random.random() < 0.05]
            due = [each for each in due if self.random.random() >= self.shape.late]
            waiting = [each for each in waiting if each not in due]
            self.random.shuffle(due)
            cut = self.random.randint(0, len(due))
            self.add(due[:cut])
            self.add(due[cut:])
            for user in USERS:
                if self.random.random() < self.shape.changes / len(USERS):
                    self.remote.followers[user] = self.random.randint(0, 2 * self.shape.values)
            yield from self.query.advance(STREAM, watermark)

    def right(self, answer: Answer, followers: dict[str, int]) -> list[tuple[str, int]]:
        """Return the right answer: posts and scores."""
        rows = []
        for post in self.handed_in:
            if post.value is None or not answer.opens_ms < post.t <= answer.closes_ms:
                continue
            if (self.shape.filtered and post.value <= 1) or (
                self.shape.joined and post.by not in followers
            ):
                continue
            score = 2 * post.value + (followers[post.by] if self.shape.joined else 0)
            rows.append((-self.shape.sign * score, -post.t, f"<{NS}post/{post.number}>", score))
        return [(name[1:-1], score) for _, _, name, score in sorted(rows)[: self.shape.k]]

    def known(self) -> dict[str, int]:
        if self.keeper is None:
            return {}
        terms = {user: self.keeper.store.term("followers", user_term(user)) for user in USERS}
        return {user: int(term.split('"')[1]) for user, term in terms.items() if term is not None}


def shown(answer: Answer) -> list[tuple[str, int]]:
    return [(str(row.bindings["post"]), round(row.score or 0.0)) for row in answer.rows]


@THOROUGH
@settings(max_examples=35)
@given(shapes)
def test_what_is_called_right_is_right(shape: Shape) -> None:
    replay = Replay(shape)
    for answer in replay.answers():
        replay.query.operator.list._check()
        assert answer.spending.items <= shape.items
        if answer.status is not Status.APPROXIMATE:
            assert shown(answer) == replay.right(answer, replay.known())
        if answer.status is Status.EXACT:
            assert shown(answer) == replay.right(answer, replay.remote.followers)
        if not shape.joined and not shape.late:
            assert answer.status is Status.EXACT
        if (
            shape.items == 8
            and shape.n == 3
            and shape.preload
            and not shape.changes
            and not shape.late
        ):
            assert answer.status is Status.EXACT
        event(
            f"{answer.status}, {'some' if answer.rows else 'no'} rows, "
            f"{'joined' if shape.joined else 'alone'}"
        )


@THOROUGH
@settings(max_examples=16)
@given(shapes)
def test_how_records_are_cut_into_partitions_changes_nothing(shape: Shape) -> None:
    calm = Shape(**{**vars(shape), "changes": 0, "late": 0})
    one, other = Replay(calm), Replay(calm)
    other.add = lambda posts: [Replay.add(other, [post]) for post in posts] and None  # type: ignore[method-assign]
    for mine, its in zip(one.answers(), other.answers(), strict=True):
        assert shown(mine) == shown(its)
        if calm.preload or not calm.joined:
            assert (mine.status, mine.bound, mine.counts) == (its.status, its.bound, its.counts)
