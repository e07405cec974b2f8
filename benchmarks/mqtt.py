"""Measure MQTT messages per second, received durably, compared with bare clients."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from paho.mqtt.client import Client, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion
from rich.console import Console
from rich.table import Table

from connectors.mqtt import MqttDataSource
from connectors.read_limits import ReadAllAvailable
from tests.support.mqtt.mosquitto import Mosquitto

TOPIC = b"plant/press/vibration"
AT_A_TIME = 1_000
SILENCE_SECONDS = 3.0
SETTINGS = "max_inflight_messages 2000\nmax_queued_messages 10000000"


@dataclass(frozen=True)
class Measured:
    """One way to receive: messages per second, and growth in MiB over the second half."""

    name: str
    qos: int
    messages: int
    per_second: int
    grown_mib: float


def main() -> None:
    """Measure each way in a process of its own."""
    parser = argparse.ArgumentParser(prog="run bench mqtt", description=__doc__)
    parser.add_argument("--messages", type=int, default=400_000, metavar="N", help="%(default)s")
    parser.add_argument("--json", action="store_true", help="print one JSON object per way")
    options = parser.parse_args()
    ways: list[tuple[str, Callable[[int, int, int], Measured], int]] = [
        ("socket that counts bytes (floor)", socket_alone, 0),
        ("paho that counts", paho_alone, 0),
        ("paho that counts", paho_alone, 1),
        ("connector, durable", connector, 0),
        ("connector, durable", connector, 1),
    ]
    found = []
    with tempfile.TemporaryDirectory() as folder, ExitStack() as scene:
        broker = Mosquitto(Path(folder), settings=SETTINGS, log="information")
        scene.callback(broker.kill)
        for name, way, qos in ways:
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                measured = pool.submit(way, broker.port, options.messages, qos).result()
            found.append(replace(measured, name=name))
    if options.json:
        for each in found:
            print(json.dumps(asdict(each)))
        return
    table = Table(
        "way",
        "QoS",
        "messages",
        "messages/s",
        "growth, MiB",
        title=f"{options.messages} messages of some 30 bytes",
    )
    for each in found:
        table.add_row(
            each.name,
            str(each.qos),
            f"{each.messages:,}",
            f"{each.per_second:,}",
            f"{each.grown_mib:.1f}",
        )
    Console().print(table)


def publish(port: int, count: int, qos: int) -> None:
    """Publish a number of messages with QoS 0 or 1, as fast as the broker takes them."""
    with socket.create_connection(("127.0.0.1", port)) as link:
        link.sendall(b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00")
        link.recv(4)
        threading.Thread(target=lambda: _drain(link), daemon=True).start()
        for start in range(0, count, AT_A_TIME):
            link.sendall(
                b"".join(
                    _packet(number, qos) for number in range(start, min(start + AT_A_TIME, count))
                )
            )
        threading.Event().wait()


def _drain(link: socket.socket) -> None:
    while link.recv(1 << 16):
        pass


def _packet(number: int, qos: int) -> bytes:
    mark = struct.pack(">H", number % 65_535 + 1) if qos else b""
    body = (
        struct.pack(">H", len(TOPIC))
        + TOPIC
        + mark
        + b'{"t":%d,"v":%d}' % (1_700_000_000_000 + number, number % 99)
    )
    return bytes([0x30 | qos << 1, len(body)]) + body


def measure(port: int, count: int, qos: int, received: Callable[[], int]) -> Measured:
    """Publish, and return the rate of reception from the first to the last message."""
    context = multiprocessing.get_context("spawn")
    publisher = context.Process(target=publish, args=(port, count, qos))
    publisher.start()
    while not received():
        time.sleep(0.001)
    began, half, now = time.perf_counter(), 0, 0
    last = began
    # With QoS 0 the broker may drop messages: do not wait for those missing for long.
    while now < count and time.perf_counter() - last < SILENCE_SECONDS:
        if (newest := received()) > now:
            now, last = newest, time.perf_counter()
        if not half and now >= count // 2:
            half = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        time.sleep(0.005)
    seconds = last - began
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - half
    publisher.kill()
    publisher.join()
    return Measured("", qos, now, round(now / seconds), grown / 1024)


def connector(port: int, count: int, qos: int) -> Measured:
    """Receive as streams do: durable, acknowledged, deleted once read."""
    with tempfile.TemporaryDirectory() as folder:
        options = {
            "url": f"mqtt://127.0.0.1:{port}",
            "topics": "plant/#",
            "qos": str(qos),
            "log": folder + "/log",
        }
        reader = MqttDataSource(options).streamReader(None)
        offset = start = reader.initialOffset()
        reader.latestOffset(start, ReadAllAvailable())
        time.sleep(2)

        def received() -> int:
            nonlocal offset
            end = reader.latestOffset(offset, reader.getDefaultReadLimit())
            rows = sum(
                batch.num_rows
                for part in reader.partitions(offset, end)
                for batch in reader.read(part)
            )
            assert rows == end["record"] - offset["record"]
            reader.commit(end)
            offset = end
            return int(end["record"])

        try:
            return measure(port, count, qos, received)
        finally:
            reader.stop()


def paho_alone(port: int, count: int, qos: int) -> Measured:
    """Count in paho's callback, without storing anything."""
    seen = 0

    def count_one(*_: object) -> None:
        nonlocal seen
        seen += 1

    subscribed = threading.Event()
    client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
    client.on_message = count_one
    client.on_subscribe = lambda *_: subscribed.set()
    client.on_connect = lambda client, *_: client.subscribe("plant/#", qos)
    client.connect("127.0.0.1", port)
    client.loop_start()
    subscribed.wait()
    try:
        return measure(port, count, qos, lambda: seen)
    finally:
        client.disconnect()
        client.loop_stop()


def socket_alone(port: int, count: int, qos: int) -> Measured:
    """Count the received bytes, without parsing them."""
    size = sum(len(_packet(number, 0)) for number in range(count))
    seen = 0
    link = socket.create_connection(("127.0.0.1", port))
    link.sendall(b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00\x82\x0c\x00\x01\x00\x07plant/#\x00")
    skip = 9
    while skip:
        skip -= len(link.recv(skip))

    def drain() -> None:
        nonlocal seen
        while piece := link.recv(1 << 18):
            seen += len(piece)

    threading.Thread(target=drain, daemon=True).start()
    return measure(port, count, 0, lambda: seen * count // size)


if __name__ == "__main__":
    main()
