"""Queries named on a command line: their texts and names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from acquatop.app.cli.query_files import read_text
from acquatop.catalog.catalog import Catalog
from acquatop.errors import UserError
from acquatop.plan.reading_order import ReadInACircle, reading_order
from acquatop.plan.weight import checked_weight
from rspql import ast
from rspql.diagnostics import QueryError
from rspql.parser import parse


@dataclass(frozen=True)
class NamedQuery:
    """A query's file, its text, the name of its answers, its syntax tree, and its weight."""

    file: str
    text: str
    name: str
    query: ast.Query
    weight: float = 1.0


def read_weighted(
    files: Sequence[str], weights: Sequence[str], catalog: Catalog
) -> list[NamedQuery]:
    """Return the queries of files (:func:`read_queries`) with weights given as NAME=NUMBER."""
    queries, given = read_queries(files, catalog), dict(map(_weight, weights))
    names = [query.name for query in queries]
    for name in given:
        if name not in names:
            raise UserError(f'--weight: no query is named "{name}"\n  hint: {", ".join(names)}')
    return [replace(query, weight=given.get(query.name, 1.0)) for query in queries]


def _weight(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    try:
        return name, checked_weight(float(number))
    except ValueError:
        raise UserError(f"--weight: {text!r} is not NAME=NUMBER") from None


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
