"""The examples in the connectors' docstrings, in plain PySpark: without the rest of the project."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from websockets.sync.server import serve

from tests.support.connector_examples import example_of


def read(spark: SparkSession, program: str, folder: Path) -> list[dict[str, Any]]:
    """Run an example, which leaves a stream behind, and return the stream's rows."""
    names: dict[str, Any] = {"spark": spark}
    exec(program, names)
    (rows,) = (each for each in names.values() if isinstance(each, DataFrame))
    found: list[dict[str, Any]] = []

    def keep(batch: DataFrame, _number: int) -> None:
        found.extend(row.asDict() for row in batch.collect())

    writer = rows.writeStream.foreachBatch(keep).option(
        "checkpointLocation", str(folder / "checkpoint")
    )
    writer.trigger(availableNow=True).start().awaitTermination()
    return found


def test_lines(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "events"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"one\ntwo")
    rows = read(spark, example_of("lines").replace("events/", f"{folder}/"), tmp_path)
    assert [bytes(row["value"]) for row in rows] == [b"one", b"two"]


def test_pipe(spark: SparkSession, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "events.pipe")
    writer = os.open(tmp_path / "events.pipe", os.O_RDWR)
    os.write(writer, b"one\n")
    program = example_of("pipe").replace("events.pipe", f"{tmp_path}/events.pipe")
    rows = read(spark, program.replace("received/", f"{tmp_path}/log"), tmp_path)
    os.close(writer)
    assert [bytes(row["value"]) for row in rows] == [b"one"]


def test_files(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "messages"
    folder.mkdir()
    (folder / "a.ttl").write_bytes(b"<urn:a> <urn:b> 1 .")
    (row,) = read(spark, example_of("files").replace("messages/", f"{folder}/"), tmp_path)
    assert (bytes(row["value"]), row["position"]) == (b"<urn:a> <urn:b> 1 .", 0)


def test_parquet(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"user": ["ann"], "at": [1], "more": [2]}), tmp_path / "a.parquet")
    program = example_of("parquet").replace("events/", f"{tmp_path}/")
    expected = {"user": "ann", "at": 1, "_misfit": None, "_file": "a.parquet", "_row": 0}
    assert read(spark, program, tmp_path) == [expected]


@contextmanager
def line_server(data: bytes) -> Iterator[int]:
    """A server that sends the same to whoever connects, until it is closed."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        held: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    held.append(listener.accept()[0])
                except OSError:
                    return
                held[-1].sendall(data)

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in held:
                connection.close()


def test_tcp(spark: SparkSession, tmp_path: Path) -> None:
    with line_server(b"one\ntwo\n") as port:
        program = (
            example_of("tcp").replace("9999", str(port)).replace("received/", f"{tmp_path}/log")
        )
        rows = read(spark, program, tmp_path)
    assert [(row["position"], bytes(row["value"])) for row in rows] == [(0, b"one"), (1, b"two")]


def test_websocket(spark: SparkSession, tmp_path: Path) -> None:
    over = threading.Event()

    def handle(connection: Any) -> None:
        connection.send("one")
        over.wait(60)

    with serve(handle, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            port = str(server.socket.getsockname()[1])
            program = (
                example_of("websocket")
                .replace("9999", port)
                .replace("received/", f"{tmp_path}/log")
            )
            rows = read(spark, program, tmp_path)
        finally:
            over.set()
            server.shutdown()
            thread.join()
    assert [bytes(row["value"]) for row in rows] == [b"one"]
