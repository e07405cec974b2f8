"""Compare the Spark runtime with typical Spark SQL, with other engines, and with numpy alone.

Parts, selected by ``--only``: **a** the sum per key times the key's weight, the ten best of every
window; **b** the score of each event; **c** N-Triples, decoded in executors; **d** many queries on
one stream; **e** the latency on a live stream; **f** latency and rate beside RSP-JS and rsp-rs,
installed by npm and built by cargo the first time. Floors are in a and b: numpy on
one core with the same files, reading these alone, and Spark's jobs without work. Every answer is
compared: the exit code is 1 if one differs. CPU seconds are those of all processes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from typing import TypeVar

import pyarrow as pa
from pyoxigraph import RdfFormat
from pyoxigraph import parse as parse_rdf
from rich.console import Console
from rich.status import Status

from benchmarks.spark_bench import child, latency
from benchmarks.spark_bench.data import TRIPLE_FILES, World, prepare
from benchmarks.spark_bench.floor import FLOORS, Answers, reading, sums
from benchmarks.spark_bench.lines import Line, Part, checked, relative

TRIPLES_PER_EVENT = 3
_LONGEST_NOTE = 240
_PAPER = 140
"""Width of tables without a terminal."""


Result = TypeVar("Result")


@dataclass(frozen=True)
class Way:
    """One way of doing a job: the module to run in a process of its own, and its arguments."""

    name: str
    module: str
    arguments: Mapping[str, str]
    is_quick: bool = True
    note: str = ""


def _sql(name: str, note: str = "", *, is_quick: bool = False, **arguments: str) -> Way:
    return Way(f"Spark SQL, {name}", "spark_sql", arguments, is_quick, note)


PEERS = {
    "sums": (
        _sql("HDFS state", is_quick=True, job="sums", way="streaming", state="hdfs"),
        _sql("RocksDB state", job="sums", way="streaming", state="rocksdb"),
        _sql("HDFS state, keys as text", job="sums", way="streaming", state="hdfs", key="key"),
        _sql(
            "HDFS state, by panes",
            "an expert's: sums of 3 min first",
            job="sums",
            way="panes",
            state="hdfs",
        ),
        _sql(
            "RocksDB state, by panes",
            "an expert's: sums of 3 min first",
            job="sums",
            way="panes",
            state="rocksdb",
        ),
        _sql("one batch job", "not a stream", is_quick=True, job="sums", way="batch"),
    ),
    "events": (
        _sql(
            "row_number in foreachBatch",
            "merged by hand",
            is_quick=True,
            job="events",
            way="streaming",
        ),
        _sql("HDFS state, max_by", "an expert's", job="events", way="max_by", state="hdfs"),
        _sql("one batch job", "not a stream", is_quick=True, job="events", way="batch"),
    ),
}
"""Spark SQL's ways of each job; the first one is the reference for the others."""


class Bench:
    """One run: its options, its data, and the console for its progress."""

    def __init__(self, options: argparse.Namespace, world: World, console: Console) -> None:
        self.options = options
        self.world = world
        self.console = console
        self._floors: dict[str, tuple[float, Answers]] = {}

    def floor(self, job: str) -> tuple[float, Answers]:
        """Return numpy's seconds for a job, the best of three, and the answers."""
        if job not in self._floors:
            rounds = [_timed(lambda: FLOORS[job](self.world)) for _ in range(3)]
            self._floors[job] = min(seconds for seconds, _ in rounds), rounds[0][1]
        return self._floors[job]

    def run(self, name: str, work: Callable[[child.Told], Line]) -> Line:
        """Do one piece of work and show its progress; a failure becomes a line as well."""
        with self.console.status(name) as status:
            if not self.console.is_terminal:
                self.console.print(name)
            try:
                return work(_teller(name, status))
            except child.ChildFailed as failure:
                return Line(name, note=f"failed: {failure}"[:_LONGEST_NOTE], is_right=False)

    def measured(self, way: Way, expected: Answers, rows: int) -> Line:
        """Run one way, check its answers, and return its line."""
        return self.run(way.name, lambda tell: self._measured(way, expected, rows, tell))

    def _measured(self, way: Way, expected: Answers, rows: int, tell: child.Told) -> Line:
        arguments = [
            str(self.world.folder),
            *(f"--{key}={value}" for key, value in way.arguments.items()),
        ]
        rounds = [child.python(way.module, arguments, tell) for _ in range(self.options.repeat)]
        seconds, cpu = (self._of(each[name] for each in rounds) for name in ("seconds", "cpu"))
        figures = {"s": seconds, "rows/s": rows / seconds, "CPU s": cpu}
        if "sent" in rounds[0]:
            figures["MB sent"] = rounds[0]["sent"] / 1e6
        return checked(Line(way.name, figures, way.note), expected, rounds[0])

    def _of(self, figures: Iterable[float]) -> float:
        return min(figures) if self.options.best else statistics.median(figures)


