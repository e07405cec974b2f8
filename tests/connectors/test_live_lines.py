"""Live sources of lines, each beside a real server or pipe."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.server import ServerConnection, serve

from connectors import ConnectorError
from connectors.line_buffer import LineBuffer
from connectors.live import LiveReader
from connectors.read_limits import ReadAllAvailable
from connectors.reconnecting import Reconnecting
from connectors.registry import CONNECTORS

PATIENCE = 240.0


class Reading:
    """Data that a live connector has received, read in the way of Spark."""

    def __init__(self, connector: str, log: Path, **options: str) -> None:
        source = CONNECTORS[connector].data_source()
        reader = source({"log": str(log), **options}).streamReader(None)  # type: ignore[arg-type]
        assert isinstance(reader, LiveReader)
        self.reader = reader
        self._pause = threading.Event()

    def until(self, *lines: bytes) -> None:
        """Wait until all that has been received is these lines."""
        found: list[bytes] = []
        for _ in range(int(PATIENCE / 0.01)):
            found = self.lines()
            if len(found) >= len(lines):
                break
            self._pause.wait(0.01)
        assert found == list(lines)

    def lines(self) -> list[bytes]:
        start = self.reader.initialOffset()
        end = self.reader.latestOffset(start, ReadAllAvailable())
        batches = [
            batch for part in self.reader.partitions(start, end) for batch in self.reader.read(part)
        ]
        positions = [number for batch in batches for number in batch.column("position").to_pylist()]
        assert positions == list(range(len(positions)))
        return [value for batch in batches for value in batch.column("value").to_pylist()]

    def close(self) -> None:
        self.reader.stop()


class LineServer:
    """Accepts connections one after the other, and sends what a test says."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(PATIENCE)
        self.address = "127.0.0.1:" + str(self._listener.getsockname()[1])
        self.connection: socket.socket | None = None

    def accept(self) -> None:
        self.connection, _ = self._listener.accept()

    def send(self, data: bytes) -> None:
        assert self.connection is not None
        self.connection.sendall(data)

    def drop(self) -> None:
        assert self.connection is not None
        self.connection.close()

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self._listener.close()


@pytest.fixture
def line_server() -> Iterator[LineServer]:
    with closing(LineServer()) as server:
        yield server


def test_lines_of_a_server_come_once_and_in_order_however_they_are_cut(
    line_server: LineServer, tmp_path: Path
) -> None:
    with closing(
        Reading("tcp", tmp_path / "log", address=line_server.address, maxLineBytes="9")
    ) as reading:
        assert reading.lines() == []
        line_server.accept()
        for piece in (b"one\ntw", b"o\n\xc3", b"\xa9\n\n", b"a line that is too long\n", b"unfin"):
            line_server.send(piece)
        reading.until(b"one", b"two", "é".encode(), b"", b"a line th\xff")
        line_server.drop()
        line_server.accept()
        line_server.send(b"again\n")
        reading.until(b"one", b"two", "é".encode(), b"", b"a line th\xff", b"unfin", b"again")
    with closing(Reading("tcp", tmp_path / "log", address=line_server.address)) as reading:
        line_server.drop()
        # What is in the log is there for whoever comes next.
        reading.until(b"one", b"two", "é".encode(), b"", b"a line th\xff", b"unfin", b"again")


def test_a_recording_of_a_server_ends_where_it_has_nothing_more(
    line_server: LineServer, tmp_path: Path
) -> None:
    with closing(Reading("tcp", tmp_path / "log", address=line_server.address)) as reading:
        sender = threading.Thread(
            target=lambda: (line_server.accept(), line_server.send(b"one\ntwo\n"))
        )
        sender.start()
        reading.until(b"one", b"two")
        sender.join()
        reading.reader.prepareForTriggerAvailableNow()
        assert reading.lines() == [b"one", b"two"]


def test_a_server_that_is_not_there_is_named_when_the_patience_is_over(tmp_path: Path) -> None:
    with closing(LineServer()) as gone:
        address = gone.address
    with closing(Reading("tcp", tmp_path / "log", address=address, patience="0")) as reading:
        with pytest.raises(ConnectorError, match=rf"{address} cannot be reached(.|\n)*hint"):
            reading.until(b"")
        with pytest.raises(ConnectorError, match="write HOST:PORT"):
            Reading("tcp", tmp_path / "other", address="nowhere")


