"""Columns of the tables to which a query's services are recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from acquatop.catalog.services import Service
from acquatop.errors import UserError
from acquatop.lab.record.table_column import TableColumn, UnwritableError
from acquatop.plan.asked_patterns import AskedPattern
from acquatop.plan.remote_query import star_of
from replica.remotes.records import Star
from rspql import ast


@dataclass(frozen=True)
class TablePart:
    """Columns of a table, and the names in them of a pattern's variables."""

    number: int
    names: Mapping[str, str]


@dataclass
class ServiceTable:
    """Table of one service: its columns, in parts that are asked for together.

    Patterns that ask for the same properties have a part in common. ``of`` has the part of each
    pattern, by its position in the query.
    """

    service: Service
    parts: list[list[TableColumn]] = field(default_factory=list)
    of: dict[int, TablePart] = field(default_factory=dict)

    @property
    def columns(self) -> Sequence[TableColumn]:
        """All columns."""
        return [column for part in self.parts for column in part]

    def add(self, position: int, asked: AskedPattern) -> None:
        """Add a pattern; raise :class:`UserError` if it does not fit beside the others."""
        star = _star(asked)
        new = _columns(star, len(self.columns))
        predicates = {column.predicate: column for column in new}
        if len(predicates) < len(new):
            raise _refusal("it names a property twice")
        for number, part in enumerate(self.parts):
            said = {column.predicate: column for column in part}
            if not said.keys() & predicates.keys():
                continue
            alike = [(predicates[name], said[name]) for name in predicates if name in said]
            if len(alike) < max(len(said), len(new)) or any(
                one.constant != other.constant for one, other in alike
            ):
                raise _refusal("two patterns ask it for properties that only partly are the same")
            names = {one.variable or "": other.variable or "" for one, other in alike}
            self.of[position] = TablePart(number, names)
            return
        self.parts.append(new)
        self.of[position] = TablePart(len(self.parts) - 1, {})


def tables_of(patterns: Sequence[AskedPattern]) -> list[ServiceTable]:
    """Return the tables for some patterns, a table for each service.

    Raise :class:`UserError` for a pattern that no table can answer.
    """
    tables: dict[str, ServiceTable] = {}
    for position, asked in enumerate(patterns):
        iri = asked.service.iri
        tables.setdefault(iri, ServiceTable(asked.service)).add(position, asked)
    return list(tables.values())


def _star(asked: AskedPattern) -> Star:
    question = asked.question
    triples = [each for each in question.group.elements if isinstance(each, ast.TriplePattern)]
    predicates = [each.predicate.value for each in triples if isinstance(each.predicate, ast.Iri)]
    star = star_of(question.group, question.key, predicates)
    if not isinstance(star, Star):
        raise _refusal(star.message)
    return star


def _columns(star: Star, first: int) -> list[TableColumn]:
    columns = [
        TableColumn(f"p{at}", star.columns[name], variable=name)
        for at, name in enumerate(star.columns, start=first)
    ]
    columns += [
        TableColumn(f"c{at}", iri, constant=star.constants[iri])
        for at, iri in enumerate(star.constants, start=first)
    ]
    for column in columns:
        if column.constant is not None:
            _check_constant(column)
    return columns


def _check_constant(column: TableColumn) -> None:
    assert column.constant is not None
    try:
        column.write(column.constant)
    except UnwritableError as error:
        raise _refusal(f"<{column.predicate}> is {error}") from None


def _refusal(why: str) -> UserError:
    return UserError(f"the SERVICE cannot be recorded as a table: {why}")
