"""Requests of every shape are answered once each, or refused as the last of their connection."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from acquatop.app.serve.connections import LAST_SECONDS, Connections, Stage
from acquatop.app.serve.limits import Limits
from acquatop.app.serve.problems import Problem
from acquatop.app.serve.refusals import Refusals
from acquatop.errors import UserError
from tests.support.staged import Stage as Staged
from tests.support.staged import staged, wait_for
from tests.support.strangers import Raw, asked, statuses

HOST = b"Host: localhost\r\n"
END = b"Connection: close\r\n\r\n"
CHECK = b"POST /check HTTP/1.1\r\nContent-Type: text/plain\r\n" + HOST
LAST = b"GET /healthz HTTP/1.1\r\n" + HOST + END


@pytest.fixture(scope="module")
def stage() -> Iterator[Staged]:
    with staged(Limits(work_rate=1e6, work_burst=10**6, read_rate=1e6, read_burst=10**6)) as stage:
        yield stage


# Heads --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /healthz HTTP/1.1\r\n" + HOST + END, 200),
        (b"\r\n\r\nGET /healthz HTTP/1.0\r\n" + HOST + END, 200),
        (b"GET /healthz HTTP/1.1\r\n" + END, 400),
        (b"GET /healthz HTTP/1.0\r\n" + END, 400),
        (b"GET /healthz HTTP/1.1\r\n" + HOST + HOST + END, 400),
        (b"GET /healthz HTTP/1.1\r\n" + HOST + b"host: other\r\n" + END, 400),
        (b"GET http://localhost/healthz HTTP/1.1\r\n" + HOST + END, 400),
        (b"GET http://evil.example/ HTTP/1.1\r\n" + HOST + END, 400),
        (b"OPTIONS * HTTP/1.1\r\n" + HOST + END, 400),
        (b"CONNECT evil.example:80 HTTP/1.1\r\n" + HOST + END, 400),
        (b"GET healthz HTTP/1.1\r\n" + HOST + END, 400),
        (b"GET /healthz\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.2\r\n" + HOST + END, 400),
        (b"GET /healthz HTTP/2.0\r\n" + HOST + END, 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"FETCH /healthz HTTP/1.1\r\n" + HOST + END, 501),
        (b"PROPFIND /healthz HTTP/1.1\r\n" + HOST + END, 405),
        (b"TRACE /healthz HTTP/1.1\r\n" + HOST + END, 405),
        (b"GET /healthz HTTP/1.1\r\nHost : localhost\r\n" + END, 400),
        (b"GET /healthz HTTP/1.1\r\n" + HOST + b" folded: x\r\n" + END, 400),
        (b"GET /healthz HTTP/1.1\r\n" + HOST + b"a: b\x00c\r\n" + END, 400),
        (b"GET /health\x00z HTTP/1.1\r\n" + HOST + END, 400),
        (b"GET /\xff\xfe HTTP/1.1\r\n" + HOST + END, 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 501),
    ],
)
def test_a_head_is_answered_or_refused(stage: Staged, sent: bytes, status: int) -> None:
    assert statuses(asked(stage.url, sent)) == [status]


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nSEL",
        b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nSELE",
        b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
        b"Content-Length: +3\r\n\r\nSEL",
        b"Content-Length: 3, 3\r\n\r\nSEL",
        b"Content-Length: 0x3\r\n\r\nSEL",
        b"Content-Length: -3\r\n\r\nSEL",
        b"Content-Length: 99999999999999999999999\r\n\r\nSEL",
        b"Content-Length: \r\n\r\nSEL",
    ],
)
def test_a_body_of_ambiguous_length_is_refused_and_nothing_behind_it_is_read(
    stage: Staged, framing: bytes
) -> None:
    smuggled = b"DELETE /queries/query HTTP/1.1\r\n" + HOST + b"\r\n"
    assert statuses(asked(stage.url, CHECK + framing + smuggled + LAST)) == [400]


@pytest.mark.parametrize(
    "body",
    [
        b"3;" + b"a" * (2 << 20) + b"\r\nSEL\r\n0\r\n\r\n",
        b"3\r\nSEL\r\n0\r\n" + b"x: y\r\n" * (1 << 18) + b"\r\n",
        b"3\r\nSEL\r\n0\r\nx: " + b"y" * (2 << 20) + b"\r\n\r\n",
        b"1;x\r\nS\r\n" * (1 << 18) + b"0\r\n\r\n",
    ],
)
def test_what_is_not_the_body_in_chunks_is_limited_too(stage: Staged, body: bytes) -> None:
    assert statuses(asked(stage.url, CHECK + b"Transfer-Encoding: chunked\r\n\r\n" + body)) in (
        [413],
        [],
    )


@pytest.mark.parametrize(
    "body", [b"z\r\n", b"3\r\nSELECT\r\n", b"-1\r\n", b"fffffffffffffffff\r\n"]
)
def test_broken_chunks_are_refused(stage: Staged, body: bytes) -> None:
    sent = CHECK + b"Transfer-Encoding: chunked\r\n\r\n" + body + LAST
    assert statuses(asked(stage.url, sent)) == [400]


def test_fields_behind_a_body_in_chunks_count_for_nothing(stage: Staged) -> None:
    body = b"3\r\nSEL\r\n0\r\nHost: evil.example\r\nOrigin: http://evil.example\r\n\r\n"
    sent = CHECK + b"Transfer-Encoding: chunked\r\n\r\n" + body + LAST
    assert statuses(asked(stage.url, sent)) == [200, 200]


def test_a_body_that_is_announced_as_too_long_is_refused_before_it_comes(stage: Staged) -> None:
    long = CHECK + b"Expect: 100-continue\r\nContent-Length: 9999999\r\n\r\n"
    assert statuses(asked(stage.url, long)) == [413]
    head = b"GET /healthz HTTP/1.1\r\n" + HOST
    assert statuses(asked(stage.url, head + b"Content-Length: 9999999\r\n\r\n")) == [413]


# Several requests ---------------------------------------------------------------------------------


def test_a_refusal_comes_after_the_responses_before_it(stage: Staged) -> None:
    for at in (1, 50, 1_000):
        sent = (b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n") * at + b"GET nonsense\r\n\r\n"
        assert statuses(asked(stage.url, sent)) == [*[200] * at, 400]


def test_ten_thousand_requests_in_one_breath_are_all_answered(stage: Staged) -> None:
    one = b"HEAD /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
    with Raw(stage.url) as raw:
        for _ in range(20):
            assert raw.send(one * 500)
            found = b""
            while found.count(b"\r\n\r\n") < 500:
                found += raw.some()
            assert statuses(found) == [200] * 500


def test_an_upgrade_is_not_offered_and_what_follows_is_not_read(stage: Staged) -> None:
    upgrade = b"GET /healthz HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: %s\r\n" + HOST + b"\r\n"
    for kind in (b"websocket", b"h2c"):
        assert statuses(asked(stage.url, upgrade % kind + b"\x81\x05hello" + LAST)) == [200]


def test_a_stream_is_not_mixed_with_what_its_reader_sends_behind_it(stage: Staged) -> None:
    with Raw(stage.url) as raw:
        raw.send(b"GET /events HTTP/1.1\r\n" + HOST + b"\r\n")
        begun = raw.some()
        raw.send(b"nonsense\r\n\r\n")
        stage.client.register(" ".join(_QUERY.split()), name="streamed")
        while b"streamed" not in begun:
            begun += raw.some()
        assert statuses(begun) == [200]
    stage.client.remove("streamed")


def test_a_reader_that_leaves_with_a_request_unanswered_is_a_reader_no_more() -> None:
    with staged(Limits(heartbeat_seconds=0.05)) as stage:

        def readers() -> float | None:
            return stage.meters.registry.get_sample_value("acquatop_stream_readers")

        with Raw(stage.url) as raw:
            raw.send(b"GET /events HTTP/1.1\r\n" + HOST + b"\r\n" + LAST)
            raw.some()
            assert readers() == 1
        wait_for(lambda: readers() == 0)


def test_a_request_that_is_given_up_is_told_so_once(
    stage: Staged, caplog: pytest.LogCaptureFixture
) -> None:
    head = CHECK + b"Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert statuses(asked(stage.url, head + b"z\r\n")) in ([400], [100, 400])
    assert statuses(asked(stage.url, LAST)) == [200]
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


_QUERY = """PREFIX : <http://example.org/> SELECT ?user (2 * ?mentions AS ?score)
FROM NAMED WINDOW :w ON :stream [RANGE 9ms STEP 3ms]
WHERE { WINDOW :w { ?user :mentions ?mentions } } ORDER BY DESC(?score) LIMIT 2"""


# Other sites --------------------------------------------------------------------------------------


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "GET"])
def test_only_a_link_leads_here_from_another_site(stage: Staged, site: str, method: str) -> None:
    for path, mode in (("/queries", ""), ("/queries/query/pause", "Sec-Fetch-Mode: navigate\r\n")):
        head = f"{method} {path} HTTP/1.1\r\nSec-Fetch-Site: {site}\r\n{mode}".encode() + HOST + END
        is_link = method == "GET" and mode
        assert statuses(asked(stage.url, head)) == [405 if is_link else 403]


# The ledger ---------------------------------------------------------------------------------------


class One:
    """A connection that leaves the ledger when it is cut, as a real one does."""

    def __init__(self, ledger: Connections) -> None:
        self.ledger = ledger
        self.is_cut = False

    def cut(self) -> None:
        self.is_cut = True
        self.ledger.leave(self)


class Hand:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def ledger(**limits: int) -> tuple[Connections, Hand]:
    clock = Hand()
    return Connections(Limits(**limits), clock=clock), clock  # type: ignore[arg-type]


def entered(connections: Connections, address: str) -> tuple[One, Problem | None]:
    one = One(connections)
    return one, connections.enter(one, address)


def test_the_ledger_closes_idle_ones_and_then_refuses() -> None:
    connections, _ = ledger(connections=3, connections_per_address=2)
    first, _ = entered(connections, "ann")
    second, _ = entered(connections, "ann")
    connections.move(first, Stage.BUSY)
    third, problem = entered(connections, "ann")
    assert (second.is_cut, problem) == (True, None)
    connections.move(third, Stage.BUSY)
    _, problem = entered(connections, "ann")
    assert problem is not None
    assert (problem.kind, problem.retry_after) == ("too-many-requests", 5.0)
    bob, problem = entered(connections, "bob")
    assert problem is None
    connections.move(bob, Stage.BUSY)
    for one in (first, third, bob):
        connections.leave(one)
        connections.leave(one)
    assert len(connections) == 0


def test_the_ledger_refuses_when_all_connections_are_busy() -> None:
    connections, _ = ledger(connections=2)
    for address in ("ann", "bob"):
        one, problem = entered(connections, address)
        assert problem is None
        connections.move(one, Stage.BUSY)
    _, problem = entered(connections, "eve")
    assert problem is not None
    assert problem.kind == "unavailable"


def test_the_ledger_limits_unfinished_requests_per_address_and_in_all() -> None:
    connections, _ = ledger(unfinished=3, unfinished_per_address=2)
    kinds = []
    for address in ("ann", "ann", "ann", "bob"):
        one, _ = entered(connections, address)
        problem = connections.move(one, Stage.HEAD)
        kinds.append(problem and problem.kind)
        if problem is not None:
            connections.move(one, Stage.LAST)
    assert kinds == [None, None, "too-many-requests", None]
    one, _ = entered(connections, "eve")
    problem = connections.move(one, Stage.HEAD)
    assert problem is not None
    assert problem.kind == "unavailable"


def test_the_ledger_yields_what_is_overdue_by_the_time_in_its_stage() -> None:
    connections, clock = ledger(header_seconds=10)
    slow, _ = entered(connections, "ann")
    busy, _ = entered(connections, "ann")
    connections.move(busy, Stage.BUSY)
    clock.now = 9.0
    connections.move(slow, Stage.HEAD)
    late, _ = entered(connections, "ann")
    last, _ = entered(connections, "ann")
    connections.move(last, Stage.LAST)
    clock.now = 18.9
    connections.move(slow, Stage.HEAD)  # a further byte gives no further time
    assert list(connections.overdue()) == [(last, Stage.LAST)]
    clock.now = 19.0
    assert [one for one, _ in connections.overdue()] == [late, slow, last]
    assert LAST_SECONDS < 10


def test_a_refusal_is_logged_at_once_and_then_once_per_interval(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Hand()
    refusals = Refusals(clock=clock)
    for _ in range(5):
        refusals.note(Problem("too-large", "a body may have 9 bytes"), "10.0.0.1")
    clock.now = 10.0
    refusals.note(Problem("too-large", "a body may have 9 bytes"), "10.0.0.2")
    refusals.note(Problem("too-large", "a body may have 9 bytes"), "10.0.0.2")
    refusals.close()
    said = "too-large (413): a body may have 9 bytes; the last for 10.0.0"
    assert [record.getMessage() for record in caplog.records] == [
        f"refused 1 times: {said}.1",
        f"refused 5 times: {said}.2",
        f"refused 1 times: {said}.2",
    ]


@pytest.mark.parametrize(
    "text", ["idle=0", "idle=-1", "idle=x", "idle=1.5", "idle", "read_rate=nan"]
)
def test_a_limit_is_a_positive_number(text: str) -> None:
    with pytest.raises(UserError, match="must be a"):
        Limits().with_texts([text])


def test_every_limit_is_documented_with_its_default() -> None:
    text = (Path(__file__).parents[4] / "docs" / "serve.md").read_text("utf-8")
    rows = re.findall(r"^\| (`.+?`) \| ([0-9., ]+) \|", text, re.MULTILINE)
    told = {
        name: default
        for names, defaults in rows
        for name, default in zip(re.findall("`(.+?)`", names), defaults.split(", "), strict=True)
    }
    assert {name: told.get(name) for name in Limits.names()} == {
        name: str(default) for name, default in asdict(Limits()).items()
    }
