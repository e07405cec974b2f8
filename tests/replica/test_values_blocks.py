"""VALUES blocks: no key and no server can change a query's form, as other parsers read it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Any, cast
from urllib.parse import parse_qs

import pyoxigraph
from hypothesis import given, settings
from hypothesis import strategies as st

from replica.http.client import HttpClient, Request
from replica.remotes import RemoteError
from replica.remotes.sparql import SparqlRemote
from replica.terms import can_be_asked, is_term, literal_text
from rspql import ast
from rspql.parser import parse

PATTERN = "?user <urn:followers> ?followers . FILTER(?followers > 1) # all of them"

PIECES = st.sampled_from(
    [
        *"{}<>\"'\\#@^;.?\n\r\t\x00 ",
        *(
            "<urn:a>",
            '"a"',
            '"""',
            "\\u003e",
            "\\u0022",
            "\\\\u0022",
            "\\U0000007D",
            "\\n",
            '\\"',
            "%7D",
            "\ud800",
        ),
        *(
            "VALUES ?user {",
            "} UNION {",
            "} DROP ALL #",
            "UNDEF",
            "SERVICE <urn:s> {}",
            "@en",
            "^^<urn:t>",
            "/*",
            "\u2028",
        ),
    ]
)
ANY = st.lists(PIECES | st.characters(exclude_categories=()), max_size=8).map("".join)
KEYS = st.one_of(
    ANY,
    ANY.map(lambda text: f"<urn:{text}>"),
    ANY.map(lambda text: f'"{text}"'),
    ANY.map(literal_text),
    st.builds(literal_text, ANY, ANY.map(lambda text: f"urn:{text}")),
    st.builds(literal_text, ANY, st.none(), ANY),
    st.sampled_from(["<urn:a>", '"b"@en', "<http://example.org/?q={x}#>"]),
)


class Recorder:
    """A client that gives one reply, and keeps the queries that were asked."""

    def __init__(self, reply: bytes = b'{"results": {"bindings": []}}') -> None:
        self._reply = reply
        self.queries: list[str] = []

    @contextmanager
    def send(self, request: Request, timeout: float) -> Iterator[BytesIO]:
        """Give the reply."""
        self.queries += parse_qs((request.body or b"").decode(), strict_parsing=True)["query"]
        yield BytesIO(self._reply)


def remote(client: Recorder, *, nested: bool = True) -> SparqlRemote:
    pattern = PATTERN if nested else PATTERN.partition("#")[0]
    return SparqlRemote(
        "http://example.org/query",
        pattern=pattern,
        variables=["user", "followers"],
        key="user",
        nested=nested,
        client=cast(HttpClient, client),
    )


def as_parsed(key: str) -> ast.Iri | ast.Literal:
    """Return a key as a parser of N-Triples reads it."""
    (quad,) = pyoxigraph.parse(
        f"<urn:s> <urn:p> {key} .", pyoxigraph.RdfFormat.N_TRIPLES, lenient=True
    )
    term = quad.object
    if isinstance(term, pyoxigraph.NamedNode):
        return ast.Iri(term.value)
    assert isinstance(term, pyoxigraph.Literal)
    return ast.Literal(term.value, term.datatype.value, term.language)


def is_taken(key: str) -> bool:
    """Say whether a strict parser takes a key too: this one is stricter with languages."""
    try:
        return bool([*pyoxigraph.parse(f"<urn:s> <urn:p> {key} .", pyoxigraph.RdfFormat.N_TRIPLES)])
    except SyntaxError:
        return False


def check_query(keys: Sequence[str], *, nested: bool) -> None:
    client = Recorder()
    assert remote(client, nested=nested).fetch(keys, timeout=1) == []
    sendable = list(dict.fromkeys(key for key in keys if can_be_asked(key)))
    assert len(client.queries) == bool(sendable)
    for query in client.queries:
        tree = parse(query)
        plain = f"{{ {PATTERN}\n}}" if nested else PATTERN
        expected = parse(f"SELECT ?user ?followers WHERE {{ {plain}\n}}")
        assert tree.where is not None
        assert expected.where is not None
        values, *rest = tree.where.elements
        assert tuple(rest) == expected.where.elements
        assert values == ast.Values(
            (ast.Variable("user"),), tuple((as_parsed(key),) for key in sendable)
        )
        assert (tree.form, tree.values, tree.limit) == (expected.form, None, None)
        if all(map(is_taken, sendable)):
            pyoxigraph.Store().query(query)  # To a server it is a query too.


@settings(max_examples=150)
@given(st.lists(KEYS, max_size=4), st.booleans())
def test_a_query_has_the_keys_that_can_be_sent_as_they_are_and_nothing_else_of_them(
    keys: list[str], nested: bool
) -> None:
    check_query(keys, nested=nested)


@contextmanager
def refused_if(broken: bool) -> Iterator[None]:
    """Let a reply be refused, but only if it is broken."""
    try:
        yield
    except RemoteError:
        assert broken


def is_broken(rows: Sequence[Any]) -> bool:
    return any("\ud800" <= each <= "\udfff" for each in json.dumps(rows, ensure_ascii=False))


TERMS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["uri", "literal", "typed-literal", "bnode", "x"]),
        "value": ANY | ANY.map("urn:{}".format),
    },
    optional={"datatype": ANY | ANY.map("urn:{}".format), "xml:lang": ANY | st.just("en")},
)


@settings(max_examples=150)
@given(st.lists(st.fixed_dictionaries({"user": TERMS, "followers": TERMS}), max_size=4))
def test_what_came_back_from_a_server_is_a_key_like_any_other(rows: list[dict[str, Any]]) -> None:
    client = Recorder(json.dumps({"results": {"bindings": rows}}).encode())
    asked = remote(client)
    came: list[str] = []
    with refused_if(is_broken(rows)):
        came += [
            term
            for page in asked.load(timeout=1)
            for solution in page
            for term in solution.values()
        ]
    assert all(is_term(term) for term in came)
    check_query(came, nested=True)
    check_query(came, nested=False)


def test_the_fuzz_reaches_what_it_is_meant_to() -> None:
    check_query(
        ["<urn:a> } DROP ALL #", "<urn:a>", '"\\\\u0022 } #"', '"}"@en', "<urn:\ud800>"],
        nested=False,
    )
    assert as_parsed('"\\\\u0022"') == ast.Literal("\\u0022")
