"""Explanation of a query for the top k of a table that changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rspql import ast
from rspql.plan import TableRanking, Window
from rspql.printer import duration_text, expression_text, inside_text

Document = dict[str, Any]
Branch = tuple[str, list[Any]]


def table_document(
    table: TableRanking, window: Window, structure: Mapping[str, Any] | None
) -> Document:
    """Return the explanation of a table, with the ``k`` and ``kmax`` of its structure if known."""
    return {
        "service": table.iri.value,
        "pattern": inside_text(table.pattern.group),
        "filters": [
            expression_text(each.expression)
            for each in table.beside
            if isinstance(each, ast.Filter)
        ],
        "key": table.key,
        "score": expression_text(table.score),
        "order": "highest first" if table.descending else "lowest first",
        "k": table.k,
        "kmax": structure.get("kmax") if structure else None,
        "every_ms": window.slide_ms,
        "on_change": table.on_change,
    }


def table_lines(table: Document, structure: Mapping[str, Any] | None) -> Iterator[Branch]:
    """Yield the parts of an explanation for people."""
    said: list[Branch] = []
    if structure is not None:
        said.append((f"structure: {structure['name']}, because {structure['because']}", []))
    yield "class: top-k of a table, without a window", said
    yield f"table <{table['service']}>", list(_table(table))
    order = f"score: {table['score']}, {table['order']}"
    yield order, [(f"equal scores: in the order of ?{table['key']}", [])]
    every = duration_text(table["every_ms"])
    when = f"when it changes, looked at every {every}" if table["on_change"] else f"every {every}"
    yield f"answered {when}", []
    yield (
        "certainty, said with each answer",
        [
            ("exact: nothing that the remote has said, or says now, could change it", []),
            ("certified: right for what was known before a feed or an endpoint fell silent", []),
            ("approximate: rows have left the best, and others could not be asked for in time", []),
        ],
    )


def _table(table: Document) -> Iterator[Branch]:
    yield f"matches {table['pattern']}", []
    for each in table["filters"]:
        yield f"keeps what has {each}", []
    if table["kmax"] is not None and table["kmax"] > table["k"]:
        more = f"the best {table['k']} to {table['kmax']} rows at first, and as many as pay later"
        yield f"k = {table['k']}, kmax = {table['kmax']}: {more}", []
    elif table["kmax"] is not None:
        yield f"k = {table['k']}: the best {table['k']} rows are asked for each time", []
