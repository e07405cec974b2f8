"""Every fault of the proxy does on the wire what it says."""

from __future__ import annotations

import json
import socket
import ssl
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPResponse, IncompleteRead
from typing import Any
from urllib.parse import urlencode

import pytest

from examples.oxigraph import OxigraphServer
from tests.support.faults.dribbling import DribbleBody, DribbleHead
from tests.support.faults.fault import Fault, Healthy
from tests.support.faults.large import LARGE
from tests.support.faults.message import HEAD_END
from tests.support.faults.proxy import FaultProxy
from tests.support.faults.registry import FAULTS
from tests.support.faults.tls import TlsDribble

KEYS = [f"<urn:{name}>" for name in "abcd"]
QUERY = (
    f"SELECT ?user ?followers WHERE {{ VALUES ?user {{ "
    f"{' '.join(KEYS)} }} ?user <urn:followers> ?followers }}"
)
HEADERS = {"Content-Type": "application/sparql-query", "Accept": "application/sparql-results+json"}
PATIENCE = 0.05
"""Seconds after which an event is taken not to happen."""


@pytest.fixture(scope="module")
def proxied(_server: OxigraphServer) -> Iterator[FaultProxy]:
    with FaultProxy("127.0.0.1", _server.port) as proxy:
        yield proxy


@pytest.fixture
def proxy(proxied: FaultProxy, server: OxigraphServer) -> FaultProxy:
    """A healthy proxy in front of four users and their followers."""
    server.update(
        "INSERT DATA { "
        + " . ".join(f"{key} <urn:followers> {at}" for at, key in enumerate(KEYS))
        + " }"
    )
    proxied.fault = Healthy()
    proxied.drop()
    proxied.take()
    return proxied


def asked(proxy: FaultProxy, timeout: float = 30) -> HTTPResponse:
    """Return the reply to one request."""
    connection = HTTPConnection("127.0.0.1", proxy.port, timeout=timeout)
    connection.request("POST", "/query", QUERY, HEADERS)
    return connection.getresponse()


def opened(proxy: FaultProxy, timeout: float = 30) -> socket.socket:
    """Return a connection on which one request has been sent."""
    connection = socket.create_connection(("127.0.0.1", proxy.port), timeout=timeout)
    connection.sendall(request())
    return connection


def request() -> bytes:
    lines = [
        "POST /query HTTP/1.1",
        "Host: x",
        *(f"{name}: {value}" for name, value in HEADERS.items()),
    ]
    return (
        "\r\n".join([*lines, f"Content-Length: {len(QUERY)}"]).encode() + HEAD_END + QUERY.encode()
    )


def everything(connection: socket.socket) -> bytes:
    """Return all that comes until the other side closes."""
    with connection:
        return b"".join(iter(lambda: connection.recv(1 << 20), b""))


def bindings(reply: HTTPResponse) -> list[dict[str, Any]]:
    return json.loads(reply.read())["results"]["bindings"]


def values(reply: HTTPResponse) -> dict[str, str]:
    return {row["user"]["value"]: row["followers"]["value"] for row in bindings(reply)}


RIGHT = {"urn:a": "0", "urn:b": "1", "urn:c": "2", "urn:d": "3"}


@pytest.mark.parametrize("name", FAULTS)
def test_after_a_fault_all_is_well_at_the_same_address(proxy: FaultProxy, name: str) -> None:
    proxy.fault = FAULTS[name]()
    proxy.fault = Healthy()
    assert values(asked(proxy)) == RIGHT


def test_what_comes_is_counted(proxy: FaultProxy) -> None:
    connection = HTTPConnection("127.0.0.1", proxy.port)
    for _ in range(3):
        connection.request("POST", "/query", QUERY, HEADERS)
        connection.getresponse().read()
    counts = proxy.take()
    assert (counts.connections, counts.requests, counts.keys, counts.redirected) == (1, 3, 12, 0)
    assert all(seen.keys == tuple(KEYS) for seen in counts.seen)
    assert proxy.counts().requests == 0


