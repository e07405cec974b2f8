"""File names made of the names of queries, and of times."""

from __future__ import annotations

import hashlib
import re

from acquatop.instants import instant_text

_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")
_OTHER = re.compile(r"[^a-z0-9_]+")
_DIGITS = 24
_YEAR_DIGITS = 4


def safe_name(query: str) -> str:
    """Return the name of a query's file or folder: short, no path, unique for every query.

    A name of up to 80 lower-case letters, digits, ``_`` and ``-`` stays as it is. Of any other the
    last part is kept, with 96 bits of a hash, so that names differ even if a file system ignores
    case.

    >>> safe_name("busiest-users"), safe_name("http://example.org/out")
    ('busiest-users', 'out.be3ec69b87dc279377dca3a6')
    """
    if _PLAIN.fullmatch(query):
        return query
    last = re.split(r"[/#:\\]", query.rstrip("/#:\\"))[-1]
    readable = _OTHER.sub("-", last.lower()).strip("-_")[:40] or "query"
    return (
        f"{readable}.{hashlib.sha256(query.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGITS]}"
    )


def instant_name(time_ms: int) -> str:
    """Return a time from the year 1 on as a part of a file's name; such names sort by time.

    A year of five digits has a letter before it, as letters come after digits.

    >>> instant_name(1_750_000_000_123), instant_name(253_402_300_800_000)
    ('20250615T150640.123Z', 'Y100000101T000000.000Z')
    """
    text = instant_text(time_ms)
    name = text.replace("-", "").replace(":", "")
    return f"Y{name}" if text.index("-") > _YEAR_DIGITS else name
