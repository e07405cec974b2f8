"""Queries named on a command line: their texts and names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from acquatop.app.cli.query_files import read_text
from acquatop.errors import UserError


@dataclass(frozen=True)
class NamedQuery:
    """A query's file, its text, and the name of its answers."""

    file: str
    text: str
    name: str


def read_queries(files: Sequence[str], prefixes: Mapping[str, str]) -> list[NamedQuery]:
    """Return the queries of files, each named by its REGISTER clause, or else after its file.

    ``prefixes`` need no declaration. Raises :class:`UserError` for a file that cannot be read, for
    a text that is no query, and for two queries with the same name.
    """
    queries: dict[str, NamedQuery] = {}
    for file in files:
        text = read_text(file)
        query = NamedQuery(file, text, _name(text, file, prefixes))
        other = queries.setdefault(query.name, query)
        if other is not query:
            raise UserError(
                f'{other.file} and {file} are both named "{query.name}"\n'
                "  hint: begin one of them with REGISTER RSTREAM and a name of its own, or "
                "rename its file"
            )
    return list(queries.values())


def _name(text: str, file: str, prefixes: Mapping[str, str]) -> str:
    from rspql.parser import parse

    registration = parse(text, prefixes=prefixes, file=file).registration
    if registration is not None:
        return registration.name.value
    return "query" if file == "-" else Path(file).stem
