"""Replay of a recording of any number of streams, by the engine's own operators."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from acquatop.answer.estimate import Estimate
from acquatop.lab.replay.replayed_replicas import ReplayedReplicas, standing_still
from acquatop.lab.replay.row_names import named_rows
from acquatop.lab.replay.row_trace import RowTrace
from acquatop.lab.replay.setting import Setting, with_setting
from acquatop.plan.bound import BoundQuery, BoundWindowed
from acquatop.plugins import RANKERS
from acquatop.query.contract import Evaluation
from acquatop.query.evaluation import TopKEvaluation
from acquatop.query.joined_windows.evaluation import JoinedWindowsEvaluation
from acquatop.query.sparql.evaluation import SparqlEvaluation
from replica.clocks import EventTime


@dataclass(frozen=True)
class GivenRows:
    """The engine's answer at a close: rows in order, and the spending."""

    window: int
    closes_ms: int
    names: Sequence[str]
    contents: Sequence[Hashable]
    fetches: int
    requests: int
    status: str
    age_seconds: float
    """Mean age of the rows' fetched values; NaN if there are none."""
    expected: Estimate | None
    """Precision and nDCG that the engine expects of the answer, if it does."""


class ReplayedRows:
    """A recording, to be answered in one setting after the other, as :class:`Replay` does."""

    def __init__(self, trace: RowTrace) -> None:
        self._trace = trace
        self._now = EventTime()
        self._replicas = ReplayedReplicas(self._now)

    def answers(self, setting: Setting) -> Iterator[GivenRows]:
        """Yield the engine's answers in a setting, close by close."""
        self._now.show(self._trace.start_ms)
        for answer in self._trace.answers(self._evaluation(setting)):
            named = named_rows(answer, self._trace.judged.shown)
            ages = [row.age_seconds for row in answer.rows if row.age_seconds is not None]
            yield GivenRows(
                answer.window,
                answer.closes_ms,
                [each.name for each in named],
                [each.content for each in named],
                answer.spending.items,
                answer.spending.requests,
                answer.status.value,
                float(np.mean(ages)) if ages else float("nan"),
                answer.expected,
            )

    def _evaluation(self, setting: Setting) -> Evaluation:
        trace = self._trace
        bound = (
            _whole(trace.bound, setting)
            if isinstance(trace.bound, BoundWindowed)
            else _incremental(trace.bound, setting)
        )
        evaluation = self._opened(bound, np.random.default_rng(setting.seed))
        evaluation.join(bound, {})
        return evaluation

    def _opened(self, bound: BoundQuery | BoundWindowed, random: np.random.Generator) -> Evaluation:
        trace = self._trace
        if isinstance(bound, BoundWindowed):
            return SparqlEvaluation(
                bound,
                self._replicas.open_all(bound),
                clock=standing_still,
                wall_clock=standing_still,
                rankers=RANKERS,
                random=random,
                instant=trace.instant,
            )
        replicas = self._replicas.open(bound)
        if bound.parts:
            return JoinedWindowsEvaluation(
                bound,
                replicas,
                clock=standing_still,
                wall_clock=standing_still,
                rankers=RANKERS,
                random=random,
            )
        return TopKEvaluation(
            bound,
            replicas,
            clock=standing_still,
            wall_clock=standing_still,
            rankers=RANKERS,
            random=random,
            expects=False,
            instant=trace.instant,
        )


def _incremental(bound: BoundQuery, setting: Setting) -> BoundQuery:
    assert bound.service is not None
    return replace(
        bound,
        plan=replace(bound.plan, k=setting.k, form=None, output="RSTREAM"),
        stream=replace(bound.stream, keys="driver"),
        service=with_setting(bound.service, setting),
        services=tuple(with_setting(each, setting) for each in bound.services),
        parts=tuple(
            replace(each, stream=replace(each.stream, keys="driver")) for each in bound.parts
        ),
    )


def _whole(bound: BoundWindowed, setting: Setting) -> BoundWindowed:
    plan = bound.plan.evaluated
    query = replace(plan.query, limit=setting.k) if setting.k else plan.query
    return replace(
        bound,
        plan=replace(plan, query=query, exact=None, output="RSTREAM"),
        remotes=tuple(
            replace(each, service=with_setting(each.service, setting)) for each in bound.remotes
        ),
    )
