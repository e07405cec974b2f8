"""Solutions that executors leave out: answers are those of all solutions."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import event, given, settings
from hypothesis import strategies as st
from pyspark import cloudpickle

from acquatop.answer.answer import Answer
from acquatop.catalog.catalog import Catalog
from acquatop.ingest.reduce.contract import Part, Reducer
from acquatop.ingest.reduce.job import reduced
from acquatop.ingest.unscored import LIMIT
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundQuery
from acquatop.query.contract import Tick
from acquatop.query.evaluation import TopKEvaluation
from tests.support.markers import THOROUGH
from tests.support.worlds import STREAM, Event, catalog_text, records

SPAN = 30
USERS = "abcdefgh"
SCORES = ("2 * ?mentions", "10 / ?mentions", "?mentions - 3", "0 * ?mentions")
"""One is an error for some solutions, one is the same for all."""

TEXT = """PREFIX : <http://example.org/>
SELECT ?user ?mentions ({score} AS ?score)
FROM NAMED WINDOW :w ON :stream [RANGE {width}ms STEP {slide}ms]
WHERE {{ WINDOW :w {{ ?user :mentions ?mentions }} }}
ORDER BY {direction}(?score) LIMIT {k}"""


@dataclass(frozen=True)
class Shape:
    """Queries over the same windows, and a stream; the seed fills it with events."""

    seed: int
    events: int
    users: int
    values: int
    width: int
    slide: int
    limits: tuple[tuple[int, str, str], ...]
    arrivals: str
    late: float
    partitions: int

    def bind(self) -> list[BoundQuery]:
        catalog = Catalog.parse(
            catalog_text(arrivals=self.arrivals), file=Path("c.toml"), variables={}
        )
        found = []
        for number, (k, score, direction) in enumerate(self.limits):
            text = TEXT.format(
                k=k, score=score, direction=direction, width=self.width, slide=self.slide
            )
            bound = bind_query(text, catalog, name=f"q{number}")
            assert isinstance(bound, BoundQuery)
            found.append(bound)
        return found


shapes = st.builds(
    Shape,
    seed=st.integers(0, 2**32),
    events=st.integers(0, 150),
    users=st.integers(1, len(USERS)),
    values=st.sampled_from([1, 3, 20]),
    width=st.integers(1, 15),
    slide=st.integers(1, 9),
    limits=st.lists(
        st.tuples(st.integers(1, 4), st.sampled_from(SCORES), st.sampled_from(["ASC", "DESC"])),
        min_size=1,
        max_size=2,
    ).map(tuple),
    arrivals=st.sampled_from(["all", "latest"]),
    late=st.sampled_from([0, 0, 0.1]),
    partitions=st.integers(1, 3),
)


class Everything:
    """Reducer that sends all solutions, as text: what journals of older versions hold."""

    def __init__(self, other: Reducer) -> None:
        self.matcher, self.windows = other.matcher, other.windows

    def reduce(self, records: pa.RecordBatch, found: object) -> pa.Table:
        assert self.matcher is not None
        return self.matcher.match(records)


class Replay:
    """Queries at work, fed in partitions; with ``everything``, nothing is left out."""

    def __init__(self, shape: Shape, *, everything: bool = False) -> None:
        self.bound = shape.bind()
        self.evaluation = TopKEvaluation(self.bound[0], None)
        self.everything = everything
        self.sent = 0
        for each in self.bound:
            self.evaluation.join(each, {})

    def add(self, events: Sequence[Event]) -> None:
        """Hand in events as an executor would: the reducers travel there, the parts back."""
        reducers = cloudpickle.loads(cloudpickle.dumps(self.evaluation.reducers(STREAM)))
        if self.everything:
            reducers = [Everything(each) for each in reducers]
        parts = list(reduced(records(self.bound[0], events), reducers))
        self.sent += sum(len(part.table) for part in parts)
        back = [Part.from_bytes(part.to_bytes()) for part in parts]
        self.evaluation.add(STREAM, back, self.evaluation.names)

    def advance(self, watermark: int) -> list[Answer]:
        return list(self.evaluation.advance(Tick(STREAM, watermark, 0.0)))


def steps(shape: Shape) -> Iterator[tuple[list[Event], int]]:
    """Yield the events that come at each time, some of them late, and the watermark after them."""
    chance = random.Random(shape.seed)
    users = USERS[: shape.users]
    waiting = [
        Event(
            chance.randint(0, SPAN),
            chance.choice(users),
            None if chance.random() < 0.1 else chance.randint(0, shape.values),
        )
        for _ in range(shape.events)
    ]
    for watermark in range(0, SPAN + 2 * shape.width, chance.choice([1, 1, 4, 40])):
        due = [
            each
            for each in waiting
            if (each.t <= watermark or chance.random() < 0.1) and chance.random() >= shape.late
        ]
        waiting = [each for each in waiting if each not in due]
        chance.shuffle(due)
        yield due, watermark


def told(answers: Sequence[Answer]) -> list[object]:
    return [each.canonical() for each in answers]


@THOROUGH
@settings(max_examples=20)
@given(shapes)
def test_what_is_left_out_changes_no_answer(shape: Shape) -> None:
    sparing, everything = Replay(shape), Replay(shape, everything=True)
    chance = random.Random(shape.seed + 1)
    for events, watermark in steps(shape):
        everything.add(events)
        cuts = sorted(chance.randint(0, len(events)) for _ in range(shape.partitions - 1))
        for start, stop in zip([0, *cuts], [*cuts, len(events)], strict=True):
            sparing.add(events[start:stop])
        assert told(sparing.advance(watermark)) == told(everything.advance(watermark))
    assert sparing.sent <= everything.sent
    event(f"{shape.arrivals}, {'fewer' if sparing.sent < everything.sent else 'as many'} sent")


def test_what_waits_is_thinned_out() -> None:
    shape = Shape(0, 0, 1, 1, 10, 10, ((3, SCORES[0], "DESC"),), "all", 0, 1)
    sparing, everything = Replay(shape), Replay(shape, everything=True)
    sizes = []
    for batch in range(9):
        events = [Event(1 + at % 9, f"u{batch}-{at}", 7 * batch + at) for at in range(500)]
        sparing.add(events)
        everything.add(events)
        sizes.append(len(everything.evaluation.snapshot()))
    assert sizes[-1] < sizes[0] < sizes[-2]
    assert sparing.sent == 9 * 3
    assert told(sparing.advance(20)) == told(everything.advance(20)) != []


def test_many_solutions_without_a_score_are_counted_once_each() -> None:
    shape = Shape(0, 0, 1, 1, 10, 10, ((2, SCORES[1], "DESC"),), "all", 0, 1)
    sparing, everything = Replay(shape), Replay(shape, everything=True)
    zeros = [Event(1 + at % 2, f"u{at % (LIMIT + 5)}", 0) for at in range(2 * LIMIT + 9)]
    for replay in (sparing, everything):
        replay.add([*zeros, Event(2, "a", 5)])
        replay.add(zeros[:7])
    assert sparing.sent < everything.sent
    (answer,), others = sparing.advance(10), everything.advance(10)
    assert told([answer]) == told(others)
    assert answer.counts.unscored == LIMIT


class Sent:
    """Bytes that one batch of 200 000 events sends, and the answers."""

    def __init__(self, arrivals: str, *, users: int, everything: bool = False) -> None:
        shape = Shape(0, 0, 1, 1, 60_000, 20_000, ((5, SCORES[0], "DESC"),), arrivals, 0, 1)
        self.bound = shape.bind()[0]
        evaluation = TopKEvaluation(self.bound, None)
        evaluation.join(self.bound, {})
        chance = np.random.default_rng(0)
        numbers = (
            np.arange(200_000) if arrivals == "distinct" else chance.integers(0, users, 200_000)
        )
        found = pa.record_batch(
            {
                "time_ms": np.sort(chance.integers(1, 60_000, 200_000)),
                "subject": pa.array([f"<http://example.org/user/{each}>" for each in numbers]),
                "p0": chance.integers(0, 1_000_000, 200_000),
                "bad": pa.nulls(200_000, pa.string()),
            }
        )
        reducers = evaluation.reducers(STREAM)
        if everything:
            reducers = [Everything(each) for each in reducers]
        (part,) = reduced(found, reducers)
        data = part.to_bytes()
        self.unpacked = part.nbytes
        self.bytes = len(data)
        evaluation.add(STREAM, [Part.from_bytes(data)], evaluation.names)
        self.answers = list(evaluation.finish(STREAM))


def test_all_arrivals_send_as_little_as_distinct_ones() -> None:
    every, distinct = Sent("all", users=100_000), Sent("distinct", users=100_000)
    assert every.bytes <= 2 * distinct.bytes < 20_000
    assert all(len(each.rows) == 5 for each in every.answers[:3])


def test_of_latest_arrivals_each_subject_is_sent_once_per_pane() -> None:
    assert Sent("latest", users=1_000).bytes < 50_000


def test_solutions_are_sent_in_a_twentieth_of_their_terms() -> None:
    sparing, everything = (Sent("latest", users=100_000, everything=each) for each in (False, True))
    assert 20 * sparing.bytes < everything.unpacked
    assert told(sparing.answers) == told(everything.answers) != []
