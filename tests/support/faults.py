"""HTTP proxy on loopback in front of a real server, with every failure that remotes show.

A fault is a small class. ``FAULTS`` names them all, so that tests and benchmarks go through every
one. The proxy runs in a thread of its own, and counts the resources of a budget: connections,
requests, keys.
"""

from __future__ import annotations

import asyncio
import enum
import functools
import gzip
import json
import re
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import parse_qs, urlsplit

T = TypeVar("T")
Binding = dict[str, Any]

HEAD_END = b"\r\n\r\n"
PIECE = 1 << 16
LARGE = 100 << 20
"""Bytes that a server sends if it sends too much."""
CERTIFICATE = Path(__file__).parents[1] / "fixtures" / "self_signed.pem"
"""A self-signed certificate for 127.0.0.1, with its key, which no client trusts."""

_VALUES = re.compile(
    r'VALUES\s*(\?\w+|\([^)]*\))\s*\{((?:[^}"<]|<[^>]*>|"(?:[^"\\]|\\.)*")*)\}', re.IGNORECASE
)
_TERM = re.compile(
    r'<[^>]*>|"(?:[^"\\]|\\.)*"(?:@[\w-]+|\^\^<[^>]*>)?|\bUNDEF\b|[\w.+-]*:[\w.-]+|[+-]?[\d.]+'
)


@dataclass(frozen=True)
class Message:
    """HTTP request or reply: its first line, its headers (names in lower case), its body."""

    start: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def status(self) -> int:
        """A reply's status."""
        return int(self.start.split()[1])

    def to_bytes(self) -> bytes:
        """Return it as it travels, with a Content-Length."""
        headers = {**self.headers, "content-length": str(len(self.body))}
        headers.pop("transfer-encoding", None)
        return _head(self.start, headers) + self.body


@dataclass(frozen=True)
class Seen:
    """A request that came at a time of :func:`time.monotonic`, and its keys."""

    at: float
    keys: tuple[str, ...]
    message: Message


def keys_in(message: Message) -> tuple[str, ...]:
    """Return what stands in the VALUES block of a request's query, row by row,
    nothing where it has no such block.

    >>> query = b'SELECT * { VALUES ?k { <urn:a> "}"@en } ?k ?p ?o }'
    >>> keys_in(Message("POST /query HTTP/1.1", {}, query))
    ('<urn:a>', '"}"@en')
    """
    values = _VALUES.search(_query_in(message))
    if values is None:
        return ()
    terms, width = _TERM.findall(values[2]), values[1].count("?")
    return tuple(" ".join(terms[at : at + width]) for at in range(0, len(terms), width))


def _query_in(message: Message) -> str:
    is_form = "form-urlencoded" in message.headers.get("content-type", "")
    encoded = (
        message.body.decode(errors="replace")
        if is_form
        else urlsplit(message.start.split(" ")[1]).query
    )
    return parse_qs(encoded).get("query", [message.body.decode(errors="replace")])[0]


def _key_variable(message: Message) -> str | None:
    values = _VALUES.search(_query_in(message))
    return values[1].strip("(?) ") if values else None


def _head(start: str, headers: Mapping[str, str]) -> bytes:
    return (
        "\r\n".join([start, *(f"{name}: {value}" for name, value in headers.items())]).encode(
            "latin-1"
        )
        + HEAD_END
    )


