"""Top-k queries over aggregates per key: incrementally, window by window, and by counting everything afresh."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from acquatop.answer.answer import Answer, Status
from acquatop.catalog.catalog import Catalog
from acquatop.ingest.scoring import ReplicaScoring
from acquatop.plan.bind import BoundQuery, BoundWindowed, bind_query, bind_windowed
from acquatop.query.aggregates import content as aggregated_content
from acquatop.query.aggregates import deduplicated as retained
from acquatop.query.aggregates.deduplicated import Identities
from acquatop.query.aggregates.ranking import Aggregated
from acquatop.query.sparql.evaluation import SparqlEvaluation
from acquatop.refresh.replica_refresh import Inquiry
from acquatop.topk.aggregates import aggregate_view, keyed_content
from replica.budget import Budget
from replica.maintainer import Maintainer
from replica.store import ReplicaStore, Solution, SolutionStore
from rspql.scoring import vectorise_condition
from tests.acquatop.query.test_both_evaluations import Both
from tests.rspql.test_aggregate_meaning import Rows, meant
from tests.support.fed import Fed
from tests.support.single_query import ContinuousQuery
from tests.support.worlds import NS, STREAM, XSD, integer, with_policy

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
requests = 9
deadline = "5s"
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
        return json.dumps({name: value for name, value in vars(self).items() if value is not None}).encode()

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
        chosen = [each for at, each in enumerate(selected) if self.columns >> at & 1 or self.needs(each)]
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
        return any(name in self.own_score or name in self.having for name in names) or not self.columns % 16

    def catalog(self) -> Catalog:
        values: dict[str, object] = {
            "arrivals": self.arrivals,
            "start": "" if self.start is None else f"start_ms = {self.start}",
            "solutions": "",
            "policy": self.policy,
            "n": self.n,
            "items": self.items,
        }
        text = CATALOG.format(**with_policy(values))
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


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make what is meant for many happen with few."""
    monkeypatch.setattr(aggregated_content, "_SLACK", 1)
    monkeypatch.setattr(retained, "_SLACK", 4)
    monkeypatch.setattr(keyed_content, "_FOLD_AT", 4)
    monkeypatch.setattr(aggregate_view, "_SLACK", 1)
    monkeypatch.setattr(aggregate_view, "_OVERFULL", 1)
    of = Identities.of

    def with_few_heads(texts: list[str]) -> Identities:
        identities = of(texts)
        return Identities(identities.heads % 4, identities.tails)

    monkeypatch.setattr(Identities, "of", with_few_heads)


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
        self.keys = sorted({text_of(each["user"]) for post in self.posts if (each := post.says(shape.pattern))})
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
        """Yield the answers, time going on step by step, each post handed in at some step before it is due, or late."""
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
        said = [(post.t, solution) for post in inside if (solution := post.says(self.shape.pattern)) is not None]
        return [
            (time, solution)
            for time, solution in said
            if all(holds({self.shape.of: pa.array([solution[self.shape.of]]).to_numpy()}).all() for holds in passes)
        ]

    def order(self, post: Post) -> tuple[Any, ...]:
        """Of two of one time the one with the greater terms counts, any more than none."""
        predicates = [triple.split()[0][1:] for triple in self.shape.pattern.split(" ", 1)[1].split(" ; ")]
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
                tuple(_python(row.bindings[each.variable]) for each in self.bound.plan.aggregate.columns),
                row.score,
            )
            for row in answer.rows
        ]

    def assert_right(self, answer: Answer, followers: dict[str, int]) -> None:
        assert [row[:2] for row in self.shown(answer)] == [row[:2] for row in self.right(answer, followers)]
        expected = [score for _, _, score in self.right(answer, followers)]
        assert [row.score for row in answer.rows] == pytest.approx(expected)

    def reach(self, answer: Answer) -> float:
        """Return the best merit that a key of the window with no value from the remote could have."""
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


@settings(max_examples=70, deadline=None)
@given(shapes)
def test_what_is_called_right_is_right(shape: Shape) -> None:
    replay = Replay(shape)
    for answer in replay.answers():
        operator = replay.query.operator
        assert isinstance(operator, Aggregated)
        operator._check()
        assert answer.spending.items <= shape.items
        has_late = "too late" in (answer.reason or "")
        if not shape.late:
            assert answer.counts.late == 0
            assert not has_late
        if answer.status is not Status.APPROXIMATE:
            replay.assert_right(answer, replay.known())
        if shape.joined and answer.status is not Status.APPROXIMATE:
            full = len(answer.rows) == shape.k
            assert replay.reach(answer) < (shape.sign * answer.rows[-1].score if full else -math.inf) or (
                replay.reach(answer) == -math.inf
            )
        if answer.status is Status.EXACT:
            replay.assert_right(answer, replay.remote.followers)
        if not shape.joined:
            assert answer.status is (Status.APPROXIMATE if has_late else Status.EXACT)
        event(f"{answer.status}, {'some' if answer.rows else 'no'} rows, {'joined' if shape.joined else 'alone'}")


