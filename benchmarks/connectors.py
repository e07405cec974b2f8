"""Measure the records per second of each connector and format, compared with a floor."""

from __future__ import annotations

import argparse
import functools
import json
import os
import random
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.json as pj
import pyarrow.parquet as pq
import pyoxigraph as ox
from websockets.sync.client import connect
from websockets.sync.server import ServerConnection, serve

from benchmarks.table import Figure, report
from connectors.columns import ColumnsMapping, columns_option
from connectors.contract import RecordDecoder
from connectors.delimited import CsvMapping
from connectors.graphs import SYNTAXES, GraphMapping
from connectors.mapping import JsonMapping, Property, Template
from connectors.ntriples import NTriplesMapping
from connectors.registry import CONNECTORS

NS = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
SUBJECT = Template.parse(NS + "user/{user}")
NAMES = {"mentions": XSD + "integer", "text": XSD + "string"}
FIELDS = {NS + name: Property(name, datatype) for name, datatype in NAMES.items()}
PREDICATES = {NS + name: Property(NS + name, datatype) for name, datatype in NAMES.items()}
GRAPHS = 20
"""One record in this many is a document of its own: a parser run for each is that much slower."""


class Case(NamedTuple):
    """Floor and connector, for the same records."""

    name: str
    records: int
    floor_name: str
    floor: Callable[[], object]
    work: Callable[[], object]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench connectors", description=__doc__)
    parser.add_argument("--records", type=int, default=300_000, help="how many (%(default)s)")
    parser.add_argument(
        "--repeat", type=int, default=3, help="how often; the best counts (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, options.records)
        for clock, unit, cases in (
            (time.process_time, "seconds of one core", _files(folder, options.records)),
            (
                time.perf_counter,
                "seconds by the clock, the sender's work with it",
                _live(folder, options.records),
            ),
        ):
            for case in cases:
                floor = _best(
                    f"floor: {case.floor_name}", case.records, options.repeat, case.floor, clock
                )
                ours = _best(case.name, case.records, options.repeat, case.work, clock)
                report(
                    f"{case.name}: {unit}",
                    [floor, ours],
                    ["pyarrow", "pyoxigraph"],
                    as_json=options.json,
                )


# Files --------------------------------------------------------------------------------------------


def _files(folder: Path, records: int) -> Iterator[Case]:
    """Yield the file formats: read and decoded."""
    text, lines, table, rows = (
        folder / f"events.{ending}" for ending in ("nt", "json", "csv", "parquet")
    )
    yield Case(
        "JSON",
        records,
        "pyarrow.json",
        lambda: pj.read_json(lines),
        _decoded("lines", lines, _json()),
    )
    csv = CsvMapping(SUBJECT, "at", FIELDS)
    yield Case(
        "CSV",
        records,
        "pyarrow.csv",
        lambda: pcsv.read_csv(table),
        _decoded("lines", table, csv, header="true"),
    )
    columns = ColumnsMapping(SUBJECT, "at", FIELDS)
    work = _decoded("parquet", rows, columns, columns=columns_option(columns.types))
    yield Case(
        "Parquet", records, "pyarrow.parquet", lambda: pq.read_table(rows, use_threads=False), work
    )
    statements = NTriplesMapping(NS + "at", PREDICATES)
    work = _decoded("lines", text, statements, together="subject")
    yield Case(
        "N-Triples", records, "count line breaks", lambda: text.read_bytes().count(b"\n"), work
    )
    for syntax in ("turtle", "jsonld"):
        mapping = GraphMapping(NS + "at", PREDICATES, syntax=syntax)
        work = _decoded("files", folder / syntax, mapping, maxFilesPerBatch="1000000")
        floor = functools.partial(_parsed, folder / syntax, SYNTAXES[syntax].format)
        count = len(range(0, records, GRAPHS))
        yield Case(
            f"small graphs, {syntax}", count, "read them, pyoxigraph.parse for each", floor, work
        )


def _parsed(folder: Path, format_: ox.RdfFormat) -> None:
    for file in folder.iterdir():
        list(ox.parse(path=str(file), format=format_))


def _decoded(
    connector: str, path: Path, mapping: RecordDecoder, **options: str
) -> Callable[[], object]:
    """Return a function that reads a path completely and decodes it."""

    def work() -> None:
        source = CONNECTORS[connector].data_source()
        made: Any = source({"path": str(path), "maxPartitions": "1", **options})
        reader: Any = made.streamReader(None)
        reader.prepareForTriggerAvailableNow()
        offset = reader.initialOffset()
        while (end := reader.latestOffset(offset, reader.getDefaultReadLimit())) != offset:
            for part in reader.partitions(offset, end):
                for batch in reader.read(part):
                    assert mapping.records(batch).column("bad").null_count
            offset = end

    return work


def _json() -> JsonMapping:
    return JsonMapping(SUBJECT, "at", FIELDS)


# Live sources -------------------------------------------------------------------------------------


def _live(folder: Path, records: int) -> Iterator[Case]:
    """Yield the live sources: sent, received, made durable, read and decoded."""
    data = (folder / "events.json").read_bytes()
    yield Case(
        "TCP", records, "receive and count", lambda: _tcp_floor(data), lambda: _tcp(data, records)
    )
    pipe = folder / "events.pipe"
    os.mkfifo(pipe)
    yield Case(
        "pipe",
        records,
        "read and count",
        lambda: _piped(pipe, data, lambda: sum(map(len, iter(_reading(pipe), b"")))),
        lambda: _piped(pipe, data, lambda: _received("pipe", records, path=str(pipe))),
    )
    few = data.splitlines()[: records // GRAPHS]
    yield Case(
        "WebSocket",
        len(few),
        "websockets, receive and count",
        lambda: _web(few, lambda url: _web_floor(url, len(few))),
        lambda: _web(few, lambda url: _received("websocket", len(few), url=url)),
    )


def _received(connector: str, records: int, **options: str) -> None:
    """Receive a number of records, and decode them."""
    mapping, count = _json(), 0
    with tempfile.TemporaryDirectory() as log:
        source = CONNECTORS[connector].data_source()
        reader: Any = source({"log": log, "maxPartitions": "1", **options}).streamReader(None)  # type: ignore[arg-type]
        try:
            offset = reader.initialOffset()
            while count < records:
                end = reader.latestOffset(offset, reader.getDefaultReadLimit())
                for part in reader.partitions(offset, end) if end != offset else ():
                    count += sum(mapping.records(batch).num_rows for batch in reader.read(part))
                if end == offset:
                    time.sleep(0.001)
                offset = end
        finally:
            reader.stop()


def _tcp(data: bytes, records: int) -> None:
    _sent(data, lambda port: _received("tcp", records, address=f"127.0.0.1:{port}"))


def _tcp_floor(data: bytes) -> None:
    def receive(port: int) -> None:
        left = len(data)
        with socket.create_connection(("127.0.0.1", port)) as connection:
            while left:
                left -= len(connection.recv(1 << 20))

    _sent(data, receive)


def _sent(data: bytes, receive: Callable[[int], object]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def send() -> None:
            connection, _ = listener.accept()
            with closing(connection):
                connection.sendall(data)
                over.wait()

        over = threading.Event()
        sender = threading.Thread(target=send)
        sender.start()
        receive(listener.getsockname()[1])
        over.set()
        sender.join()


def _piped(pipe: Path, data: bytes, receive: Callable[[], object]) -> None:
    def write() -> None:
        with pipe.open("wb") as writer:
            writer.write(data)

    sender = threading.Thread(target=write)
    sender.start()
    receive()
    sender.join()


def _reading(pipe: Path) -> Callable[[], bytes]:
    file = pipe.open("rb", buffering=0)
    return lambda: file.read(1 << 20)


def _web(messages: list[bytes], receive: Callable[[str], object]) -> None:
    over = threading.Event()

    def handle(connection: ServerConnection) -> None:
        for message in messages:
            connection.send(message)
        over.wait()

    with serve(handle, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            receive(f"ws://127.0.0.1:{server.socket.getsockname()[1]}/")
        finally:
            over.set()
            server.shutdown()
            thread.join()


def _web_floor(url: str, count: int) -> None:
    with connect(url) as connection:
        for _ in range(count):
            connection.recv()


# Data ---------------------------------------------------------------------------------------------


def _write(folder: Path, records: int) -> None:
    chance = random.Random(1)
    users = [f"u{chance.randrange(10_000)}" for _ in range(records)]
    mentions = [chance.randrange(40) for _ in range(records)]
    texts = [f"Grüße, what #{number} says" for number in range(records)]
    times = list(range(1_000_000, 1_000_000 + records))
    rows = list(zip(times, users, mentions, texts, strict=True))
    with (folder / "events.json").open("w") as lines, (folder / "events.csv").open("w") as table:
        table.write("at,user,mentions,text\n")
        lines.writelines(
            f'{{"at": {at}, "user": "{user}", "mentions": {n}, "text": "{text}"}}\n'
            for at, user, n, text in rows
        )
        table.writelines(f'{at},{user},{n},"{text}"\n' for at, user, n, text in rows)
    with (folder / "events.nt").open("w") as statements:
        for at, user, n, text in rows:
            numbers = {
                name: f'"{number}"^^<{XSD}integer>'
                for name, number in (("at", at), ("mentions", n))
            }
            said = (*numbers.items(), ("text", f'"{text}"'))
            statements.writelines(
                f"<{NS}user/{user}> <{NS}{name}> {value} .\n" for name, value in said
            )
    pq.write_table(
        pa.table({"at": times, "user": users, "mentions": mentions, "text": texts}),
        folder / "events.parquet",
    )
    for syntax in ("turtle", "jsonld"):
        (folder / syntax).mkdir()
    for at, user, n, text in rows[::GRAPHS]:
        turtle = f'@prefix : <{NS}> . <{NS}user/{user}> :at {at} ; :mentions {n} ; :text "{text}" .'
        (folder / "turtle" / f"{at}.ttl").write_text(turtle)
        names = {"@context": {"@vocab": NS}, "@id": f"{NS}user/{user}"}
        document = json.dumps({**names, "at": at, "mentions": n, "text": text})
        (folder / "jsonld" / f"{at}.jsonld").write_text(document)


def _best(
    name: str, records: int, repeat: int, work: Callable[[], object], clock: Callable[[], float]
) -> Figure:
    seconds = []
    for _ in range(repeat):
        started = clock()
        work()
        seconds.append(clock() - started)
    return Figure(name, min(seconds), records)


if __name__ == "__main__":
    main()
