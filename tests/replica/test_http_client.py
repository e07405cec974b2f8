"""The HTTP client against servers that are there only to misbehave, over real sockets."""

from __future__ import annotations

import base64
import http.cookies
import queue
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from replica.http.auth import Secret
from replica.http.client import HttpClient, Request
from replica.http.oauth import ClientCredentials
from replica.http.retry import LONGEST_RETRY
from replica.remotes import RemoteError
from tests.support.certificate import CERTIFICATE
from tests.support.http_server import ENOUGH, LONG, Served, always, serving
from tests.support.json_server import Answer, Asked
from tests.support.json_server import serving as json_serving

SHORT = 0.25
"""Seconds after which to give up what would never end."""


def got(client: HttpClient, url: str, timeout: float = LONG, **options: Any) -> bytes:
    with client.send(Request("GET", url, **options), timeout) as reply:
        return reply.read()


def failure(
    client: HttpClient, url: str, timeout: float = LONG, body: bytes | None = None
) -> RemoteError:
    with (
        pytest.raises(RemoteError) as caught,
        client.send(Request("POST" if body else "GET", url, body=body), timeout) as reply,
    ):
        reply.read()
    return caught.value


@pytest.fixture
def client() -> Iterator[HttpClient]:
    client = HttpClient(name="the server", longest_reply=1000)
    yield client
    client.close()


# Replies


def test_a_reply_has_a_status_and_headers_and_is_read_as_it_comes(client: HttpClient) -> None:
    more = threading.Event()

    def handle(served: Served, connection: Any) -> None:
        served.read(connection)
        connection.sendall(
            b"HTTP/1.1 203 Fine\r\nX-Left: 7\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n"
        )
        more.wait(LONG)
        connection.sendall(b"6\r\nsecond\r\n0\r\n\r\n")

    with serving(handle) as served, client.send(Request("GET", served.url), LONG) as reply:
        assert (reply.status, reply.headers["x-left"]) == (203, "7")
        assert (reply.read(0), reply.read(3), reply.read(100)) == (b"", b"fir", b"st")
        more.set()
        assert (reply.read(), reply.read(), reply.read(5)) == (b"second", b"", b"")


def test_what_is_sent_is_what_was_given_and_no_encoding_is_asked_for(client: HttpClient) -> None:
    with serving(always(ENOUGH)) as served:
        request = Request(
            "POST",
            served.url + "?a=%7Bb%7D",
            {"Accept": "text/x", "Content-Type": "text/y"},
            b"body",
        )
        with client.send(request, LONG) as reply:
            assert reply.read() == b"ok"
    head, _, body = served.requests[0].partition(b"\r\n\r\n")
    first, *lines = head.decode().lower().split("\r\n")
    assert (first, body) == ("post /query?a=%7bb%7d http/1.1", b"body")
    assert {
        "accept: text/x",
        "content-type: text/y",
        "accept-encoding: identity",
        "content-length: 4",
    } <= set(lines)
    assert not any(line.startswith(("cookie", "authorization")) for line in lines)