@contextmanager
def web_server(handle: Callable[[ServerConnection], None]) -> Iterator[str]:
    """A WebSocket server that talks to each of its clients as a test says."""
    with serve(handle, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}/"
        finally:
            server.shutdown()
            thread.join()


def test_messages_come_once_and_the_connection_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talks: Iterator[list[str | bytes]] = iter([["one", b"two\nthree\n"], ["long " * 9], []])
    said: list[Any] = []
    over = threading.Event()

    def handle(connection: ServerConnection) -> None:
        assert connection.request is not None
        said.append(
            (connection.recv(timeout=PATIENCE), connection.request.headers["Authorization"])
        )
        for message in next(talks, []):
            connection.send(message)
        if len(said) > 2:
            over.wait(PATIENCE)

    monkeypatch.setenv("A_TOKEN", "xyzzy")
    options = {
        "subscribe": "all",
        "split": "lines",
        "tokenVariable": "A_TOKEN",
        "maxMessageBytes": "8",
    }
    with (
        web_server(handle) as url,
        closing(Reading("websocket", tmp_path / "log", url=url, **options)) as reading,
    ):
        reading.until(b"one", b"two", b"three", b"long lon\xff")
        over.set()
    assert said[:2] == [("all", "Bearer xyzzy")] * 2


def test_what_is_wrong_with_a_web_socket_is_named_without_its_secrets(tmp_path: Path) -> None:
    url = "ws://127.0.0.1:1/?token=xyzzy"
    with closing(Reading("websocket", tmp_path / "a", url=url, patience="0")) as reading:
        with pytest.raises(ConnectorError, match="cannot be reached") as refused:
            reading.until(b"")
        assert "xyzzy" not in str(refused.value)
    with (
        closing(Reading("websocket", tmp_path / "b", url=url, tokenVariable="NOT_SET")) as reading,
        pytest.raises(ConnectorError, match="NOT_SET, which should hold a token, is not set"),
    ):
        reading.until(b"")
    for options, said in (
        ({"url": "http://x"}, "must begin with ws://"),
        ({"url": url, "split": "x"}, 'not "x"'),
    ):
        with pytest.raises(ConnectorError, match=said):
            Reading("websocket", tmp_path / "c", **options)


def test_a_named_pipe_is_read_for_as_long_as_somebody_writes(tmp_path: Path) -> None:
    pipe = tmp_path / "events.pipe"
    os.mkfifo(pipe)
    with closing(Reading("pipe", tmp_path / "log", path=str(pipe))) as reading:
        assert reading.lines() == []
        with pipe.open("wb", buffering=0) as writer:
            writer.write(b"one\ntw")
            reading.until(b"one")
            writer.write(b"o")
        reading.until(b"one", b"two")
        with pipe.open("wb", buffering=0) as writer:
            writer.write(b"three\n")
        reading.until(b"one", b"two", b"three")


def test_the_standard_input_is_a_recording_that_has_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, into = os.pipe()
    monkeypatch.setattr(os, "dup", lambda _number: out)
    with closing(Reading("pipe", tmp_path / "log", path="-")) as reading:
        os.write(into, b"one\ntwo")
        os.close(into)
        reading.reader.prepareForTriggerAvailableNow()
        assert reading.lines() == [b"one", b"two"]


def test_a_pipe_that_is_not_there_is_named(tmp_path: Path) -> None:
    with (
        closing(Reading("pipe", tmp_path / "log", path=str(tmp_path / "none"))) as reading,
        pytest.raises(ConnectorError, match="mkfifo"),
    ):
        reading.until(b"")


def test_a_line_that_never_ends_takes_no_more_memory_than_the_longest() -> None:
    lines = LineBuffer(longest=4)
    for _ in range(9):
        assert lines.add(b"xxx") == []
    assert lines.add(b"\n\n") == [b"xxxx\xff", b""]
    assert lines.rest() == []


def test_attempts_become_rarer_and_go_on_for_ever_once_there_was_a_connection() -> None:
    now = 0.0
    attempts = Reconnecting(5.0, clock=lambda: now, chance=lambda: 1.0)
    waits = []
    for _ in range(3):
        attempts.failed("it", OSError("no"))
        waits.append(attempts.seconds())
    assert waits == [0.1, 0.2, 0.4]
    attempts.connected()
    now = 1e6
    for _ in range(20):
        attempts.failed("it", OSError("no"))
    assert attempts.seconds() == 30.0
    with pytest.raises(ConnectorError, match="it cannot be reached: no"):
        Reconnecting(0.0, clock=lambda: now).failed("it", OSError("no"))
