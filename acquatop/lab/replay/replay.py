"""Replay of a recording by the engine's own operators, in simulated time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from acquatop.catalog.remotes import TableSource
from acquatop.ingest.identity_hash import IdentityHash
from acquatop.ingest.reduce.contract import Part, Reducer
from acquatop.ingest.reduce.job import reduced
from acquatop.ingest.reduce.pane_partials import PanePartials
from acquatop.ingest.reduce.solutions import Solutions
from acquatop.lab.replay.remembered_remote import RememberedRemote
from acquatop.lab.replay.setting import Setting
from acquatop.lab.replay.trace import Trace
from acquatop.plan.bound import BoundQuery
from acquatop.query.contract import Tick
from acquatop.query.evaluation import TopKEvaluation
from acquatop.topk.contract import FloatArray
from replica.access import Access
from replica.budget import Budget
from replica.clocks import EventTime
from replica.maintainer import Maintainer
from replica.rankers import DEFAULT_RANKERS, RankerRegistry
from replica.remotes.table import TableRemote
from replica.spending.account import Account
from replica.spending.quota import Quota
from replica.store import ReplicaStore
from replica.workers import Work, Workers

_ALL = 1 << 40
"""More items than any remote has."""


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


class Replay:
    """A recording cut once at its windows' closes, to be answered in one setting after the other.

    Time is the recording's. A request takes no time, so deadlines do not matter; limits over time
    do. Requests are sent one after the other as they are decided, so the same setting always gives
    the same answers.
    """

    def __init__(self, trace: Trace, *, rankers: RankerRegistry = DEFAULT_RANKERS) -> None:
        self.trace = trace
        self._rankers = rankers
        self._closes = [trace.bound.windows.bounds(window)[1] for window in trace.windows()]
        self._shared: dict[tuple[type, int], Part] = {}
        self._now = EventTime()
        # Cached parts include their keys' hashes.
        self._hashes = IdentityHash()

    def answers(self, setting: Setting) -> Iterator[Given]:
        """Yield the engine's answers in a setting, window by window."""
        bound = _bound(self.trace.bound, setting)
        maintainer = self._maintainer(bound)
        evaluation = TopKEvaluation(
            bound,
            maintainer,
            clock=_standing_still,
            wall_clock=_standing_still,
            rankers=self._rankers,
            random=np.random.default_rng(setting.seed),
            expects=False,
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
            for answer in evaluation.advance(Tick(stream, closes_ms, _standing_still())):
                top = member.operator.top(answer.window)
                ages = [row.age_seconds for row in answer.rows if row.age_seconds is not None]
                yield Given(
                    answer.window,
                    answer.closes_ms,
                    top.rows.identities[shown].tolist(),
                    top.merits[shown],
                    answer.spending.items,
                    answer.spending.requests,
                    answer.status.value,
                    float(np.mean(ages)) if ages else float("nan"),
                )
        evaluation.close()

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

    @cached_property
    def _remote(self) -> RememberedRemote:
        service, question = self.trace.bound.service, self.trace.question
        assert service is not None
        assert isinstance(service.source, TableSource)
        assert question.key is not None
        now = self._now

        def now_ms() -> int:
            return round(1000 * now())

        table = TableRemote(
            service.source.path,
            mapping=service.source.mapping,
            star=question.star(service.source.mapping),
            time=service.source.time,
            now_ms=now_ms,
            block_size=service.block_size,
        )
        return RememberedRemote(table, question.key, now_ms)

    def _maintainer(self, bound: BoundQuery) -> Maintainer[ReplicaStore]:
        service, question = bound.service, self.trace.question
        assert service is not None
        assert question.key is not None
        maintainer = Maintainer(
            ReplicaStore(question.key, question.variables, limit=service.capacity),
            self._remote,
            Account(
                service.refresh.budget,
                quota=Quota(service.limits, time=self._now),
                bank=service.refresh.bank,
                clock=_standing_still,
            ),
            access=Access(
                block_size=service.block_size,
                clock=_standing_still,
                jitter=_standing_still,
                workers=_AtOnce(),
            ),
            clock=_standing_still,
            now=self._now,
        )
        self._now.show(self.trace.start_ms)
        if service.load:
            maintainer.load()
        return maintainer


class _AtOnce(Workers):
    """Workers that run each request when it is sent: in order, without waiting."""

    def __init__(self) -> None:
        super().__init__(1)

    def start(self, work: Work) -> None:
        """Run the work."""
        work()
        self.release()


def _standing_still() -> float:
    return 0.0


def _bound(bound: BoundQuery, setting: Setting) -> BoundQuery:
    """Return a query with a setting. An evaluation may send as many requests as its items need."""
    service = bound.service
    assert service is not None
    refresh, items = service.refresh, _ALL if setting.is_unlimited else setting.budget
    given = refresh.budget
    needed = items if given.requests >= given.items else -(-items // service.block_size)
    budget = Budget(items, max(given.requests, needed), given.seconds)
    refill = refresh.refill or setting.is_plain
    refresh = replace(
        refresh, policy=setting.policy, n=setting.n, chooses_n=False, budget=budget, refill=refill
    )
    return replace(
        bound,
        # Results are identified by their identities; their displayed terms are not used, nor
        # what orders equal scores.
        plan=replace(bound.plan, k=setting.k, projection=(), computed=(), finish=None, form=None),
        stream=replace(bound.stream, keys="driver"),
        service=replace(service, refresh=refresh),
    )
