"""HTTP protocol of a connection: uvicorn's, with limits that hold before anything is collected."""

from __future__ import annotations

import json
import math
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from acquatop.app.serve.connections import Connections, Stage
from acquatop.app.serve.guard import HEADERS
from acquatop.app.serve.http_metrics import Meters
from acquatop.app.serve.limits import Limits
from acquatop.app.serve.problems import MEDIA_TYPE, Problem
from acquatop.app.serve.refusals import Refusals

PIECE = 4 << 10
"""Bytes that the parser gets at once, so that limits are checked between two pieces."""

HELD = 1 << 20
"""Bytes of pipelined requests that may wait for the responses before them."""

DISCARDED = 1 << 20
"""Bytes that are read and dropped after a last response, so that the client can read it."""

REFUSED = 256
"""Connections that may read a last response; above it newcomers are closed without one."""

CHUNKED = 8
"""Bytes on the wire for each byte of a body in chunks; the rest is sizes and extensions."""


@dataclass(frozen=True)
class Door:
    """The state that the connections of a service share."""

    connections: Connections
    limits: Limits
    meters: Meters
    refusals: Refusals

    async def sweep(self) -> None:
        """End the connections that have been in their stage for too long."""
        for one, stage in self.connections.overdue():
            assert isinstance(one, BoundedProtocol)
            one.overdue(stage)


class BoundedProtocol(HttpToolsProtocol):
    """Connection with limits on the size, number and time of what a client sends.

    Bytes go to the parser in small pieces, and stop at the first that exceeds a limit. Memory per
    connection is O(limits), and time is linear in the bytes received. A refusal is sent after the
    responses to earlier requests, as the connection's last.
    """

    def __init__(self, *given: Any, door: Door, **more: Any) -> None:
        super().__init__(*given, **more)
        self._door = door
        self._address = ""
        self._held = b""
        self._in_head = False
        self._is_open = False
        """True from a request's first byte to the last of its body."""
        self._received = 0
        """Bytes of the present head or body on the wire."""
        self._problem: Problem | None = None
        """The reason for which a callback has stopped the parser."""
        self._pending: Problem | None = None
        """Refusal to send after the responses that are under way."""
        self._unanswered: deque[RequestResponseCycle] = deque()
        """Requests without a complete response, oldest first; the first of them is under way."""
        self._stopped = False
        self._discarded = 0

    # Connection -----------------------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        """Add the connection to the ledger, or refuse it."""
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        problem = self._door.connections.enter(self, self._address)
        if problem is None:
            return
        if self._door.connections.count(Stage.LAST) < REFUSED:
            self._refuse(problem)
        else:
            self.cut()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from the ledger."""
        super().connection_lost(exc)
        for cycle in self._unanswered:
            # The base class tells only the newest of them.
            _disconnect(cycle)
        self._stopped, self._held = True, b""
        self._door.connections.leave(self)

    def cut(self) -> None:
        """Close the connection, which is idle."""
        self._door.connections.leave(self)
        self._stopped = True
        self.transport.close()

    def overdue(self, stage: Stage) -> None:
        """End the connection, which has been in a stage for too long."""
        if stage is Stage.HEAD:
            seconds = self._door.limits.header_seconds
            self._refuse(Problem("timeout", f"the headers must be here within {seconds:g} s"))
        elif stage is Stage.LAST:
            self._door.connections.leave(self)
            self.transport.abort()
        else:
            self.cut()

    # Bytes ----------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Give bytes to the parser, unless requests before them wait for their responses."""
        self._unset_keepalive_if_required()
        if self._stopped:
            self._discarded += len(data)
            if self._discarded > DISCARDED:
                self.transport.abort()
            return
        self._held = self._held + data if self._held else data
        if len(self._held) > HELD:
            self._note(Problem("too-large", "too much is sent before the responses are read"))
            self.transport.abort()
            return
        self._pump()

    def _pump(self) -> None:
        """Give the parser pieces of what is held, until a request has to wait."""
        held, at, self._held = memoryview(self._held), 0, b""
        while at < len(held) and not self.pipeline and not self._stopped:
            piece = held[at : at + PIECE]
            at += len(piece)
            self._feed(piece)
        if not self._stopped:
            self._held = bytes(held[at:])
            self._settle()

    def _feed(self, piece: memoryview) -> None:
        problem: Problem | None = None
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            # No upgrade is offered: the request is answered, and what follows is not HTTP.
            self._stopped = True
        except httptools.HttpParserInvalidMethodError:
            problem = Problem("unknown-method", "this is not a method of HTTP")
        except httptools.HttpParserError:
            problem = self._problem or _invalid("the request is not HTTP/1.1")
        else:
            self._received += len(piece)
            problem = self._too_large()
        if problem is not None:
            self._refuse(problem)

    def _too_large(self) -> Problem | None:
        limits = self._door.limits
        if self._in_head and self._received > limits.header_bytes + PIECE:
            return self._head_too_large()
        if self._is_open and self._received > CHUNKED * limits.text_bytes + limits.header_bytes:
            return Problem("too-large", f"a body may have {limits.text_bytes} bytes")
        return None

    def _head_too_large(self) -> Problem:
        return Problem(
            "headers-too-large", f"headers may have {self._door.limits.header_bytes} bytes"
        )

    def _settle(self) -> None:
        """Note the connection's stage in the ledger."""
        problem = self._door.connections.move(self, self._stage())
        if problem is not None:
            self._refuse(problem)

    def _stage(self) -> Stage:
        if self._is_busy:
            return Stage.BODY if self._is_open and not self._in_head else Stage.BUSY
        if self._is_open:
            return Stage.HEAD
        return Stage.FRESH if self.cycle is None else Stage.IDLE

    @property
    def _is_busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    # Callbacks of the parser ----------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Begin to count a request's head."""
        super().on_message_begin()
        self._in_head, self._is_open, self._received = True, True, 0
        self._head_bytes = 0

    def on_url(self, url: bytes) -> None:
        """Collect the target."""
        most = self._door.limits.header_line_bytes
        if len(self.url) + len(url) > most:
            self._fail(Problem("target-too-long", f"an address may have {most} bytes"))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header. Fields after a body in chunks are dropped."""
        if not self._in_head:
            return
        limits = self._door.limits
        self._head_bytes += len(name) + len(value) + 4
        if len(name) + len(value) > limits.header_line_bytes:
            most = limits.header_line_bytes
            self._fail(Problem("headers-too-large", f"a header may have {most} bytes"))
        if self._head_bytes + len(self.url) > limits.header_bytes:
            self._fail(self._head_too_large())
        if len(self.headers) >= limits.headers:
            self._fail(Problem("headers-too-large", f"a request may have {limits.headers} headers"))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Check the head, and start its request."""
        wrong = _wrong(self.url, self.headers, self.parser.get_http_version())
        if wrong is not None:
            self._fail(_invalid(wrong))
        super().on_headers_complete()
        self._unanswered.append(self.cycle)
        self._in_head, self._received = False, 0
        if self.parser.should_upgrade():
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        """Note that the request is complete."""
        super().on_message_complete()
        self._is_open = False

    def _fail(self, problem: Problem) -> None:
        """Stop the parser."""
        self._problem = problem
        raise ValueError(problem.kind)

    # Responses ------------------------------------------------------------------------------------

    def on_response_complete(self) -> None:
        """Continue with what has waited for the response, or end the connection."""
        self._unanswered.popleft()
        was_last = not self.pipeline
        super().on_response_complete()
        if not was_last or self.transport.is_closing():
            return
        if self._pending is not None:
            self._send(self._pending)
        elif self._stopped or (self._is_open and not self._in_head):
            # The rest of the body is of no use.
            self._end()
        else:
            self._pump()

    def _refuse(self, problem: Problem) -> None:
        """Send a refusal as the last response, after those under way; read no more requests."""
        self._note(problem)
        self._stopped, self._held = True, b""
        if self._is_busy and self._is_open and not self._in_head:
            self._give_up_request(problem)
        elif self._is_busy:
            self._pending = problem
        else:
            self._send(problem)

    def _give_up_request(self, problem: Problem) -> None:
        """Refuse a request whose body is arriving, and which may have been started."""
        if self.pipeline:
            self.pipeline.popleft()
            self._unanswered.pop()
            self._pending = problem
            return
        _disconnect(self.cycle)
        if self.cycle.response_started:
            self.transport.abort()
        else:
            self._send(problem)

    def _note(self, problem: Problem) -> None:
        self._door.refusals.note(problem, self._address)
        self._door.meters.requests.labels("other", "none", str(problem.status)).inc()

    def _send(self, problem: Problem) -> None:
        if not self.transport.is_closing():
            self.transport.write(_response(problem))
            self._end()

    def _end(self) -> None:
        """Send no more, and drop what still comes, so that the client can read its response."""
        self._stopped, self._held = True, b""
        self._unset_keepalive_if_required()
        self._door.connections.move(self, Stage.LAST)
        self.flow.resume_reading()
        with suppress(OSError):
            # The client may have gone.
            self.transport.write_eof()


