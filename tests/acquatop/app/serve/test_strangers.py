"""The service as a program withstands clients that send too much, too slowly, or nonsense."""

from __future__ import annotations

import json
import select
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from tests.support.markers import THOROUGH
from tests.support.serving import World, serving
from tests.support.staged import LIMIT, wait_for
from tests.support.strangers import Raw, asked, resident, statuses

HOST = b"Host: localhost\r\n"
GET = b"GET /healthz HTTP/1.1\r\n" + HOST
MB = 1 << 20


class Served:
    """The program's address, and its process."""

    def __init__(self, url: str, pid: int, folder: Path) -> None:
        self.url = url
        self.pid = pid
        self.log = folder / "log"

    def said(self) -> str:
        return self.log.read_text()


@contextmanager
def served(folder: Path, *more: str) -> Iterator[Served]:
    with serving(World(folder).folder, "--log", "log", *more) as (child, client):
        yield Served(client.url, child.pid, folder)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("served"), "--limit", "header_seconds=60") as program:
        yield program


@contextmanager
def health_watched(url: str) -> Iterator[list[float]]:
    """Ask for the health again and again from another thread; yield the seconds of each reply."""
    seconds: list[float] = []
    done = threading.Event()

    def ask() -> None:
        with requests.Session() as session:
            while not done.is_set() or not seconds:
                before = time.monotonic()
                assert session.get(url + "/healthz", timeout=LIMIT).status_code == 200
                seconds.append(time.monotonic() - before)
                done.wait(0.02)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield seconds
    finally:
        done.set()
        asking.join()


def readable(raws: list[Raw]) -> list[Raw]:
    """Return the connections that something has come on."""
    found = select.select([raw.socket for raw in raws], [], [], 0)[0]
    return [raw for raw in raws if raw.socket in found]


FLOODS = {
    "one header": b"x: " + b"a" * (40 * MB),
    "many headers": b"".join(b"x-%d: %s\r\n" % (at, b"a" * 1_000) for at in range(40_000)),
    "empty headers": b"a:\r\n" * (10 * MB),
    "a name": b"a" * (40 * MB),
}


@THOROUGH
@pytest.mark.parametrize("flood", FLOODS)
def test_forty_megabytes_of_headers_cost_no_memory_and_stop_nobody(
    program: Served, flood: str
) -> None:
    for _ in range(3):
        requests.get(program.url + "/healthz", timeout=LIMIT)
    before = resident(program.pid)
    with health_watched(program.url) as seconds, Raw(program.url) as raw:
        raw.send(GET)
        raw.send(FLOODS[flood])
        reply = raw.all()
        grown = resident(program.pid) - before
    assert statuses(reply) in ([431], [])  # nothing if the client sends on without reading
    assert grown < 30 * MB
    assert sorted(seconds)[len(seconds) // 2] < 1


@THOROUGH
def test_a_header_is_refused_when_it_is_too_long_and_not_when_it_ends(program: Served) -> None:
    for sent, status in (
        (GET + b"x: " + b"a" * (32 << 10), 431),
        (b"GET /" + b"a" * (32 << 10), 414),
        (GET + b"x: y\r\n" * 200, 431),
    ):
        reply = asked(program.url, sent)
        assert statuses(reply) == [status]
        assert b"application/problem+json" in reply
        assert b"connection: close" in reply.lower()
    wait_for(lambda: "headers-too-large" in program.said())


@THOROUGH
def test_a_refusal_is_logged_once_per_interval(tmp_path: Path) -> None:
    with served(tmp_path) as program:
        for _ in range(50):
            asked(program.url, b"GET /" + b"a" * 20_000)
        lines = [json.loads(line) for line in program.said().splitlines()]
        told = [each for each in lines if "target-too-long" in each.get("text", "")]
        assert 1 <= len(told) <= 5  # one, and one more for every ten seconds of a busy machine


@THOROUGH
def test_requests_that_do_not_end_are_refused_in_time(tmp_path: Path) -> None:
    with served(tmp_path, "--limit", "header_seconds=0.5", "--limit", "request_seconds=0.5") as it:
        assert statuses(asked(it.url, GET)) == [408]
        post = b"POST /check HTTP/1.1\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n" + HOST
        assert statuses(asked(it.url, post + b"\r\nSEL")) == [408]
        chunked = post.replace(b"Content-Length: 9", b"Transfer-Encoding: chunked")
        assert statuses(asked(it.url, chunked + b"\r\n3\r\nSEL\r\n")) == [408]
        assert asked(it.url) == b""


@THOROUGH
def test_unfinished_requests_are_limited_and_others_are_served(tmp_path: Path) -> None:
    with served(
        tmp_path, "--limit", "unfinished_per_address=20", "--limit", "header_seconds=60"
    ) as program:
        raws = [Raw(program.url) for _ in range(25)]
        try:
            for raw in raws:
                raw.send(GET)
            wait_for(lambda: len(readable(raws)) == 5)
            for raw in readable(raws):
                reply = raw.all()
                assert statuses(reply) == [429]
                assert b"retry-after" in reply.lower()
                raws.remove(raw)
            assert requests.get(program.url + "/healthz", timeout=LIMIT).status_code == 200
            raws[0].send(b"Connection: close\r\n\r\n")
            assert b'"ok"' in raws[0].all()
        finally:
            for raw in raws:
                raw.socket.close()


@THOROUGH
def test_the_connection_that_is_idle_for_longest_makes_room(tmp_path: Path) -> None:
    limits = ("idle_per_address=3", "idle_seconds=60", "header_seconds=60")
    with served(tmp_path, *(part for each in limits for part in ("--limit", each))) as program:
        raws = [Raw(program.url) for _ in range(3)]
        try:
            for raw in raws:
                raw.send(GET + b"\r\n")
                assert statuses(raw.some()) == [200]
            assert requests.get(program.url + "/healthz", timeout=LIMIT).status_code == 200
            assert statuses(raws[0].all()) == []
            raws[2].send(GET + b"Connection: close\r\n\r\n")
            assert statuses(raws[2].all()) == [200]
        finally:
            for raw in raws:
                raw.socket.close()


@THOROUGH
@pytest.mark.parametrize("limit", ["readers_per_address=2", "connections_per_address=2"])
def test_readers_and_connections_of_one_address_are_limited(tmp_path: Path, limit: str) -> None:
    events = b"GET /events HTTP/1.1\r\n" + HOST + b"\r\n"
    with served(tmp_path, "--limit", limit) as program:
        with Raw(program.url) as first, Raw(program.url) as second:
            for raw in (first, second):
                raw.send(events)
                assert statuses(raw.some()) == [200]
            reply = asked(
                program.url, events.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
            )
            assert statuses(reply) == [429]
            assert b"retry-after: 5" in reply.lower()
        wait_for(lambda: statuses(asked(program.url, GET + b"Connection: close\r\n\r\n")) == [200])
