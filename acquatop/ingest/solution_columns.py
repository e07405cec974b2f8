"""Names of the columns of solutions."""

from __future__ import annotations

IDENTITY, KEY, GONE = "identity", "key", "gone"
"""Names of the solution columns besides the time, the terms ``?x`` and the numbers ``#x``."""


def term_column(variable: str) -> str:
    """Return the name of the column with a variable's N-Triples terms."""
    return f"?{variable}"


def number_column(variable: str) -> str:
    """Return the name of the column with a scoring variable's numbers."""
    return f"#{variable}"
