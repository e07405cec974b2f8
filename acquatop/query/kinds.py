"""Kinds of evaluation: the table from a bound query to the evaluation that answers it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from acquatop.catalog.evaluation_limits import DEFAULT_LIMITS, EvaluationLimits
from acquatop.ingest.identity_hash import IdentityHash
from acquatop.plan.bound import Bound, BoundCounted, BoundQuery, BoundTable, BoundWindowed
from acquatop.query.aggregates.executor_content import ExecutorAggregates, RunTasks
from acquatop.query.aggregates.moving import Move
from acquatop.query.aggregates.on_executors import scattered_content
from acquatop.query.contract import Evaluation
from acquatop.query.count_windows import CountedEvaluation, OpenWhole
from acquatop.query.evaluation import TopKEvaluation
from acquatop.query.joined_windows.evaluation import JoinedWindowsEvaluation
from acquatop.query.nearest_elements import NearestElements
from acquatop.query.shared.evaluation import SharedEvaluation
from acquatop.query.sparql.content import StoreContent
from acquatop.query.sparql.engine import EngineFunction, SparqlEngine
from acquatop.query.sparql.evaluation import SparqlEvaluation
from acquatop.query.sparql.worker_engine import WorkerEngine
from acquatop.query.table.evaluation import TableEvaluation
from acquatop.query.table.opened import OpenTables
from acquatop.refresh.constant_join import ConstantJoin
from acquatop.refresh.join_refresh import JoinedReplicas
from acquatop.refresh.lanes import Lanes
from acquatop.refresh.open_replicas import Joined, Replicas
from connectors.object_store.address import StoreAddress
from replica.clocks import Clock
from replica.maintainer import Maintainer
from replica.rankers import RankerRegistry


class OpenLimited(Protocol):
    """Function that opens a SPARQL engine with limits, over a content and with functions."""

    def __call__(
        self,
        content: Callable[[], StoreContent],
        functions: Mapping[str, EngineFunction],
        limits: EvaluationLimits,
    ) -> SparqlEngine:
        """Open the engine."""


def _none() -> bool:
    """Return False: there are no executors."""
    return False


@dataclass(frozen=True)
class Resources:
    """Resources of an engine that evaluations use.

    ``keys_folder`` returns the folder for the keys that executors keep for an evaluation's key;
    ``durable`` says that this folder belongs to a state directory. ``has_executors`` tells if
    ``run_tasks`` spares this process's memory. ``limits`` are those of one
    evaluation of a whole window, by an engine that ``open_sparql`` opens.
    """

    replicas: Replicas
    clock: Clock
    rankers: RankerRegistry
    run_tasks: RunTasks
    keys_folder: Callable[[str], Path | StoreAddress]
    durable: bool
    has_executors: Callable[[], bool] = _none
    limits: EvaluationLimits = DEFAULT_LIMITS
    open_sparql: OpenLimited = WorkerEngine

    @functools.cached_property
    def tables(self) -> OpenTables:
        """Tables that queries without a window share."""
        return OpenTables(self.replicas, self.clock)


def open_evaluation(
    bound: Bound, key: str, resources: Resources, *, load: bool, shared: bool
) -> Evaluation:
    """Return the evaluation of a query, with its replicas filled if ``load``.

    ``shared`` asks for the structure that queries with other windows share.
    """
    if shared:
        if isinstance(bound, BoundCounted):
            return NearestElements(bound, clock=resources.clock)
        assert isinstance(bound, BoundQuery), "only top-k queries share a structure"
        return SharedEvaluation(bound, clock=resources.clock)
    return KINDS[type(bound)](bound, key, resources, load)


@contextmanager
def _in_lanes(bound: Bound, resources: Resources) -> Iterator[Lanes]:
    """Return the lanes that a query is in, unless it cannot be opened."""
    lanes = resources.replicas.lanes(bound)
    try:
        yield lanes
    except BaseException:
        lanes.close()
        raise


def _top_k(bound: BoundQuery, key: str, resources: Resources, load: bool) -> Evaluation:
    with _in_lanes(bound, resources) as lanes:
        replica = resources.replicas.open(bound, load=load, lanes=lanes)
        return _top_k_over(bound, key, resources, replica, lanes)


def _top_k_over(
    bound: BoundQuery, key: str, resources: Resources, replica: Joined | None, lanes: Lanes
) -> Evaluation:
    with _closed_on_failure([] if replica is None else [replica]):

        def scatter(hashes: IdentityHash | None = None) -> ExecutorAggregates:
            folder, run = resources.keys_folder(key), resources.run_tasks
            joined_here = JoinedReplicas | ConstantJoin
            assert not isinstance(replica, joined_here), "they are joined in the driver"
            return scattered_content(
                bound, replica, folder, run, durable=resources.durable, hashes=hashes
            )

        if bound.parts:
            return JoinedWindowsEvaluation(
                bound, replica, clock=resources.clock, rankers=resources.rankers, lanes=lanes
            )
        move = Move(scatter, resources.has_executors)
        return TopKEvaluation(
            bound,
            replica,
            clock=resources.clock,
            rankers=resources.rankers,
            scattered=scatter() if bound.keys_in_executors else None,
            move=move if bound.keys_may_move else None,
            lanes=lanes,
        )


def _sparql(bound: BoundWindowed, key: str, resources: Resources, load: bool) -> Evaluation:
    with _in_lanes(bound, resources) as lanes:
        replicas = resources.replicas.open_all(bound, load=load, lanes=lanes)
        with _closed_on_failure(replicas):
            open_whole = _open_whole(resources)
            return open_whole(
                bound, replicas, clock=resources.clock, rankers=resources.rankers, lanes=lanes
            )


def _table(bound: BoundTable, key: str, resources: Resources, load: bool) -> Evaluation:
    table, leave = resources.tables.join(bound)
    try:
        return TableEvaluation(bound, table, leave, clock=resources.clock)
    except BaseException:
        leave()
        raise


def _counted(bound: BoundCounted, key: str, resources: Resources, load: bool) -> Evaluation:
    with _in_lanes(bound, resources) as lanes:
        return _counted_in(lanes, bound, resources, load)


def _counted_in(lanes: Lanes, bound: BoundCounted, resources: Resources, load: bool) -> Evaluation:
    query, replicas = bound.query, resources.replicas
    joined, several = None, []
    if isinstance(query, BoundQuery):
        joined = replicas.open(query, load=load, lanes=lanes)
    else:
        several = replicas.open_all(query, load=load, lanes=lanes)
    with _closed_on_failure([*several, *([] if joined is None else [joined])]):
        return CountedEvaluation(
            bound,
            joined=joined,
            maintainers=several,
            clock=resources.clock,
            open_whole=_open_whole(resources),
            rankers=resources.rankers,
            lanes=lanes,
        )


@contextmanager
def _closed_on_failure(
    replicas: Sequence[Maintainer[Any] | JoinedReplicas | ConstantJoin],
) -> Iterator[None]:
    """Close replicas if no evaluation takes them: their feeds run already."""
    try:
        yield
    except BaseException:
        for each in replicas:
            each.close()
        raise


def _open_whole(resources: Resources) -> OpenWhole:
    limits = resources.limits
    open_engine = functools.partial(resources.open_sparql, limits=limits)
    return functools.partial(SparqlEvaluation, open_engine=open_engine, failures=limits.failures)


KINDS: Mapping[type, Callable[[Any, str, Resources, bool], Evaluation]] = {
    BoundQuery: _top_k,
    BoundWindowed: _sparql,
    BoundCounted: _counted,
    BoundTable: _table,
}
"""One line for each kind of bound query."""
