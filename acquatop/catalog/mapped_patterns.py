"""Patterns of which a record is a solution: those that are no star around the key."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from acquatop.catalog.section import Section
from replica.remotes.records import Field, MappedPattern
from rspql.ast import Group
from rspql.diagnostics import QueryError
from rspql.parser import parse
from rspql.printer import inside_text
from rspql.scope import visible


def mapped_patterns(
    section: Section, prefixes: Mapping[str, str], field_of: Callable[[Section], Field]
) -> dict[str, MappedPattern]:
    """Return the patterns of a mapping, by their text as queries print it."""
    found: dict[str, MappedPattern] = {}
    for written, table in section.tables():
        table.allow("key", "variables")
        variables = table.section("variables", required=True)
        pattern = MappedPattern(
            table.text("key"), {name: field_of(each) for name, each in variables.tables()}
        )
        try:
            group = parse(f"SELECT * WHERE {{ {written} }}", prefixes=prefixes).where or Group(())
        except QueryError as error:
            section.problem(f"this is no pattern: {error.diagnostics[0].message}", written)
            continue
        if unknown := {pattern.key, *pattern.variables} - set(visible(group)):
            table.problem(f"the pattern has no variable ?{min(unknown)}")
        found[inside_text(group)] = pattern
    return found