def test_nothing_is_taken_from_the_environment(
    client: HttpClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login ann password xyzzy\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    with serving(always(ENOUGH)) as served:
        assert got(client, served.url) == b"ok"
    assert b"authorization" not in served.requests[0].lower()


def test_cookies_are_not_kept(client: HttpClient) -> None:
    cookie = http.cookies.SimpleCookie({"a": "b"}).output().encode()
    with serving(always(ENOUGH.replace(b"\r\n", b"\r\n" + cookie + b"\r\n", 1), ENOUGH)) as served:
        assert got(client, served.url) + got(client, served.url) == b"okok"
    assert b"cookie" not in served.requests[1].lower()


# Connections


def test_a_connection_is_used_again_after_replies_and_short_errors(client: HttpClient) -> None:
    refusal = b"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno"
    with serving(always(ENOUGH, refusal, ENOUGH)) as served:
        assert got(client, served.url) == b"ok"
        assert str(failure(client, served.url)) == "the server failed: HTTP 500 No: no"
        assert got(client, served.url) == b"ok"
        assert (len(served.requests), served.connections) == (3, 1)


def test_a_connection_that_ended_while_idle_is_replaced_and_each_request_comes_once(
    client: HttpClient,
) -> None:
    gone: queue.SimpleQueue[None] = queue.SimpleQueue()

    def handle(served: Served, connection: Any) -> None:
        served.read(connection)
        connection.sendall(ENOUGH)
        connection.close()
        gone.put(None)

    with serving(handle) as served:
        for number in range(3):
            assert got(client, f"{served.url}?{number}") == b"ok"
            gone.get(timeout=LONG)
        assert served.connections == 3
    assert [request.split()[1][-1:] for request in served.requests] == [b"0", b"1", b"2"]


def test_a_request_is_never_sent_twice_though_its_connection_ends_without_an_answer(
    client: HttpClient,
) -> None:
    def handle(served: Served, connection: Any) -> None:
        served.read(connection)
        connection.sendall(ENOUGH)
        served.read(connection)

    with serving(handle) as served:
        assert got(client, served.url) == b"ok"
        assert (
            str(failure(client, served.url))
            == "the server failed: the connection was closed before an answer came"
        )
        assert len(served.requests) == 2


def test_threads_share_a_client() -> None:
    client = HttpClient(name="the server", connections=4)
    with serving(always(*[ENOUGH] * 100)) as served, ThreadPoolExecutor(4) as threads:
        replies = threads.map(lambda number: got(client, f"{served.url}?{number}"), range(80))
        assert list(replies) == [b"ok"] * 80
        assert (len(served.requests), served.connections <= 4) == (80, True)
        client.close()


# Time


def dripping(first: bytes, drop: bytes) -> Callable[[Served, Any], None]:
    def handle(served: Served, connection: Any) -> None:
        served.read(connection)
        connection.sendall(first)
        while not served.ended.wait(0.005):
            connection.sendall(drop)

    return handle


@pytest.mark.parametrize(
    "handle",
    [
        pytest.param(dripping(b"", b""), id="nothing at all"),
        pytest.param(dripping(b"", b"H"), id="a status that never ends"),
        pytest.param(dripping(b"HTTP/1.1 200 OK\r\nX: ", b"x"), id="a header that never ends"),
        pytest.param(dripping(b"HTTP/1.1 200 OK\r\n", b"A: b\r\n"), id="headers without end"),
        pytest.param(dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), id="only promises"),
        pytest.param(dripping(b"HTTP/1.1 200 OK\r\n\r\n", b" "), id="a body without end"),
        pytest.param(
            dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n", b" "), id="a slow body"
        ),
        pytest.param(
            dripping(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0"),
            id="a slow chunk size",
        ),
        pytest.param(
            dripping(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"a: b\r\n"),
            id="trailers",
        ),
    ],
)
def test_whatever_takes_too_long_is_given_up(
    client: HttpClient, handle: Callable[[Served, Any], None]
) -> None:
    with serving(handle) as served:
        error = failure(client, served.url, SHORT)
    assert str(error) == "the server failed: the answer took too long"
    assert error.too_large


def test_a_request_that_nobody_reads_is_given_up(client: HttpClient) -> None:
    with serving(lambda served, _: served.ended.wait(LONG) and None) as served:
        error = failure(client, served.url, SHORT, body=b"x" * (64 << 20))
    assert "took too long" in str(error)


def test_an_error_is_told_though_what_is_said_with_it_never_comes(client: HttpClient) -> None:
    with serving(dripping(b"HTTP/1.1 503 Busy\r\nContent-Length: 10\r\n\r\n", b"")) as served:
        error = failure(client, served.url, SHORT)
    assert (str(error), error.too_large) == ("the server failed: HTTP 503 Busy", False)


def test_a_handshake_that_drips_is_given_up_before_anything_was_asked(client: HttpClient) -> None:
    def handle(served: Served, connection: Any) -> None:
        connection.sendall(b"\x16\x03\x03\x3f\xff")
        while not served.ended.wait(0.005):
            connection.sendall(b"\x00")

    with serving(handle) as served:
        error = failure(client, served.url.replace("http:", "https:"), SHORT)
    assert (str(error), error.too_large) == ("the server failed: connecting took too long", False)


def test_a_name_that_is_looked_up_without_end_is_given_up(
    client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()
    look_up = socket.getaddrinfo

    def slow(host: str, *rest: Any, **options: Any) -> Any:
        return look_up(host, *rest, **options) if options.get("flags") else ended.wait(LONG) and []

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    error = failure(client, "http://slow.invalid/", SHORT)
    ended.set()
    assert (str(error), error.too_large) == (
        "the server failed: looking up its name took too long",
        False,
    )


def test_the_time_of_a_request_is_not_that_of_the_next_on_its_connection(
    client: HttpClient,
) -> None:
    with serving(always(ENOUGH, ENOUGH)) as served:
        assert got(client, served.url, LONG) == b"ok"
        assert (
            str(failure(client, served.url, 0.0)) == "the server failed: the answer took too long"
        )
        assert len(served.requests) == 1


# Sizes


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" + b"x" * 1001,
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 100_000,
    ],
)
def test_a_reply_that_is_too_long_is_not_read_to_its_end(client: HttpClient, reply: bytes) -> None:
    with serving(always(reply)) as served:
        error = failure(client, served.url)
    assert (str(error), error.too_large) == (
        "the server failed: the answer has more than 1000 bytes",
        True,
    )


