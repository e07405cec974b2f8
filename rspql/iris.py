"""Resolution of IRI references against a base by RFC 3986, for any scheme."""

from __future__ import annotations

import re

_PARTS = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL
)


def is_absolute(iri: str) -> bool:
    """Return True if an IRI has a scheme.

    >>> is_absolute("urn:a"), is_absolute("//host/a")
    (True, False)
    """
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", iri) is not None


def resolve(base: str, reference: str) -> str:
    """Return a reference resolved against a base; the reference itself if there is no base.

    An absolute IRI stays as it is: SPARQL resolves relative ones, and normalizes none.

    >>> [resolve("http://a/b/c/d;p?q", each) for each in ("g", "../g", "//g")]
    ['http://a/b/c/g', 'http://a/b/g', 'http://g']
    >>> [resolve("http://a/b/c/d;p?q", each) for each in ("?y", "#s", "g:h")]
    ['http://a/b/c/d;p?y', 'http://a/b/c/d;p?q#s', 'g:h']
    >>> resolve("http://a/b", "http://c/./d/../e")
    'http://c/./d/../e'
    """
    if not base or is_absolute(reference):
        return reference
    _, authority, path, query, fragment = _split(reference)
    base_scheme, base_authority, base_path, base_query, _ = _split(base)
    if authority is not None:
        return _join(base_scheme, authority, _without_dots(path), query, fragment)
    if not path:
        return _join(
            base_scheme, base_authority, base_path, base_query if query is None else query, fragment
        )
    if not path.startswith("/"):
        path = _merged(base_authority, base_path, path)
    return _join(base_scheme, base_authority, _without_dots(path), query, fragment)


def _split(iri: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    match = _PARTS.fullmatch(iri)
    assert match is not None, "every part may be missing, so any text matches"
    return match[1], match[2], match[3], match[4], match[5]


def _join(
    scheme: str | None, authority: str | None, path: str, query: str | None, fragment: str | None
) -> str:
    start = "" if scheme is None else f"{scheme}:"
    host = "" if authority is None else f"//{authority}"
    return f"{start}{host}{path}{query or ''}{fragment or ''}"


def _merged(authority: str | None, base_path: str, path: str) -> str:
    if authority is not None and not base_path:
        return "/" + path
    return base_path[: base_path.rfind("/") + 1] + path


def _without_dots(path: str) -> str:
    """Return a path without its ``.`` and ``..`` segments."""
    if "." not in path:
        return path
    kept: list[str] = []
    segments = path.split("/")
    for segment in segments:
        if segment == ".." and len(kept) > 1:
            kept.pop()
        elif segment not in (".", ".."):
            kept.append(segment)
    ends_in_folder = segments[-1] in (".", "..")
    return "/".join([*kept, ""] if ends_in_folder else kept)
