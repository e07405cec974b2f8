"""Random streams joined with a changing remote, and the right answers by brute force."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import strategies as st

from acquatop.answer.answer import Answer
from acquatop.plan.bound import BoundQuery
from tests.support.single_query import ContinuousQuery
from tests.support.worlds import (
    STREAM,
    Event,
    TableRemote,
    bound,
    brute_force,
    catalog_text,
    continuous,
    query_text,
    records,
    user_term,
)

USERS = "abcdefghijkl"


SPAN = 40


@dataclass(frozen=True)
class Shape:
    """One kind of query on one kind of stream; the seed fills it with events and changes."""

    seed: int
    events: int
    users: int
    values: int
    changes: float
    width: int
    slide: int
    k: int
    n: int
    items: int
    arrivals: str
    descending: bool
    policy: str | None
    start: int | None
    preload: bool
    bounded: bool
    refill: bool = False

    @property
    def sign(self) -> int:
        return 1 if self.descending else -1

    def cannot_reach(self, answer: Answer, mentions: int) -> bool:
        """Say whether a user with these mentions stays below all results,
        however many follow her.
        """
        best = 2 * mentions + (8 if self.descending else 0)
        return (
            self.bounded and len(answer.rows) == self.k and best < self.sign * answer.rows[-1].score
        )

    @property
    def remote_part(self) -> str:
        """The remote's part of the score, with or without a bound on what it can be."""
        return "8 * norm(?followers, 0, 8)" if self.bounded else "?followers"

    def bind(self) -> BoundQuery:
        text = query_text(
            width=self.width,
            slide=self.slide,
            k=self.k,
            direction="DESC" if self.descending else "ASC",
            score=f"2 * ?mentions + {self.remote_part}"
            if self.descending
            else f"{self.remote_part} - 2 * ?mentions",
        )
        start = "" if self.start is None else f"start_ms = {self.start}"
        catalog = catalog_text(
            arrivals=self.arrivals,
            n=self.n,
            refill=str(self.refill).lower(),
            items=self.items,
            requests=9,
            policy=self.policy,
            start=start,
        )
        return bound(text, catalog)


shapes = st.builds(
    Shape,
    seed=st.integers(0, 2**32),
    events=st.integers(0, 150),
    users=st.integers(1, len(USERS)),
    values=st.sampled_from([1, 3, 20]),
    changes=st.sampled_from([0, 0.1, 0.5, 2]),
    width=st.integers(1, 20),
    slide=st.integers(1, 12),
    k=st.integers(1, 4),
    n=st.integers(0, 3),
    items=st.integers(0, 12),
    arrivals=st.sampled_from(["all", "latest"]),
    descending=st.booleans(),
    policy=st.sampled_from([None, "AT-TSM", "AT-BSM", "AT-LRU", "AT-WST"]),
    start=st.none() | st.integers(0, 10),
    preload=st.booleans(),
    bounded=st.booleans(),
    refill=st.booleans(),
)


class Replay:
    """A query at work on a stream and a remote that chance has made."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.random = random.Random(shape.seed)
        users = USERS[: shape.users]
        self.events = [
            Event(self.random.randint(0, SPAN), self.random.choice(users), self.mentions())
            for _ in range(shape.events)
        ]
        self.remote = TableRemote(
            {user: self.random.randint(0, shape.values) for user in users if user != "c"}
        )
        self.bound = shape.bind()
        self.query = continuous(self.bound, self.remote)
        if shape.preload:
            self.query.maintainer.load()

    def mentions(self) -> int | None:
        return None if self.random.random() < 0.1 else self.random.randint(0, self.shape.values)

    def change_remote(self) -> None:
        for user in USERS[: self.shape.users]:
            if self.random.random() < self.shape.changes / self.shape.users:
                if self.random.random() < 0.2:
                    self.remote.followers.pop(user, None)
                else:
                    self.remote.followers[user] = self.random.randint(0, 2 * self.shape.values)

    def answers(self) -> Iterator[Answer]:
        """Yield the answers, time going on step by step,
        each event handed in at some step before it is due.
        """
        waiting = sorted(self.events, key=lambda each: each.t)
        for watermark in range(SPAN + 2 * self.shape.width):
            due = [each for each in waiting if each.t <= watermark or self.random.random() < 0.05]
            waiting = [each for each in waiting if each not in due]
            self.random.shuffle(due)
            self.query.add(STREAM, records(self.bound, due))
            self.change_remote()
            yield from self.query.advance(STREAM, watermark)

    def right(self, answer: Answer, followers: dict[str, int]) -> list[tuple[str, int, int]]:
        shape = self.shape
        latest = shape.arrivals == "latest"
        if shape.bounded:
            followers = {user: min(8, count) for user, count in followers.items()}
        return brute_force(
            self.events,
            answer.opens_ms,
            answer.closes_ms,
            followers,
            k=shape.k,
            latest=latest,
            sign=shape.sign,
        )


def known_followers(query: ContinuousQuery) -> dict[str, int]:
    terms = {user: query.maintainer.store.term("followers", user_term(user)) for user in USERS}
    return {user: int(term.split('"')[1]) for user, term in terms.items() if term is not None}


def shown(answer: Answer) -> list[tuple[str, int, int]]:
    return [
        (
            str(row.bindings["user"]).rsplit("/", 1)[1],
            int(row.bindings["mentions"]),
            round(row.score),
        )
        for row in answer.rows
    ]
