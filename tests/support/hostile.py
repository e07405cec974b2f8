"""Hostile bytes for an HTTP server, made from a seed."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random

from tests.support.staged import QUERY
from tests.support.strangers import Raw, statuses

HOST = b"Host: localhost\r\n"
METHODS = (b"GET", b"HEAD", b"POST", b"DELETE", b"OPTIONS", b"PUT", b"TRACE", b"CONNECT", b"G@T")
PATHS = (
    *(b"/healthz", b"/queries", b"/queries?name=x", b"/check", b"/events", b"/metrics", b"/"),
    *(
        b"/page/..%2f..%2fetc%2fpasswd",
        b"//evil.example/queries",
        b"/%",
        b"/%zz",
        b"/?" + b"&" * 999,
    ),
    *(
        b"/queries/%00",
        b"/queries/q/answer?spreadsheet=x",
        b"*",
        b"http://evil/",
        b"",
        b"/\xc3\xa9",
    ),
    *(b"/openapi.json", b"/queries/" + b"a/" * 500, b"/" + b"a" * 9_000),
)
VERSIONS = (
    b"HTTP/1.1",
    b"HTTP/1.1",
    b"HTTP/1.1",
    b"HTTP/1.0",
    b"HTTP/0.9",
    b"HTTP/2.0",
    b"HTCPCP/1",
)
HEADERS = (
    *(
        b"Content-Length: 5",
        b"Content-Length: 0",
        b"Content-Length: 70000",
        b"Content-Length: 5, 6",
    ),
    *(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked, gzip", b"TE: trailers"),
    *(
        b"Connection: close",
        b"Connection: keep-alive",
        b"Connection: Upgrade",
        b"Connection: TE, x",
    ),
    *(b"Upgrade: websocket", b"Upgrade: h2c", b"Sec-WebSocket-Key: eA==", b"Expect: 100-continue"),
    *(b"Range: bytes=" + b"0-1," * 900, b"Accept: " + b"a/b;q=0.1," * 700, b"Accept: text/csv"),
    *(b"Content-Type: text/plain", b"Content-Encoding: gzip", b"Accept-Encoding: gzip, br"),
    *(b"Origin: http://evil.example", b"Sec-Fetch-Site: cross-site", b"Last-Event-ID: -1"),
    *(
        b"Cookie: " + b"a=b;" * 999,
        b"X: \xff\xfe",
        b": empty",
        b"No-Colon",
        b" folded",
        b"Host: two",
    ),
    *(b"Authorization: Bearer " + b"x" * 999, b"If-None-Match: *", b"X-Forwarded-For: 1.2.3.4"),
)
_ODD = [each for each in HEADERS if each.startswith((b"Ra", b"Ac", b"Coo", b"If", b"TE", b"Ex"))]
_ODD += [each for each in HEADERS if each.startswith((b"Up", b"X-", b"Au", b"Sec-W", b"Content-E"))]
_GOOD = (
    *((b"GET", b"/healthz"), (b"HEAD", b"/queries"), (b"GET", b"/openapi.json"), (b"GET", b"/")),
    *((b"POST", b"/queries"), (b"POST", b"/check"), (b"POST", b"/explain"), (b"GET", b"/metrics")),
    *(
        (b"POST", b"/queries/query/pause"),
        (b"POST", b"/queries/query/resume"),
        (b"GET", b"/events"),
    ),
    *(
        (b"DELETE", b"/queries/query"),
        (b"DELETE", b"/queries/query-2"),
        (b"GET", b"/queries/q/plan"),
    ),
)
BODIES = (
    *(
        b"",
        b"SELEC",
        b"5\r\nSELEC\r\n0\r\n\r\n",
        b"5;x=" + b"y" * 9_000 + b"\r\nSELEC\r\n0\r\n\r\n",
    ),
    *(
        b"\x1f\x8b\x08\x00\x00",
        b"\x81\x05hello",
        b"0\r\nX: y\r\n\r\n",
        b"ffffffffffff\r\n",
        b"\xff" * 70_000,
    ),
)


def requests_of(random: Random) -> bytes:
    """Return the bytes of some requests, in part broken."""
    count = random.choice((1, 1, 1, 2, 5, 40))
    sent = b"".join(random.choice((_request, _good, _good))(random) for _ in range(count))
    if random.random() < 0.3:
        at = random.randrange(len(sent) + 1)
        sent = sent[:at] + random.randbytes(random.randrange(9)) + sent[at + random.randrange(9) :]
    return sent


def _good(random: Random) -> bytes:
    """Return a request that is well-formed, with headers that mean little or are odd."""
    method, path = random.choice(_GOOD)
    body = random.choice((b"SELECT", QUERY.encode(), b"\xff\xfe")) if method == b"POST" else b""
    lines = [method + b" " + path + b" HTTP/1.1", HOST.strip(), b"Content-Type: text/plain"]
    lines += random.sample(_ODD, random.choice((0, 1, 2)))
    if random.random() < 0.5 and body:
        lines.append(b"Transfer-Encoding: chunked")
        size = random.choice((1, 7, 4_096))
        parts = [body[at : at + size] for at in range(0, len(body), size)]
        body = b"".join(b"%x;a=b\r\n%s\r\n" % (len(part), part) for part in parts)
        body += b"0\r\n" + random.choice((b"", b"Host: evil\r\n")) + b"\r\n"
    else:
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def _request(random: Random) -> bytes:
    lines = [b" ".join((random.choice(METHODS), random.choice(PATHS), random.choice(VERSIONS)))]
    lines += [HOST.strip()] * random.choice((1, 1, 1, 1, 0, 2))
    lines += random.sample(HEADERS, random.choice((0, 1, 2, 3, 6)))
    end = random.choice((b"\r\n", b"\r\n", b"\r\n", b"\n"))
    return end.join(lines) + end + end + random.choice(BODIES)


def attack(url: str, random: Random) -> list[int]:
    """Send requests in pieces, leave at some moment, and return the statuses that have come."""
    sent = requests_of(random)
    with suppress(OSError), Raw(url, limit=0.3) as raw:
        for piece in _pieces(sent, random):
            if not raw.send(piece):
                break
        found = b""
        with suppress(TimeoutError):
            random.choice(_ENDS)(raw)
            # A stream of events does not end by itself.
            while len(found) < 1 << 20 and (part := raw.some()):
                found += part
                if b"event-stream" in found:
                    break
        return statuses(found)
    return []


def _pieces(sent: bytes, random: Random) -> Iterator[bytes]:
    size = random.choice((1 << 20, 1 << 20, 4_096, 997, 64))
    for at in range(0, len(sent), size):
        yield sent[at : at + size]


def _read(raw: Raw) -> None:
    """Read on."""


def _half_close(raw: Raw) -> None:
    raw.socket.shutdown(socket.SHUT_WR)


def _reset(raw: Raw) -> None:
    raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raw.socket.close()
    raise ConnectionResetError


_ENDS: tuple[Callable[[Raw], None], ...] = (_read, _read, _half_close, _reset)
