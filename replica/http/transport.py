"""The connections of a client: kept for reuse, each with the deadline of the request that uses it."""

from __future__ import annotations

import ssl
from contextvars import ContextVar
from functools import cached_property
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

from requests import PreparedRequest
from requests.adapters import HTTPAdapter
from requests.utils import DEFAULT_CA_BUNDLE_PATH
from urllib3 import BaseHTTPResponse
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from replica.http.sockets import ConnectTimeoutError, TimedSocket, TimedTlsSocket, connect

_DEADLINE: ContextVar[float] = ContextVar("deadline")
"""That of the request which the present thread is sending."""


class _QuietResponse(HTTPResponse):
    def begin(self) -> None:
        super().begin()
        # The library logs what it cannot parse, whatever a server has put there.
        self.headers.defects.clear()
        self.headers.set_payload("")


class _Connection(HTTPConnection):
    response_class = _QuietResponse

    def _new_conn(self) -> TimedSocket:
        return connect(self._dns_host, self.port, _DEADLINE.get())

    def request(self, *arguments: Any, **options: Any) -> None:
        _set_deadline(self.sock)
        super().request(*arguments, **options)


class _TlsConnection(HTTPSConnection):
    response_class = _QuietResponse

    def connect(self) -> None:
        try:
            super().connect()
        except ConnectTimeoutError:
            raise
        except TimeoutError as error:
            raise ConnectTimeoutError("connecting took too long") from error

    def _new_conn(self) -> TimedSocket:
        return connect(self._dns_host, self.port, _DEADLINE.get())

    def request(self, *arguments: Any, **options: Any) -> None:
        _set_deadline(self.sock)
        super().request(*arguments, **options)


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class Transport(HTTPAdapter):
    """Sends requests over connections that are kept, up to a number; a request is sent once, or not at all.

    A connection that the server has closed while nobody used it is seen to be closed before it is
    used again. Certificates are those of ``authorities`` (a file), or of the usual ones. Takes
    nothing from the environment, follows no redirect and keeps no cookie.
    """

    def __init__(self, connections: int, authorities: Path | None = None) -> None:
        self._authorities = authorities
        super().__init__(pool_maxsize=connections, max_retries=0)

    def open(self, request: PreparedRequest, deadline: float) -> BaseHTTPResponse:
        """Send a request and return the answer when its headers have come; its body has the same deadline."""
        token = _DEADLINE.set(deadline)
        try:
            raw = self.send(request, stream=True).raw
        finally:
            _DEADLINE.reset(token)
        assert isinstance(raw, BaseHTTPResponse)
        return raw

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        """Make connections of our own kind."""
        super().init_poolmanager(*arguments, **options)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}

    def build_connection_pool_key_attributes(self, request: PreparedRequest, verify: Any, cert: Any = None) -> Any:
        """Let all connections share what is known of certificates: reading it takes a while."""
        host, _ = super().build_connection_pool_key_attributes(request, verify, cert)
        return host, {"ssl_context": self._certificates} if host["scheme"] == "https" else {}

    def cert_verify(self, *arguments: Any, **options: Any) -> None:
        """Add nothing: the context that all connections share has it all."""

    @cached_property
    def _certificates(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self._authorities or DEFAULT_CA_BUNDLE_PATH)
        context.sslsocket_class = TimedTlsSocket
        return context


def _set_deadline(connection: Any) -> None:
    """Give a connection that is there already the deadline of what it is used for now; a new one has it."""
    if connection is not None:
        connection.deadline = _DEADLINE.get()
