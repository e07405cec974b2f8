"""Diagnostics: problems of a query, as data and as text for people."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rspql.ast import Span

MOST_COMPARED = 100
"""Maximum number of known names that a name is compared with.

Keeps the time for a text full of mistakes proportional to its length.
"""

MOST_SHOWN = 100
"""Maximum number of findings shown together."""

EXCERPT = 160
"""Number of characters of a long line that are shown around a finding."""


@dataclass(frozen=True)
class Diagnostic:
    """One finding: the problem, its place, and a hint how to solve it.

    ``code`` is stable and machine-readable; ``line`` and ``column`` count from 1. ``severity`` is
    ``"error"`` if the query cannot be run, ``"warning"`` if it may not do what was meant.
    """

    code: str
    message: str
    span: Span | None = None
    hint: str | None = None
    severity: str = "error"

    @property
    def is_error(self) -> bool:
        """True if the finding keeps the query from being run."""
        return self.severity == "error"

    @property
    def line(self) -> int | None:
        """The line on which the finding starts, counted from 1."""
        return self.span.line if self.span else None

    @property
    def column(self) -> int | None:
        """The column in which the finding starts, counted from 1."""
        return self.span.column if self.span else None

    def render(self, text: str, file: str) -> str:
        """Return the finding as text: place, message, the source line with a caret, the hint.

        >>> found = Diagnostic("x", "unknown window", Span(7, 9, 1, 8), "use :w")
        >>> print(found.render("SELECT :v", "q.rspql"))
        q.rspql:1:8: unknown window
          SELECT :v
                 ^^
          hint: use :w
        """
        place = f"{file}:{self.span.line}:{self.span.column}" if self.span else file
        parts = [f"{place}: {'' if self.is_error else self.severity + ': '}{self.message}"]
        if self.span:
            parts.extend(_excerpt(text, self.span))
        if self.hint:
            parts.append(f"  hint: {self.hint}")
        return "\n".join(parts)

    def to_json(self, file: str) -> dict[str, object]:
        """Return the finding as JSON; offsets count characters from 0, the end excluded."""
        span = None if self.span is None else {"start": self.span.start, "end": self.span.end}
        return {
            "code": self.code,
            "severity": self.severity,
            "file": file,
            "line": self.line,
            "column": self.column,
            "span": span,
            "message": self.message,
            "hint": self.hint,
        }


class QueryError(Exception):
    """Error: the query cannot be run. ``diagnostics`` has the reasons, ``str()`` their text."""

    exit_code = 2

    def __init__(self, diagnostics: Sequence[Diagnostic], text: str, file: str = "<query>") -> None:
        self.diagnostics = tuple(diagnostics)
        self.text = text
        self.file = file
        super().__init__(file)

    def __str__(self) -> str:
        shown = [found.render(self.text, self.file) for found in self.diagnostics[:MOST_SHOWN]]
        more = len(self.diagnostics) - len(shown)
        return "\n".join([*shown, f"{self.file}: and {more} more"] if more else shown)


def in_source_order(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return findings in source order, each once."""
    return sorted(dict.fromkeys(found), key=lambda each: each.span.start if each.span else 0)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most similar to ``name``, or None if none is similar enough.

    >>> nearest("http://example.org/peopel", ["http://example.org/people", "http://example.org/w"])
    'http://example.org/people'
    """
    matches = difflib.get_close_matches(
        name, itertools.islice(known, MOST_COMPARED), n=1, cutoff=0.6
    )
    return matches[0] if matches else None


def _excerpt(text: str, span: Span) -> list[str]:
    begin = span.start - span.column + 1
    end = text.find("\n", begin)
    end = len(text) if end < 0 else end
    first, last = begin, end
    if end - begin > EXCERPT:
        first = max(begin, min(span.start - EXCERPT // 2, end - EXCERPT))
        last = first + EXCERPT
    # Unprintable characters must not control a terminal, and take one column like all others.
    source = "".join(each if each.isprintable() else " " for each in text[first:last]).rstrip()
    start = span.start - first
    width = max(1, min(span.end, last) - span.start) if span.start + 1 < last else 1
    return [
        f"  {source}".rstrip(),
        "  " + " " * start + "^" * max(1, min(width, len(source) - start)),
    ]