def _disconnect(cycle: RequestResponseCycle) -> None:
    """Let a request's handler know that its client has gone."""
    cycle.disconnected = True
    cycle.waiting_for_100_continue = False
    cycle.message_event.set()


def _invalid(detail: str) -> Problem:
    return Problem("invalid-request", detail)


def _wrong(target: bytes, headers: list[tuple[bytes, bytes]], version: str) -> str | None:
    """Return what is wrong with a request's head, or None.

    >>> host = (b"host", b"localhost")
    >>> _wrong(b"/", [host], "1.1"), _wrong(b"/", [], "1.1")
    (None, 'a request has exactly one Host')
    >>> _wrong(b"http://elsewhere/", [host], "1.1")
    'the address must begin with /'
    >>> length = (b"content-length", b"4")
    >>> _wrong(b"/", [host, length, length], "1.1")
    'the length of the body is ambiguous'
    """
    found: dict[bytes, list[bytes]] = {b"host": [], b"content-length": [], b"transfer-encoding": []}
    for name, value in headers:
        if name in found:
            found[name].append(value)
    hosts, lengths, encodings = found.values()
    if version not in ("1.0", "1.1"):
        return "only HTTP/1.0 and HTTP/1.1 are served"
    if not target.startswith(b"/"):
        return "the address must begin with /"
    if len(hosts) != 1:
        return "a request has exactly one Host"
    if len(lengths) + len(encodings) > 1 or (encodings and version == "1.0"):
        return "the length of the body is ambiguous"
    if any(not (each.isascii() and each.isdigit() and len(each) <= 18) for each in lengths):
        return "Content-Length is not a number"
    if any(each.lower() != b"chunked" for each in encodings):
        return "the only Transfer-Encoding is chunked"
    return None


def _response(problem: Problem) -> bytes:
    body = json.dumps(problem.to_json()).encode()
    headers = {
        **HEADERS,
        "content-type": MEDIA_TYPE,
        "content-length": str(len(body)),
        "cache-control": "no-store",
        "connection": "close",
    }
    if problem.retry_after is not None:
        headers["retry-after"] = str(math.ceil(problem.retry_after))
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    phrase = HTTPStatus(problem.status).phrase
    return f"HTTP/1.1 {problem.status} {phrase}\r\n{head}\r\n".encode() + body