def reply(status: str, body: bytes, content_type: str = "text/plain", **headers: str) -> Message:
    """Return a reply; underscores in the names of headers stand for hyphens."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Message(f"HTTP/1.1 {status}", {"content-type": content_type, **named}, body)


RESULTS = "application/sparql-results+json"


class GoneError(Exception):
    """Error: the other side has closed the connection."""


async def _read(reader: asyncio.StreamReader) -> Message:
    """Read a message. Raises :class:`GoneError` when the connection ends first."""
    try:
        head = (await reader.readuntil(HEAD_END)).decode("latin-1")
        start, *lines = head.strip().split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return Message(start, headers, await _chunks(reader))
        return Message(
            start, headers, await reader.readexactly(int(headers.get("content-length", "0")))
        )
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError) as error:
        raise GoneError from error


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    pieces = []
    while size := int((await reader.readline()).split(b";")[0] or b"0", 16):
        pieces.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readline()
    return b"".join(pieces)


class Upstream:
    """Connection to the real server, opened at the first use."""

    def __init__(self, host: str, port: int) -> None:
        self._address = host, port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: Message) -> Message:
        """Return the server's reply."""
        self._streams = self._streams or await asyncio.open_connection(*self._address)
        reader, writer = self._streams
        writer.write(request.to_bytes())
        return await _read(reader)

    def close(self) -> None:
        """Leave the server."""
        if self._streams:
            self._streams[1].close()


@dataclass
class Connection:
    """Connection of a client, with methods to answer and to mistreat it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    upstream: Upstream
    sink_url: str
    on_sent: Callable[[int], None]
    answered: int = 0

    async def read(self) -> Message:
        """Return the next request."""
        return await _read(self.reader)

    async def send(self, data: bytes) -> None:
        """Send some bytes, as fast as the client takes them."""
        try:
            self.writer.write(data)
            await self.writer.drain()
        except ConnectionError as error:
            raise GoneError from error
        self.on_sent(len(data))

    async def dribble(self, data: bytes, interval: float) -> None:
        """Send some bytes one by one."""
        for byte in data:
            await self.send(bytes([byte]))
            await self.wait(interval)

    async def wait(self, seconds: float) -> None:
        """Let time pass; :class:`GoneError` when the client leaves meanwhile."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.hang(), seconds)

    async def hang(self) -> None:
        """Do nothing until the client leaves."""
        with suppress(ConnectionError):
            while await self.reader.read(PIECE):
                pass
        raise GoneError

    def end(self) -> None:
        """Close the connection in the ordinary way, once all is sent."""
        self.writer.close()
        raise GoneError

    def reset(self) -> None:
        """Send a TCP reset."""
        self.writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        self.writer.transport.abort()
        raise GoneError

    async def secure(self) -> None:
        """Go on over TLS, with a certificate that nobody has signed."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        try:
            await self.writer.start_tls(context, ssl_handshake_timeout=60)
        except (ConnectionError, ssl.SSLError) as error:
            raise GoneError from error


class Door(enum.Enum):
    """State of the port for a client that connects."""

    OPEN = enum.auto()
    SHUT = enum.auto()
    """Not listening: connections are refused."""
    UNANSWERED = enum.auto()
    """Not accepting: connecting hangs."""


class Harm(enum.Enum):
    """Harm of a fault to any client, even if the client copes well."""

    NONE = enum.auto()
    """All data is available."""
    SOME = enum.auto()
    """Replies come, but some data is missing or wrong."""
    ALL = enum.auto()
    """No usable data comes, or not in time."""


class Fault:
    """Base class of faults, which itself does no harm; use an object once, as some have state."""

    harm = Harm.ALL
    door = Door.OPEN
    hangs = False
    """True if a client waits until its timeout."""
    scheme = "http"
    """The scheme that the client was told to use."""

    async def connected(self, connection: Connection) -> None:
        """Meet a client that has connected, before it has said anything."""

    async def answer(self, connection: Connection, request: Message) -> None:
        """Answer a request; :class:`GoneError` says that no further one will come
        on this connection.
        """
        await connection.send((await connection.upstream.ask(request)).to_bytes())


class Healthy(Fault):
    """No fault: the server's answers are passed on."""

    harm = Harm.NONE


@dataclass
class Latency(Fault):
    """Round trip of some seconds for every request, and for connecting."""

    seconds: float
    harm = Harm.NONE

    async def answer(self, connection: Connection, request: Message) -> None:
        """Answer as late as a distant server would."""
        await connection.wait(self.seconds * (1 if connection.answered else 2))
        await super().answer(connection, request)


