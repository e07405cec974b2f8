"""Columns of the tables to which a query's services are recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from acquatop.catalog.services import Service
from acquatop.errors import UserError
from acquatop.lab.record.table_column import TableColumn, UnwritableError
from acquatop.plan.asked_patterns import AskedPattern
from acquatop.plan.remote_query import star_of
from replica.key_tuples import SEPARATOR
from replica.remotes.records import Star
from rspql import ast
from rspql.scope import visible


@dataclass(frozen=True)
class TablePart:
    """Columns of a table, and the names in them of a pattern's variables."""

    number: int
    names: Mapping[str, str]


@dataclass
class ServiceTable:
    """Table of one service: its columns, in parts that are asked for together.

    Stars that ask for the same properties have a part in common. Other patterns have parts with a
    column for each variable: ``keys`` has the variable by which each is asked, by the number of its
    part, and ``texts`` what it is. ``of`` has the part of each pattern, by its position in the
    query.
    """

    service: Service
    parts: list[list[TableColumn]] = field(default_factory=list)
    of: dict[int, TablePart] = field(default_factory=dict)
    keys: dict[int, str] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)

    @property
    def columns(self) -> Sequence[TableColumn]:
        """All columns."""
        return [column for part in self.parts for column in part]

    @property
    def of_stars(self) -> Sequence[TableColumn]:
        """Columns of properties."""
        parts = enumerate(self.parts)
        return [column for at, part in parts if at not in self.keys for column in part]

    def add(self, position: int, asked: AskedPattern) -> None:
        """Add a pattern; raise :class:`UserError` if no table can answer it."""
        if asked.question.key is None or SEPARATOR in asked.question.key:
            raise _refusal("it is not asked by the values of one variable")
        star = _star(asked)
        new = [] if star is None else _columns(star, len(self.columns))
        if not new or not self._add_star(position, new):
            self._add_whole(position, asked)

    def _add_star(self, position: int, new: list[TableColumn]) -> bool:
        """Add the columns of a star; return False if they do not fit beside the others."""
        predicates = {column.predicate: column for column in new}
        if len(predicates) < len(new):
            return False
        for number, part in enumerate(self.parts):
            said = {column.predicate: column for column in part}
            if number in self.keys or not said.keys() & predicates.keys():
                continue
            alike = [(predicates[name], said[name]) for name in predicates if name in said]
            if len(alike) < max(len(said), len(new)) or any(
                one.constant != other.constant for one, other in alike
            ):
                return False
            names = {one.variable or "": other.variable or "" for one, other in alike}
            self.of[position] = TablePart(number, names)
            return True
        self.parts.append(new)
        self.of[position] = TablePart(len(self.parts) - 1, {})
        return True

    def _add_whole(self, position: int, asked: AskedPattern) -> None:
        """Add a pattern whose solutions are rows."""
        text, key = asked.question.text, asked.key
        number = next((at for at, each in self.texts.items() if each == text), len(self.parts))
        if number == len(self.parts):
            names = [name for name in visible(asked.question.group) if name != key]
            if not names:
                raise _refusal(f"it says nothing but ?{key}")
            first = len(self.columns)
            self.parts.append(
                [
                    TableColumn(f"p{at}", "", variable=name, is_optional=True)
                    for at, name in enumerate(names, start=first)
                ]
            )
            self.keys[number], self.texts[number] = key, text
        elif self.keys[number] != key:
            raise _refusal("one pattern is asked by different variables")
        self.of[position] = TablePart(number, {})


def tables_of(patterns: Sequence[AskedPattern]) -> list[ServiceTable]:
    """Return the tables for some patterns, a table for each service.

    Raise :class:`UserError` for a pattern that no table can answer.
    """
    tables: dict[str, ServiceTable] = {}
    for position, asked in enumerate(patterns):
        iri = asked.service.iri
        tables.setdefault(iri, ServiceTable(asked.service)).add(position, asked)
    return list(tables.values())


def _star(asked: AskedPattern) -> Star | None:
    """Return a pattern as a star, None if it is none."""
    question = asked.question
    triples = [each for each in question.group.elements if isinstance(each, ast.TriplePattern)]
    predicates = [each.predicate.value for each in triples if isinstance(each.predicate, ast.Iri)]
    star = star_of(question.group, question.key, predicates)
    return star if isinstance(star, Star) else None


def _columns(star: Star, first: int) -> list[TableColumn]:
    columns = [
        TableColumn(f"p{at}", star.columns[name], variable=name)
        for at, name in enumerate(star.columns, start=first)
    ]
    columns += [
        TableColumn(f"c{at}", iri, constant=star.constants[iri])
        for at, iri in enumerate(star.constants, start=first)
    ]
    return columns if all(map(_can_hold_constant, columns)) else []


def _can_hold_constant(column: TableColumn) -> bool:
    try:
        return column.constant is None or bool(column.write(column.constant))
    except UnwritableError:
        return False


def _refusal(why: str) -> UserError:
    return UserError(f"the SERVICE cannot be recorded as a table: {why}")