@pytest.mark.parametrize(
    ("block", "keys"),
    [
        ("VALUES ?k { <urn:a> <urn:b> }", ["<urn:a>", "<urn:b>"]),
        ("VALUES (?k) { (<urn:a>) (<urn:b>) }", ["<urn:a>", "<urn:b>"]),
        ('values ?k{"a } b"@en "7"^^<urn:t> 12}', ['"a } b"@en', '"7"^^<urn:t>', "12"]),
        ("VALUES (?k ?v) { (<urn:a> 1) (<urn:b> UNDEF) }", ["<urn:a> 1", "<urn:b> UNDEF"]),
        ("?k ?p ?o .", []),
    ],
)
@pytest.mark.parametrize("way", ["form", "body", "GET"])
def test_keys_are_found_in_every_kind_of_request(
    proxy: FaultProxy, block: str, keys: list[str], way: str
) -> None:
    query = f"SELECT * WHERE {{ {block} ?k <urn:followers> ?v }}"
    connection = HTTPConnection("127.0.0.1", proxy.port)
    if way == "GET":
        connection.request("GET", "/query?" + urlencode({"query": query}))
    elif way == "form":
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", "/query", urlencode({"query": query}), form)
    else:
        connection.request("POST", "/query", query, HEADERS)
    assert connection.getresponse().status == 200
    (seen,) = proxy.take().seen
    assert list(seen.keys) == keys


def test_a_round_trip_takes_its_time(proxy: FaultProxy) -> None:
    proxy.fault = FAULTS["latency"]()
    started = time.monotonic()
    assert values(asked(proxy)) == RIGHT
    assert time.monotonic() - started >= 0.02


@pytest.mark.parametrize("name", ["hang", "slow"])
def test_requests_that_hang_are_read_and_counted(proxy: FaultProxy, name: str) -> None:
    proxy.fault = FAULTS[name]()
    connection = opened(proxy, PATIENCE)
    with pytest.raises(TimeoutError):
        connection.recv(1)
    assert proxy.take().requests == 1
    connection.close()


def test_the_second_request_hangs(proxy: FaultProxy) -> None:
    proxy.fault = FAULTS["slow after the first"]()
    assert values(asked(proxy)) == RIGHT
    with pytest.raises(TimeoutError):
        asked(proxy, PATIENCE)


def test_connecting_hangs(proxy: FaultProxy) -> None:
    proxy.fault = FAULTS["connecting hangs"]()
    with pytest.raises(TimeoutError):
        socket.create_connection(("127.0.0.1", proxy.port), timeout=PATIENCE)
    assert proxy.take().connections == 0


def test_connections_are_refused_and_those_there_are_closed(proxy: FaultProxy) -> None:
    connection = socket.create_connection(("127.0.0.1", proxy.port), timeout=30)
    connection.sendall(request())
    assert connection.recv(8) == b"HTTP/1.1"
    proxy.fault = FAULTS["refused"]()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", proxy.port), timeout=30)
    with suppress(ConnectionResetError):
        everything(connection)


def test_resets(proxy: FaultProxy) -> None:
    proxy.fault = FAULTS["reset"]()
    with pytest.raises(ConnectionResetError):
        everything(opened(proxy))
    proxy.fault = FAULTS["reset midway"]()
    connection = opened(proxy)
    assert connection.recv(12) == b"HTTP/1.1 200"
    with pytest.raises(ConnectionResetError):
        everything(connection)


def test_connections_are_closed(proxy: FaultProxy) -> None:
    proxy.fault = FAULTS["closed without a byte"]()
    assert everything(opened(proxy)) == b""
    proxy.fault = FAULTS["idle connections closed"]()
    whole = everything(opened(proxy))
    assert whole.startswith(b"HTTP/1.1 200")
    assert b"connection: close" not in whole.lower()
    assert whole.endswith(b"}")


