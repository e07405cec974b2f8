"""Connections of a client: reused, each with the deadline of its request."""

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
"""Deadline of the request that the current thread is sending."""


class _QuietResponse(HTTPResponse):
    def begin(self) -> None:
        super().begin()
        # The library logs whatever it cannot parse, with the server's text.
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
    """Adapter with a limited number of reusable connections; sends each request at most once.

    An idle connection that the server has closed is detected before reuse. Certificates are
    verified against ``authorities`` (a file), or the usual ones. Ignores the environment, follows
    no redirects and keeps no cookies.
    """

    def __init__(self, connections: int, authorities: Path | None = None) -> None:
        self._authorities = authorities
        super().__init__(pool_maxsize=connections, max_retries=0)

    def open(self, request: PreparedRequest, deadline: float) -> BaseHTTPResponse:
        """Send a request; return the reply after its headers. Its body has the same deadline."""
        token = _DEADLINE.set(deadline)
        try:
            raw = self.send(request, stream=True).raw
        finally:
            _DEADLINE.reset(token)
        assert isinstance(raw, BaseHTTPResponse)
        return raw

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        """Use this module's connection pools."""
        super().init_poolmanager(*arguments, **options)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}

    def build_connection_pool_key_attributes(
        self, request: PreparedRequest, verify: Any, cert: Any = None
    ) -> Any:
        """Share one TLS context among all connections: loading certificates is slow."""
        host, _ = super().build_connection_pool_key_attributes(request, verify, cert)
        return host, {"ssl_context": self._certificates} if host["scheme"] == "https" else {}

    def cert_verify(self, *arguments: Any, **options: Any) -> None:
        """Do nothing: the shared TLS context is complete."""

    @cached_property
    def _certificates(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self._authorities or DEFAULT_CA_BUNDLE_PATH)
        context.sslsocket_class = TimedTlsSocket
        return context


def _set_deadline(connection: Any) -> None:
    """Set the deadline of a reused connection; a new one has it already."""
    if connection is not None:
        connection.deadline = _DEADLINE.get()
