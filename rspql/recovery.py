"""Recovery from syntax errors: mend or skip each, and read on for the next."""

from __future__ import annotations

import re
from collections.abc import Callable

from lark.exceptions import UnexpectedInput

from rspql.diagnostics import Diagnostic
from rspql.draft import Draft, Edit
from rspql.mistakes import recognised
from rspql.source import Source
from rspql.syntax_errors import Finding, Stop, described, unsupported
from rspql.token_limits import LimitExceededError

_MOST = 20
"""Maximum number of syntax errors that are looked for."""
_READ_AGAIN = 200_000
"""Maximum number of characters read again for more errors, so that long texts stay cheap."""
_APART = 3
"""Number of tokens that must be read behind an unknown error before another one is told."""


Read = Callable[[str], object]
"""Function that reads a text, and raises an error if it is wrong."""


def syntax_errors(source: Source, error: UnexpectedInput, read: Read) -> list[Diagnostic]:
    """Return a text's syntax errors, given the first of them.

    A mistake that is recognised is mended, the line of anything else is skipped. What may only
    follow from an error before it is not told.
    """
    draft, found = Draft(source.parsed), list[Diagnostic]()
    at = unknown_at = -1
    for _ in range(1 + min(_MOST, _READ_AGAIN // (1 + len(draft.text)))):
        stop = Stop.of(error, draft.text)
        known = unsupported(stop) or recognised(stop)
        finding = known or described(stop)
        if unknown_at >= 0 and _tokens(draft.text, unknown_at, stop.at) < _APART:
            break
        if known is None:
            unknown_at = _line(draft.text, finding.start)[1]
        diagnostic = _diagnostic(finding, source, draft)
        if draft.origin(finding.start) < at or (found and _same(diagnostic, found[-1])):
            break  # what was mended is still wrong
        at = draft.origin(finding.start)
        found.append(diagnostic)
        if finding.is_last or not stop.found:
            break
        draft.apply(finding.fix or [_without_line(draft.text, finding.start)])
        next_error = _error_in(draft.text, read)
        if next_error is None:
            break
        error = next_error
    return found


def _same(one: Diagnostic, other: Diagnostic) -> bool:
    """Return True if two say the same of one place, be it with another hint."""
    return (one.span, one.message) == (other.span, other.message)


def _error_in(text: str, read: Read) -> UnexpectedInput | None:
    try:
        read(text)
    except UnexpectedInput as error:
        return error
    except LimitExceededError:
        return None
    return None


def _line(text: str, at: int) -> tuple[int, int]:
    """Return the start and the end of the line of a place."""
    end = text.find("\n", at)
    return text.rfind("\n", 0, at) + 1, len(text) if end < 0 else end


def _without_line(text: str, at: int) -> Edit:
    """Return the edit that leaves only the braces of a line."""
    start, end = _line(text, at)
    return Edit(start, end, "".join(each if each in "{}" else " " for each in text[start:end]))


def _tokens(text: str, start: int, end: int) -> int:
    return len(re.findall(r"\w+|[^\w\s]", text[start:end]))


def _diagnostic(finding: Finding, source: Source, draft: Draft) -> Diagnostic:
    span = source.span(draft.origin(finding.start), draft.origin(finding.end))
    return Diagnostic(finding.code, finding.message, span, finding.hint)
