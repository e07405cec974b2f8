"""Keys that a request asks for, read off the VALUES block of its query."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

from tests.support.faults.message import Message

_VALUES = re.compile(
    r'VALUES\s*(\?\w+|\([^)]*\))\s*\{((?:[^}"<]|<[^>]*>|"(?:[^"\\]|\\.)*")*)\}', re.IGNORECASE
)
_TERM = re.compile(
    r'<[^>]*>|"(?:[^"\\]|\\.)*"(?:@[\w-]+|\^\^<[^>]*>)?|\bUNDEF\b|[\w.+-]*:[\w.-]+|[+-]?[\d.]+'
)


def keys_in(message: Message) -> tuple[str, ...]:
    """Return what stands in the VALUES block of a request's query, row by row,
    nothing where it has no such block.

    >>> query = b'SELECT * { VALUES ?k { <urn:a> "}"@en } ?k ?p ?o }'
    >>> keys_in(Message("POST /query HTTP/1.1", {}, query))
    ('<urn:a>', '"}"@en')
    """
    values = _VALUES.search(_query_in(message))
    if values is None:
        return ()
    terms, width = _TERM.findall(values[2]), values[1].count("?")
    return tuple(" ".join(terms[at : at + width]) for at in range(0, len(terms), width))


def key_variable(message: Message) -> str | None:
    values = _VALUES.search(_query_in(message))
    return values[1].strip("(?) ") if values else None


def _query_in(message: Message) -> str:
    is_form = "form-urlencoded" in message.headers.get("content-type", "")
    encoded = (
        message.body.decode(errors="replace")
        if is_form
        else urlsplit(message.start.split(" ")[1]).query
    )
    return parse_qs(encoded).get("query", [message.body.decode(errors="replace")])[0]