def test_a_connection_that_is_used_again_is_closed(proxy: FaultProxy) -> None:
    proxy.fault = FAULTS["reused connections dropped"]()
    connection = HTTPConnection("127.0.0.1", proxy.port, timeout=30)
    connection.request("POST", "/query", QUERY, HEADERS)
    assert values(connection.getresponse()) == RIGHT
    connection.request("POST", "/query", QUERY, HEADERS)
    with pytest.raises(ConnectionError):
        connection.getresponse()
    assert proxy.take().requests == 2


def test_bytes_come_one_by_one(proxy: FaultProxy) -> None:
    proxy.fault = DribbleHead(60)
    with opened(proxy, 30) as connection:
        assert connection.recv(100) == b"H"
    proxy.fault = DribbleBody(60)
    with opened(proxy, 30) as connection:
        come = b""
        while not come.endswith(HEAD_END + b"{"):
            come += connection.recv(1000)
        connection.settimeout(PATIENCE)
        with pytest.raises(TimeoutError):
            connection.recv(1)
    proxy.fault = DribbleBody(0.001)
    assert values(asked(proxy)) == RIGHT


def test_a_head_without_an_end(proxy: FaultProxy) -> None:
    proxy.fault = FAULTS["endless head"]()
    with opened(proxy) as connection:
        come = b""
        while len(come) < 1 << 20:
            come += connection.recv(1 << 20)
    assert HEAD_END not in come
    proxy.fault = FAULTS["endless continue"]()
    with opened(proxy) as connection:
        come = b""
        while come.count(b"100 Continue") < 3:
            come += connection.recv(1000)


@pytest.mark.parametrize(
    "name", ["400", "401", "404", "413", "429, in seconds", "500", "503", "204"]
)
def test_statuses(proxy: FaultProxy, name: str) -> None:
    proxy.fault = FAULTS[name]()
    assert asked(proxy).status == int(name[:3])


def test_retry_after(proxy: FaultProxy) -> None:
    found = {}
    for name in ("429, in seconds", "429, with a date", "429, nonsense", "503"):
        proxy.fault = FAULTS[name]()
        found[name] = asked(proxy).getheader("Retry-After") or ""
    assert (found["429, in seconds"], found["503"], found["429, nonsense"]) == ("1", "1", "soon")
    assert parsedate_to_datetime(found["429, with a date"]).tzinfo is not None


def test_truncated_bodies(proxy: FaultProxy) -> None:
    proxy.fault = FAULTS["truncated"]()
    with pytest.raises(IncompleteRead):
        asked(proxy).read()
    proxy.fault = FAULTS["truncated, unsized"]()
    with pytest.raises(json.JSONDecodeError):
        values(asked(proxy))


def test_bodies_that_are_not_results(proxy: FaultProxy) -> None:
    said = {}
    for name in (
        "empty",
        "HTML",
        "not results",
        "JSON of another kind",
        "rows that are none",
        "terms that are none",
    ):
        proxy.fault = FAULTS[name]()
        said[name] = asked(proxy).read()
    assert said["empty"] == b""
    assert said["HTML"].startswith(b"<!doctype html>")
    assert "results" not in json.loads(said["not results"])
    assert json.loads(said["JSON of another kind"]) == [1, 2]
    assert json.loads(said["rows that are none"])["results"]["bindings"] == [1, None, [], {}]
    assert len(json.loads(said["terms that are none"])["results"]["bindings"]) == 3
    proxy.fault = FAULTS["not UTF-8"]()
    with pytest.raises(UnicodeDecodeError):
        asked(proxy).read().decode()
    proxy.fault = FAULTS["deep"]()
    with pytest.raises(RecursionError):
        json.loads(asked(proxy).read())


def test_a_hundred_megabytes_are_sent_to_those_who_read_them(proxy: FaultProxy) -> None:
    proxy.fault = FAULTS["100 MB of whitespace"]()
    reply, size = asked(proxy), 0
    while piece := reply.read(1 << 20):
        size += len(piece)
    assert size == LARGE
    for name in ("100 MB of rows", "100 MB in one term"):
        proxy.take()
        proxy.fault = FAULTS[name]()
        reply = asked(proxy)
        assert reply.read(1 << 20).startswith(b'{"head"')
        reply.close()
        proxy.drop()
        assert proxy.take().sent < LARGE


