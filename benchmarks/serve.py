"""Measure a thousand readers of one stream of answers: delays, and memory of the service.

The service is ``acquatop serve`` in a process of its own, with a query whose windows close several
times a second. The floor is a bare uvicorn that sends as many bytes to as many readers as often.
Then two hundred queries are registered at once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

STEP_MS = 250
USERS = 40
PATIENCE = 10.0
EMITTED = re.compile(rb'"emitted": "([^"]*)"')

CATALOG = """
[prefixes]
"" = "http://example.org/"
[streams.":stream"]
connector = "lines"
arrivals = "latest"
options = { path = "events" }
[streams.":stream".mapping]
subject = "http://example.org/user/{user}"
time = "t"
properties = { ":mentions" = { field = "mentions", datatype = "xsd:integer" } }
"""
QUERY = f"""
SELECT ?user (2 * ?mentions AS ?score)
FROM NAMED WINDOW :w ON :stream [RANGE 1s STEP {STEP_MS}ms]
WHERE {{ WINDOW :w {{ ?user :mentions ?mentions }} }}
ORDER BY DESC(?score) LIMIT 10
"""


@dataclass
class Outcome:
    """Readers' delays, and the server's cost.

    Delays are from an answer to its arrival. ``cpu_us`` is the server's processor time per
    delivery. Memory is the server's, once all readers are connected, and its growth until the end.
    """

    name: str
    readers: int
    answers: int = 0
    deliveries: int = 0
    median_ms: float = 0.0
    p99_ms: float = 0.0
    latest_ms: float = 0.0
    cpu_us: float = 0.0
    memory_mb: float = 0.0
    grown_mb: float = 0.0
    delays: list[float] = field(default_factory=list, repr=False)

    def close(self) -> None:
        """Compute the figures."""
        delays = sorted(self.delays)
        self.deliveries = len(delays)
        self.answers = len(delays) // self.readers
        self.median_ms, self.p99_ms = (
            round(delays[int(part * (len(delays) - 1))], 1) for part in (0.5, 0.99)
        )
        self.latest_ms = round(delays[-1], 1)
        self.delays = []


# Servers ------------------------------------------------------------------------------------------


@contextmanager
def started(command: list[str], folder: Path) -> Iterator[tuple[str, int, int]]:
    """Run a server; yield its host, its port and its process id."""
    child = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    try:
        assert child.stderr is not None
        for line in child.stderr:
            if found := re.search(r"http://([0-9.]+):([0-9]+)", line):
                yield found[1], int(found[2]), child.pid
                return
        raise RuntimeError("the server has not started")
    finally:
        child.terminate()
        try:
            child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


@contextmanager
def events(file: Path) -> Iterator[None]:
    """Write events until the end."""
    stopping = threading.Event()

    def write() -> None:
        number = 0
        while not stopping.wait(STEP_MS / 5000):
            number += 1
            now = time.time_ns() // 1_000_000
            batch = [
                {"t": now, "user": f"u{(7 * number + at) % USERS}", "mentions": number % 97 + at}
                for at in range(5)
            ]
            with file.open("a") as stream:
                stream.writelines(json.dumps(each) + "\n" for each in batch)

    file.touch()
    writing = threading.Thread(target=write)
    writing.start()
    try:
        yield
    finally:
        stopping.set()
        writing.join()


def floor(payload: int) -> None:
    """Serve a bare stream of events of a given size with uvicorn alone."""
    import socket

    import uvicorn

    waiting: set[asyncio.Future[bytes]] = set()

    async def beat() -> None:
        while True:
            await asyncio.sleep(STEP_MS / 1000)
            now = datetime.now().astimezone().isoformat(timespec="milliseconds")
            frame = b'data: {"emitted": "%s"}\n\n' % now.encode()
            frame = frame.ljust(payload - 2, b" ") + b"\n\n"
            for each in list(waiting):
                each.set_result(frame)
            waiting.clear()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await receive()
            beating = asyncio.create_task(beat())
            await send({"type": "lifespan.startup.complete"})
            await receive()
            beating.cancel()
            await send({"type": "lifespan.shutdown.complete"})
            return
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-type", b"text/event-stream")],
            }
        )
        await send({"type": "http.response.body", "body": b":\n\n", "more_body": True})
        while True:
            frame = asyncio.get_running_loop().create_future()
            waiting.add(frame)
            await send({"type": "http.response.body", "body": await frame, "more_body": True})

    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listening:
        print(f"http://127.0.0.1:{listening.getsockname()[1]}", file=sys.stderr, flush=True)
        config = uvicorn.Config(app, http="httptools", log_config=None, timeout_graceful_shutdown=1)
        uvicorn.Server(config).run(sockets=[listening])


def memory_mb(process: int) -> float:
    """Return the resident memory of a process."""
    found = re.search(r"VmRSS:\s+([0-9]+) kB", Path(f"/proc/{process}/status").read_text())
    return round(int(found[1]) / 1024, 1) if found else 0.0


def processor_seconds(process: int) -> float:
    """Return the processor time of a process."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# Readers ------------------------------------------------------------------------------------------


