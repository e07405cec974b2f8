"""Measure scaling with keys, events, queries and cores, for the executors and for the driver.

Parts, selected by ``--only``: **keys**, sums of more and more keys; **queries**, more and more of
them on one stream; **cores**, the whole engine on Spark with one core and with two. The first two
pass the data in themselves, so each step's CPU time is its own. Figures are medians of the batches
after the first windows.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import pickle
import platform
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import cloudpickle
from rich.console import Console
from rich.table import Table

from acquatop.catalog.catalog import Catalog
from acquatop.ingest.reduce.contract import Facts, Part, Reducer, panes_of
from acquatop.ingest.reduce.job import Job
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundQuery
from acquatop.query.contract import Tick
from acquatop.query.evaluation import TopKEvaluation
from acquatop.refresh.open_replicas import Replicas
from acquatop.runtime.publications import Publications
from acquatop.runtime.sources import reader_of
from benchmarks.spark_bench import child
from benchmarks.spark_bench.data import SLIDE_MS, SPAN_MS, START_MS, World, blocks, prepare, weights
from benchmarks.spark_bench.lines import shown
from benchmarks.spark_bench.ours import catalog_text, query
from connectors.subjects import named_records

WARM = 4
"""Batches before the measurement starts: after them the windows are full."""
MEASURED = 12
Result = TypeVar("Result")


@dataclass
class Stopwatch:
    """CPU time of this process per step, in seconds: less affected by other load."""

    laps: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def __call__(self, step: str, work: Callable[[], Result]) -> Result:
        """Run some work, and note its time."""
        started = time.process_time()
        result = work()
        self.laps[step].append(time.process_time() - started)
        return result

    def median(self, step: str) -> float:
        """Return a step's median, without the first batches."""
        return statistics.median(self.laps[step][WARM:])


@dataclass(frozen=True)
class Sheet:
    """One table: its title, and its rows, which have the same columns."""

    title: str
    rows: Sequence[Mapping[str, float]]

    def table(self) -> Table:
        """Return the sheet as a printable table."""
        table = Table(title=self.title, title_justify="left")
        for column in self.rows[0]:
            table.add_column(column, justify="right")
        for row in self.rows:
            table.add_row(*(shown(figure) for figure in row.values()))
        return table


class _Broadcast:
    """Broadcast data: a job only refers to it."""

    def __init__(self, value: object) -> None: ...

    def destroy(self) -> None:
        """Do nothing: nothing was sent."""


# One batch after the other, step by step ----------------------------------------------------------


