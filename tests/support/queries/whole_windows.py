"""Random queries over whole windows, and the right answers by brute force."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from string import Template
from typing import Any

import pyoxigraph as ox
from hypothesis import strategies as st

from acquatop.answer.answer import Answer
from acquatop.plan.bound import BoundWindowed
from tests.support.windowed import Record, at_work, batch, bound, brute_force, content
from tests.support.worlds import NS

A, B = NS + "a", NS + "b"


SUBJECTS = "klmn"


SPAN = 30


V = "FROM NAMED WINDOW :v ON :a [RANGE ${width}ms STEP ${slide}ms]"


W = "FROM NAMED WINDOW :w ON :$other [RANGE ${width2}ms STEP ${slide2}ms]"


PEOPLE = "SERVICE :people { ?s :friend ?f }"


QUERIES = [
    f"SELECT ?s ?p ?r {V} WHERE {{ WINDOW :v {{ ?s :p ?p OPTIONAL {{ ?s :r ?r }} }} }}",
    f"SELECT ?s (SUM(?q) AS ?sum) (COUNT(*) AS ?n) {V} WHERE {{ WINDOW :v "
    f"{{ ?s :p ?p ; :q ?q }} }} GROUP BY ?s",
    f"SELECT ?s ?f {V} WHERE {{ WINDOW :v {{ ?s :p ?p }} {PEOPLE} }}",
    f"SELECT DISTINCT ?f {V} WHERE {{ WINDOW :v {{ ?s ?x ?p }} OPTIONAL {{ {PEOPLE} }} }}",
    f"SELECT ?s ?t {V} {W} WHERE {{ WINDOW :v {{ ?s :p ?p }} WINDOW :w {{ ?t :p ?p }} "
    f"FILTER(?s != ?t) }}",
    f"SELECT * {V} {W} WHERE {{ WINDOW :v {{ ?s :p ?p }} MINUS {{ WINDOW :w {{ ?s :p ?p }} }} }}",
    f"SELECT ?s {V} {W} WHERE {{ {{ WINDOW :v {{ ?s :p 1 }} }} UNION {{ WINDOW :w "
    f"{{ ?s :p 2 }} }} }}",
    f"SELECT ?s {W} WHERE {{ WINDOW :w {{ ?s :p ?p }} MINUS {{ {PEOPLE} }} }}",
    f"ASK {V} WHERE {{ WINDOW :v {{ ?s :p ?p ; :r 'x' }} }}",
    f"CONSTRUCT {{ ?s :knows ?f . ?f :p ?p }} {V} WHERE {{ WINDOW :v {{ ?s :p ?p }} {PEOPLE} }}",
]


@dataclass(frozen=True)
class Shape:
    """One query over two streams; the seed fills them with records and cuts them into batches."""

    seed: int
    query: str
    records: int
    width: int
    slide: int
    width2: int
    slide2: int
    other: str
    lateness: int
    arrivals: str
    start: int | None
    items: int
    policy: str | None
    load: bool

    def bind(self) -> BoundWindowed:
        start = "" if self.start is None else f"start_ms = {self.start}"
        text = Template(self.query).substitute(vars(self))
        return bound(
            text,
            arrivals=self.arrivals,
            start=start,
            items=self.items,
            policy=self.policy,
            # What is tested is no matter of time: a busy machine may answer late.
            deadline="1h",
        )


shapes = st.builds(
    Shape,
    seed=st.integers(0, 2**32),
    query=st.sampled_from(QUERIES),
    records=st.integers(0, 60),
    width=st.integers(1, 15),
    slide=st.integers(1, 12),
    width2=st.integers(1, 15),
    slide2=st.integers(1, 12),
    other=st.sampled_from("ab"),
    lateness=st.integers(1, 6),
    arrivals=st.sampled_from(["all", "latest"]),
    start=st.none() | st.integers(0, 10),
    items=st.sampled_from([0, 1, 3, 99]),
    policy=st.sampled_from([None, "AT-LRU", "WSJ-WBM", "AT-BSM"]),
    load=st.booleans(),
)


def some_records(chance: random.Random, count: int) -> list[Record]:
    return [
        Record(
            chance.randint(0, SPAN),
            chance.choice(SUBJECTS),
            chance.choice([None, 1, 2, 3]),
            chance.choice([None, 0.5, 2.0]),
            chance.choice([None, "x", 'y "z"']),
        )
        for _ in range(count)
    ]


class Replay:
    """A query at work on two streams and a remote that chance has made."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        chance = random.Random(shape.seed)
        self.bound = shape.bind()
        self.streams = {
            stream.iri: some_records(
                chance, shape.records if stream.iri == A else shape.records // 2
            )
            for stream in self.bound.streams
        }
        self.remote = ox.Store()
        for subject in SUBJECTS:
            for friend in chance.sample(SUBJECTS, chance.choice([0, 0, 1, 3])):
                self.befriend(subject, friend)

    def befriend(self, subject: str, friend: str) -> None:
        self.remote.add(
            ox.Quad(
                ox.NamedNode(NS + subject), ox.NamedNode(NS + "friend"), ox.NamedNode(NS + friend)
            )
        )

    def answers(self, cut_seed: int, *, changes: bool = False) -> Iterator[Answer]:
        """Yield the answers, each stream cut into batches by chance and out of order as far
        as the lateness goes.
        """
        chance = random.Random(cut_seed)
        query, _ = at_work(self.bound, self.remote, load=self.shape.load)
        lateness = self.shape.lateness
        pending = {
            stream: sorted(records, key=lambda each: each.t + chance.random() * lateness)
            for stream, records in self.streams.items()
        }
        newest: dict[str, int] = {}
        running = list(pending)
        while running:
            stream = chance.choice(running)
            due = [
                pending[stream].pop(0)
                for _ in range(min(len(pending[stream]), chance.randint(1, 9)))
            ]
            if due:
                newest[stream] = max(newest.get(stream, 0), *(each.t for each in due))
                query.add(stream, batch(self.bound, stream, due))
                yield from self.advance(
                    query.advance(stream, newest[stream] - lateness), chance if changes else None
                )
            else:
                running.remove(stream)
                yield from self.advance(query.finish(stream), chance if changes else None)

    def advance(self, answers: Iterator[Answer], chance: random.Random | None) -> Iterator[Answer]:
        for answer in answers:
            yield answer
            if chance:
                self.befriend(chance.choice(SUBJECTS), chance.choice(SUBJECTS))

    def contents(self, answer: Answer) -> dict[str, list[ox.Triple]]:
        """Return what each window must show: what it held at its latest close until now."""
        contents = {}
        for window in self.bound.windows:
            start, records = window.windows.t0_ms, self.streams[window.stream.iri]
            width, slide = window.windows.width_ms, window.windows.slide_ms
            opens = [each for each in range(-50, 200) if (each - (start or 0)) % slide == 0]
            closes = [each + width for each in opens if start is None or each >= start]
            first = min((each.t for each in records), default=10**6)
            closed = [
                each
                for each in closes
                if each <= answer.closes_ms and (start is not None or each >= first)
            ]
            latest = window.stream.arrivals == "latest"
            shown = (
                content(records, closed[-1] - width, closed[-1], latest=latest) if closed else []
            )
            contents[window.name] = shown
        return contents

    def right(self, answer: Answer) -> Any:
        return brute_force(self.bound, self.contents(answer), self.remote)
