"""Open the replicas that a query needs: a remote, a store, and what keeps the one like the other."""

from __future__ import annotations

import logging
from typing import TypeVar

from acquatop.catalog import Service
from acquatop.errors import EnvironmentProblem
from acquatop.operators.replica_join import is_bound_from_the_start
from replica.maintainer import Clock, Maintainer, Store
from replica.remotes import RemoteError
from replica.remotes.registry import REMOTES
from replica.solutions import SolutionStore
from replica.store import ReplicaStore
from rspql.ast import Group
from rspql.plan import RemotePart, TopKPlan
from rspql.printer import inside_text

StoreT = TypeVar("StoreT", bound=Store)

_LOG = logging.getLogger("acquatop")


def open_replica(plan: TopKPlan, service: Service | None, *, clock: Clock) -> Maintainer[ReplicaStore] | None:
    """Return what maintains the replica of a top-k query, filled if the catalog says so; None if it asks no remote.

    Raises :class:`~acquatop.errors.EnvironmentProblem` when the remote cannot be reached for that.
    """
    if plan.service is None or service is None:
        return None
    asked, key = plan.service, plan.join_variables[0]
    return _open(ReplicaStore(key, asked.variables), service, asked.group, asked.variables, key, clock)


def open_solutions(part: RemotePart, service: Service, *, clock: Clock) -> Maintainer[SolutionStore]:
    """Return what maintains the replica of one part of a query, filled if the catalog says so.

    Raises :class:`~acquatop.errors.EnvironmentProblem` when the remote cannot be reached for that.
    """
    store = SolutionStore(part.key, part.variables)
    return _open(store, service, part.pattern.group, part.variables, part.key, clock)


def _open(
    store: StoreT, service: Service, group: Group, variables: tuple[str, ...], key: str | None, clock: Clock
) -> Maintainer[StoreT]:
    remote = REMOTES[service.remote](
        service.endpoint,
        pattern=inside_text(group),
        variables=variables,
        key=key,
        block_size=service.block_size,
        nested=key is not None and not is_bound_from_the_start(key, group),
    )
    budget, timeout = service.refresh.budget, service.timeout_seconds
    maintainer = Maintainer(store, remote, budget, clock=clock, request_timeout=timeout)
    if service.load:
        _load(maintainer, service, inside_text(group))
    return maintainer


def _load(maintainer: Maintainer[StoreT], service: Service, pattern: str) -> None:
    try:
        if not maintainer.load():
            _LOG.warning("<%s> has nothing that matches: %s", service.iri, pattern)
    except RemoteError as error:
        hint = f"start it, correct the endpoint of <{service.iri}> in the catalog, or set load = false there"
        raise EnvironmentProblem(f"{error}\n  hint: {hint}") from error
