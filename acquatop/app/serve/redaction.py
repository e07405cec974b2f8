"""Removal of private details from messages for clients: paths, secrets, tracebacks."""

from __future__ import annotations

import re

from acquatop.errors import AcquaTopError
from connectors import ConnectorError
from replica.remotes import RemoteError
from rspql.diagnostics import QueryError

UNSAID = "it failed for a reason that only the server's log tells"

_URL = re.compile(
    r"<[^<>\s]*>|\b([a-z][a-z0-9+.-]*)://(?:[^\s/@'\"]*@)?([^\s/?#'\"<>]+)[^\s'\"<>]*",
    re.IGNORECASE,
)
_PATH = re.compile(r"(?<![\w/.:>])(?:~|\.{1,2})?/(?:[^\s:'\",;()<>]+)")


def public_text(text: str) -> str:
    """Return a message without file paths, and without all but the host of URLs; IRIs in <> stay.

    >>> public_text("/srv/data/users.csv cannot be read, nor http://me:pw@example.org:8080/q?key=1")
    '… cannot be read, nor http://example.org:8080/…'
    >>> public_text("the catalog has no stream <http://example.org/streem>; 3/4 of them")
    'the catalog has no stream <http://example.org/streem>; 3/4 of them'
    """
    addresses: list[str] = []

    def keep(found: re.Match[str]) -> str:
        rest = "/…" if found[0].count("/") > 2 else ""
        addresses.append(found[0] if found[1] is None else f"{found[1]}://{found[2]}{rest}")
        return f"\0{len(addresses) - 1}\0"

    hidden = _PATH.sub("…", _URL.sub(keep, text.replace("\0", "")))
    return re.sub("\0([0-9]+)\0", lambda found: addresses[int(found[1])], hidden)


def public_error(error: BaseException) -> str:
    """Return the public text of an error: its message if it is for users, else a generic one.

    >>> public_error(KeyError("/etc/passwd"))
    "it failed for a reason that only the server's log tells"
    """
    if isinstance(error, QueryError):
        return "; ".join(each.message for each in error.diagnostics)
    if isinstance(error, AcquaTopError | ConnectorError | RemoteError):
        return public_text(str(error))
    return UNSAID
