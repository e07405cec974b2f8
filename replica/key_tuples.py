r"""Keys of several terms, as one text.

>>> key_text(["<urn:a>", '"b"']), terms_in('<urn:a>\n"b"')
('<urn:a>\n"b"', ['<urn:a>', '"b"'])
"""

from __future__ import annotations

from collections.abc import Iterable

SEPARATOR = "\n"
"""Text between two terms, or two variables: N-Triples text escapes line ends."""


def key_text(terms: Iterable[str]) -> str:
    """Return the text of a key of one or more terms; that of one is the term."""
    return SEPARATOR.join(terms)


def terms_in(key: str) -> list[str]:
    """Return the terms of a key."""
    return key.split(SEPARATOR)
