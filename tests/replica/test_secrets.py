"""Secrets: they are sent only to their server, and never shown."""

from __future__ import annotations

import base64
import copy
import json
import logging
import pickle
import traceback
from collections.abc import Iterator
from dataclasses import asdict
from urllib.parse import quote

import pytest

from replica.http.auth import Auth, BasicAuth, BearerAuth, Secret
from replica.http.client import HttpClient, Request
from replica.http.messages import Redactor, shown
from replica.remotes import RemoteError
from tests.support.http_server import ENOUGH, LONG, always, serving

TOKEN = "xyzzy/plugh+1="
PASSWORD = "pa ss'<\"wörd&\n2"
BASIC = base64.b64encode(f"ann-user:{PASSWORD}".encode()).decode()
BEARER_AUTH = BearerAuth(Secret(TOKEN))
BASIC_AUTH = BasicAuth(Secret("ann-user"), Secret(PASSWORD))
SECRET = (
    TOKEN,
    quote(TOKEN, safe=""),
    PASSWORD,
    "wörd",
    json.dumps(PASSWORD)[1:-1],
    BASIC,
    "ann-user",
)


def forms_of(auth: Auth) -> Iterator[str]:
    yield from (
        repr(auth),
        str(auth),
        f"{auth}",
        f"{auth!r:>50}",
        str(vars(auth)),
        str(asdict(auth)),
    )


def test_a_secret_is_shown_in_no_form() -> None:
    for auth in (BEARER_AUTH, BASIC_AUTH):
        for text in forms_of(auth):
            assert "***" in text
            assert not any(each in text for each in SECRET)
    secret = Secret(TOKEN)
    assert (
        f"{secret} {secret!r} {secret:>5} {secret!s} %s" % secret
        == "*** Secret('***')   *** *** ***"
    )
    assert not hasattr(secret, "__dict__")


def test_a_secret_can_be_copied_and_compared_but_not_pickled() -> None:
    secret = Secret(TOKEN)
    assert copy.deepcopy([secret])[0] is copy.copy(secret) is secret
    assert (secret == Secret(TOKEN), secret == Secret("x"), secret == TOKEN) == (True, False, False)
    assert (hash(secret) == hash(Secret(TOKEN)), bool(secret), bool(Secret(""))) == (
        True,
        True,
        False,
    )
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(BEARER_AUTH, protocol)


@pytest.mark.parametrize("token", ["", "a b", "a\r\nX: y", "ä", "\x00"])
def test_a_token_that_no_header_can_carry_is_refused_and_not_quoted(token: str) -> None:
    with pytest.raises(ValueError, match="no header can carry") as caught:
        BearerAuth(Secret(token))
    assert not token or token not in str(caught.value)


def test_a_user_with_a_colon_is_refused() -> None:
    with pytest.raises(ValueError, match="colon"):
        BasicAuth(Secret("a:b"), Secret("c"))


@pytest.mark.parametrize(
    ("auth", "header"), [(BEARER_AUTH, f"Bearer {TOKEN}"), (BASIC_AUTH, f"Basic {BASIC}")]
)
def test_the_server_gets_it(auth: Auth, header: str) -> None:
    client = HttpClient(name="the server", auth=auth)
    with serving(always(ENOUGH)) as served, client.send(Request("GET", served.url), LONG) as reply:
        reply.read()
    assert f"\r\nauthorization: {header}\r\n".lower() in served.requests[0].decode().lower()


ECHOES = [
    b"HTTP/1.1 401 %s\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 401 No\r\nConnection: close\r\n\r\nunknown: %s",
    b"HTTP/1.1 401 No\r\nConnection: close\r\n\r\n" + b" " * 4080 + b"%s",
    b"HTTP/1.1 401 No\r\nConnection: close\r\n\r\n" + b"x" * 190 + b"%s",
    b"HTTP/1.1 302 No\r\nLocation: http://%s@example.org/%s?a=%s#%s\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 302 No\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 No\r\nContent-Encoding: %s\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 Fine\r\nContent-Length: 5\r\n%s\r\nno header %s\r\n\r\n",
    b"HTTP/1.1 %s Fine\r\n\r\n",
    b"%s\r\n\r\n",
    b"HTTP/1.1 200 Fine\r\nTransfer-Encoding: chunked\r\n\r\n%s\r\n",
]


@pytest.mark.parametrize("echo", ECHOES)
@pytest.mark.parametrize("said", [*SECRET, "xyzzy/pl\x00ugh+1="])
@pytest.mark.parametrize("auth", [BEARER_AUTH, BASIC_AUTH])
def test_a_server_that_repeats_it_does_not_get_it_shown(
    auth: Auth, said: str, echo: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    mine = [
        each
        for each in auth.secrets()
        for each in (each, quote(each, safe=""), json.dumps(each)[1:-1])
    ]
    if not any(said.replace("\x00", "") in each for each in mine):
        return
    caplog.set_level(logging.DEBUG)
    client = HttpClient(name="the server", auth=auth)
    reply = echo.replace(b"%s", said.replace("\n", " ").encode())
    with (
        serving(always(reply)) as served,
        pytest.raises(RemoteError) as caught,
        client.send(Request("GET", served.url), LONG) as answer,
    ):
        answer.read()
    shown_text = "".join(
        traceback.TracebackException.from_exception(caught.value, capture_locals=False).format()
    )
    for text in (str(caught.value), repr(caught.value), shown_text, caplog.text):
        assert not any(each in text for each in (*mine, "xyzzy", "ss'<"))


@pytest.mark.parametrize("auth", [BEARER_AUTH, BASIC_AUTH])
def test_a_traceback_with_all_its_variables_shows_nothing(auth: Auth) -> None:
    client = HttpClient(name="the server", auth=auth)
    with (
        pytest.raises(RemoteError) as caught,
        client.send(Request("GET", "http://127.0.0.1:1/"), LONG),
    ):
        pass
    assert caught.value.__cause__ is caught.value.__context__ is None
    text = "".join(
        traceback.TracebackException.from_exception(caught.value, capture_locals=True).format()
    )
    assert "_open" in text
    assert not any(each in text for each in auth.secrets())


def test_one_that_is_cut_off_is_known_for_what_it_is() -> None:
    client = HttpClient(name="the server", auth=BEARER_AUTH)
    for text in (" " * 4088 + TOKEN, "unknown: " + TOKEN[:8]):
        reply = b"HTTP/1.1 401 No\r\nContent-Length: 9999\r\n\r\n" + text.encode()
        with (
            serving(always(reply)) as served,
            pytest.raises(RemoteError) as caught,
            client.send(Request("GET", served.url), LONG),
        ):
            pass
        assert "xyzz" not in str(caught.value)


def test_a_short_secret_and_none_are_redacted_too() -> None:
    assert Redactor(["a", ""])("banana") == "b***n***n***"
    assert Redactor([])("banana") == "banana"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://ann:xyzzy@example.org:80/q?a=xyzzy#xyzzy", "http://example.org:80/q"),
        ("http://a@b:xyzzy@example.org/q", "http://example.org/q"),
        ("//xyzzy@example.org/q", "//example.org/q"),
        ("http://[xyzzy", "an address that is none"),
        ("/q\x1b?xyzzy", "/q"),
    ],
)
def test_addresses_are_shown_without_what_may_be_secret(url: str, expected: str) -> None:
    assert shown(url) == expected
