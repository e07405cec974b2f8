"""Opening of the remotes that are asked for their best rows, by their kind."""

from __future__ import annotations

from collections import Counter

from acquatop.catalog.remotes import SparqlSource, SqlSource
from acquatop.plan.bound import BoundTable
from acquatop.plan.remote_query import RemoteQuery
from acquatop.plan.table_sql import in_sql
from acquatop.refresh.open_database import database_remote
from acquatop.refresh.open_remote import Connection, name_of
from replica.http.client import HttpClient
from replica.remotes.best import BestRemote
from replica.remotes.sql_connections import SqlConnections
from rspql import ast
from rspql.printer import inside_text


def open_best(
    bound: BoundTable, question: RemoteQuery, connection: Connection
) -> tuple[BestRemote, Counter[str]]:
    """Return a table's remote, and the counter of what it sends that cannot be used."""
    service, ranking = bound.service, bound.ranking
    match service.source:
        case SparqlSource(address, method):
            from replica.remotes.sparql import SparqlRemote
            from replica.remotes.sparql_best import SparqlBest

            assert isinstance(connection, HttpClient)
            where = ast.rewritten(ranking.ranked.where or ast.Group(()), _opened)
            remote = SparqlRemote(
                address.url,
                pattern=inside_text(where),
                variables=ranking.variables,
                key=ranking.key,
                base=question.base,
                method=method,
                name=name_of(service, address),
                client=connection,
            )
            best = SparqlBest(
                remote, rank=ranking.rank, key=ranking.key, descending=ranking.descending
            )
            return best, remote.rejected
        case SqlSource() as source:
            from replica.remotes.sql_best import SqlBest

            assert isinstance(connection, SqlConnections)
            order = in_sql(ranking, source, question.star(source.mapping))
            assert order is not None, "binding has checked it"
            database = database_remote(source, question, connection, service.block_size)
            return SqlBest(database, order), database.rejected
        case other:
            raise TypeError(f"{other!r} cannot be asked for its best")


def _opened(node: ast.Node) -> ast.Node:
    """Return the inside of a SERVICE in braces: the remote itself is asked."""
    return node.group if isinstance(node, ast.ServicePattern) else node
