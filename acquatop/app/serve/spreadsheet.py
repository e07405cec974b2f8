"""Answers for spreadsheets: a cell that would be read as a formula becomes plain text."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from acquatop.answer.answer import Answer

if TYPE_CHECKING:
    from rdflib.term import Identifier

_FORMULA = re.compile(r"\s*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]INF")


def without_formulas(answer: Answer) -> Answer:
    """Return an answer whose terms a spreadsheet reads as text or as numbers, never as formulas.

    Text that begins like a formula gets an apostrophe before it. Numbers stay numbers.
    """
    rows = tuple(
        replace(row, bindings={name: _safe(term) for name, term in row.bindings.items()})
        for row in answer.rows
    )
    return replace(answer, rows=rows)


def _safe(term: Identifier) -> Identifier:
    from rdflib import Literal

    text = str(term)
    return Literal(defused(text)) if defused(text) != text else term


def defused(text: str) -> str:
    r"""Return a cell's text, with an apostrophe before it if it begins like a formula.

    >>> [defused(text) for text in ("=1+1", "@SUM(A1)", "-1.5", "+2e3", "-a|' /C b'!A0", "a=b")]
    ["'=1+1", "'@SUM(A1)", '-1.5', '+2e3', "'-a|' /C b'!A0", 'a=b']
    >>> defused("\t=1"), defused(" =1"), defused("-1\n")
    ("'\t=1", "' =1", "'-1\n")
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text
