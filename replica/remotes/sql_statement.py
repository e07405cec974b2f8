"""Text of the queries that ask a database for keys, with a driver's own placeholders."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

KEYS = "{keys}"
_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*){0,2}")

Parameters = Sequence[object] | Mapping[str, object]

_STYLES: Mapping[str, Callable[[int], str]] = {
    "qmark": lambda number: "?",
    "numeric": lambda number: f":{number}",
    "named": lambda number: f":k{number}",
    "format": lambda number: "%s",
    "pyformat": lambda number: "%s",
    "dollar": lambda number: f"${number}",
}
STYLES = tuple(_STYLES)
"""Styles of placeholders: those of Python's DB-API, and ``$1``."""


@dataclass(frozen=True)
class SqlStatement:
    """Query with ``{keys}`` in place of its placeholders, or the name of a table or view.

    Placeholders are filled up with the last key to a power of two, so that a database sees few
    different texts and can keep their plans.

    >>> people = SqlStatement("people", key="id", style="qmark")
    >>> people.of(["a", "b", "c"], ["id", "followers"], 100)
    ('SELECT id, followers FROM people WHERE id IN (?, ?, ?, ?)', ('a', 'b', 'c', 'c'))
    >>> SqlStatement("SELECT * FROM p WHERE n LIKE 'a%' AND id IN ({keys})", "id", "format").of(
    ...     ["a"], [], 1
    ... )
    ("SELECT * FROM p WHERE n LIKE 'a%%' AND id IN (%s)", ('a',))
    """

    text: str
    key: str
    style: str

    def __post_init__(self) -> None:
        if not self.is_table and self.text.count(KEYS) != 1:
            raise ValueError(f"a query must have {KEYS} in it once, such as WHERE id IN ({KEYS})")
        if self.style not in STYLES:
            raise ValueError(f'no driver has placeholders of the style "{self.style}"')

    @property
    def is_table(self) -> bool:
        """True if the text is a name."""
        return _NAME.fullmatch(self.text) is not None

    def of(
        self, ids: Sequence[object], columns: Sequence[str], most: int
    ) -> tuple[str, Parameters]:
        """Return the query for some ids, and its parameters."""
        size = min(max(most, len(ids)), 1 << (len(ids) - 1).bit_length())
        filled = (*ids, *(ids[-1] for _ in range(size - len(ids))))
        marks = ", ".join(map(_STYLES[self.style], range(1, size + 1)))
        before, after = self._around_keys(columns)
        text = f"{before}{marks}{after}"
        if self.style == "named":
            return text, {f"k{number}": each for number, each in enumerate(filled, 1)}
        return text, filled

    def of_all(self, columns: Sequence[str]) -> str | None:
        """Return the query for a whole table; None if the text is a query itself."""
        if not self.is_table:
            return None
        return f"SELECT {', '.join(columns)} FROM {self.text}"  # noqa: S608 (plain names)

    def _around_keys(self, columns: Sequence[str]) -> tuple[str, str]:
        if self.is_table:
            return f"{self.of_all(columns)} WHERE {self.key} IN (", ")"
        escaped = self.text.replace("%", "%%") if "format" in self.style else self.text
        before, _, after = escaped.partition(KEYS)
        return before, after


def is_column(name: str) -> bool:
    """Return True if a name needs no quotes in SQL, so that a table can be asked for it."""
    return re.fullmatch(r"[^\W\d]\w*", name) is not None
