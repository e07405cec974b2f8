"""The endpoint of metrics withstands clients that send too much, too slowly, or nonsense."""

from __future__ import annotations

import socket
import urllib.request
from collections.abc import Iterator
from http import HTTPStatus

import pytest
from prometheus_client import CollectorRegistry

from acquatop.app.watch import endpoint
from acquatop.app.watch.address import ListenAddress
from acquatop.app.watch.endpoint import Endpoint
from acquatop.app.watch.head import HeadError, read_head
from tests.support.staged import LIMIT, wait_for
from tests.support.strangers import Raw, asked, statuses

HOST = b"Host: localhost\r\n"
GET = b"GET /metrics HTTP/1.1\r\n" + HOST


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    served = Endpoint(CollectorRegistry(), ListenAddress("127.0.0.1", 0))
    served.start()
    try:
        yield served.url
    finally:
        served.close()


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (GET + b"\r\n", 200),
        (b"GET /nowhere HTTP/1.1\r\n" + HOST + b"\r\n", 404),
        (b"GET /metrics HTTP/1.1\r\n\r\n", 400),
        (GET + HOST + b"\r\n", 400),
        (b"GET http://evil.example/metrics HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (b"GET /metrics\r\n\r\n", 400),
        (b"GET /metrics HTTP/2.0\r\n" + HOST + b"\r\n", 400),
        (b"POST /metrics HTTP/1.1\r\n" + HOST + b"\r\n", 501),
        (b"nonsense\r\n\r\n", 400),
        (GET + b"x: " + b"y" * 8_192, 431),
        (b"GET /" + b"y" * 8_192, 431),
        (b"\r\n" * 2, 400),
    ],
)
def test_a_request_is_answered_or_refused(url: str, sent: bytes, status: int) -> None:
    assert asked(url, sent).split(b" ", 2)[1] == str(status).encode()


def test_a_flood_of_headers_ends(url: str) -> None:
    assert statuses(asked(url, GET, b"x: " + b"a" * (40 << 20))) in ([431], [])


def test_connections_are_limited_and_come_free_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit, status in (("CONNECTIONS_PER_ADDRESS", 429), ("CONNECTIONS", 503)):
        with monkeypatch.context() as patch, Raw(url) as first, Raw(url) as second:
            first.send(GET)
            second.send(GET)
            patch.setattr(endpoint, limit, 1)
            reply = asked(url)
            assert statuses(reply) == [status]
            assert b"Retry-After: 5" in reply

    def is_free() -> bool:
        with urllib.request.urlopen(url, timeout=LIMIT) as reply:
            return bool(reply.status == 200)

    wait_for(is_free)


def test_a_head_is_waited_for_by_the_clock_however_it_dribbles() -> None:
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 1.0
        return now

    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"GET /")
        with pytest.raises(HeadError) as refused:
            read_head(ours, most=4, seconds=1.5, clock=clock)
        assert refused.value.status is HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        now = 0.0
        theirs.sendall(b"a")
        with pytest.raises(HeadError) as late:
            read_head(ours, most=100, seconds=1.5, clock=clock)
        assert late.value.status is HTTPStatus.REQUEST_TIMEOUT
        theirs.shutdown(socket.SHUT_WR)
        assert read_head(ours, most=100, seconds=1e9, clock=clock) == b""