class Reading(asyncio.Protocol):
    """One reader: sends the request, and notes the delay of each answer."""

    def __init__(self, request: bytes, delays: list[float], begun: Counter[str]) -> None:
        self._request = request
        self._delays = delays
        self._begun = begun
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the request."""
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Process received data."""
        now = time.time()
        if not self._rest:
            self._begun["here"] += 1
        data = self._rest + data
        for found in EMITTED.finditer(data):
            emitted = datetime.fromisoformat(found[1].decode()).timestamp()
            self._delays.append(1000 * (now - emitted))
        self._rest = data[-60:] if data.rfind(b'"emitted"') < len(data) - 60 else b" "


async def read(
    outcome: Outcome, host: str, port: int, path: str, process: int, seconds: float
) -> None:
    """Let all readers read for some seconds."""
    loop, delays, begun = asyncio.get_running_loop(), outcome.delays, Counter[str]()
    request = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()
    transports = []
    for _ in range(outcome.readers):
        transport, _ = await loop.create_connection(
            lambda: Reading(request, delays, begun), host, port
        )
        transports.append(transport)
        await asyncio.sleep(0.002)
    while begun["here"] < outcome.readers:
        await asyncio.sleep(0.05)
    await asyncio.sleep(2.0)
    # The first answers came to readers that were waiting for others to connect.
    delays.clear()
    outcome.memory_mb, spent = memory_mb(process), processor_seconds(process)
    await asyncio.sleep(seconds)
    outcome.cpu_us = round(1e6 * (processor_seconds(process) - spent) / max(1, len(delays)), 1)
    outcome.grown_mb = round(memory_mb(process) - outcome.memory_mb, 1)
    for transport in transports:
        transport.abort()
    outcome.close()


async def burst(host: str, port: int, count: int) -> tuple[Counter[int], float]:
    """Register many queries at once; return the number of each status, and the seconds."""
    body = QUERY.encode()

    async def register(number: int) -> int:
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(
            f"POST /queries?name=q{number} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
            "Content-Type: application/sparql-query\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        status = int((await reader.readline()).split()[1])
        await reader.read()
        writer.close()
        return status

    started = time.perf_counter()
    statuses = await asyncio.gather(*(register(at) for at in range(count)))
    return Counter(statuses), time.perf_counter() - started


# Main ---------------------------------------------------------------------------------------------


def measure(
    readers: int, seconds: float, registrations: int
) -> tuple[list[Outcome], Counter[int], float]:
    """Measure the floor and the service, one after the other."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="acquatop-bench-")))
        (folder / "catalog.toml").write_text(CATALOG)
        (folder / "top.rspql").write_text(QUERY)
        stack.enter_context(events(folder / "events"))
        ours, bare = Outcome("acquatop serve", readers), Outcome("bare uvicorn", readers)
        command = [
            sys.executable,
            "-m",
            "acquatop",
            "serve",
            "top.rspql",
            "--catalog",
            "catalog.toml",
        ]
        with started([*command, "--runtime", "local", "--listen", "0"], folder) as (
            host,
            port,
            process,
        ):
            asyncio.run(read(ours, host, port, "/queries/top/events", process, seconds))
            counts, took = asyncio.run(burst(host, port, registrations))
            payload = asyncio.run(_size(host, port))
        with started(
            [sys.executable, "-m", "benchmarks.serve", "--floor", str(payload)], folder
        ) as (
            host,
            port,
            process,
        ):
            asyncio.run(read(bare, host, port, "/", process, seconds))
    return [bare, ours], counts, took


async def _size(host: str, port: int) -> int:
    """Return the size of an answer's event."""
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(
        f"GET /queries/top/answer HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
    )
    body = (await reader.read()).partition(b"\r\n\r\n")[2]
    writer.close()
    return len(body) + len(b"id: 1750000000000\nevent: answer\ndata: \n\n")


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(prog="run bench serve", description=__doc__.splitlines()[0])
    parser.add_argument("--readers", type=int, default=1000)
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="for how long they read (%(default)s)"
    )
    parser.add_argument("--registrations", type=int, default=200, help="at once (%(default)s)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--floor", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.floor:
        floor(options.floor)
        return
    outcomes, counts, took = measure(options.readers, options.seconds, options.registrations)
    machine = {"python": platform.python_version(), "cores": os.cpu_count()}
    machine |= {package: version(package) for package in ("starlette", "uvicorn", "httptools")}
    rows = [
        {name: value for name, value in asdict(each).items() if name != "delays"}
        for each in outcomes
    ]
    if options.json:
        print(
            json.dumps(
                {
                    "machine": machine,
                    "readers": rows,
                    "registrations": counts,
                    "seconds": round(took, 2),
                }
            )
        )
        return
    table = Table(
        title="Readers of one stream",
        box=box.SIMPLE,
        caption=", ".join(f"{k} {v}" for k, v in machine.items()),
    )
    for heading in rows[0]:
        table.add_column(
            heading.replace("_", " "), justify="left" if heading == "name" else "right"
        )
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console().print(table)
    said = ", ".join(f"{count} × {status}" for status, count in sorted(counts.items()))
    print(f"{options.registrations} registrations at once: {said}, in {took:.2f} s")


if __name__ == "__main__":
    main()