def test_a_reply_of_just_the_length_that_is_allowed_is_read(client: HttpClient) -> None:
    with serving(
        always(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"x" * 1000)
    ) as served:
        assert len(got(client, served.url)) == 1000


def test_headers_without_measure_are_refused(client: HttpClient) -> None:
    with serving(always(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 10_000)) as served:
        assert str(failure(client, served.url)).startswith("the server failed: ")


def test_compressed_replies_are_refused(client: HttpClient) -> None:
    with serving(
        always(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok")
    ) as served:
        assert "encoded as gzip" in str(failure(client, served.url))


# Refusals


@pytest.mark.parametrize(
    ("reply", "message", "too_large", "wait"),
    [
        (b"413 Too Large", "HTTP 413 Too Large", True, None),
        (b"414 Too Long", "HTTP 414 Too Long", True, None),
        (b"431 Headers", "HTTP 431 Headers", True, None),
        (b"404 Not\x07 Found", "HTTP 404 Not Found", False, None),
        (b"304 Not Modified", "HTTP 304 Not Modified", False, None),
        (b"500", "HTTP 500", False, None),
        (b"429 Wait\r\nRetry-After: 12", "HTTP 429 Wait", False, 12.0),
        (b"503 Wait\r\nRetry-After: Thu, 01 Jan 2026 00:01:40 GMT", "HTTP 503 Wait", False, 100.0),
        (b"503 Wait\r\nRetry-After: Thu, 01 Jan 1970 00:00:00 GMT", "HTTP 503 Wait", False, 0.0),
        (b"503 Wait\r\nRetry-After: " + b"9" * 5000, "HTTP 503 Wait", False, LONGEST_RETRY),
        (
            b"503 Wait\r\nRetry-After: Fri, 31 Dec 9999 23:59:59 GMT",
            "HTTP 503 Wait",
            False,
            LONGEST_RETRY,
        ),
        (b"503 Wait\r\nRetry-After: -3", "HTTP 503 Wait", False, None),
        (b"503 Wait\r\nRetry-After: soon", "HTTP 503 Wait", False, None),
        (b"503 Wait", "HTTP 503 Wait", False, None),
        (
            b"429 No\r\nX-Rate-Limit-Remaining: 0\r\nX-Rate-Limit-Reset: 1767225660",
            "HTTP 429 No",
            False,
            60.0,
        ),
        (
            b"429 No\r\nX-Rate-Limit-Remaining: 3\r\nX-Rate-Limit-Reset: 1767225660",
            "HTTP 429 No",
            False,
            None,
        ),
        (
            b"429 No\r\nX-Rate-Limit-Remaining: 0\r\nX-Rate-Limit-Reset: soon",
            "HTTP 429 No",
            False,
            None,
        ),
        (
            b"429 No\r\nX-Rate-Limit-Remaining: 0\r\nX-Rate-Limit-Reset: 1",
            "HTTP 429 No",
            False,
            0.0,
        ),
        (b"500 No\r\nRetry-After: 12", "HTTP 500 No", False, 12.0),
        (b"405 No\r\nRetry-After: 7", "HTTP 405 No", False, 7.0),
        (
            b"403 No\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 1767225690",
            "HTTP 403 No",
            False,
            90.0,
        ),
        (b'429 No\r\nRateLimit: "a";r=0;t=30', "HTTP 429 No", False, 30.0),
    ],
)
def test_refusals_say_what_would_help(
    reply: bytes, message: str, too_large: bool, wait: float | None
) -> None:
    client = HttpClient(name="the server", now=lambda: 1767225600.0)  # as 2026 began
    with serving(always(b"HTTP/1.1 " + reply + b"\r\nContent-Length: 0\r\n\r\n")) as served:
        error = failure(client, served.url)
    assert str(error) == f"the server failed: {message}"
    assert (error.too_large, error.retry_after) == (too_large, wait)


def test_who_wants_to_know_is_told_when_no_request_is_left() -> None:
    told: list[float] = []
    client = HttpClient(name="the server", now=lambda: 1767225600.0, used_up=told.append)
    for said in (
        "x-rate-limit-remaining: 1\r\nx-rate-limit-reset: 1767226500",
        "x-rate-limit-remaining: 0\r\nx-rate-limit-reset: 1767226500",
        "RateLimit: limit=10, remaining=0, reset=50",
        "Retry-After: 5",
    ):
        head = f"HTTP/1.1 200 OK\r\n{said}\r\n".encode()
        with serving(always(head + b"Content-Length: 2\r\n\r\n{}")) as served:
            request = Request("GET", served.url)
            with client.send(request, 30.0) as reply:
                assert reply.read() == b"{}"
    assert told == [900.0, 50.0, 5.0]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 300])
