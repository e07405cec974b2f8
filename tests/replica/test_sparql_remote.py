"""The SPARQL remote against a real server, and against servers that misbehave."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from examples.oxigraph import OxigraphServer
from replica.remotes import RemoteError, sparql
from replica.remotes.sparql import SparqlRemote
from replica.terms import is_blank, is_term
from tests.worlds import integer

pytestmark = pytest.mark.server
PATTERN = "?user <urn:followers> ?followers ."


def remote(endpoint: str) -> SparqlRemote:
    return SparqlRemote(endpoint, pattern=PATTERN, variables=["user", "followers"], key="user")


def test_fetch_brings_the_keys_that_are_there_with_their_types(server: OxigraphServer) -> None:
    server.update('INSERT DATA { <urn:a> <urn:followers> 7 . <urn:b> <urn:followers> "many"@en . <urn:c> <urn:x> 1 }')
    found = remote(server.query_url).fetch(["<urn:a>", "<urn:b>", "<urn:c>"], timeout=10)
    assert sorted(found, key=lambda row: row["user"]) == [
        {"user": "<urn:a>", "followers": integer(7)},
        {"user": "<urn:b>", "followers": '"many"@en'},
    ]


def test_load_brings_everything_page_by_page(server: OxigraphServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparql, "PAGE_SIZE", 10)
    rows = " ".join(f"<urn:{number}> <urn:followers> {number} ." for number in range(25))
    server.update(f"INSERT DATA {{ {rows} }}")
    pages = list(remote(server.query_url).load(timeout=10))
    assert sum(len(page) for page in pages) == 25
    assert {row["user"] for page in pages for row in page} == {f"<urn:{number}>" for number in range(25)}


def test_a_pattern_of_any_kind_is_asked_for_in_a_group_of_its_own(server: OxigraphServer) -> None:
    server.update('INSERT DATA { <urn:a> <urn:f> 7 , 8 ; <urn:n> "A" . <urn:b> <urn:f> 9 . <urn:c> <urn:g> 1 }')
    pattern = "{ ?k <urn:f> ?v FILTER(?v > 7) } UNION { ?k <urn:g> ?v } OPTIONAL { ?k <urn:n> ?n } # a comment"
    found = SparqlRemote(server.query_url, pattern=pattern, variables=["k", "v", "n"], key="k", nested=True)
    assert sorted(found.fetch(["<urn:a>", "<urn:c>", "<urn:z>"], timeout=10), key=str) == [
        {"k": "<urn:a>", "v": integer(8), "n": '"A"'},
        {"k": "<urn:c>", "v": integer(1)},
    ]
    # The key is bound in the OPTIONAL alone: what joins with it must come after.
    optional = "?x <urn:g> ?v OPTIONAL { ?k <urn:n> ?n }"
    found = SparqlRemote(server.query_url, pattern=optional, variables=["k", "v"], key="k", nested=True)
    assert found.fetch(["<urn:b>"], timeout=10) == []


def test_a_pattern_without_a_key_is_loaded_page_by_page_and_refreshed_with_one_request(
    server: OxigraphServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparql, "PAGE_SIZE", 4)
    asked: list[str] = []
    select = SparqlRemote._select
    monkeypatch.setattr(SparqlRemote, "_select", lambda *rest: asked.append(rest[1]) or select(*rest))
    server.update(f"INSERT DATA {{ {' '.join(f'<urn:{at}> <urn:followers> {at} .' for at in range(9))} }}")
    whole = SparqlRemote(server.query_url, pattern=PATTERN, variables=["user", "followers"], key=None)
    assert len(whole.fetch([""], timeout=10)) == 9
    assert (len(asked), "LIMIT" in asked[0]) == (1, False)
    assert [len(page) for page in whole.load(timeout=10)] == [9]
    assert len(asked) == 1 + 3  # the last page is not full, and so nothing is asked after it
    truth = SparqlRemote(server.query_url, pattern="<urn:1> <urn:followers> 1 .", variables=[], key=None)
    assert truth.fetch([""], timeout=10) == [{}]


def test_a_key_that_is_a_blank_node_is_left_out_as_nothing_can_refer_to_it(server: OxigraphServer) -> None:
    server.update("INSERT DATA { [] <urn:followers> 7 }")
    assert not any(remote(server.query_url).load(timeout=10))


def test_other_blank_nodes_are_kept_and_belong_to_their_key(server: OxigraphServer) -> None:
    server.update("INSERT DATA { <urn:a> <urn:followers> _:x , _:y . <urn:b> <urn:followers> _:x }")
    rows = remote(server.query_url).fetch(["<urn:a>", "<urn:b>"], timeout=10)
    terms = [row["followers"] for row in rows]
    assert len(set(terms)) == 3
    assert all(is_blank(term) and is_term(term) for term in terms)
    assert sorted(terms) == sorted(
        row["followers"] for row in remote(server.query_url).fetch(["<urn:b>", "<urn:a>"], 10)
    )
    assert remote("http://127.0.0.1:1/nobody").fetch(terms, timeout=10) == []
    other = SparqlRemote(server.query_url, pattern=f"{PATTERN} ", variables=["user", "followers"], key="user")
    assert not {row["followers"] for row in other.fetch(["<urn:a>"], timeout=10)} & set(terms)


def test_neither_blank_nodes_nor_many_solutions_of_a_key_end_the_loading_early(
    server: OxigraphServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparql, "PAGE_SIZE", 4)
    rows = " ".join(f"<urn:{number:02}> <urn:followers> {number} , {number + 100} ." for number in range(9))
    server.update(f"INSERT DATA {{ {rows} [] <urn:followers> 1 . <urn:04> <urn:followers> [] }}")
    pages = list(remote(server.query_url).load(timeout=10))
    assert sum(len(page) for page in pages) == 19
    places = [
        {at for at, page in enumerate(pages) for row in page if row["user"] == key} for key in ("<urn:03>", "<urn:05>")
    ]
    assert all(len(place) == 1 for place in places)


def test_a_key_that_is_no_term_never_reaches_the_server(server: OxigraphServer) -> None:
    server.update("INSERT DATA { <urn:a> <urn:followers> 7 }")
    bad = "<urn:a> } ; DROP ALL #"
    assert remote("http://127.0.0.1:1/nobody").fetch([bad], timeout=10) == []
    assert [row["user"] for row in remote(server.query_url).fetch([bad, "<urn:a>"], timeout=10)] == ["<urn:a>"]


def test_a_refused_connection_is_named(server: OxigraphServer) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        with pytest.raises(RemoteError, match=rf"http://127.0.0.1:{port}/query failed: .*refused"):
            remote(f"http://127.0.0.1:{port}/query").fetch(["<urn:a>"], timeout=10)


def test_a_query_that_the_server_refuses_is_named(server: OxigraphServer) -> None:
    broken = SparqlRemote(server.query_url, pattern="nonsense", variables=["user"], key="user")
    with pytest.raises(RemoteError, match="failed"):
        broken.fetch(["<urn:a>"], timeout=10)


@contextmanager
def answering(reply: bytes) -> Iterator[str]:
    """A server that gives every connection the same bytes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(reply)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/query"
        thread.join(10)


