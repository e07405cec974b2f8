"""Queries named on a command line: their texts and names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from acquatop.app.cli.query_files import read_text
from acquatop.catalog.catalog import Catalog
from acquatop.errors import UserError
from acquatop.plan.reading_order import ReadInACircle, reading_order
from rspql import ast
from rspql.diagnostics import QueryError
from rspql.parser import parse


@dataclass(frozen=True)
class NamedQuery:
    """A query's file, its text, the name of its answers, and its syntax tree."""

    file: str
    text: str
    name: str
    query: ast.Query


def read_queries(files: Sequence[str], catalog: Catalog) -> list[NamedQuery]:
    """Return the queries of files, each named by its REGISTER clause, or else after its file.

    A query that reads another's answers comes after it; otherwise the order is that of the files.
    Raises :class:`UserError` for a file that cannot be read, and for two queries with the same
    name; :class:`~rspql.diagnostics.QueryError` for a text that is no query, and for queries that
    read in a circle.
    """
    queries: dict[str, NamedQuery] = {}
    for file in files:
        query = _read(file, catalog)
        other = queries.setdefault(query.name, query)
        if other is not query:
            raise UserError(
                f'{other.file} and {file} are both named "{query.name}"\n'
                "  hint: begin one of them with REGISTER RSTREAM and a name of its own, or "
                "rename its file"
            )
    found = list(queries.values())
    try:
        return [found[at] for at in reading_order([q.query for q in found], catalog.streams)]
    except ReadInACircle as circle:
        where = found[circle.query]
        raise QueryError([circle.finding], where.text, where.file) from None


def _read(file: str, catalog: Catalog) -> NamedQuery:
    text = read_text(file)
    query = parse(text, prefixes=catalog.prefixes, file=file)
    if query.registration is not None:
        return NamedQuery(file, text, query.registration.name.value, query)
    return NamedQuery(file, text, "query" if file == "-" else Path(file).stem, query)
