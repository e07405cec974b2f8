"""A single top-k query: records in, an answer out at every window close."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from acquatop.plan.bound import BoundQuery
from acquatop.query.evaluation import TopKEvaluation
from acquatop.refresh.open_replicas import Joined
from replica.clocks import Clock
from replica.rankers import DEFAULT_RANKERS, RankerRegistry
from tests.support.fed import Fed


class ContinuousQuery(Fed):
    """The evaluation of one query, which has joined."""

    def __init__(
        self,
        bound: BoundQuery,
        maintainer: Joined | None,
        *,
        clock: Clock = time.monotonic,
        wall_clock: Clock = time.time,
        rankers: RankerRegistry = DEFAULT_RANKERS,
        random: np.random.Generator | None = None,
    ) -> None:
        super().__init__(
            TopKEvaluation(
                bound,
                maintainer,
                clock=clock,
                wall_clock=wall_clock,
                rankers=rankers,
                random=random,
            ),
            bound,
        )
        self.evaluation.join(bound, {})

    @property
    def operator(self) -> Any:
        """The query's ranking."""
        return self.evaluation.members[self._bound.name].operator
