"""Opening of the remotes that replicas are filled from, by their kind."""

from __future__ import annotations

from collections.abc import Callable

from acquatop.catalog.remotes import (
    Address,
    InstalledSource,
    PushSource,
    RestSource,
    SparqlSource,
    SqlSource,
    TableSource,
)
from acquatop.catalog.services import Service
from acquatop.errors import EnvironmentProblem
from acquatop.plan.remote_query import RemoteQuery
from acquatop.plugins import REMOTES
from acquatop.refresh.open_database import database_remote
from acquatop.refresh.service_join import is_bound_from_the_start
from replica.clocks import Clock
from replica.http.client import HttpClient
from replica.key_tuples import terms_in
from replica.remotes import Remote
from replica.remotes.sql_connections import SqlConnections

Connection = HttpClient | SqlConnections | None

RemoteFactory = Callable[[Service, RemoteQuery, Connection, Clock, bool], Remote]
"""Maker of remotes, with the arguments of :func:`open_remote`."""

_MOST_OF_ONE = 100
"""Maximum number of solutions read for a key of which only one is used."""


def open_remote(
    service: Service,
    question: RemoteQuery,
    connection: Connection,
    now: Clock,
    uses_one: bool,
) -> Remote:
    """Return the remote that a service's question is put to.

    ``now`` is the time of a replayed table. With ``uses_one``, one solution of a key is enough.
    Raises :class:`~acquatop.errors.EnvironmentProblem` if a function cannot be imported.
    """
    match service.source:
        case SparqlSource(address, method):
            from replica.remotes.sparql import SparqlRemote

            assert isinstance(connection, HttpClient)
            return SparqlRemote(
                address.url,
                pattern=question.text,
                variables=question.variables,
                key=question.key,
                block_size=service.block_size,
                nested=question.key is not None
                and not all(
                    is_bound_from_the_start(name, question.group) for name in terms_in(question.key)
                ),
                base=question.base,
                method=method,
                most_per_key=_MOST_OF_ONE if uses_one else None,
                name=name_of(service, address),
                client=connection,
            )
        case RestSource(address, mapping, items):
            from replica.remotes.rest import RestRemote

            assert isinstance(connection, HttpClient)
            star = question.star(mapping)
            return RestRemote(
                address.url,
                mapping=mapping,
                star=star,
                client=connection,
                items=items,
                block_size=service.block_size,
                name=name_of(service, address),
            )
        case TableSource(path, mapping, time_field):
            from replica.remotes.table import TableRemote

            return TableRemote(
                path,
                mapping=mapping,
                star=question.star(mapping),
                time=time_field,
                now_ms=lambda: round(1000 * now()),
                block_size=service.block_size,
            )
        case SqlSource():
            assert isinstance(connection, SqlConnections)
            return database_remote(service.source, question, connection, service.block_size)
        case PushSource():
            from replica.remotes.silent import SilentRemote

            return SilentRemote()
        case InstalledSource(name, options, mapping):
            from replica.remotes.function import FunctionRemote

            return FunctionRemote(
                REMOTES[name](dict(options)),
                mapping=mapping,
                star=question.star(mapping),
                block_size=service.block_size,
                name=name,
            )
        case source:
            from replica.remotes.function import FunctionRemote, resolve

            try:
                function = resolve(source.function)
            except ValueError as error:
                raise EnvironmentProblem(f"<{service.iri}>: {error}") from error
            star = question.star(source.mapping)
            return FunctionRemote(
                function, mapping=source.mapping, star=star, block_size=service.block_size
            )


def name_of(service: Service, address: Address) -> str:
    """Return the name of a remote in messages."""
    return f"the {'SPARQL endpoint' if service.remote == 'sparql' else 'address'} {address.shown}"