def test_a_small_body_unpacks_to_a_hundred_megabytes(proxy: FaultProxy) -> None:
    proxy.fault = FAULTS["100 MB compressed"]()
    reply = asked(proxy)
    packed = reply.read()
    assert reply.getheader("Content-Encoding") == "gzip"
    assert len(packed) < LARGE // 100
    unpacker, size = zlib.decompressobj(zlib.MAX_WBITS | 16), 0
    while packed:
        size += len(unpacker.decompress(packed, 1 << 20))
        packed = unpacker.unconsumed_tail
    assert size == LARGE


def test_solutions_are_changed_on_their_way(proxy: FaultProxy) -> None:
    def under(name: str) -> list[dict[str, Any]]:
        proxy.fault = FAULTS[name]()
        return bindings(asked(proxy))

    rows = under("none")
    assert {row["followers"]["value"] for row in under("text for numbers")} == {"many"}
    assert {row["followers"]["datatype"] for row in under("huge numbers")} == {
        "http://www.w3.org/2001/XMLSchema#integer"
    }
    assert {row["user"]["type"] for row in under("blank keys")} == {"bnode"}
    assert all("> }" in row["user"]["value"] for row in under("bad IRIs"))
    assert under("without values") == [{"user": row["user"]} for row in rows]
    assert under("missing keys") == rows[::2]
    assert under("every solution twice") == [row for row in rows for _ in range(2)]
    uninvited = under("uninvited keys")
    assert (uninvited[:4], len(uninvited)) == (rows, 8)


@pytest.mark.parametrize(("name", "status"), [("redirect", 302), ("redirect, same method", 307)])
def test_who_follows_a_redirect_is_counted(proxy: FaultProxy, name: str, status: int) -> None:
    proxy.fault = FAULTS[name]()
    reply = asked(proxy)
    assert reply.status == status
    host, _, port = (
        (reply.getheader("Location") or "")
        .removeprefix("http://")
        .removesuffix("/query")
        .partition(":")
    )
    assert (host, int(port) == proxy.port) == ("127.0.0.1", False)
    assert proxy.counts().redirected == 0
    assert everything(socket.create_connection((host, int(port)), timeout=30)) == b""
    assert proxy.counts().redirected == 1


def secured(
    proxy: FaultProxy, fault: Fault, context: ssl.SSLContext, timeout: float = 30
) -> ssl.SSLSocket:
    """Return a connection whose handshake is done."""
    proxy.fault = fault
    assert proxy.url.startswith("https://")
    plain = socket.create_connection(("127.0.0.1", proxy.port), timeout=timeout)
    try:
        return context.wrap_socket(plain, server_hostname="127.0.0.1")
    except BaseException:
        plain.close()
        raise


def test_tls_goes_wrong(proxy: FaultProxy) -> None:
    careful = ssl.create_default_context()
    careless = ssl.create_default_context()
    careless.check_hostname, careless.verify_mode = False, ssl.CERT_NONE
    with pytest.raises(ssl.SSLError):
        secured(proxy, FAULTS["plain for TLS"](), careless)
    with pytest.raises(ssl.SSLCertVerificationError):
        secured(proxy, FAULTS["self-signed"](), careful)
    with secured(proxy, FAULTS["self-signed"](), careless) as connection:
        connection.sendall(request())
        assert connection.recv(12) == b"HTTP/1.1 200"
    with pytest.raises(TimeoutError):
        secured(proxy, FAULTS["TLS hangs"](), careless, PATIENCE)
    with pytest.raises(TimeoutError):
        secured(proxy, TlsDribble(60), careless, PATIENCE)
    proxy.fault = FAULTS["TLS garbage"]()
    assert everything(opened(proxy))[:3] == b"\x15\x03\x03"
