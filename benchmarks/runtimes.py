"""Measure events per second through the whole engine, against only parsing their JSON."""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.json as pj

from acquatop import Engine
from acquatop.runtime import RUNTIMES
from benchmarks.table import Figure, report
from connectors.lines import LinesReader
from examples.oxigraph import OxigraphServer
from examples.social_media.world import NS, store_followers

EVENTS_PER_SECOND_OF_STREAM = 1_000
QUERY = Path(__file__).parents[1] / "examples" / "social_media" / "contacts.rspql"
CATALOG = QUERY.with_name("catalog.toml")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench runtimes", description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000, help="how many (%(default)s)")
    parser.add_argument(
        "--users", type=int, default=10_000, help="how many the remote knows (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, OxigraphServer() as server:
        stream = Path(folder) / "mentions.ndjson"
        _write(stream, options.events, options.users)
        chance = random.Random(2)
        store_followers(
            server, ((f"u{user}", chance.randrange(100_000)) for user in range(options.users))
        )
        figures = [
            _timed("floor: parse the JSON, nothing else", options.events, lambda: _parse(stream)),
            _timed("read lines and decode them", options.events, lambda: _decode(stream, server)),
        ]
        figures += [
            _engine(runtime, stream, server, options.events) for runtime in reversed(RUNTIMES)
        ]
    report(
        f"{NS} query, 6 s windows every 2 s",
        figures,
        ["pyarrow", "pyspark", "numpy"],
        as_json=options.json,
    )


def _write(file: Path, events: int, users: int) -> None:
    chance = random.Random(1)
    with file.open("w") as stream:
        for number in range(events):
            time_ms = 1_000_000 + number * 1000 // EVENTS_PER_SECOND_OF_STREAM
            user, mentions = chance.randrange(users), chance.randrange(40)
            stream.write(f'{{"time_ms": {time_ms}, "user": "u{user}", "mentions": {mentions}}}\n')


def _timed(name: str, events: int, work: Callable[[], object]) -> Figure:
    started = time.perf_counter()
    work()
    return Figure(name, time.perf_counter() - started, events)


def _parse(stream: Path) -> None:
    schema = pa.schema([("time_ms", pa.int64()), ("user", pa.string()), ("mentions", pa.int64())])
    options = pj.ReadOptions(use_threads=False, block_size=64 << 20)
    pj.read_json(stream, options, pj.ParseOptions(explicit_schema=schema))


def _decode(stream: Path, server: OxigraphServer) -> None:
    engine = _open("local", stream, server)
    (source,) = engine.catalog.streams.values()
    reader = LinesReader(stream, 64 << 20)
    reader.prepareForTriggerAvailableNow()
    end = reader.latestOffset({}, reader.getDefaultReadLimit())
    for part in reader.partitions({}, end):
        for batch in reader.read(part):
            source.mapping.records(batch)


def _engine(runtime: str, stream: Path, server: OxigraphServer, events: int) -> Figure:
    """Measure from the registration of the query, with Spark started, to the last answer."""
    with _open(runtime, stream, server) as engine:
        query = engine.register(QUERY.read_text("utf-8"))
        started = time.perf_counter()
        answers = sum(1 for _ in query)
        seconds = time.perf_counter() - started
    return Figure(f"whole engine, {runtime}: {answers} answers", seconds, events)


def _open(runtime: str, stream: Path, server: OxigraphServer) -> Engine:
    variables = {"MENTIONS": str(stream), "FOLLOWERS": server.query_url}
    return Engine.from_catalog(CATALOG, runtime=runtime, until_end=True, variables=variables)


if __name__ == "__main__":
    main()
