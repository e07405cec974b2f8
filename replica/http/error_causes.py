"""Plain-language causes of failed requests, from nested library errors."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from http.client import HTTPException, IncompleteRead, RemoteDisconnected

from urllib3.exceptions import HTTPError, ProtocolError

from replica.http.sockets import ConnectTimeoutError

FAILURES = (OSError, HTTPError, HTTPException, ValueError)
"""Errors of sending a request or reading its reply (those of ``requests`` are OSErrors)."""

TOO_SLOW = "the answer took too long"
_WORDS: tuple[tuple[type[BaseException], str], ...] = (
    (RemoteDisconnected, "the connection was closed before an answer came"),
    (ConnectionRefusedError, "the connection was refused"),
    (ConnectionResetError, "the connection was reset"),
    (BrokenPipeError, "the connection was closed while the request was sent"),
    (TimeoutError, TOO_SLOW),
    (IncompleteRead, "the answer ended early"),
)


def cause(error: BaseException) -> tuple[str, bool]:
    """Return the cause of a failure, and True if the answer took too long after the request.

    >>> cause(ConnectionRefusedError(111, "Connection refused"))
    ('the connection was refused', False)
    """
    for each in _chain(error):
        if isinstance(each, ssl.SSLCertVerificationError):
            return f"its certificate is not valid: {each.verify_message}", False
        if isinstance(each, ConnectTimeoutError):
            return str(each), False
        if isinstance(each, socket.gaierror):
            return f"its name could not be looked up: {each.strerror or each}", False
        for kind, words in _WORDS:
            if isinstance(each, kind):
                return words, words == TOO_SLOW
    return _other(error), False


def _other(error: BaseException) -> str:
    for each in _chain(error):
        if isinstance(each, ssl.SSLError):
            return f"TLS failed: {each.reason or each}"
        # Errors of urllib3 get their text from an inner one.
        if isinstance(each, HTTPException) and not isinstance(each, ProtocolError):
            return "the answer is not HTTP"
        if type(each) is OSError and each.strerror:
            return each.strerror
    return str(error) or type(error).__name__


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        yield error
        seen.add(id(error))
        error = error.__cause__ or error.__context__
