"""Replay of a recording by the engine's own operators, in simulated time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from acquatop.answer.estimate import Estimate
from acquatop.ingest.identity_hash import IdentityHash
from acquatop.ingest.reduce.contract import Part, Reducer
from acquatop.ingest.reduce.job import reduced
from acquatop.ingest.reduce.pane_partials import PanePartials
from acquatop.ingest.reduce.solutions import Solutions
from acquatop.lab.replay.replayed_replicas import ReplayedReplicas, standing_still
from acquatop.lab.replay.result_names import result_names
from acquatop.lab.replay.right_join import joined_names
from acquatop.lab.replay.setting import Setting, with_setting
from acquatop.lab.replay.trace import Trace
from acquatop.plan.bound import BoundQuery
from acquatop.plugins import RANKERS
from acquatop.query.contract import Tick
from acquatop.query.evaluation import TopKEvaluation
from acquatop.query.joined_top import JoinedTop
from acquatop.topk.contract import FloatArray
from replica.clocks import EventTime
from replica.rankers import RankerRegistry


@dataclass(frozen=True)
class Given:
    """The engine's answer at a window's close: results in order, their merits, and the spending."""

    window: int
    closes_ms: int
    identities: list[str]
    merits: FloatArray
    fetches: int
    requests: int
    status: str
    age_seconds: float
    """Mean age of the results' fetched values; NaN if there are none."""
    expected: Estimate | None
    """Precision and nDCG that the engine expects of the answer, if it does."""


class Replay:
    """A recording cut once at its windows' closes, to be answered in one setting after the other.

    Time is the recording's. A request takes no time, so deadlines do not matter; limits over time
    do. Requests are sent one after the other as they are decided, so the same setting always gives
    the same answers.
    """

    def __init__(self, trace: Trace, *, rankers: RankerRegistry = RANKERS) -> None:
        self.trace = trace
        self._rankers = rankers
        self._closes = [trace.bound.windows.bounds(window)[1] for window in trace.windows()]
        self._shared: dict[tuple[type, int], Part] = {}
        self._now = EventTime()
        self._replicas = ReplayedReplicas(self._now)
        # Cached parts include their keys' hashes.
        self._hashes = IdentityHash()

    def answers(self, setting: Setting) -> Iterator[Given]:
        """Yield the engine's answers in a setting, window by window."""
        bound = _bound(self.trace.bound, setting)
        self._now.show(self.trace.start_ms)
        evaluation = TopKEvaluation(
            bound,
            self._replicas.open(bound),
            clock=standing_still,
            wall_clock=standing_still,
            rankers=self._rankers,
            random=np.random.default_rng(setting.seed),
            hashes=self._hashes,
        )
        evaluation.join(bound, {})
        member = evaluation.members[bound.name]
        stream = bound.stream.iri
        shown = slice(bound.plan.offset, None)
        for number, (records, closes_ms) in enumerate(
            zip(self._batches, self._closes, strict=True)
        ):
            if len(records):
                parts = [self._part(number, records, each) for each in evaluation.reducers(stream)]
                evaluation.add(stream, parts, evaluation.names)
            for answer in evaluation.advance(Tick(stream, closes_ms, standing_still())):
                top = member.best(answer.window)
                ages = [row.age_seconds for row in answer.rows if row.age_seconds is not None]
                yield Given(
                    answer.window,
                    answer.closes_ms,
                    self._names(top)[shown],
                    top.merits[shown],
                    answer.spending.items,
                    answer.spending.requests,
                    answer.status.value,
                    float(np.mean(ages)) if ages else float("nan"),
                    answer.expected,
                )
        evaluation.close()

    def _names(self, top: JoinedTop) -> list[str]:
        identities: list[str] = top.rows.identities.tolist()
        if self.trace.has_one_solution:
            return identities
        return result_names(identities, top.terms, joined_names(self.trace.bound.plan))

    @cached_property
    def _batches(self) -> Sequence[pa.RecordBatch]:
        ends = np.searchsorted(self.trace.times, self._closes, side="right").tolist()
        return [
            self.trace.records.slice(begin, end - begin)
            for begin, end in zip([0, *ends], ends, strict=False)
        ]

    def _part(self, number: int, records: pa.RecordBatch, reducer: Reducer) -> Part:
        """Return the reduced batch, cached for all settings if it does not depend on them."""
        depends = reducer.prunes if isinstance(reducer, Solutions) else True
        if depends and not isinstance(reducer, PanePartials):
            return next(reduced(records, [reducer]))
        key = type(reducer), number
        if key not in self._shared:
            self._shared[key] = next(reduced(records, [reducer]))
        return self._shared[key]


def _bound(bound: BoundQuery, setting: Setting) -> BoundQuery:
    """Return a query with a setting, which holds for each of its services."""
    assert bound.service is not None
    return replace(
        bound,
        # Results are identified by their identities; their displayed terms are not used, nor
        # what orders equal scores.
        plan=replace(
            bound.plan,
            k=setting.k,
            projection=(),
            computed=(),
            gathered=(),
            finish=None,
            form=None,
        ),
        stream=replace(bound.stream, keys="driver"),
        service=with_setting(bound.service, setting),
        services=tuple(with_setting(each, setting) for each in bound.services),
    )