class Slow(Latency):
    """Delay that is longer than any client waits."""

    harm = Harm.ALL
    hangs = True


@dataclass
class SlowAfterFirst(Fault):
    """Immediate answer to the first request, delay of some seconds for the others."""

    seconds: float
    requests: int = 0
    harm = Harm.SOME
    hangs = True

    async def answer(self, connection: Connection, request: Message) -> None:
        """Answer, but not at once."""
        self.requests += 1
        if self.requests > 1:
            await connection.wait(self.seconds)
        await super().answer(connection, request)


class Hang(Fault):
    """Requests are read and never answered."""

    hangs = True

    async def answer(self, connection: Connection, request: Message) -> None:
        """Say nothing."""
        await connection.hang()


class ConnectHangs(Fault):
    """Connecting never ends, as behind a firewall that drops everything."""

    hangs = True
    door = Door.UNANSWERED


class Refuse(Fault):
    """Connections are refused."""

    door = Door.SHUT


class Reset(Fault):
    """Reset instead of an answer."""

    async def answer(self, connection: Connection, request: Message) -> None:
        """Reset the connection."""
        connection.reset()


class ResetMidway(Fault):
    """Reset in the middle of the answer."""

    async def answer(self, connection: Connection, request: Message) -> None:
        """Send half, then reset the connection."""
        whole = (await connection.upstream.ask(request)).to_bytes()
        await connection.send(whole[: len(whole) - 20])
        connection.reset()


class Silent(Fault):
    """The connection is closed without a byte."""

    async def answer(self, connection: Connection, request: Message) -> None:
        """Close the connection."""
        connection.end()


class ClosesIdle(Fault):
    """Every connection is closed after its first answer, without notice."""

    harm = Harm.NONE

    async def answer(self, connection: Connection, request: Message) -> None:
        """Answer, then close."""
        await super().answer(connection, request)
        connection.end()


class DropsReused(Fault):
    """A connection that is reused is closed once the request has been sent."""

    harm = Harm.SOME

    async def answer(self, connection: Connection, request: Message) -> None:
        """Answer once per connection."""
        if connection.answered:
            connection.end()
        await super().answer(connection, request)


@dataclass
class DribbleHead(Fault):
    """The answer's headers come byte by byte."""

    interval: float
    hangs = True

    async def answer(self, connection: Connection, request: Message) -> None:
        """Send the head slowly."""
        found = await connection.upstream.ask(request)
        await connection.dribble(found.to_bytes().partition(HEAD_END)[0] + HEAD_END, self.interval)
        await connection.send(found.body)


@dataclass
class DribbleBody(Fault):
    """The answer's body comes byte by byte."""

    interval: float
    hangs = True

    async def answer(self, connection: Connection, request: Message) -> None:
        """Send the body slowly."""
        found = await connection.upstream.ask(request)
        await connection.send(found.to_bytes().partition(HEAD_END)[0] + HEAD_END)
        await connection.dribble(found.body, self.interval)


