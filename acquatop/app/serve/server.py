"""HTTP server of the service, in threads of its own."""

from __future__ import annotations

import functools
import socket
import threading
import time
from collections.abc import Collection
from contextlib import suppress
from typing import Self

import uvicorn

from acquatop.app.serve.access import TOKEN, Tokens
from acquatop.app.serve.app import NO_TOKENS, make_app
from acquatop.app.serve.connections import Connections
from acquatop.app.serve.guard import is_loopback
from acquatop.app.serve.http_metrics import Meters
from acquatop.app.serve.protocol import BoundedProtocol, Door
from acquatop.app.serve.refusals import Refusals
from acquatop.app.serve.service import QueryService
from acquatop.app.serve.tls import TlsFiles
from acquatop.app.watch.address import ListenAddress
from acquatop.engine.interruptible import wait_until
from acquatop.errors import EnvironmentProblem, UserError

_GRACE_SECONDS = 5
_SEND_BUFFER = 256 << 10
"""Bytes that the system may buffer for one slow reader."""


class Server:
    """HTTP server of a service, from its start to its close; ``url`` is its address.

    The caller starts and stops the service. Use the server as a context manager. Raises
    :class:`UserError` if other machines could reach it without a token, and
    :class:`EnvironmentProblem` if it cannot listen there.
    """

    def __init__(
        self,
        service: QueryService,
        meters: Meters,
        address: ListenAddress,
        *,
        tokens: Tokens = NO_TOKENS,
        hosts: Collection[str] = (),
        tls: TlsFiles | None = None,
    ) -> None:
        if not tokens and not is_loopback(address.host):
            raise UserError(
                f"{address} can be reached from other machines, so a token is needed\n"
                f"  hint: set {TOKEN} (openssl rand -hex 24 makes one), or listen on 127.0.0.1"
            )
        limits = service.limits
        self._socket = _listening(address, limits.stuck_seconds)
        named = [] if is_loopback(address.host) else [address.host]
        scheme = "http" if tls is None else "https"
        self.url = f"{scheme}://{ListenAddress(address.host, self._socket.getsockname()[1])}"
        self._refusals = Refusals()
        door = Door(Connections(limits, clock=time.monotonic), limits, meters, self._refusals)
        app = make_app(
            service, meters, tokens=tokens, hosts=[*hosts, *named], refusals=self._refusals
        )
        self._tls = tls
        self._server = _Server(
            uvicorn.Config(
                app,
                http=functools.partial(BoundedProtocol, door=door),  # type: ignore[arg-type]
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=limits.idle_seconds,  # type: ignore[arg-type]
                callback_notify=door.sweep,
                timeout_notify=0,
                timeout_graceful_shutdown=_GRACE_SECONDS,
                **({} if tls is None else tls.for_uvicorn()),
            )
        )
        self._thread = threading.Thread(target=self._serve, name="acquatop-http", daemon=True)

    def start(self) -> None:
        """Answer requests; returns once it does."""
        self._thread.start()
        self._server.is_up.wait()

    def _serve(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._server.is_up.set()

    def wait(self) -> None:
        """Return when the server has been closed."""
        wait_until(self._has_ended)

    def _has_ended(self, within: float) -> bool:
        self._thread.join(within)
        return not self._thread.is_alive()

    def reload_certificate(self) -> None:
        """Read the certificate again, for connections from now on; nothing without one.

        Raises :class:`UserError` if it cannot be used; then the former goes on.
        """
        context = self._server.config.ssl
        if self._tls is not None and context is not None:
            self._tls.check()
            self._tls.load_into(context)

    def close(self) -> None:
        """Finish the requests at hand, and stop listening; safe to call again."""
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join()
        self._socket.close()
        self._refusals.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Server(uvicorn.Server):
    """Uvicorn server with an event for the end of its startup."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and set the event."""
        await super().startup(sockets)
        self.is_up.set()


def _listening(address: ListenAddress, stuck_seconds: float) -> socket.socket:
    try:
        family, kind, *_, place = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM
        )[0]
        listening = socket.socket(family, kind)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
            with suppress(AttributeError, OSError):
                # The system cuts off a reader that makes no progress for so long. Connections
                # inherit this.
                listening.setsockopt(
                    socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(1000 * stuck_seconds)
                )
            listening.bind(place)
        except OSError:
            listening.close()
            raise
    except OSError as error:
        raise EnvironmentProblem(
            f"the service cannot listen at {address}: {error.strerror or error}\n"
            "  hint: name another port with --listen, or 0 for any that is free"
        ) from None
    return listening