@settings(max_examples=30, deadline=None)
@given(shapes)
def test_enough_budget_is_always_exact(shape: Shape) -> None:
    replay = Replay(replace(shape, items=1000, n=1000, policy=None, late=0))
    for answer in replay.answers():
        assert answer.status is Status.EXACT
        replay.assert_right(answer, replay.remote.followers)


@settings(max_examples=30, deadline=None)
@given(shapes)
def test_both_evaluations_give_the_same(shape: Shape) -> None:
    shape = replace(shape, items=1000, n=1000, policy=None, start=0)
    replay = Replay(shape)
    # Which of two arrivals of one subject and time counts, the two tell by different terms.
    replay.posts = list({(post.t, post.s): post for post in replay.posts}.values())
    found = bind_windowed(replay.bound.plan.windowed, shape.catalog(), text="")
    keepers = [
        Maintainer(SolutionStore(part.key, part.variables), replay.remote, Budget(1000, 1000, 5.0))
        for part in found.plan.remotes
    ]
    replay.query = Both(replay.query, Fed(SparqlEvaluation(found, keepers), found))
    for one, other in replay.answers():
        assert (one.window, one.closes_ms) == (other.window, other.closes_ms)
        # A late record that is no solution makes only the other uncertain.
        assert one.status is other.status or (one.status is Status.EXACT and shape.late)
        assert [row.score for row in one.rows] == pytest.approx([row.score for row in other.rows])
        assert one.counts.late <= other.counts.late
        last = one.rows[-1].score if one.rows else math.nan
        first = one.rows[0].score if one.rows else math.nan
        # Which of equals are shown at the ends, and in which order, is the other's own affair.
        ours, theirs = (
            {
                (name, row.bindings["user"].n3()): _value(term)
                for row in each.rows
                if min(abs(row.score - last), abs(row.score - first)) > 1e-6
                for name, term in row.bindings.items()
            }
            for each in (one, other)
        )
        assert ours.keys() == theirs.keys()
        for name in ours:
            assert ours[name] == (pytest.approx(theirs[name]) if isinstance(ours[name], float) else theirs[name])


def _value(term: Any) -> Any:
    return float(str(term)) if str(getattr(term, "datatype", "")) in (XSD + "double", XSD + "decimal") else term.n3()


def test_keys_that_have_left_all_windows_leave_nothing_behind() -> None:
    shape = plain(pattern="?post :mentions ?user", width=10, slide=5)
    query = ContinuousQuery(shape.bind(), None)
    for round_ in range(200):
        posts = [Post(1 + 5 * round_, f"s{round_}-{at}", f"u{round_}-{at}", None, None) for at in range(10)]
        query.add(STREAM, decoded(query._bound, posts))
        list(query.advance(STREAM, 1 + 5 * round_))
    operator = query.operator
    assert isinstance(operator, Aggregated)
    assert operator._content.codes.size <= 128
    assert sum(map(len, operator._content._retained._runs)) <= 60


def test_ties_at_the_border_go_by_the_key_s_text_whichever_came_first() -> None:
    shape = plain(pattern="?post :mentions ?user", k=2)
    query = ContinuousQuery(shape.bind(), None)
    query.add(STREAM, decoded(query._bound, [Post(1, "s1", "d", None, None), Post(1, "s2", "b", None, None)]))
    list(query.advance(STREAM, 3))
    posts = [Post(5, f"s{at}", user, None, None) for at, user in enumerate("dcab", start=3)]
    query.add(STREAM, decoded(query._bound, posts))
    (*_, answer) = query.advance(STREAM, 12)
    assert [str(row.bindings["user"]) for row in answer.rows] == ["a", "b"]


def test_a_newer_arrival_of_a_subject_moves_it_to_another_key_or_to_none() -> None:
    shape = plain(pattern="?post :mentions ?user ; :x ?x", width=9, slide=3, k=5, columns=3, score="?s - 2 * ?n")
    query = ContinuousQuery(shape.bind(), None)
    posts = [Post(1, "p", "ann", 5, None), Post(2, "q", "ann", 7, None), Post(4, "p", "bob", 6, None)]
    query.add(STREAM, decoded(query._bound, [*posts, Post(8, "q", None, 1, None), Post(18, "z", None, None, None)]))
    shown = [
        {str(row.bindings["user"]): int(row.bindings["s"]) for row in answer.rows}
        for answer in query.advance(STREAM, 18)
    ]
    assert shown == [{"ann": 12}, {"ann": 7, "bob": 6}, {"bob": 6}, {"bob": 6}, {}, {}]


