"""Limits of a query's length, depth and width.

They are far below those at which the SPARQL engine ends the process.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SizeLimit:
    """Limit: the ``most`` that a query may have, of ``what``, and the ``remedy`` beyond it."""

    most: int
    what: str
    remedy: str


LENGTH = SizeLimit(
    500_000, "characters", "values that are long as a list may come from a static graph"
)

TOKENS = SizeLimit(
    50_000,
    "tokens: names, values, signs and keywords",
    "values that are long as a list may come from a static graph",
)

BRACKETS = SizeLimit(
    500,
    "brackets of any kind within each other",
    "brackets around brackets can be left out; parts of a query may be queries of their own",
)

DEPTH = SizeLimit(
    200,
    "levels: patterns and expressions within each other, and operators in a row",
    "BIND, FILTER, OPTIONAL, MINUS, computed columns, && and + count one by one; long chains "
    "of || are shorter as IN (…) or VALUES",
)

COLUMNS = SizeLimit(
    100,
    "columns in SELECT, VALUES and CONSTRUCT together",
    "select fewer, or register several queries",
)

ORDER_KEYS = SizeLimit(
    50, "keys in ORDER BY", "order by fewer, or by one that is computed from them"
)

GROUP_KEYS = SizeLimit(
    50, "keys in GROUP BY", "group by fewer, or by one that is computed from them, as by CONCAT(…)"
)

JOINED = SizeLimit(
    40,
    "triple patterns, steps of paths and other patterns joined with each other",
    "join fewer, or join some of them in a sub-query",
)

OPTIONALS = SizeLimit(
    50, "OPTIONALs in one group", "put some of them into a sub-query, or one within another"
)

PATTERNS = SizeLimit(
    1_000,
    "triple patterns, steps of paths and groups (as of UNION) in all",
    "branches that differ in a value alone are shorter as VALUES; or register several queries",
)

NESTED_STEPS = SizeLimit(
    9,
    "slashes in a path that is repeated or an alternative",
    "write it in parts, with a variable between them",
)

ALTERNATIVES = SizeLimit(
    500,
    "alternatives in paths in all",
    "a variable for the property, with VALUES for what it may be, says the same",
)

LIMITS = (
    LENGTH,
    TOKENS,
    BRACKETS,
    DEPTH,
    COLUMNS,
    ORDER_KEYS,
    GROUP_KEYS,
    JOINED,
    OPTIONALS,
    PATTERNS,
    NESTED_STEPS,
    ALTERNATIVES,
)
"""All of them, as docs/language.md lists them."""
