"""Sums that come from executors as hashes: the same answers, whatever happens to the executors."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from acquatop.ingest.reduce.contract import Part
from acquatop.ingest.reduce.job import Job
from acquatop.ingest.reduce.sent_partials import received
from acquatop.ingest.solution_columns import KEY
from acquatop.query.aggregates import content as aggregated_content
from acquatop.query.contract import Tick
from acquatop.query.evaluation import TopKEvaluation
from tests.support.executors import Executors
from tests.support.queries.aggregated import Post, Shape, plain, shapes
from tests.support.queries.twins import Twins
from tests.support.worlds import STREAM


class InParts:
    """Work of a task: the parts of some lines, as bytes."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def __call__(self, lines: Sequence[bytes]) -> list[bytes]:
        batch = pa.record_batch([pa.array(lines, pa.binary())], ["value"])
        return [part.to_bytes() for part in self._job([batch])]


class InDriver(Twins):
    """One query twice, both with the keys in the driver."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape, Path("unused"))

    def scattered(self) -> TopKEvaluation:
        return TopKEvaluation(self.bound, self.keeper())


class Lives:
    """A query whose records come from executors, and which is killed and goes on; and one here."""

    def __init__(self, twins: InDriver, executors: Executors) -> None:
        self.twins = twins
        self.executors = executors
        self.here, self.there = twins.groups
        self.parts: list[Part] = []
        self.since: list[Any] = []
        """Steps since the snapshot, as a journal holds them."""
        self.snapshot = self.there.snapshot()
        self.ahead: Sequence[list[bytes]] | None = None
        """Parts of the next batch, if it was reduced before the last was added."""

    def batch(
        self,
        partitions: Sequence[Sequence[Post]],
        watermark: int = 0,
        following: Sequence[Sequence[Post]] | None = None,
    ) -> None:
        """Take in a batch here and there: one job for all its partitions.

        The ``following`` one is reduced before that, if that is possible.
        """
        here = InParts(self.job(self.here))
        for each in _lines(partitions):
            self.here.add(STREAM, _parts(here(each)), self.here.names)
        sent, self.ahead = self.ahead, None
        if sent is None:
            sent = self.executors.run(InParts(self.job(self.there)), _lines(partitions))
        if following is not None:
            self.read_ahead(following, watermark)
        for each in sent:
            self.since.append(each)
            self.parts += _parts(each)
            self.there.add(STREAM, _parts(each), self.there.names)

    def read_ahead(self, following: Sequence[Sequence[Post]], watermark: int) -> None:
        reducers = self.there.reducers_ahead(STREAM, watermark)
        if reducers is None:
            event("keys are to be released first")
        else:
            work = InParts(Job(self.twins.bound.stream.mapping, reducers))
            self.ahead = self.executors.run(work, _lines(following))
            event("read ahead")

    def job(self, group: TopKEvaluation) -> Job:
        return Job(self.twins.bound.stream.mapping, group.reducers(STREAM))

    def advance(self, watermark: int) -> Iterator[tuple[Any, Any]]:
        self.twins.now += 1.0
        here, there = (
            list(group.advance(Tick(STREAM, watermark, 0.0))) for group in (self.here, self.there)
        )
        self.since.append(watermark)
        if there:
            self.save()
        yield from zip(here, there, strict=True)

    def save(self) -> None:
        self.snapshot, self.since = self.there.snapshot(), []

    def die(self) -> None:
        """Go on from the last snapshot and the journal, with executors that have kept values."""
        self.ahead = None
        self.there = self.twins.scattered()
        self.there.resume(self.snapshot)
        assert self.there.resume_query(self.twins.bound)
        for step in self.since:
            if isinstance(step, int):
                assert not list(self.there.advance(Tick(STREAM, step, 0.0)))
            else:
                self.there.add(STREAM, _parts(step), self.there.names)


def _lines(partitions: Sequence[Sequence[Post]]) -> list[list[bytes]]:
    return [[post.line() for post in posts] for posts in partitions]


def _parts(sent: Sequence[bytes]) -> list[Part]:
    return [Part.from_bytes(each) for each in sent]


@settings(max_examples=25, deadline=None)
@given(shapes, st.integers(0, 2**32), st.sampled_from([1, 400, 1 << 20]))
def test_answers_are_the_same_bytes(shape: Shape, seed: int, large: int) -> None:
    chance = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregated_content, "SLACK", 1)
        twins = InDriver(shape)
        lives = Lives(twins, Executors(chance, patch, large))
        steps = list(twins.steps())
        for at, (watermark, partitions) in enumerate(steps):
            following = steps[at + 1][1] if at + 1 < len(steps) and chance.random() < 0.6 else None
            lives.batch(partitions, watermark, following)
            if chance.random() < 0.2 and not shape.joined:
                lives.die()
            twins.change_remote()
            for here, there in lives.advance(watermark):
                assert there.canonical() == here.canonical()
                assert there.counts == here.counts
            if chance.random() < 0.2:
                lives.save()
        for part in lives.parts:
            event("without a text" if received(part.table).column(KEY).null_count else "with all")


def test_a_text_comes_once_while_its_key_is_held() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregated_content, "SLACK", 0)
        twins = InDriver(plain(width=4, slide=2))
        lives = Lives(twins, Executors(random.Random(1), patch))
        for time_ms, said in ((1, "a"), (2, "ab"), (3, "ba"), (20, "c"), (40, "c"), (60, "ca")):
            lives.batch([[Post(time_ms, key, None, 1, None) for key in said]])
            for here, there in lives.advance(time_ms):
                assert there.canonical() == here.canonical()
    texts = [received(part.table).column(KEY).to_pylist() for part in lives.parts]
    assert [len([text for text in each if text is not None]) for each in texts] == [
        1, 1, 0, 1, 0, 1
    ]  # fmt: skip
