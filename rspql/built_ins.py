"""Built-in functions of SPARQL and their numbers of arguments."""

from __future__ import annotations

import math
from collections.abc import Mapping

ANY = math.inf

CHANGE = "urn:acquatop:change:"
"""Namespace of the functions that look back, with the prefix ``change``."""
CHANGES = tuple(CHANGE + each for each in ("growth", "difference", "rate", "before", "decay"))
"""Functions of that namespace."""

ARITIES: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys("now rand struuid uuid".split(), (0, 0)),
    **dict.fromkeys(
        "abs ceil datatype day encode_for_uri floor hours iri isblank isiri isliteral "
        "isnumeric isuri lang lcase md5 minutes month round seconds sha1 sha256 sha384 sha512 "
        "str strlen timezone tz ucase uri year".split(),
        (1, 1),
    ),
    **dict.fromkeys(
        "contains langmatches sameterm strafter strbefore strdt strends strlang strstarts".split(),
        (2, 2),
    ),
    "bnode": (0, 1),
    "bound": (1, 1),
    "if": (3, 3),
    **dict.fromkeys("regex substr".split(), (2, 3)),
    "replace": (3, 4),
    **dict.fromkeys("coalesce concat".split(), (0, ANY)),
}
"""Minimum and maximum number of arguments by name in lower case [121]."""


def arity_problem(name: str, given: int) -> str | None:
    """Return the problem with a number of arguments, or None if there is none.

    >>> arity_problem("substr", 1)
    'SUBSTR takes 2 or 3 arguments, not 1'
    """
    least, most = ARITIES[name]
    if least <= given <= most:
        return None
    counts = f"{least:g}" if least == most else f"{least:g} or {most:g}"
    return f"{name.upper()} takes {counts} argument{'' if most == 1 else 's'}, not {given}"