def test_redirects_are_refused_with_their_target(client: HttpClient, status: int) -> None:
    with serving(always(ENOUGH)) as other:
        place = other.url.replace("//", "//ann:xyzzy@") + "?token=xyzzy\x1b"
        head = (
            f"HTTP/1.1 {status} Over There\r\nLocation: {place}\r\nContent-Length: {10**12}\r\n\r\n"
        )
        with serving(always(head.encode())) as served:
            error = failure(client, served.url)
        assert other.connections == 0
    assert (
        str(error)
        == f"the server redirects to {other.url}; if that is right, write it in the catalog"
    )


def test_where_a_redirect_leads_may_be_relative_or_nonsense(client: HttpClient) -> None:
    for place, shown in (
        ("/elsewhere", "http://127.0.0.1:{}/elsewhere"),
        ("//[", "an address that is none"),
    ):
        with serving(
            always(f"HTTP/1.1 302 F\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n".encode())
        ) as served:
            target = shown.format(served.url.split(":")[2].split("/")[0])
            assert f"redirects to {target};" in str(failure(client, served.url))


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (b"", "the connection was closed before an answer came"),
        (b"\x1b[31mnonsense\r\n\r\n", "the answer is not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", "the answer ended early"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\nhalf",
            "the answer ended early",
        ),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "the answer ended early"),
    ],
)
def test_what_is_no_answer_is_named(client: HttpClient, reply: bytes, message: str) -> None:
    with serving(always(reply)) as served:
        assert str(failure(client, served.url)) == f"the server failed: {message}"


def test_a_connection_that_is_reset_is_named(client: HttpClient) -> None:
    def handle(served: Served, connection: Any) -> None:
        served.read(connection)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    with serving(handle) as served:
        assert str(failure(client, served.url)) == "the server failed: the connection was reset"