def test_a_server_that_drips_is_given_up_at_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ended = threading.Event()

        def drip() -> None:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                while not ended.wait(0.01):
                    connection.sendall(b" ")

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        endpoint = f"http://127.0.0.1:{listener.getsockname()[1]}/query"
        with pytest.raises(RemoteError, match="took too long"):
            remote(endpoint).fetch(["<urn:a>"], timeout=0.2)
        ended.set()
        thread.join(10)


def http(status: str, body: bytes, kind: str = "application/sparql-results+json") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (http("500 Internal Server Error", b"no"), "failed"),
        (http("500 Internal Server Error", b"no"), r"failed: HTTP 500 Internal Server Error: no$"),
        (
            http("400 Bad Request", b"\n\x1b[31m bad \xc3\xa9 query\nsecond line"),
            r"HTTP 400 Bad Request: \[31m bad é query$",
        ),
        (http("503 Service Unavailable", b""), "failed: HTTP 503 Service Unavailable$"),
        (http("503 Service Unavailable", b"x" * 9999), "failed: HTTP 503 Service Unavailable: x{200}$"),
        (http("503 Service Unavailable", b"no"), "failed: HTTP 503"),
        (http("429 Too Many Requests", b"no"), "failed: HTTP 429"),
        (http("200 OK", b"<html>hello</html>", "text/html"), "not SPARQL Results JSON"),
        (http("200 OK", b'{"results": {"bindings": [{"us'), "not SPARQL Results JSON"),
        (http("200 OK", b'{"boolean": true}'), "not SPARQL Results JSON"),
        (http("200 OK", b'{"results": {"bindings": [3]}}'), "not SPARQL Results JSON"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", "failed|not SPARQL"),
        (b"nonsense\r\n\r\n", "failed"),
        (b"", "failed"),
    ],
)
def test_whatever_a_server_sends_is_an_answer_or_a_named_failure(reply: bytes, message: str) -> None:
    with answering(reply) as endpoint, pytest.raises(RemoteError, match=message):
        remote(endpoint).fetch(["<urn:a>"], timeout=10)
