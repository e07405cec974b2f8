"""Text of a query: resolves codepoint escapes and maps places back to the text as written."""

from __future__ import annotations

import bisect
import re

from rspql.ast import Span

# An escaped backslash does not begin a codepoint escape.
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|[^uU])")


class Source:
    r"""A query's text as written, and as parsed by the grammar.

    SPARQL resolves ``\uXXXX`` and ``\UXXXXXXXX`` anywhere in a query before it is parsed. Spans
    always refer to the text as written; finding one takes a binary search.

    >>> source = Source(r"SELECT ?\u0061b {}")
    >>> source.parsed, source.span(7, 10)
    ('SELECT ?ab {}', Span(start=7, end=15, line=1, column=8))
    """

    def __init__(self, written: str) -> None:
        self.written = written
        self._lines = [0, *(match.end() for match in re.finditer("\n", written))]
        self._ends: list[int] = []
        self._gains: list[int] = []
        self.unknown: list[Span] = []
        """Escapes that denote no character."""
        self.parsed = self._resolve() if "\\" in written else written

    def span(self, start: int, end: int) -> Span:
        """Return the span of a range of the parsed text."""
        length = len(self.written)
        start, end = (
            min(self._origin(start), length),
            min(max(self._origin(start), self._origin(end)), length),
        )
        line = bisect.bisect_right(self._lines, start)
        return Span(start, end, line, start - self._lines[line - 1] + 1)

    def _origin(self, at: int) -> int:
        """Return the offset in the written text of a character of the parsed text."""
        passed = bisect.bisect_right(self._ends, at)
        return at + (self._gains[passed - 1] if passed else 0)

    def _resolve(self) -> str:
        gain = 0
        parts = []
        done = 0
        for match in _ESCAPE.finditer(self.written):
            digits = match[1] or match[2]
            if digits is None:
                continue
            code = int(digits, 16)
            if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
                line = bisect.bisect_right(self._lines, match.start())
                column = match.start() - self._lines[line - 1] + 1
                self.unknown.append(Span(match.start(), match.end(), line, column))
                continue
            parts += [self.written[done : match.start()], chr(code)]
            done = match.end()
            gain += len(match[0]) - 1
            self._ends.append(match.end() - gain)
            self._gains.append(gain)
        return "".join([*parts, self.written[done:]])
