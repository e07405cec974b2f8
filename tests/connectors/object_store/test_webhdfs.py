"""Replies of servers that are no active NameNode: what is asked again, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from connectors.object_store.contract import StoreError, StoreUnavailableError
from connectors.object_store.webhdfs import WebHdfs
from tests.support.http_server import Served, serving

ABSENT, LISTED = "FileNotFoundException", '{"FileStatuses": {"FileStatus": []}}'


def refusing(error: str) -> str:
    return f'{{"RemoteException": {{"exception": "{error}", "message": "xyzzy"}}}}'


def replying(status: str, body: str) -> Callable[[Served, Any], None]:
    def handle(served: Served, connection: Any) -> None:
        while served.read(connection):
            head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall((head + body).encode())

    return handle


def client(*servers: Served) -> WebHdfs:
    return WebHdfs([each.url.removesuffix("/query") for each in servers], "me", 60.0, "hdfs://x/y")


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        ("403 Forbidden", refusing("StandbyException"), "403 Forbidden StandbyException"),
        ("403 Forbidden", refusing("SafeModeException"), "403 Forbidden SafeModeException"),
        ("500 Server Error", "<html>xyzzy", "500 Server Error"),
        ("429 Too Many Requests", "", "429 Too Many Requests"),
    ],
)
def test_the_next_server_is_asked_instead_of_one_that_cannot_answer_now(
    status: str, body: str, said: str
) -> None:
    with serving(replying(status, body)) as standby, serving(replying("200 OK", LISTED)) as active:
        files = client(standby, active)
        with pytest.raises(StoreUnavailableError) as caught:
            files.list("/y")
        assert str(caught.value) == f"hdfs://x/y: {said}"
        for _ in range(3):
            assert files.list("/y") == []
        assert (len(standby.requests), len(active.requests)) == (1, 3)


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        ("401 Unauthorized", "<html>xyzzy", "401 Unauthorized"),
        ("403 Forbidden", refusing("DSQuotaExceededException"), "DSQuotaExceededException"),
        # A proxy, or another program at that port.
        ("404 Not Found", "xyzzy", "404 Not Found"),
        ("200 OK", "xyzzy", "this is no server of WebHDFS"),
        ("200 OK", '{"xyzzy": 1}', "this is no server of WebHDFS"),
    ],
)
def test_a_refusal_is_said_without_the_server_s_text(status: str, body: str, said: str) -> None:
    with serving(replying(status, body)) as server:
        with pytest.raises(StoreError, match=said) as caught:
            client(server).list("/y")
        assert not isinstance(caught.value, StoreUnavailableError)
        assert "xyzzy" not in str(caught.value)


@pytest.mark.parametrize("done", ["true", "false"])
def test_a_server_that_ignores_how_to_rename_is_refused(done: str) -> None:
    """HttpFS knows only the renaming that replaces nothing, and moves files into folders."""
    with serving(replying("200 OK", f'{{"boolean": {done}}}')) as server:
        for over in (True, False):
            with pytest.raises(StoreError, match="ignores renameoptions, as HttpFS does"):
                client(server).rename("/y/a", "/y/b", over=over)


def test_a_renaming_whose_source_has_gone_is_done_again_from_its_beginning() -> None:
    with serving(replying("404 Not Found", refusing(ABSENT))) as server:
        with pytest.raises(StoreUnavailableError):
            client(server).rename("/y/a", "/y/b")
        assert client(server).read("/y/a") is None
        assert client(server).list("/y") == ()


def test_a_new_file_for_which_no_datanode_is_named() -> None:
    with serving(replying("200 OK", "")) as server, pytest.raises(StoreError, match="no DataNode"):
        client(server).create("/y/a", b"1")