def _teller(name: str, status: Status) -> child.Told:
    return lambda progress: status.update(f"{name}: {progress}")


def _timed(work: Callable[[], Result]) -> tuple[float, Result]:
    started = time.perf_counter()
    answers = work()
    return time.perf_counter() - started, answers


# a, b: beside Spark SQL ---------------------------------------------------------------------------


def job_part(bench: Bench, letter: str, job: str, title: str, wanted: str) -> Part:
    """Compare the floors, Spark SQL and AcquaTop on one job."""
    expected = bench.floor(job)[1]
    rows = bench.world.rows
    floors = _floors(bench, job)
    files = str(bench.options.files)
    peers = [replace(way, arguments={**way.arguments, "files": files}) for way in PEERS[job]]
    batch = str(bench.world.rows_per_file * bench.options.files)
    ours = [
        _ours(job, "spark", batch, keeps_state=True),
        *(_ours(job, each, batch) for each in ("spark", "local")),
    ]
    ways = [way for way in (*peers, *ours) if way.is_quick or not bench.options.quick]
    lines = [*floors, *(bench.measured(way, expected, rows) for way in ways)]
    column = "× Spark SQL"
    return Part(
        letter,
        title,
        wanted,
        ("s", "rows/s", column, "CPU s", "MB sent"),
        relative(lines, len(floors), "rows/s", column),
    )