class Bench:
    """A group of queries on data in files, one batch per slide of its windows."""

    def __init__(self, folder: Path, job: str, *, keys: int, rows: int, queries: int = 1) -> None:
        self.rows = rows
        # As many rows per file as per slide.
        self.world = World(rows * SPAN_MS // SLIDE_MS, keys, rows)
        self._folder = folder
        names = pa.table({"key_id": range(keys), "weight": weights(self.world)})
        pq.write_table(names, folder / "weights.parquet")
        (folder / "readings").mkdir()
        for number, block in enumerate(itertools.islice(blocks(self.world), WARM + MEASURED)):
            pq.write_table(
                block, folder / "readings" / f"{number}.parquet", dictionary_pagesize_limit=16 << 20
            )
        (folder / "catalog.toml").write_text(catalog_text(folder, job, rows))
        self._catalog = Catalog.load(folder / "catalog.toml")
        self._bound = [self._bind(query(job, number), f"q{number}") for number in range(queries)]
        self._iri = self._bound[0].stream.iri

    def _bind(self, text: str, name: str) -> BoundQuery:
        bound = bind_query(text, self._catalog, name=name)
        assert isinstance(bound, BoundQuery)
        return bound

    def group(self) -> TopKEvaluation:
        """Return the group of queries, with empty windows."""
        group = TopKEvaluation(self._bound[0], Replicas().open(self._bound[0]))
        for each in self._bound:
            group.join(each, {})
        return group

    def batches(self) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Yield each batch as its connector reads it, with the watermark after it."""
        stream = self._bound[0].stream
        reader = reader_of(stream.connector, {**stream.options, "maxPartitions": "1"})
        offset = reader.initialOffset()
        for number in range(WARM + MEASURED):
            latest = reader.latestOffset(offset, reader.getDefaultReadLimit())
            (partition,) = reader.partitions(offset, latest)
            (rows,) = pa.Table.from_batches(reader.read(partition)).combine_chunks().to_batches()
            yield rows, START_MS + (number + 1) * SLIDE_MS
            offset = latest

    def parts(
        self, rows: pa.RecordBatch, reducers: Sequence[Reducer], watch: Stopwatch
    ) -> list[bytes]:
        """Do the executors' work, and return the data they send."""
        reducers = cloudpickle.loads(cloudpickle.dumps(reducers))  # type: ignore[no-untyped-call]
        records = watch("decode", lambda: named_records(self._bound[0].stream.mapping, rows))
        matcher = self._bound[0].matcher
        found = watch("match", lambda: matcher.find(records))
        tables = watch("reduce", lambda: [each.reduce(records, found) for each in reducers])
        windows = self._bound[0].windows
        facts, panes = watch("facts", lambda: (Facts.of(records), panes_of(windows, records)))
        return watch("send", lambda: [Part(facts, panes, table).to_bytes() for table in tables])

    def job_bytes(self, group: TopKEvaluation) -> int:
        """Return the bytes sent to executors for a batch that changes nothing."""
        publications = Publications(_Broadcast)  # type: ignore[arg-type]
        job = Job(self._bound[0].stream.mapping, group.reducers(self._iri))
        with publications.sent(job):
            pass
        with publications.sent(job) as sent:
            return len(pickle.dumps(sent))

    def run(self) -> tuple[Stopwatch, dict[str, float]]:
        """Measure every step; also return the sizes."""
        watch, sizes, group = Stopwatch(), dict[str, float](), self.group()
        for rows, watermark_ms in self.batches():
            sent = self.parts(rows, group.reducers(self._iri), watch)
            parts = watch("receive", lambda sent=sent: [Part.from_bytes(each) for each in sent])  # type: ignore[misc]
            watch("merge", lambda parts=parts: group.add(self._iri, parts, group.names))  # type: ignore[misc]
            tick = Tick(self._iri, watermark_ms, 0.0)
            watch("close", lambda tick=tick: list(group.advance(tick)))  # type: ignore[misc]
            sizes = {
                "sent rows": sum(len(part.table) for part in parts),
                "sent bytes": sum(map(len, sent)),
            }
        sizes["job bytes"] = self.job_bytes(group)
        sizes["state bytes"] = len(watch("snapshot", group.snapshot))
        return watch, sizes

    def held(self) -> int:
        """Return the memory that the driver holds for full windows, without the replica."""
        watch, maker = Stopwatch(), self.group()
        arrived = [
            (self.parts(rows, maker.reducers(self._iri), watch), until)
            for rows, until in self.batches()
        ]
        group = self.group()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes()
        for sent, watermark_ms in arrived:
            group.add(self._iri, [Part.from_bytes(each) for each in sent], group.names)
            for _ in group.advance(Tick(self._iri, watermark_ms, 0.0)):
                pass
        after = tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes()
        tracemalloc.stop()
        return int(after - before)


def executor_ns(watch: Stopwatch, rows: int) -> dict[str, float]:
    """Return the executors' nanoseconds per event, by step."""
    return {
        f"{step} ns/event": watch.median(step) / rows * 1e9
        for step in ("decode", "match", "reduce")
    }


def by_keys(options: argparse.Namespace) -> Sheet:
    """Measure sums of more and more keys."""
    rows, found = options.rows, []
    for keys in options.keys:
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(Path(folder), "sums", keys=keys, rows=rows)
            watch, sizes = bench.run()
            sent = sizes["sent rows"]
            merge, close = watch.median("receive") + watch.median("merge"), watch.median("close")
            found.append(
                {
                    "keys": keys,
                    **executor_ns(watch, rows),
                    "rows sent": sent,
                    "bytes/row": sizes["sent bytes"] / sent,
                    "driver ms/batch": merge * 1e3,
                    "driver ms/100k rows": merge / sent * 1e8,
                    "driver ms/close": close * 1e3,
                    "held bytes/key": bench.held() / keys,
                    "state bytes/key": sizes["state bytes"] / keys,
                }
            )
    return Sheet(
        (
            f"sums of ever more keys, 1 query, {rows:,} events in a batch and in a slide, 3 "
            "slides in a window"
        ),
        found,
    )


def by_queries(job: str, options: argparse.Namespace) -> Sheet:
    """Measure more and more queries."""
    keys, rows, found = options.keys_of_queries, options.rows_of_queries, []
    for queries in options.queries:
        with tempfile.TemporaryDirectory() as folder:
            watch, sizes = Bench(Path(folder), job, keys=keys, rows=rows, queries=queries).run()
            merge, close = watch.median("receive") + watch.median("merge"), watch.median("close")
            found.append(
                {
                    "queries": queries,
                    **executor_ns(watch, rows),
                    "kB sent": sizes["sent bytes"] / 1e3,
                    "kB of job": sizes["job bytes"] / 1e3,
                    "driver ms/batch": merge * 1e3,
                    "driver ms/close": close * 1e3,
                    "driver ms/close and query": close / queries * 1e3,
                }
            )
    return Sheet(
        f"ever more queries, {job}, {keys:,} keys, {rows:,} events in a batch and in a slide", found
    )


def by_cores(job: str, options: argparse.Namespace) -> Sheet:
    """Measure the whole engine on Spark."""
    world = World(options.rows_of_cores, options.rows_of_cores // 100, options.rows_of_cores // 40)
    prepare(world)
    found = []
    for cores in options.cores:
        arguments = [
            str(world.folder),
            f"--job={job}",
            f"--cores={cores}",
            f"--rows={options.rows_of_cores // 20}",
        ]
        results = [child.python("cores", arguments, lambda _: None) for _ in range(options.repeat)]
        figures = {name: statistics.median(each[name] for each in results) for name in results[0]}
        found.append({"cores": cores, "events/s": world.rows / figures["s"], **figures})
    return Sheet(f"on Spark, {job}, {world.rows:,} events, {world.keys:,} keys, 20 batches", found)


# All ----------------------------------------------------------------------------------------------

PARTS: Mapping[str, Sequence[Callable[[argparse.Namespace], Sheet]]] = {
    "keys": [by_keys],
    "queries": [
        lambda options: by_queries("sums", options),
        lambda options: by_queries("events", options),
    ],
    "cores": [
        lambda options: by_cores("sums", options),
        lambda options: by_cores("events", options),
    ],
}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench scaling", description=__doc__)
    parser.add_argument("--only", choices=PARTS, action="append", help="a part (all)")
    parser.add_argument(
        "--repeat", type=int, default=1, help="how often to run Spark; medians count (%(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="less of everything")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    quick = options.quick
    options.keys = [1_000, 10_000, 100_000] if quick else [1_000, 10_000, 100_000, 1_000_000]
    options.rows = 200_000 if quick else 500_000
    options.queries = [1, 10, 100] if quick else [1, 10, 100, 1_000]
    options.keys_of_queries, options.rows_of_queries = 10_000, 20_000
    options.cores = [1, 2]
    options.rows_of_cores = 2_000_000 if quick else 10_000_000
    # Measure a single core; Arrow would use all of them.
    pa.set_cpu_count(1)
    load = os.getloadavg()[0]
    console = Console() if sys.stdout.isatty() else Console(width=180)
    sheets = []
    for part in options.only or PARTS:
        for measure in PARTS[part]:
            sheets.append(measure(options))
            if not options.json:
                console.print(sheets[-1].table())
    machine = {
        **_machine(),
        "load before": round(load, 1),
        "load after": round(os.getloadavg()[0], 1),
    }
    if options.json:
        print(json.dumps({"machine": machine, "sheets": [asdict(sheet) for sheet in sheets]}))
    else:
        console.print(", ".join(f"{key} {value}" for key, value in machine.items()), style="dim")


def _machine() -> dict[str, object]:
    return {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        **{package: version(package) for package in ("pyspark", "pyarrow", "numpy")},
    }


if __name__ == "__main__":
    main()
