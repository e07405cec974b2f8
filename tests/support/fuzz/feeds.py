"""Feeds: real bytes for each connector, in files or on sockets of this machine."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
from websockets.sync.server import ServerConnection, serve

from connectors.x_api.token import VARIABLE
from examples.x.server import XServer
from tests.support.mqtt.mosquitto import Mosquitto
from tests.support.mqtt.publisher import Publisher

PATIENCE = 240.0


@dataclass(frozen=True)
class Feed:
    """Where a connector reads: its options, and the function that sends what is there to send."""

    options: Mapping[str, object]
    send: Callable[[], None] = lambda: None


Payloads = Sequence[bytes]
Maker = Callable[[Payloads, Path, Random], "contextmanager[Feed]"]


@contextmanager
def lines(payloads: Payloads, folder: Path, random: Random) -> Iterator[Feed]:
    """Write lines to a file."""
    file = folder / "in" / "lines"
    file.parent.mkdir()
    file.write_bytes(b"".join(each + b"\n" for each in payloads))
    yield Feed({"path": str(file)})


@contextmanager
def files(payloads: Payloads, folder: Path, random: Random) -> Iterator[Feed]:
    """Write a file for each item."""
    place = folder / "in"
    place.mkdir()
    odd = random.choice(("", "é ", "%00", "a\nb", "'\"", "\u202e"))
    for at, payload in enumerate(payloads):
        (place / f"{at:06}{odd}.ttl").write_bytes(payload)
    yield Feed({"path": str(place)})


@contextmanager
def parquet(table: pa.Table, folder: Path, random: Random) -> Iterator[Feed]:
    """Write a table to a file."""
    place = folder / "in"
    place.mkdir()
    pq.write_table(table, place / "0.parquet", row_group_size=random.choice((3, 1_000)))
    yield Feed({"path": str(place)})


@contextmanager
def tcp(payloads: Payloads, folder: Path, random: Random) -> Iterator[Feed]:
    """Send lines to whoever connects, cut anywhere."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(PATIENCE)
    held: list[socket.socket] = []

    def send() -> None:
        connection, _ = listener.accept()
        held.append(connection)
        _in_pieces(connection.sendall, payloads, random)

    try:
        yield Feed(
            {"address": f"127.0.0.1:{listener.getsockname()[1]}", "log": str(folder / "log")}, send
        )
    finally:
        for each in (*held, listener):
            each.close()


def _in_pieces(send: Callable[[bytes], object], payloads: Payloads, random: Random) -> None:
    data = b"".join(each + b"\n" for each in payloads)
    size = random.choice((1_009, 65_536, 1 << 22))
    for at in range(0, len(data), size):
        send(data[at : at + size])


@contextmanager
def websocket(payloads: Payloads, folder: Path, random: Random) -> Iterator[Feed]:
    """Send a message for each item, as text if it is one."""
    over = threading.Event()

    def handle(connection: ServerConnection) -> None:
        for payload in payloads:
            try:
                connection.send(payload.decode() if random.random() < 0.5 else payload)
            except UnicodeDecodeError:
                connection.send(payload)
        over.wait(PATIENCE)

    with serve(handle, "127.0.0.1", 0, max_size=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"ws://127.0.0.1:{server.socket.getsockname()[1]}/"
            yield Feed({"url": url, "log": str(folder / "log")})
        finally:
            over.set()
            server.shutdown()
            thread.join()


@contextmanager
def pipe(payloads: Payloads, folder: Path, random: Random) -> Iterator[Feed]:
    """Write lines to a named pipe."""
    path = folder / "pipe"
    os.mkfifo(path)

    def send() -> None:
        with path.open("wb", buffering=0) as stream:
            _in_pieces(stream.write, payloads, random)

    yield Feed({"path": str(path), "log": str(folder / "log")}, send)


@contextmanager
def mqtt(payloads: Payloads, folder: Path, random: Random) -> Iterator[Feed]:
    """Publish a message for each item, once somebody has subscribed."""
    place = folder / "mosquitto"
    place.mkdir()
    broker = Mosquitto(place, "max_queued_messages 0")

    def send() -> None:
        broker.wait_for("Received SUBSCRIBE")
        publisher = Publisher(broker.port)
        publisher.publish([("a/é b/\u7530", each) for each in payloads])
        publisher.close()

    try:
        yield Feed(
            {
                "url": f"mqtt://127.0.0.1:{broker.port}",
                "topics": ["a/#"],
                "log": str(folder / "log"),
            },
            send,
        )
    finally:
        broker.kill()


@contextmanager
def x(payloads: Payloads, folder: Path, random: Random) -> Iterator[Feed]:
    """Send lines as X does."""
    before, os.environ[VARIABLE] = os.environ.get(VARIABLE), "AAAA"
    with XServer(token="AAAA", keep_alive=0.1) as server:
        server.rules["1"] = {"value": "has:mentions", "tag": "all"}

        def send() -> None:
            assert server.wait_for(streams=1, timeout=PATIENCE)
            for payload in payloads:
                server.send(payload + b"\r\n")

        try:
            yield Feed({"url": server.url, "log": str(folder / "log")}, send)
        finally:
            if before is None:
                del os.environ[VARIABLE]
            else:
                os.environ[VARIABLE] = before


@contextmanager
def spark(payloads: Payloads, folder: Path, random: Random) -> Iterator[Feed]:
    """Write lines to a file that a source of Spark's reads, which knows only texts."""
    file = folder / "in" / "lines"
    file.parent.mkdir()
    file.write_bytes(b"".join(each + b"\n" for each in payloads))
    yield Feed({"format": "text", "path": str(file.parent), "lineSep": "\n"})


IN_FILES = {"lines": lines, "files": files, "spark": spark}
CUT_AT_LINES = ("tcp", "pipe", "spark")
"""Connectors that cut what they receive at line breaks."""
ELSEWHERE = ("clock", "kafka")
"""Connectors without a feed here: nobody sends ticks, and brokers have tests of their own."""

LIVE = {"tcp": tcp, "websocket": websocket, "pipe": pipe, "mqtt": mqtt, "x": x}