def test_a_refused_connection_and_an_unknown_name_are_named(
    client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        error = failure(client, f"http://127.0.0.1:{probe.getsockname()[1]}/")
    assert str(error) == "the server failed: the connection was refused"

    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    error = failure(client, "http://nobody.invalid/")
    assert (
        str(error)
        == "the server failed: its name could not be looked up: Name or service not known"
    )


@pytest.mark.parametrize(
    "url",
    [
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "//127.0.0.1/",
        "http://",
        "http:///path",
        "http://127.0.0.1:99999/",
        "http://127.0.0.1/a b",
        "http://127.0.0.1/\r\nHost: x",
        "http://ann:xyzzy@127.0.0.1/",
        "http://xyzzy@127.0.0.1/",
        "http://[::1",
    ],
)
def test_only_plain_addresses_are_asked(
    client: HttpClient, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("it was asked"))
    message = str(failure(client, url))
    assert "address" in message
    assert "xyzzy" not in message


# Certificates


@pytest.fixture
def certificate() -> tuple[Path, ssl.SSLContext]:
    """A self-signed certificate for 127.0.0.1, and a server's context that has it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return CERTIFICATE, context


def test_certificates_are_verified_and_connections_used_again(
    certificate: tuple[Path, ssl.SSLContext],
) -> None:
    authority, context = certificate
    trusting = HttpClient(name="the server", authorities=authority)
    with serving(always(ENOUGH, ENOUGH), context) as served:
        url = served.url.replace("http:", "https:")
        assert got(trusting, url) + got(trusting, url) == b"okok"
        assert served.connections == 1
        message = str(failure(HttpClient(name="the server"), url))
        assert message.startswith("the server failed: its certificate is not valid: self")
        message = str(failure(trusting, url.replace("127.0.0.1", "127.1")))
        assert "its certificate is not valid: " in message
        trusting.close()
    assert len(served.requests) == 2


def test_a_secure_reply_that_drips_is_given_up_too(
    certificate: tuple[Path, ssl.SSLContext],
) -> None:
    authority, context = certificate
    trusting = HttpClient(name="the server", authorities=authority)
    with serving(dripping(b"HTTP/1.1 200 OK\r\nX: ", b"x"), context) as served:
        error = failure(trusting, served.url.replace("http:", "https:"), 1.0)
    assert (str(error), error.too_large) == ("the server failed: the answer took too long", True)


def test_a_server_without_tls_is_named(client: HttpClient) -> None:
    with serving(
        lambda served, connection: connection.sendall(b"HTTP/1.1 400 Bad\r\n\r\n")
    ) as served:
        message = str(failure(client, served.url.replace("http:", "https:")))
    assert message.startswith("the server failed: TLS failed: ")


# Headers and tokens


def test_headers_and_a_contact_are_sent_and_never_shown() -> None:
    client = HttpClient(
        name="the server",
        headers={"X-Api-Key": Secret("xyzzy-plugh")},
        user_agent="mine/1.0 (mailto:ann@example.org)",
    )
    reply = b"HTTP/1.1 403 xyzzy-plugh is no key\r\nContent-Length: 0\r\n\r\n"
    with serving(always(reply)) as served:
        error = failure(client, served.url)
        (asked,) = served.requests
    assert b"X-Api-Key: xyzzy-plugh\r\n" in asked
    assert b"User-Agent: mine/1.0 (mailto:ann@example.org) AcquaTop\r\n" in asked
    assert str(error) == "the server failed: HTTP 403 *** is no key"


class TokenServer:
    """Server of tokens, each with a number, which are good for a minute."""

    def __init__(self) -> None:
        self.forms: list[Mapping[str, list[str]]] = []
        self.users: list[str] = []

    def __call__(self, asked: Asked) -> Answer:
        self.users.append(base64.b64decode(asked.headers["Authorization"][6:]).decode())
        self.forms.append(parse_qs(asked.body.decode()))
        return Answer.json({"access_token": f"token-{len(self.forms)}", "expires_in": 60})


def test_tokens_are_asked_for_when_there_is_none_when_one_expires_and_when_one_is_refused() -> None:
    tokens, now = TokenServer(), [100.0]
    replies = iter(["200 OK", "200 OK", "200 OK", "401 token-2 is over", "200 OK"])

    def handle(served: Served, connection: Any) -> None:
        while served.read(connection):
            head = f"HTTP/1.1 {next(replies)}\r\nContent-Length: 0\r\n\r\n"
            connection.sendall(head.encode())

    with json_serving(tokens) as server, serving(handle) as served:
        id_, secret = Secret("ann:1"), Secret("xyzzy plugh")
        auth = ClientCredentials(
            f"{server.url}/token", id_, secret, scope="read", clock=lambda: now[0]
        )
        client = HttpClient(name="the server", auth=auth)
        for seconds in (0, 50, 10):
            now[0] += seconds
            got(client, served.url)
        assert str(failure(client, served.url)) == "the server failed: HTTP 401 *** is over"
        got(client, served.url)
        asked = [re.findall(rb"Bearer (\S+)", each)[0].decode() for each in served.requests]
    assert asked == ["token-1", "token-1", "token-2", "token-2", "token-3"]
    assert tokens.forms == 3 * [{"grant_type": ["client_credentials"], "scope": ["read"]}]
    assert tokens.users == 3 * ["ann%3A1:xyzzy+plugh"]


def test_threads_share_a_token_and_a_server_that_gives_none_is_named() -> None:
    tokens = TokenServer()

    def handle(served: Served, connection: Any) -> None:
        while served.read(connection):
            connection.sendall(ENOUGH)

    with json_serving(tokens) as server, serving(handle) as served:
        auth = ClientCredentials(f"{server.url}/token", Secret("ann"), Secret("xyzzy"))
        client = HttpClient(name="the server", auth=auth)
        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(lambda _: got(client, served.url), range(8))) == {b"ok"}
    assert len(tokens.forms) == 1
    for reply, message in (
        (Answer.json({"error": "xyzzy"}, 400), r"HTTP 400 Bad Request: {\"error\": \"\*\*\*\"}"),
        (Answer.json({"token": 1}), "gave no token"),
        (Answer.json([]), "gave no token"),
    ):
        with json_serving(lambda asked, reply=reply: reply) as server:
            auth = ClientCredentials(server.url, Secret("ann"), Secret("xyzzy"))
            client = HttpClient(name="the server", auth=auth)
            with pytest.raises(RemoteError, match=message) as caught:
                got(client, served.url)
            assert "xyzzy" not in str(caught.value)
