"""Every source says if it was reached, and if not, why, and what to do about it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http import HTTPStatus
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

from connectors.live import LEAST_LOG_BYTES, LiveReader, LogOptions
from connectors.registry import CONNECTORS
from connectors.source_status import SourceState, SourceStatus
from tests.support.live_sources import Mailbox
from tests.support.waiting import until


@contextmanager
def receiving(connector: str, log: Path, **options: str) -> Iterator[LiveReader]:
    reader = reader_of(connector, log=str(log), **options)
    reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    with closing(Stopped(reader)):
        yield reader


class Stopped:
    def __init__(self, reader: LiveReader) -> None:
        self.close = reader.stop


def reader_of(connector: str, **options: str) -> Any:
    source = CONNECTORS[connector].data_source()
    return source(options).streamReader(None)  # type: ignore[arg-type]


def status_when(reader: LiveReader, happened: Callable[[SourceStatus], bool]) -> SourceStatus:
    """Return the status once something is true of it, as another process would see it."""
    found: list[SourceStatus] = []

    def has_happened() -> bool:
        status = reader.status()
        if status is not None and happened(status):
            found.append(status)
        return bool(found)

    until(has_happened)
    return found[0]


def test_a_server_that_does_not_listen_is_named_with_the_attempts_until_it_does(
    tmp_path: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with receiving("tcp", tmp_path / "log", address=f"127.0.0.1:{port}") as reader:
        said = status_when(reader, lambda status: status.attempts > 1)
        assert (said.state, said.where) == (SourceState.CONNECTING, f"127.0.0.1:{port}")
        assert said.problem == "Connection refused"
        assert "see that it is running" in said.hint
        with socket.create_server(("127.0.0.1", port)) as server:
            connection, _ = server.accept()
            said = status_when(reader, lambda status: status.state is SourceState.CONNECTED)
            assert (said.attempts, said.problem) == (0, "")
        connection.close()
        said = status_when(reader, lambda status: status.state is SourceState.CONNECTING)
        assert said.problem
    assert reader.status() is None


@pytest.mark.parametrize(
    ("status", "hint"), [(401, "tokenVariable"), (404, "the path in the url"), (500, "running")]
)
def test_a_web_socket_that_is_refused_names_the_status_and_no_secret(
    tmp_path: Path, status: int, hint: str
) -> None:
    def refuse(connection: ServerConnection, request: Request) -> Response:
        return connection.respond(HTTPStatus(status), "no")

    with serve(lambda connection: None, "127.0.0.1", 0, process_request=refuse) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        port = server.socket.getsockname()[1]
        url = f"ws://ann:xyzzy@127.0.0.1:{port}/events?token=xyzzy"
        try:
            with receiving("websocket", tmp_path / "log", url=url) as reader:
                said = status_when(reader, lambda status: status.attempts > 0)
        finally:
            server.shutdown()
            thread.join()
    assert said.where == f"ws://127.0.0.1:{port}/events"
    assert f"HTTP {status}" in said.problem
    assert hint in said.hint
    assert "xyzzy" not in str(said)


def test_a_pipe_says_that_nobody_writes_to_it(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with receiving("pipe", tmp_path / "log", path=str(pipe)) as reader:
        said = status_when(reader, lambda status: bool(status.problem))
        assert said.problem == "no program writes to it"
        with pipe.open("wb", buffering=0) as writer:
            writer.write(b"one\n")
            status_when(reader, lambda status: status.state is SourceState.CONNECTED)


def test_a_full_log_is_said(tmp_path: Path) -> None:
    box = Mailbox()
    box.put(b"x" * 2 * LEAST_LOG_BYTES)
    reader = LiveReader(lambda: box, LogOptions(tmp_path, max_bytes=LEAST_LOG_BYTES))
    reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    with closing(Stopped(reader)):
        status_when(reader, lambda status: status.state is SourceState.FULL)


def test_a_status_that_is_cut_off_is_as_none(tmp_path: Path) -> None:
    reader = reader_of("tcp", address="127.0.0.1:9", log=str(tmp_path))
    reader.initialOffset()
    (tmp_path / "status.json").write_text('{"state": "conn')
    assert reader.status() is None


@pytest.mark.parametrize("connector", ["lines", "parquet", "files"])
def test_a_file_that_is_not_there_or_empty_is_told_from_one_with_content(
    tmp_path: Path, connector: str
) -> None:
    options = {"columns": "{}"} if connector == "parquet" else {}
    path = tmp_path / "events"
    reader = reader_of(connector, path=str(path), **options)
    assert reader.status().state is SourceState.ABSENT
    path.mkdir()
    assert reader.status().state is SourceState.EMPTY
    (path / "one.parquet").touch()
    (path / "_hidden").write_text("x")
    assert reader.status().state is SourceState.EMPTY
    (path / "one.parquet").write_text("x\n")
    assert reader.status().state is SourceState.PRESENT


def test_a_line_without_its_break_and_names_with_another_ending_are_explained(
    tmp_path: Path,
) -> None:
    file = tmp_path / "events"
    file.write_text("one\ntwo")
    assert "line break" in reader_of("lines", path=str(file)).status().hint
    file.write_text("one\n")
    assert reader_of("lines", path=str(file)).status().hint == ""
    said = reader_of("files", path=str(tmp_path), ending=".ttl").status()
    assert (said.state, ".ttl" in said.hint) == (SourceState.EMPTY, True)