@pytest.mark.parametrize("score", ["?s - 2 * ?n", "?n", "?a + ?n / 4"])
def test_a_sum_beyond_64_bits_is_an_error_to_both(score: str) -> None:
    shape = plain(columns=7, score=score, start=0)
    query = ContinuousQuery(shape.bind(), None)
    windowed = bind_windowed(query._bound.plan.windowed, shape.catalog(), text="")
    other = Fed(SparqlEvaluation(windowed), windowed)
    posts = [Post(at, user, None, 2**62, None) for at, user in enumerate("aabc", start=1)]
    posts.append(Post(5, "a", None, 2**62 + 2**20, None))
    for each in (query, other):
        each.add(STREAM, decoded(query._bound, posts))
    for one, its in zip(query.advance(STREAM, 9), other.advance(STREAM, 9), strict=True):
        shown = [{row.bindings["user"]: sorted(row.bindings) for row in each.rows} for each in (one, its)]
        assert shown[0] == shown[1]
        assert len(one.rows) == (3 if score == "?n" else 2)


def test_what_the_condition_on_an_aggregate_leaves_out_is_not_asked_for() -> None:
    shape = plain(pattern="?post :mentions ?user", joined=True, having="FILTER(?n > 1)", items=1, columns=1)
    remote = Table({'"a"': 9, '"b"': 3})
    query = ContinuousQuery(shape.bind(), Maintainer(ReplicaStore("user", ["followers"]), remote, Budget(1, 1, 5.0)))
    posts = [Post(1, f"s{at}", user, None, None) for at, user in enumerate("abbcdefg")]
    query.add(STREAM, decoded(query._bound, posts))
    (answer,) = query.advance(STREAM, 3)
    assert [str(row.bindings["user"]) for row in answer.rows] == ["b"]
    assert answer.status is Status.EXACT
    assert answer.counts.unscored == 0


def test_absent_keys_whose_time_has_not_come_hide_none_whose_has() -> None:
    shape = plain(pattern="?post :mentions ?user", joined=True)
    store = ReplicaStore("user", ["followers"])
    query = ContinuousQuery(shape.bind(), Maintainer(store, Table({}), Budget(0, 0, 5.0)))
    posts = [Post(1, f"s{at}", user, None, None) for at, user in enumerate("aaabbcd")]
    query.add(STREAM, decoded(query._bound, posts))
    (answer,) = query.advance(STREAM, 3)
    for user, asked_at in (("a", 100.0), ("b", 100.0), ("c", 1.0), ("d", 2.0)):
        store.put([f'"{user}"'], [], asked_at)
    query.operator.apply_changes([f'"{user}"' for user in "abcd"])
    wanted = query.operator.wanted(answer.window + 1, Inquiry(2, absent_before=50.0))
    assert (wanted.unknown, wanted.absent) == ([], ['"c"', '"d"'])


def test_of_many_keys_that_differ_what_they_could_reach_is_never_understated() -> None:
    shape = plain(joined=True, columns=7, score="?s - 2 * ?n", bounded=True)
    scoring = ReplicaScoring(shape.bind().plan.score, ReplicaStore("user", ["followers"]))
    chance = np.random.default_rng(3)
    parts = tuple(np.append(chance.integers(-99, 99, 2_000), math.nan).astype(float) for _ in range(2))
    reaches = scoring.reaches(parts, 2_001)
    each = [scoring.reach(point, point) for point in zip(*(part.tolist() for part in parts), strict=True)]
    assert (reaches[:-1] >= each[:-1]).all()
    assert reaches[-1] == math.inf
    few = tuple(part[:100] for part in parts)
    assert scoring.reaches(few, 100).tolist() == each[:100]


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


@pytest.mark.parametrize(
    ("pattern", "columns", "arrivals", "solutions", "said"),
    [
        ("?p :mentions ?user", "(SUM(?user) AS ?n)", "all", "", "SUM needs a number in ?user"),
        ("?user :x ?x", "(SUM(?user) AS ?n)", "all", "", "SUM needs a number in ?user"),
        ("?p :y ?user", "(COUNT(*) AS ?n)", "all", "", "a double on the stream"),
        ("?p :mentions ?user ; :x ?x", "(COUNT(*) AS ?n)", "all", "", "latest arrivals count"),
        ("?p :x ?x . ?q :mentions ?user", "(COUNT(*) AS ?n)", "latest", "", "share their subject"),
        ("?p :mentions ?user FILTER(?user > 3)", "(COUNT(*) AS ?n)", "all", "", "not a number on the stream"),
        ("?user :x ?x", "(COUNT(*) AS ?n)", "all", 'solutions = "many"', "several solutions at the remote"),
    ],
)
def test_what_is_not_kept_up_to_date_is_evaluated_by_window_and_it_is_said_why(
    pattern: str, columns: str, arrivals: str, solutions: str, said: str
) -> None:
    text = TEXT.format(
        names="?n",
        followers="",
        score="?n * 2",
        width=9,
        slide=3,
        columns=columns,
        pattern=pattern,
        filtered="",
        service="SERVICE :people { ?user :followers ?followers }" if solutions else "",
        having="",
        direction="DESC",
        k=3,
        offset=0,
    )
    catalog = CATALOG.format(arrivals=arrivals, start="", solutions=solutions, policy="", n=0, items=0)
    found = bind_query(text, Catalog.parse(catalog, file=Path("catalog.toml"), variables={}))
    assert isinstance(found, BoundWindowed)
    assert found.reason is not None
    assert said in found.reason.message + (found.reason.hint or "")