def _floors(bench: Bench, job: str) -> list[Line]:
    """Measure what nobody can do without: the sums, the files, and Spark's jobs."""
    rows = bench.world.rows
    alone = bench.floor(job)[0]
    read = min(_timed(lambda: reading(bench.world))[0] for _ in range(3))
    jobs = -(-rows // (bench.world.rows_per_file * bench.options.files))
    arguments = [f"--jobs={jobs}", f"--tasks={bench.options.files}"]

    def empty(tell: child.Told) -> Line:
        result = child.python("empty", arguments, tell)
        figures = {"s": result["seconds"], "CPU s": result["cpu"]}
        return Line("Spark, as many jobs without work", figures, "a floor")

    return [
        Line("numpy alone, one core", {"s": alone, "rows/s": rows / alone}, "the floor"),
        Line("reading alone, one core", {"s": read, "rows/s": rows / read}, "a floor"),
        bench.run("Spark, as many jobs without work", empty),
    ]


def _ours(job: str, runtime: str, rows: str, *, keeps_state: bool = False) -> Way:
    note = (
        "state kept for a crash, as Spark SQL does" if keeps_state else "nothing kept for a crash"
    )
    arguments = {"job": job, "runtime": runtime, "rows": rows, "state": str(int(keeps_state))}
    return Way(
        f"AcquaTop, {runtime}{', with state' if keeps_state else ''}", "ours", arguments, note=note
    )


def part_a(bench: Bench) -> Part:
    """Compare sums per key."""
    return job_part(
        bench, "a", "sums", f"SUM per key × weight, {_size(bench)}", "AcquaTop on Spark ≥ 8×"
    )


def part_b(bench: Bench) -> Part:
    """Compare scores of events."""
    return job_part(
        bench,
        "b",
        "events",
        f"value × weight of each event, {_size(bench)}",
        "AcquaTop on Spark ≥ 10×",
    )


def _size(bench: Bench) -> str:
    world = bench.world
    batch = world.rows_per_file * bench.options.files
    return (
        f"{world.rows:,} rows, {world.keys:,} keys, windows of 9 min every 3, {batch:,} rows a "
        "batch"
    )


# c: N-Triples -------------------------------------------------------------------------------------


def part_c(bench: Bench) -> Part:
    """Measure how fast N-Triples become answers, and how fast one core only parses them."""
    expected = sums(bench.world, TRIPLE_FILES)
    rows = min(TRIPLE_FILES * bench.world.rows_per_file, bench.world.rows)
    triples = rows * TRIPLES_PER_EVENT
    lines = [bench.run("pyoxigraph, parsing alone, one core", lambda _: _parsed(bench))]
    for runtime in ("spark", "local"):
        way = Way(
            f"AcquaTop, {runtime}, SUM per key", "ours", {"job": "triples", "runtime": runtime}
        )
        line = bench.measured(way, expected, rows)
        if "s" in line.figures:
            line = replace(
                line, figures={"s": line.figures["s"], "triples/s": triples / line.figures["s"]}
            )
        lines.append(line)
    title = f"N-Triples, {triples:,} lines, decoded in executors"
    return Part("c", title, "≥ 300,000 triples/s on 2 cores", ("s", "triples/s"), lines)


def _parsed(bench: Bench) -> Line:
    started = time.perf_counter()
    (file, *_) = sorted(bench.world.triples.iterdir())
    count = sum(1 for _ in parse_rdf(path=str(file), format=RdfFormat.N_TRIPLES))
    seconds = time.perf_counter() - started
    return Line(
        "pyoxigraph, parsing alone, one core",
        {"s": seconds, "triples/s": count / seconds},
        "the first file",
    )


# d: many queries ----------------------------------------------------------------------------------


def part_d(bench: Bench) -> Part:
    """Measure how the time grows with the number of queries on one stream."""
    lines: list[Line] = []
    batch = str(bench.world.rows_per_file * bench.options.files)
    for job, kind in (("sums", "scores"), ("events", "scores"), ("events", "filters")):
        group = [_many(bench, job, kind, count, batch) for count in bench.options.queries]
        lines += relative(group, 0, "s", "× one query")
    title = f"many queries on one stream, {_size(bench)}"
    columns = ("s", "× one query", "CPU s", "MB sent")
    return Part("d", title, "100 queries ≤ 2×, 1,000 < 20×", columns, lines)


_OF_MANY = {"s", "CPU s", "MB sent"}
"""Figures of many queries."""


def _many(bench: Bench, job: str, kind: str, count: int, batch: str) -> Line:
    arguments = {"job": job, "rows": batch, "queries": str(count)}
    name = f"{count:,} of {job}, of different {kind}"
    if kind == "filters":
        arguments["filtered"] = "1"
    _, expected = bench.floor(job)
    line = bench.measured(Way(name, "ours", arguments), expected, bench.world.rows)
    kept = ("s", "CPU s", "MB sent")
    return replace(
        line, figures={name: line.figures[name] for name in kept if name in line.figures}
    )


# All ----------------------------------------------------------------------------------------------

PARTS: dict[str, Callable[[Bench], Part]] = {
    "a": part_a,
    "b": part_b,
    "c": part_c,
    "d": part_d,
    "e": lambda bench: latency.live_part(bench.run, is_quick=bench.options.quick),
    "f": lambda bench: latency.peers_part(bench.run, bench.options.windows),
}
_WITHOUT_DATA = {"e", "f"}
"""Parts with events of their own."""


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench spark", description=__doc__)
    parser.add_argument(
        "--rows", type=int, default=10_000_000, help="how many readings (%(default)s)"
    )
    parser.add_argument("--keys", type=int, help="of how many keys (a hundredth of the rows)")
    parser.add_argument(
        "--batch", type=int, help="how many rows a batch has (a twentieth of the rows)"
    )
    parser.add_argument(
        "--files", type=int, default=2, help="in how many files a batch is (%(default)s)"
    )
    parser.add_argument("--queries", type=_numbers, help="how many in part d (1,10,100,1000)")
    parser.add_argument(
        "--windows", type=_numbers, help="events of a window in part f (10000,50000)"
    )
    parser.add_argument(
        "--repeat", type=int, default=1, help="how often; medians are shown (%(default)s)"
    )
    parser.add_argument(
        "--best", action="store_true", help="show the least of the repetitions, not medians"
    )
    parser.add_argument("--only", type=_parts, default=list(PARTS), help="parts, such as a,b (all)")
    parser.add_argument("--quick", action="store_true", help="fewer peers, queries and windows")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    options.windows = options.windows or ([10_000] if options.quick else [10_000, 50_000])
    options.queries = options.queries or ([1, 10, 100] if options.quick else [1, 10, 100, 1_000])
    batch = options.batch or options.rows // 20
    world = World(options.rows, options.keys or options.rows // 100, max(1, batch // options.files))
    console = Console(stderr=True)
    if set(options.only) - _WITHOUT_DATA:
        with console.status(f"the data, once ({world.folder})"):
            prepare(world)
    # The floor uses one core.
    pa.set_cpu_count(1)
    paper = Console() if sys.stdout.isatty() else Console(width=_PAPER)
    parts = list(_done(Bench(options, world, console), options, paper))
    machine = _machine()
    if options.json:
        print(json.dumps({"machine": machine, "parts": [asdict(part) for part in parts]}))
    else:
        paper.print(", ".join(f"{key} {value}" for key, value in machine.items()), style="dim")
    return 0 if all(line.is_right for part in parts for line in part.lines) else 1


def _done(bench: Bench, options: argparse.Namespace, paper: Console) -> Iterator[Part]:
    for letter in options.only:
        part = PARTS[letter](bench)
        if not options.json:
            paper.print(part.table())
        yield part


def _numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


def _parts(text: str) -> list[str]:
    wanted = text.split(",")
    if unknown := set(wanted) - set(PARTS):
        raise argparse.ArgumentTypeError(
            f"there is no part {', '.join(sorted(unknown))}: there are {', '.join(PARTS)}"
        )
    return wanted


def _machine() -> dict[str, object]:
    return {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "load": f"{os.getloadavg()[0]:.1f}",
        **{package: version(package) for package in ("pyspark", "pyarrow", "numpy", "pyoxigraph")},
    }


if __name__ == "__main__":
    sys.exit(main())
