"""One query twice: its keys in the driver, and in executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from acquatop.answer.answer import Answer
from acquatop.ingest.buckets.task import Bucket, BucketFound, BucketTask
from acquatop.ingest.identity_hash import IdentityHash
from acquatop.ingest.reduce.contract import Part
from acquatop.ingest.reduce.job import reduced
from acquatop.plan.bound import BoundQuery
from acquatop.query.aggregates.executor_content import ExecutorAggregates
from acquatop.query.aggregates.moving import Move
from acquatop.query.aggregates.on_executors import scattered_content as scattered
from acquatop.query.contract import Tick
from acquatop.query.evaluation import TopKEvaluation
from replica.budget import Budget
from replica.maintainer import Maintainer
from replica.store import ReplicaStore
from tests.support.queries.aggregated import SPAN, Post, Replay, Shape, decoded
from tests.support.worlds import STREAM


def in_process(task: BucketTask, buckets: Sequence[Bucket]) -> Sequence[BucketFound]:
    """Do all tasks here, one after the other."""
    return list(map(task, buckets))


class Twins(Replay):
    """One query twice, its keys here and there; with ``move`` there only once they are many."""

    def __init__(
        self,
        shape: Shape,
        folder: Path,
        buckets: int = 3,
        *,
        move: bool = False,
        durable: bool = True,
    ) -> None:
        super().__init__(replace(shape, distinct=True))
        stream = replace(self.bound.stream, keys="auto" if move else "executors", buckets=buckets)
        self.moves, self.durable = move, durable
        self.folder = folder
        self.there: BoundQuery = replace(self.bound, stream=stream)
        self.now = 0.0
        self.groups = [TopKEvaluation(self.bound, self.keeper()), self.scattered()]
        for group in self.groups:
            group.join(self.bound, {})
        self.query = self

    def keeper(self) -> Maintainer[ReplicaStore] | None:
        shape = self.shape
        if not shape.joined:
            return None
        store = ReplicaStore("user", ["user", "followers"])
        budget = Budget(shape.items, max(9, shape.items), 5.0)
        keeper = Maintainer(store, self.remote, budget, now=lambda: self.now)
        if shape.preload:
            keeper.load()
        return keeper

    def scattered(self) -> TopKEvaluation:
        keeper = self.keeper()

        def scatter(hashes: IdentityHash | None = None) -> ExecutorAggregates:
            return scattered(
                self.there, keeper, self.folder, in_process, durable=self.durable, hashes=hashes
            )

        if self.moves:
            return TopKEvaluation(self.there, keeper, move=Move(scatter, lambda: True))
        return TopKEvaluation(self.there, keeper, scattered=scatter())

    def steps(self) -> Iterator[tuple[int, list[list[Post]]]]:
        """Yield how far time has come, and what has come until then, cut into partitions."""
        waiting, chance = sorted(self.posts, key=lambda each: each.t), self.random
        for watermark in range(0, SPAN + 2 * self.shape.width, 4):
            due = [each for each in waiting if each.t <= watermark or chance.random() < 0.05]
            due = [each for each in due if chance.random() >= self.shape.late]
            waiting = [each for each in waiting if each not in due]
            chance.shuffle(due)
            cut = chance.randint(0, len(due))
            yield watermark, [part for part in (due[:cut], due[cut:]) if part]

    def answers(self) -> Iterator[Any]:
        for watermark, partitions in self.steps():
            for posts in partitions:
                self.add(STREAM, decoded(self.bound, posts))
            self.change_remote()
            yield from self.advance(STREAM, watermark)

    def add(self, stream: str, records: Any) -> None:
        for group in self.groups:
            parts = [
                Part.from_bytes(part.to_bytes())
                for part in reduced(records, group.reducers(STREAM))
            ]
            group.add(STREAM, parts, group.names)

    def advance(self, stream: str, watermark: int) -> Iterator[list[Answer]]:
        self.now += 1.0
        yield from map(
            list,
            zip(
                *(group.advance(Tick(STREAM, watermark, 0.0)) for group in self.groups), strict=True
            ),
        )
