"""HTTP endpoint for a Prometheus server to fetch metrics from."""

from __future__ import annotations

import io
import logging
import socket
import socketserver
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest

from acquatop.app.watch.address import ListenAddress
from acquatop.app.watch.head import HeadError, read_head
from acquatop.app.watch.throttled_counter import ThrottledCounter
from acquatop.errors import EnvironmentProblem

SECONDS = 10.0
"""Seconds that a client may take to send its request, and then to take each part of the reply."""

HEAD_BYTES = 8 << 10
"""Bytes of a request."""

CONNECTIONS = 32
"""Connections at once, each with a thread."""

CONNECTIONS_PER_ADDRESS = 16
"""Connections of one address at once."""

_LOGGER = logging.getLogger(__name__)


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
    """HTTP server for IPv4 or IPv6 with few connections, which ignores clients that go away."""

    daemon_threads = True

    def __init__(self, place: Any, handler: type[BaseHTTPRequestHandler], family: int) -> None:
        self.address_family = family
        self._lock = threading.Lock()
        self._open: Counter[str] = Counter()
        self._refused: ThrottledCounter[str] = ThrottledCounter(10.0, clock=time.monotonic)
        super().__init__(place, handler)

    def server_bind(self) -> None:
        # The base class looks up the host's name, which can take long. Nobody needs it.
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection, or refuse it at once."""
        address = str(client_address[0])
        with self._lock:
            is_one_too_many = self._open[address] >= CONNECTIONS_PER_ADDRESS
            status = HTTPStatus.TOO_MANY_REQUESTS if is_one_too_many else None
            if self._open.total() >= CONNECTIONS:
                status = HTTPStatus.SERVICE_UNAVAILABLE
            if status is None:
                self._open[address] += 1
        if status is None:
            super().process_request(request, client_address)
            return
        with suppress(OSError):
            request.setblocking(False)
            request.send(_refusal(status))
            request.shutdown(socket.SHUT_WR)
        self.refused(status, address)
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a connection."""
        address = str(client_address[0])
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._open[address] -= 1
                if not self._open[address]:
                    del self._open[address]

    def refused(self, status: HTTPStatus, address: str) -> None:
        """Log a refusal, unless one with the same status was logged just now."""
        with self._lock:
            times = self._refused.add(status.phrase)
        if times is not None:
            said = "refused %d times: %s (%d); the last for %s"
            _LOGGER.warning(said, times, status.phrase, status, address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of connections."""


class _Handler(BaseHTTPRequestHandler):
    timeout = SECONDS
    server_version = "acquatop"
    sys_version = ""
    text: Callable[[], bytes]

    def handle(self) -> None:
        """Read a request within its limits, and answer it."""
        try:
            head = read_head(
                self.connection, most=HEAD_BYTES, seconds=SECONDS, clock=time.monotonic
            )
        except HeadError as error:
            self.connection.settimeout(SECONDS)
            self._refuse(error.status)
            return
        self.connection.settimeout(SECONDS)
        words = head.partition(b"\n")[0].split()
        if head and (len(words) != 3 or words[2] not in (b"HTTP/1.0", b"HTTP/1.1")):
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        self.rfile = io.BufferedReader(io.BytesIO(head))
        super().handle()

    def parse_request(self) -> bool:
        """Check a request's line and headers; return False if it has been refused."""
        if not super().parse_request():
            return False
        # Nothing here has a body, so the connection ends with the response.
        self.close_connection = True
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or not self.path.startswith("/"):
            self._refuse(HTTPStatus.BAD_REQUEST)
            return False
        return True

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

    def _refuse(self, status: HTTPStatus) -> None:
        assert isinstance(self.server, _Server)
        self.server.refused(status, str(self.client_address[0]))
        self.wfile.write(_refusal(status))

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


def _refusal(status: HTTPStatus) -> bytes:
    """Return a response without a body."""
    wait = "Retry-After: 5\r\n" if status in (429, 503) else ""
    head = f"HTTP/1.1 {status.value} {status.phrase}\r\n{wait}Content-Length: 0\r\n"
    return f"{head}Connection: close\r\n\r\n".encode()
