"""Text for messages about requests: one line, printable, without secrets."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus, urlsplit

LONGEST_REMARK = 200
"""Most characters quoted from a server's text."""
_SHORTEST_BEGINNING = 4
"""Fewest characters of a secret that count as revealing it."""


def printable(text: str) -> str:
    r"""Return a text without its control characters.

    >>> printable("\x1b[31mred\x00")
    '[31mred'
    """
    return "".join(each for each in text if each.isprintable())


def shown(url: str) -> str:
    """Return the part of an address that can be shown: no user, no password, no parameters.

    >>> shown("https://ann:xyzzy@example.org:8443/query?key=xyzzy")
    'https://example.org:8443/query'
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that is none"
    place = parts.netloc.rpartition("@")[2]
    return printable(parts._replace(netloc=place, query="", fragment="").geturl())


class Redactor:
    """Filter that replaces secrets by ``***``: plain, or escaped for addresses, JSON or HTML.

    >>> Redactor(["a/b"])("a/b and A%2FB")
    '*** and ***'
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets for form in _forms(secret) if form}
        self._forms = sorted(forms, key=len, reverse=True)
        self._any = re.compile("|".join(map(re.escape, self._forms)), re.IGNORECASE)

    def __call__(self, text: str) -> str:
        """Return a text without secrets."""
        return self._any.sub("***", text) if self._forms else text

    def end(self, text: str) -> str:
        """Return a text, possibly cut off, without a secret's beginning at its end.

        >>> Redactor(["xyzzy-plugh"]).end("token: xyzzy-")
        'token: ***'
        """
        lower = text.lower()
        for form in self._forms:
            for length in range(min(len(form), len(text)), _SHORTEST_BEGINNING - 1, -1):
                if lower.endswith(form[:length].lower()):
                    return text[:-length] + "***"
        return text

    def line(self, text: str) -> str:
        """Return the first line of a text that is not empty, cut to the quoted length."""
        lines = (self(printable(line)).strip() for line in text.splitlines())
        return next(filter(None, lines), "")[:LONGEST_REMARK]


def _forms(secret: str) -> Iterator[str]:
    # Headers are decoded as Latin-1, in whatever encoding they were sent.
    read = secret.encode("utf-8", errors="replace").decode("latin-1")
    lines = map(printable, [secret, read, *secret.splitlines(), *read.split("\n")])
    for text in {secret, *lines}:
        encoded = text.encode("utf-8", errors="replace")
        yield from (text, quote(encoded), quote(encoded, safe=""), quote_plus(encoded))
        yield from (json.dumps(text)[1:-1], json.dumps(text)[1:-1].replace("/", "\\/"))
        yield from (
            json.dumps(text, ensure_ascii=False)[1:-1],
            html.escape(text),
            html.escape(text, quote=False),
        )
