"""The SPARQL remote against a real server, and against servers that misbehave."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import pytest

from examples.oxigraph import OxigraphServer
from replica.http.auth import BearerAuth, Secret
from replica.http.client import HttpClient, Request
from replica.key_tuples import key_text
from replica.remotes import RemoteError, sparql
from replica.remotes.sparql import SparqlRemote
from replica.terms import is_blank, is_term
from tests.support.noting_client import NotingClient

PATTERN = "?user <urn:followers> ?followers ."


def integer(number: int) -> str:
    return f'"{number}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def remote(endpoint: str) -> SparqlRemote:
    return SparqlRemote(endpoint, pattern=PATTERN, variables=["user", "followers"], key="user")


def test_fetch_brings_the_keys_that_are_there_with_their_types(server: OxigraphServer) -> None:
    server.update(
        'INSERT DATA { <urn:a> <urn:followers> 7 . <urn:b> <urn:followers> "many"@en . '
        "<urn:c> <urn:x> 1 }"
    )
    found = remote(server.query_url).fetch(["<urn:a>", "<urn:b>", "<urn:c>"], timeout=10)
    assert sorted(found, key=lambda row: row["user"]) == [
        {"user": "<urn:a>", "followers": integer(7)},
        {"user": "<urn:b>", "followers": '"many"@en'},
    ]


def test_keys_of_several_terms_are_asked_for_as_tuples(server: OxigraphServer) -> None:
    server.update(
        " ".join(
            f"INSERT DATA {{ <urn:{at}> <urn:by> <urn:u{at % 3}> ; <urn:in> 'c{at % 4}' }} ;"
            for at in range(12)
        )
    )
    pair = key_text(["user", "city"])
    visits = SparqlRemote(
        server.query_url,
        pattern="?visit <urn:by> ?user ; <urn:in> ?city .",
        variables=["visit", "user", "city"],
        key=pair,
    )
    here, nowhere = ("<urn:u1>", '"c3"'), ("<urn:u7>", '"c3"')
    found = visits.fetch([key_text(here), key_text(nowhere), '<urn:u1>\n"c" } #'], timeout=10)
    assert found == [{"visit": "<urn:7>", "user": here[0], "city": here[1], pair: key_text(here)}]
    (page, *more) = [page for page in visits.load(timeout=10) if page]
    everything = [row[pair] for each in (page, *more) for row in each]
    assert len(everything) == len(set(everything)) == 12


def test_load_brings_everything_page_by_page(
    server: OxigraphServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparql, "PAGE_SIZE", 10)
    rows = " ".join(f"<urn:{number}> <urn:followers> {number} ." for number in range(25))
    server.update(f"INSERT DATA {{ {rows} }}")
    pages = list(remote(server.query_url).load(timeout=10))
    assert sum(len(page) for page in pages) == 25
    assert {row["user"] for page in pages for row in page} == {
        f"<urn:{number}>" for number in range(25)
    }


def test_a_pattern_of_any_kind_is_asked_for_in_a_group_of_its_own(server: OxigraphServer) -> None:
    server.update(
        'INSERT DATA { <urn:a> <urn:f> 7 , 8 ; <urn:n> "A" . <urn:b> <urn:f> 9 . <urn:c> '
        "<urn:g> 1 }"
    )
    pattern = (
        "{ ?k <urn:f> ?v FILTER(?v > 7) } UNION { ?k <urn:g> ?v } OPTIONAL { ?k <urn:n> ?n } "
        "# a comment"
    )
    found = SparqlRemote(
        server.query_url, pattern=pattern, variables=["k", "v", "n"], key="k", nested=True
    )
    assert sorted(found.fetch(["<urn:a>", "<urn:c>", "<urn:z>"], timeout=10), key=str) == [
        {"k": "<urn:a>", "v": integer(8), "n": '"A"'},
        {"k": "<urn:c>", "v": integer(1)},
    ]
    # The key is bound in the OPTIONAL alone: what joins with it must come after.
    optional = "?x <urn:g> ?v OPTIONAL { ?k <urn:n> ?n }"
    found = SparqlRemote(
        server.query_url, pattern=optional, variables=["k", "v"], key="k", nested=True
    )
    assert found.fetch(["<urn:b>"], timeout=10) == []


def test_a_pattern_without_a_key_is_loaded_page_by_page_and_refreshed_with_one_request(
    server: OxigraphServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparql, "PAGE_SIZE", 4)
    client = NotingClient()
    asked = client.queries
    server.update(
        f"INSERT DATA {{ {' '.join(f'<urn:{at}> <urn:followers> {at} .' for at in range(9))} }}"
    )
    whole = SparqlRemote(
        server.query_url,
        pattern=PATTERN,
        variables=["user", "followers"],
        key=None,
        client=client,
    )
    assert len(whole.fetch([""], timeout=10)) == 9
    assert (len(asked), "LIMIT" in asked[0]) == (1, False)
    assert [len(page) for page in whole.load(timeout=10)] == [9]
    assert len(asked) == 1 + 3 + 1  # only a page with nothing on it is the last
    truth = SparqlRemote(
        server.query_url, pattern="<urn:1> <urn:followers> 1 .", variables=[], key=None
    )
    assert truth.fetch([""], timeout=10) == [{}]


def test_a_key_that_is_a_blank_node_is_left_out_as_nothing_can_refer_to_it(
    server: OxigraphServer,
) -> None:
    server.update("INSERT DATA { [] <urn:followers> 7 }")
    loading = remote(server.query_url)
    assert not any(loading.load(timeout=10))
    assert loading.rejected["no usable key"]


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
    other = SparqlRemote(
        server.query_url, pattern=f"{PATTERN} ", variables=["user", "followers"], key="user"
    )
    assert not {row["followers"] for row in other.fetch(["<urn:a>"], timeout=10)} & set(terms)


def test_neither_blank_nodes_nor_many_solutions_of_a_key_end_the_loading_early(
    server: OxigraphServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparql, "PAGE_SIZE", 4)
    rows = " ".join(
        f"<urn:{number:02}> <urn:followers> {number} , {number + 100} ." for number in range(9)
    )
    server.update(f"INSERT DATA {{ {rows} [] <urn:followers> 1 . <urn:04> <urn:followers> [] }}")
    pages = list(remote(server.query_url).load(timeout=10))
    assert sum(len(page) for page in pages) == 19
    places = [
        {at for at, page in enumerate(pages) for row in page if row["user"] == key}
        for key in ("<urn:03>", "<urn:05>")
    ]
    assert all(len(place) == 1 for place in places)


def test_a_key_that_is_no_term_never_reaches_the_server(server: OxigraphServer) -> None:
    server.update("INSERT DATA { <urn:a> <urn:followers> 7 }")
    bad = "<urn:a> } ; DROP ALL #"
    assert remote("http://127.0.0.1:1/nobody").fetch([bad], timeout=10) == []
    assert [
        row["user"] for row in remote(server.query_url).fetch([bad, "<urn:a>"], timeout=10)
    ] == ["<urn:a>"]


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
            with connection, suppress(OSError):
                connection.recv(65536)
                connection.sendall(reply)
                # To the end: what has not been read when it closes would cost the reply.
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass

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
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: "
        f"{len(body)}\r\nConnection: close\r\n\r\n"
    )
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
        (
            http("503 Service Unavailable", b"x" * 9999),
            "failed: HTTP 503 Service Unavailable: x{200}$",
        ),
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
def test_whatever_a_server_sends_is_an_answer_or_a_named_failure(
    reply: bytes, message: str
) -> None:
    with answering(reply) as endpoint, pytest.raises(RemoteError, match=message):
        remote(endpoint).fetch(["<urn:a>"], timeout=10)


class Told:
    """A client that gives what it is told to, and says what it was asked."""

    def __init__(self, *replies: bytes) -> None:
        self._replies = iter(replies)
        self.asked: list[Request] = []

    @property
    def queries(self) -> list[str]:
        """The queries that it was asked."""
        return [
            parse_qs((each.body or b"").decode() or urlsplit(each.url).query)["query"][0]
            for each in self.asked
        ]

    @contextmanager
    def send(self, request: Request, timeout: float) -> Iterator[BytesIO]:
        """Give the next reply."""
        self.asked.append(request)
        yield BytesIO(next(self._replies))


def told(client: Told, endpoint: str = "http://example.org/query", **options: Any) -> SparqlRemote:
    given = {"pattern": PATTERN, "variables": ["user", "followers"], "key": "user", **options}
    return SparqlRemote(endpoint, client=cast(HttpClient, client), **given)


def result(*rows: dict[str, Any]) -> bytes:
    return json.dumps({"head": {"vars": ["user"]}, "results": {"bindings": rows}}).encode()


def row(user: str, number: int = 1, **more: Any) -> dict[str, Any]:
    datatype = "http://www.w3.org/2001/XMLSchema#integer"
    followers = {"type": "literal", "value": str(number), "datatype": datatype}
    return {"user": {"type": "uri", "value": user}, "followers": followers, **more}


def test_what_was_not_asked_for_is_left_out_and_counted() -> None:
    client = Told(
        result(
            row("urn:b"),
            row("urn:a", 7, other={"type": "uri", "value": "<>"}, another={}),
            row("urn:c"),
        )
    )
    asked = told(client)
    found = asked.fetch(["<urn:a>", "<urn:a>", "<urn:d>"], timeout=1)
    assert found == [{"user": "<urn:a>", "followers": integer(7)}]
    assert asked.rejected == {"not asked for": 2}
    assert "{ <urn:a> <urn:d> }" in client.queries[0]


@pytest.mark.parametrize(
    "term",
    [
        {"type": "uri", "value": "no iri"},
        {"type": "uri", "value": "urn:a> } DROP ALL #"},
        {"type": "literal", "value": 3},
        {"type": "literal", "value": ["x"]},
        {"type": "literal", "value": "x", "datatype": 3},
        {"type": "literal", "value": "x", "xml:lang": {"a": []}},
        {"type": "literal", "value": "x", "xml:lang": "no language"},
        {"type": "literal", "value": "x" * 40_000},
        {"type": "literal", "datatype": "urn:" + "x" * 40_000, "value": "x"},
        {"type": "triple", "value": {"subject": {"type": "uri", "value": "urn:a"}}},
        {"type": "nonsense", "value": "x"},
        {"type": None, "value": None},
        {},
    ],
)
def test_a_row_with_a_term_that_cannot_be_used_is_left_out_and_others_are_kept(
    term: dict[str, Any],
) -> None:
    client = Told(result(row("urn:a", followers=term), row("urn:b", 2)))
    asked = told(client)
    assert asked.fetch(["<urn:a>", "<urn:b>"], timeout=1) == [
        {"user": "<urn:b>", "followers": integer(2)}
    ]
    assert asked.rejected == {"a term that is invalid or too long": 1}


def test_members_that_nobody_knows_and_those_that_are_null_mean_nothing() -> None:
    term = {
        "type": "literal",
        "note": [{"x": 1e9}],
        "value": "x",
        "datatype": None,
        "xml:lang": None,
    }
    assert (
        told(Told(result(row("urn:a", followers=term)))).fetch(["<urn:a>"], 1)[0]["followers"]
        == '"x"'
    )


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"[]",
        b"[" * 1_000_000,
        b'{"results": {"bindings": [' + b'{"user": {"value": [' * 3,
        b'{"results": []}',
        b'{"results": {"bindings": {"item": {}}}}',
        b'{"results": {"bindings": {}}}',
        b'{"results": {"bindings": [[]]}}',
        b'{"results": {"bindings": [null]}}',
        b'{"results": {"bindings": [{"user": "urn:a"}]}}',
        b'{"results": {"bindings": [{}]}} {}',
        b'{"results": {"bindings": [{}]}',
        b'{"bindings": []}',
        b'{"results": {"bindings": [{"user": {"value": "\xff"}}]}}',
        b'{"head": "' + b"x" * 400_000 + b'", "results": {"bindings": []}}',
        result()[:-1],
    ],
)
def test_what_is_not_a_whole_result_is_a_named_failure(reply: bytes) -> None:
    with pytest.raises(
        RemoteError, match=r"example\.org/query sent something that is not SPARQL Results JSON"
    ):
        told(Told(reply)).fetch(["<urn:a>"], timeout=1)


def test_the_order_of_a_results_members_and_what_else_it_has_do_not_matter() -> None:
    text = (
        b'{"x": [1, {"results": {}}], "results": {"y": {"bindings": [3]}, "bindings": [{}], "z": '
        b'0}, "head": {}}'
    )
    assert told(Told(text), key=None).fetch([""], timeout=1) == [{}]


def test_a_reply_with_too_many_rows_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparql, "MOST_SOLUTIONS", 3)
    assert len(told(Told(result(*[row("urn:a")] * 3))).fetch(["<urn:a>"], timeout=1)) == 3
    with pytest.raises(RemoteError, match="more than 3 rows") as caught:
        told(Told(result(*[row("urn:b")] * 4))).fetch(["<urn:a>"], timeout=1)
    assert caught.value.too_large


def pages_of(*rows: dict[str, Any], size: int) -> list[bytes]:
    return [result(*rows[at : at + size]) for at in range(0, len(rows) + size, size)]


def test_a_server_that_gives_fewer_rows_than_asked_for_does_not_end_the_loading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = Told(*pages_of(*[row(f"urn:{number:02}", number) for number in range(25)], size=10))
    pages = list(told(client).load(timeout=1))
    assert [row["user"] for page in pages for row in page] == [
        f"<urn:{number:02}>" for number in range(25)
    ]
    assert [query.rpartition(" ")[2] for query in client.queries] == ["0", "10", "20", "25"]


def test_a_server_that_knows_no_pages_is_asked_a_few_times_and_believed_if_it_gave_less_than_a_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    everything = result(row("urn:a"), row("urn:b"))
    client = Told(*[everything] * 3)
    assert sum(len(page) for page in told(client).load(timeout=1)) == 2
    assert len(client.asked) == 3
    monkeypatch.setattr(sparql, "PAGE_SIZE", 2)
    with pytest.raises(RemoteError, match="the same page whatever OFFSET"):
        list(told(Told(*[everything] * 3)).load(timeout=1))


def test_rows_that_are_all_alike_are_loaded_as_often_as_there_are_any() -> None:
    client = Told(
        *[result(row("urn:a"), row("urn:a"))] * 2,
        result(),
        result(row("urn:a"), row("urn:a")),
        result(),
    )
    assert len(next(told(client, key=None).load(timeout=1))) == 6


def test_a_loading_that_never_ends_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparql, "MOST_LOADED", 5)
    client = Told(*[result(row(f"urn:{number}")) for number in range(9)])
    with pytest.raises(RemoteError, match="more than 5 rows"):
        list(told(client).load(timeout=1))
    assert len(client.asked) == 6


def test_a_get_has_all_in_its_address_as_long_as_there_is_room() -> None:
    client = Told(*[result()] * 4)
    got = told(client, "http://example.org/query?graph=urn%3Ag", method="get")
    got.fetch(["<urn:a>"], timeout=1)
    got.fetch([f"<urn:{number}>" for number in range(400)], timeout=1)
    told(client, "http://example.org/query?graph=urn%3Ag").fetch(["<urn:a>"], timeout=1)
    short, long, posted = client.asked
    assert [each.method for each in client.asked] == ["GET", "POST", "POST"]
    assert (short.body, parse_qs(urlsplit(short.url).query)["graph"]) == (None, ["urn:g"])
    assert long.url == posted.url == "http://example.org/query?graph=urn%3Ag"
    assert client.queries[0] == client.queries[2]
    assert all("application/sparql-results+json" in each.headers["Accept"] for each in client.asked)
    assert long.headers["Content-type"] == "application/x-www-form-urlencoded"


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_real_server_answers_either_way(server: OxigraphServer, method: str) -> None:
    server.update("INSERT DATA { <urn:a> <urn:followers> 7 }")
    asked = SparqlRemote(
        server.query_url,
        pattern=PATTERN,
        variables=["followers", "user"],
        key="user",
        method=method,
    )
    found = [asked.fetch(["<urn:a>"], timeout=10) for _ in range(2)]
    assert found == [[{"followers": integer(7), "user": "<urn:a>"}]] * 2
    many = [f"<urn:{number}>" for number in range(400)] + ["<urn:a>"]
    assert len(asked.fetch(many, timeout=10)) == 1


def test_a_real_server_answers_keys_of_odd_characters(server: OxigraphServer) -> None:
    keys = [
        "<urn:x:a~b!$&'()*+,;=:@/?c#d>",
        "<http://bücher.example/%7B%22%7D/ü𝒳>",
        '"\\\\u0022 } #"',
        '"\\\\\\\\u0041 \\" ?x { } <urn:a> # \'\' \t\\n\\r"',
        '"{}"@en-gb',
        "\"''\"^^<urn:x:type#'>",
        '"\x01\x7f\ufeff\ufffd\U0010ffff"',
    ]
    assert all(is_term(key) for key in keys)
    asked = SparqlRemote(
        server.query_url,
        pattern="BIND(STR(?k) AS ?text)",
        variables=["k", "text"],
        key="k",
        nested=False,
    )
    found = {row["k"] for row in asked.fetch(keys, timeout=10)}
    assert found == set(keys)


def test_what_a_server_wants_is_told(server: OxigraphServer) -> None:
    for status, expected in (("414 Too Long", True), ("500 No", False)):
        with answering(http(status, b"")) as endpoint, pytest.raises(RemoteError) as caught:
            remote(endpoint).fetch(["<urn:a>"], timeout=10)
        assert (caught.value.too_large, caught.value.retry_after) == (expected, None)
    with (
        answering(http("429 Too Many\r\nRetry-After: 7", b"")) as endpoint,
        pytest.raises(RemoteError) as caught,
    ):
        remote(endpoint).fetch(["<urn:a>"], timeout=10)
    assert caught.value.retry_after == 7


def test_who_asks_is_told_to_the_server_and_to_nobody_else() -> None:
    with answering(http("401 Unauthorized", b"Bearer xyzzy is not known")) as endpoint:
        client = HttpClient(name="the server", auth=BearerAuth(Secret("xyzzy")))
        asked = SparqlRemote(
            endpoint, pattern=PATTERN, variables=["user"], key="user", client=client
        )
        with pytest.raises(
            RemoteError, match=r"failed: HTTP 401 Unauthorized: Bearer \*\*\* is not known$"
        ):
            asked.fetch(["<urn:a>"], timeout=10)


def test_an_address_with_a_password_is_not_shown_nor_asked() -> None:
    with pytest.raises(RemoteError) as caught:
        remote("http://ann:xyzzy@127.0.0.1:1/query?token=xyzzy").fetch(["<urn:a>"], timeout=10)
    assert "127.0.0.1:1/query failed: its address has a user or a password" in str(caught.value)
    assert "xyzzy" not in str(caught.value)
