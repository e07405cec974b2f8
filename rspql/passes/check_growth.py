"""Check that texts stay short: those that may fill the memory are computed in other processes."""

from __future__ import annotations

from collections.abc import Iterable

from rspql import ast
from rspql.passes.not_incremental import NotIncremental
from rspql.text_growth import TextGrowth, growth_of

OF_ROWS = TextGrowth(100_000.0, 200.0)
"""Greatest growth of the texts that are made of the few rows of an answer, or let go at once."""
OF_RECORDS = TextGrowth(10_000.0, 50.0)
"""Greatest growth of the texts that are kept of each record or remote value."""

Computed = ast.Assignment | ast.Filter | ast.OrderCondition


def check_growth(computed: Iterable[Computed], most: TextGrowth) -> None:
    """Raise if texts, in source order, can be many times as long as those they are made of."""
    known: dict[str, TextGrowth] = {}
    total = TextGrowth(0.0, 0.0)
    for each in computed:
        value, longest = growth_of(each.expression, known)
        if isinstance(each, ast.Assignment):
            name = each.variable.name
            known[name] = value | known.get(name, value)
        total = total + longest
        if total | most != most:
            raise NotIncremental(f"{_words(each)} may be very long, and is computed apart", each)


def computed_in(nodes: Iterable[ast.Node]) -> list[ast.Assignment | ast.Filter]:
    """Return the BINDs and filters among the nodes of a pattern, in their order."""
    return [each for each in nodes if isinstance(each, ast.Assignment | ast.Filter)]


def _words(computed: Computed) -> str:
    match computed:
        case ast.Assignment(_, variable):
            return f"?{variable.name}"
        case ast.OrderCondition():
            return "a key of ORDER BY"
        case _:
            return "a text in a FILTER"
