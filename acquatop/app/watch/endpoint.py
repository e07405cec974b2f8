"""HTTP endpoint for a Prometheus server to fetch metrics from."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest

from acquatop.app.watch.address import ListenAddress
from acquatop.errors import EnvironmentProblem

TIMEOUT = 10.0
"""Seconds that a client may take to send its request."""


class Endpoint:
    """Server of a registry at ``/metrics``, in threads of its own from its start to its close.

    ``url`` is its address. Raises :class:`EnvironmentProblem` if it cannot listen there. Anybody
    who can reach the address can read the metrics. They contain the names of streams and queries,
    but no data.
    """

    def __init__(self, registry: CollectorRegistry, address: ListenAddress) -> None:
        self._server = _listen(address, lambda: generate_latest(registry))
        port = self._server.server_address[1]
        self.url = f"http://{ListenAddress(address.host, int(port))}/metrics"
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            kwargs={"poll_interval": 0.1},
            name="acquatop-metrics",
            daemon=True,
        )

    def start(self) -> None:
        """Answer requests."""
        self._thread.start()

    def close(self) -> None:
        """Stop listening; safe to call again."""
        if self._thread.ident is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


def _listen(address: ListenAddress, text: Callable[[], bytes]) -> _Server:
    try:
        family, *_, place = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[
            0
        ]
        return _Server(place, type("Handler", (_Handler,), {"text": staticmethod(text)}), family)
    except OSError as error:
        raise EnvironmentProblem(
            f"metrics cannot be served at {address}: {error.strerror or error}\n"
            "  hint: name another port, or 0 for any that is free"
        ) from None


class _Server(ThreadingHTTPServer):
    """HTTP server for IPv4 or IPv6 that ignores clients that go away."""

    daemon_threads = True

    def __init__(self, place: Any, handler: type[BaseHTTPRequestHandler], family: int) -> None:
        self.address_family = family
        super().__init__(place, handler)

    def server_bind(self) -> None:
        # The base class looks up the host's name, which can take long. Nobody needs it.
        socketserver.TCPServer.server_bind(self)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of connections."""


class _Handler(BaseHTTPRequestHandler):
    timeout = TIMEOUT
    server_version = "acquatop"
    sys_version = ""
    text: Callable[[], bytes]

    def do_GET(self) -> None:
        """Send the metrics."""
        if self.path.partition("?")[0] not in ("/", "/metrics"):
            self.send_error(404)
            return
        body = self.text()
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE_PLAIN_0_0_4)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""
