"""Connections to the databases that services name."""

from __future__ import annotations

from acquatop.catalog.remotes import SqlSource
from acquatop.catalog.services import Service
from acquatop.errors import EnvironmentProblem
from acquatop.plan.remote_query import RemoteQuery
from replica.http.auth import Secret
from replica.remotes.sql import SqlRemote
from replica.remotes.sql_connections import SqlConnections, driver_named
from replica.remotes.sql_statement import SqlStatement

_PACKAGES = {"psycopg": "psycopg[binary]", "MySQLdb": "mysqlclient"}
"""Packages with drivers whose modules have other names."""


def connections_of(service: Service) -> SqlConnections | None:
    """Return the connections to a service's database, none of them open; None for other services.

    Raises :class:`~acquatop.errors.EnvironmentProblem` if the driver is not installed.
    """
    source = service.source
    if not isinstance(source, SqlSource):
        return None
    try:
        driver = driver_named(source.driver)
    except ValueError as error:
        first = source.driver.partition(".")[0]
        package = _PACKAGES.get(first, first.replace("_", "-"))
        raise EnvironmentProblem(
            f"<{service.iri}>: {error}\n  hint: pip install '{package}'"
        ) from error
    return SqlConnections(
        driver,
        source.target.reveal(),
        {
            name: value.reveal() if isinstance(value, Secret) else value
            for name, value in source.arguments.items()
        },
        name=f"the database of <{service.iri}>",
        secrets=source.secrets,
    )


def database_remote(
    source: SqlSource, question: RemoteQuery, connections: SqlConnections, block_size: int
) -> SqlRemote:
    """Return a database as the remote of a question."""
    return SqlRemote(
        SqlStatement(source.statement, source.mapping.key.path, connections.style),
        connections,
        mapping=source.mapping,
        star=question.star(source.mapping),
        integers=source.integers,
        block_size=block_size,
    )