@dataclass
class EndlessHead(Fault):
    """Endless headers, faster than a client can read them."""

    async def answer(self, connection: Connection, request: Message) -> None:
        """Send nothing but headers."""
        await connection.send(b"HTTP/1.1 200 OK\r\nx-filler: ")
        for _ in range(LARGE // PIECE):
            await connection.send(b"x" * PIECE)
        await connection.hang()


@dataclass
class EndlessContinue(Fault):
    """Endless interim replies, without a final reply."""

    interval: float
    hangs = True

    async def answer(self, connection: Connection, request: Message) -> None:
        """Ask for patience, again and again."""
        while True:
            await connection.send(_head("HTTP/1.1 100 Continue", {}))
            await connection.wait(self.interval)


@dataclass
class Says(Fault):
    """The same reply to every request."""

    message: Message

    async def answer(self, connection: Connection, request: Message) -> None:
        """Send the reply."""
        await connection.send(self.message.to_bytes())


class Empty(Says):
    """HTTP 200 with an empty body."""

    def __init__(self) -> None:
        super().__init__(reply("200 OK", b"", RESULTS))


class Html(Says):
    """HTML page in place of results, as captive portals send it."""

    def __init__(self) -> None:
        super().__init__(
            reply("200 OK", b"<!doctype html><title>Please log in</title>", "text/html")
        )


class Status(Says):
    """An HTTP status, with a remark in the body."""

    def __init__(self, status: str, **headers: str) -> None:
        super().__init__(reply(status, b"the server is not well", **headers))


class TooManyUntil(Fault):
    """HTTP 429 with the date from which on requests are accepted again."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def answer(self, connection: Connection, request: Message) -> None:
        """Refuse, and say until when."""
        until = format_datetime(datetime.now(UTC) + timedelta(seconds=self._seconds), usegmt=True)
        await connection.send(Status("429 Too Many Requests", Retry_After=until).message.to_bytes())


@dataclass
class Truncated(Fault):
    """The body ends early; ``sized`` adds a Content-Length, by which a client can tell."""

    sized: bool

    async def answer(self, connection: Connection, request: Message) -> None:
        """Send most of it."""
        found = await connection.upstream.ask(request)
        whole = found.to_bytes()
        if not self.sized:
            whole = (
                _head(found.start, {"content-type": RESULTS, "connection": "close"}) + found.body
            )
        await connection.send(whole[:-3])
        connection.end()


@dataclass
class Large(Fault):
    """A hundred megabytes: ``opening``, then one ``piece`` after the other."""

    opening: bytes
    piece: bytes

    async def answer(self, connection: Connection, request: Message) -> None:
        """Send and send."""
        await connection.send(
            _head("HTTP/1.1 200 OK", {"content-type": RESULTS, "connection": "close"})
        )
        await connection.send(self.opening)
        pieces = self.piece * (PIECE // len(self.piece))
        for _ in range(LARGE // len(pieces)):
            await connection.send(pieces)
        connection.end()


_ROW = b'{"user":{"type":"uri","value":"http://example.org/user/nobody"},"followers":{"type":"literal","value":"1"}},'


class Compressed(Says):
    """Small body that decompresses to a hundred megabytes, in an encoding not asked for."""

    def __init__(self) -> None:
        super().__init__(reply("200 OK", _packed(), RESULTS, content_encoding="gzip"))


@functools.cache
def _packed() -> bytes:
    return gzip.compress(b" " * LARGE, compresslevel=1)


@dataclass
class Redirect(Fault):
    """Redirect to another port, which counts its visitors."""

    status: str

    async def answer(self, connection: Connection, request: Message) -> None:
        """Send the client elsewhere."""
        await connection.send(reply(self.status, b"", location=connection.sink_url).to_bytes())


class TlsGarbage(Fault):
    """The bytes of another protocol."""

    async def answer(self, connection: Connection, request: Message) -> None:
        """Answer with a TLS alert, and what looks like the rest of one."""
        await connection.send(b"\x15\x03\x03\x00\x02\x02\x46" + bytes(range(256)))
        connection.end()


class PlainForTls(Fault):
    """Plain HTTP for a client that was told to use TLS."""

    scheme = "https"

    async def connected(self, connection: Connection) -> None:
        """Say something before the client can know that it makes no sense."""
        await connection.send(Status("400 Bad Request").message.to_bytes())
        connection.end()


class SelfSigned(Fault):
    """A self-signed certificate."""

    scheme = "https"

    async def connected(self, connection: Connection) -> None:
        """Speak TLS from here on."""
        await connection.secure()


class TlsHangs(Fault):
    """The TLS handshake never ends."""

    hangs = True
    scheme = "https"

    async def connected(self, connection: Connection) -> None:
        """Let the client wait for the server's part of the handshake."""
        await connection.hang()


@dataclass
class TlsDribble(Fault):
    """The TLS handshake comes byte by byte."""

    interval: float
    scheme = "https"
    hangs = True

    async def connected(self, connection: Connection) -> None:
        """Begin a record that never ends."""
        await connection.send(b"\x16\x03\x03\x40\x00")
        while True:
            await connection.dribble(bytes(64), self.interval)


Rework = Callable[[list[Binding], str], Iterable[Binding]]
"""Function that changes a server's solutions, given the variable of the key."""


@dataclass
class Reworked(Fault):
    """The server's solutions, changed on their way."""

    rework: Rework
    harm: Harm = Harm.SOME

    async def answer(self, connection: Connection, request: Message) -> None:
        """Change the solutions in the answer, if it has any."""
        found = await connection.upstream.ask(request)
        key = _key_variable(request)
        if key is not None and found.status == 200:
            document = json.loads(found.body)
            bindings = document["results"]["bindings"]
            document["results"]["bindings"] = list(self.rework(bindings, key))
            found = replace(found, body=json.dumps(document).encode())
        await connection.send(found.to_bytes())


def text_for_numbers(bindings: list[Binding], key: str) -> Iterator[Binding]:
    """Yield the solutions with plain text in place of every value."""
    for row in bindings:
        yield {
            name: term if name == key else {"type": "literal", "value": "many"}
            for name, term in row.items()
        }


def huge_numbers(bindings: list[Binding], key: str) -> Iterator[Binding]:
    """Yield the solutions with numbers that no machine can hold in place of every value."""
    for row in bindings:
        yield {
            name: term if name == key else {**term, "value": "9" * 50_000}
            for name, term in row.items()
        }


def blank_keys(bindings: list[Binding], key: str) -> Iterator[Binding]:
    """Yield the solutions with a blank node in place of every key."""
    for number, row in enumerate(bindings):
        yield {**row, key: {"type": "bnode", "value": f"b{number}"}}


def bad_iris(bindings: list[Binding], key: str) -> Iterator[Binding]:
    """Yield the solutions with keys that want to break out of a query."""
    for number, row in enumerate(bindings):
        yield {
            **row,
            key: {"type": "uri", "value": f"http://example.org/{number}> }} ; DROP ALL #"},
        }


def twice(bindings: list[Binding], key: str) -> Iterator[Binding]:
    """Yield every solution twice."""
    for row in bindings:
        yield from (row, row)


def every_other(bindings: list[Binding], key: str) -> Iterator[Binding]:
    """Yield the solutions for half of the keys."""
    yield from bindings[::2]


def without_values(bindings: list[Binding], key: str) -> Iterator[Binding]:
    """Yield the solutions with nothing bound but the key."""
    for row in bindings:
        yield {key: row[key]}


def uninvited(bindings: list[Binding], key: str) -> Iterator[Binding]:
    """Yield the solutions, and some for keys that nobody has asked for."""
    yield from bindings
    for number, row in enumerate(bindings):
        yield {**row, key: {"type": "uri", "value": f"http://example.org/user/uninvited{number}"}}


def _json(text: str) -> Callable[[], Fault]:
    return lambda: Says(reply("200 OK", text.encode("latin-1"), RESULTS))


def _rows(text: str) -> Callable[[], Fault]:
    return _json(f'{{"head":{{"vars":["user"]}},"results":{{"bindings":{text}}}}}')


FAULTS: Mapping[str, Callable[[], Fault]] = {
    "none": Healthy,
    "latency": lambda: Latency(0.02),
    "slow": lambda: Slow(60.0),
    "slow after the first": lambda: SlowAfterFirst(60.0),
    "hang": Hang,
    "connecting hangs": ConnectHangs,
    "refused": Refuse,
    "reset": Reset,
    "reset midway": ResetMidway,
    "closed without a byte": Silent,
    "idle connections closed": ClosesIdle,
    "reused connections dropped": DropsReused,
    "head byte by byte": lambda: DribbleHead(0.02),
    "body byte by byte": lambda: DribbleBody(0.02),
    "endless head": EndlessHead,
    "endless continue": lambda: EndlessContinue(0.02),
    "400": lambda: Status("400 Bad Request"),
    "401": lambda: Status("401 Unauthorized", www_authenticate='Basic realm="x"'),
    "404": lambda: Status("404 Not Found"),
    "413": lambda: Status("413 Content Too Large"),
    "429, in seconds": lambda: Status("429 Too Many Requests", retry_after="1"),
    "429, with a date": lambda: TooManyUntil(1.0),
    "429, nonsense": lambda: Status("429 Too Many Requests", retry_after="soon"),
    "500": lambda: Status("500 Internal Server Error"),
    "503": lambda: Status("503 Service Unavailable", retry_after="1"),
    "204": lambda: Says(reply("204 No Content", b"")),
    "empty": Empty,
    "HTML": Html,
    "truncated": lambda: Truncated(sized=True),
    "truncated, unsized": lambda: Truncated(sized=False),
    "not results": _json('{"error": "try later", "bindings": [1, 2]}'),
    "JSON of another kind": _json("[1, 2]"),
    "rows that are none": _rows("[1, null, [], {}]"),
    "terms that are none": _rows(
        '[{"user": 1}, {"user": {"type": "uri", "value": 7}}, {"user": {"type": []}}]'
    ),
    "not UTF-8": _rows('[{"user": {"type": "literal", "value": "\xff\xfe"}}]'),
    "deep": _json("[" * 100_000),
    "100 MB of whitespace": lambda: Large(b"", b" "),
    "100 MB of rows": lambda: Large(
        b'{"head":{"vars":["user","followers"]},"results":{"bindings":[', _ROW
    ),
    "100 MB in one term": lambda: Large(
        b'{"head":{},"results":{"bindings":[{"user":{"type":"uri","value":"', b"x"
    ),
    "100 MB compressed": Compressed,
    "text for numbers": lambda: Reworked(text_for_numbers),
    "huge numbers": lambda: Reworked(huge_numbers),
    "blank keys": lambda: Reworked(blank_keys),
    "bad IRIs": lambda: Reworked(bad_iris),
    "without values": lambda: Reworked(without_values),
    "missing keys": lambda: Reworked(every_other),
    "every solution twice": lambda: Reworked(twice, Harm.NONE),
    "uninvited keys": lambda: Reworked(uninvited, Harm.NONE),
    "redirect": lambda: Redirect("302 Found"),
    "redirect, same method": lambda: Redirect("307 Temporary Redirect"),
    "TLS garbage": TlsGarbage,
    "plain for TLS": PlainForTls,
    "self-signed": SelfSigned,
    "TLS hangs": TlsHangs,
    "TLS byte by byte": lambda: TlsDribble(0.02),
}
"""Every fault by name."""


@dataclass
class Counts:
    """Traffic at the proxy: connections, requests, sent bytes, and followed redirects."""

    connections: int = 0
    sent: int = 0
    redirected: int = 0
    seen: list[Seen] = field(default_factory=list)

    @property
    def requests(self) -> int:
        """The number of requests read."""
        return len(self.seen)

    @property
    def keys(self) -> int:
        """The number of keys in them; a request without a block of keys counts as one key."""
        return sum(max(1, len(seen.keys)) for seen in self.seen)


class FaultProxy:
    """Proxy in front of an HTTP server; any thread can change its ``fault`` at any time.

    A new fault applies from the next request on every connection. If it changes the state of the
    port for clients that connect, the present connections are closed. Use it as a context manager.
    """

    def __init__(self, upstream_host: str, upstream_port: int, fault: Fault | None = None) -> None:
        self.port = 0
        self._upstream = upstream_host, upstream_port
        self._fault = fault or Healthy()
        self._counts = Counts()
        self._listener: _Listener | None = None
        self._sink_url = ""
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="fault-proxy", daemon=True
        )

    @property
    def url(self) -> str:
        """The address of the SPARQL endpoint, by the scheme that the present fault is about."""
        return f"{self._fault.scheme}://127.0.0.1:{self.port}/query"

    @property
    def fault(self) -> Fault:
        """The fault in force; assign another, which returns once that is in force."""
        return self._fault

    @fault.setter
    def fault(self, fault: Fault) -> None:
        self._run(self._switch(fault))

    def counts(self) -> Counts:
        """Return what has come until now."""
        return replace(self._counts, seen=list(self._counts.seen))

    def take(self) -> Counts:
        """Return what has come since this was last called."""

        async def take() -> Counts:
            taken, self._counts = self._counts, Counts()
            return taken

        return self._run(take())

    def drop(self) -> None:
        """Close all connections, as a server does that starts anew."""
        self._run(self._drop())

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._open())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _open(self) -> None:
        self._sink = await asyncio.start_server(self._redirected, "127.0.0.1", 0)
        self._sink_url = f"http://127.0.0.1:{self._sink.sockets[0].getsockname()[1]}/query"
        self._listener = _Listener(self._serve)
        self.port = self._listener.port
        await self._listener.become(self._fault.door)

    async def _close(self) -> None:
        assert self._listener is not None
        await self._listener.become(Door.SHUT)
        self._listener.close()
        self._sink.close()
        await self._drop()

    async def _switch(self, fault: Fault) -> None:
        assert self._listener is not None
        changes_how_to_connect = (fault.door, fault.scheme) != (
            self._fault.door,
            self._fault.scheme,
        )
        self._fault = fault
        await self._listener.become(fault.door)
        if changes_how_to_connect:
            await self._drop()

    async def _drop(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _redirected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._counts.redirected += 1
        writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        upstream = Upstream(*self._upstream)
        self._counts.connections += 1
        try:
            await self._converse(
                Connection(reader, writer, upstream, self._sink_url, self._on_sent)
            )
        except asyncio.CancelledError:
            writer.transport.abort()
        except GoneError:
            pass
        finally:
            writer.close()
            upstream.close()
            self._tasks.discard(task)

    def _on_sent(self, size: int) -> None:
        self._counts.sent += size

    async def _converse(self, connection: Connection) -> None:
        await self._fault.connected(connection)
        while True:
            request = await connection.read()
            self._counts.seen.append(Seen(time.monotonic(), keys_in(request), request))
            await self._fault.answer(connection, request)
            connection.answered += 1


class _Listener:
    """A port that keeps its number while it is not listening."""

    def __init__(
        self,
        serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]],
    ) -> None:
        self._serve = serve
        self._server: asyncio.Server | None = None
        self._fillers: list[socket.socket] = []
        self._socket = self._bound(0)
        self.port = int(self._socket.getsockname()[1])
        self._door = Door.SHUT

    @staticmethod
    def _bound(port: int) -> socket.socket:
        bound = socket.socket()
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("127.0.0.1", port))
        return bound

    async def become(self, door: Door) -> None:
        """Change what a client finds that wants to connect."""
        if door is self._door:
            return
        if self._door is not Door.SHUT:
            self.close()
            # Bound without listening: connections are refused, and nobody else can take the port.
            self._socket = self._bound(self.port)
        self._door = door
        if door is Door.OPEN:
            self._server = await asyncio.start_server(self._serve, sock=self._socket)
        elif door is Door.UNANSWERED:
            self._fill()

    def _fill(self) -> None:
        """Let so many wait to be accepted that the system takes no notice of any other."""
        self._socket.listen(0)
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", self.port))
            self._fillers.append(filler)

    def close(self) -> None:
        """Give up the port."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self._socket.close()
        for filler in self._fillers:
            filler.close()
        self._fillers.clear()
