"""Compare keys kept by the driver and by the executors: driver memory and time of a close.

Each run is a process of its own, to measure its own memory: without the JVM and the executors'
Python processes, which run elsewhere on a cluster. Both must give the same answers: otherwise the
exit code is 1. ``--large`` is ten million keys with twenty million events in a window, kept by the
executors only. CPU seconds are those of all processes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from acquatop import Engine
from acquatop.answer.answer import Answer

NS = "http://example.org/"
PANES, PANE_MS = 5, 60_000
PANES_OF_WINDOW = 3
LARGE_KEYS, LARGE_EVENTS = 10_000_000, 20_000_000
ROWS = 500_000
"""Events per read."""

_CATALOG = f"""\
[prefixes]
"" = "{NS}"

[streams.":readings"]
connector = "parquet"
options = {{{{ path = "readings", maxRowsPerBatch = {ROWS} }}}}
arrivals = "distinct"
keys = "{{kept}}"
buckets = {{buckets}}

[streams.":readings".mapping]
format = "columns"
subject = "{NS}event/{{{{event}}}}"
time = "time_ms"

[streams.":readings".mapping.properties]
":of" = {{{{ field = "key", datatype = "iri" }}}}
":value" = {{{{ field = "value", datatype = "xsd:double" }}}}
"""
_QUERY = """\
SELECT ?key ?amount (?amount AS ?score)
FROM NAMED WINDOW :w ON :readings [RANGE 3m STEP 1m]
WHERE {
  WINDOW :w {
    SELECT ?key (SUM(?value) AS ?amount) WHERE { ?event :of ?key ; :value ?value } GROUP BY ?key
  }
}
ORDER BY DESC(?score)
LIMIT 100
"""


@dataclass(frozen=True)
class Cost:
    """Cost of a run: driver memory before and at peak, seconds in total and per close.

    ``events`` are those of a window. ``load`` is the machine's before and after.
    """

    keys: int
    events: int
    kept: str
    before_mb: float
    most_mb: float
    seconds: float
    close_seconds: float
    longest_close: float
    cpu_seconds: float
    load: tuple[float, float]
    answers: str


def write_readings(folder: Path, keys: int, events: int) -> None:
    """Write so many events per pane, each of a random key; one file per pane."""
    (folder / "readings").mkdir()
    chance = np.random.default_rng(6)
    names = pc.binary_join_element_wise(
        f"{NS}key/", pa.array(np.arange(keys)).cast(pa.string()), ""
    )
    for pane in range(PANES):
        start = PANE_MS * (1 + pane)
        table = pa.table(
            {
                "event": np.arange(events) + pane * events,
                "time_ms": start + 1 + np.arange(events) * (PANE_MS - 1) // events,
                "key": names.take(pa.array(chance.integers(0, keys, events))),
                "value": chance.integers(1, 160_000, events) / 16,
            }
        )
        pq.write_table(table, folder / "readings" / f"{pane}.parquet", row_group_size=ROWS // 2)


def memory_mb(name: str) -> float:
    """Return this process's memory by the system: ``VmRSS`` now, ``VmHWM`` at its peak."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of all below it, as the system tells."""
    parents, ticks = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                said = (entry / "stat").read_text("ascii", "replace").rpartition(")")[2].split()
            except OSError:
                continue  # it has just ended
            parents[int(entry.name)] = int(said[1])
            ticks[int(entry.name)] = sum(map(int, said[11:15]))

    def is_below(process: int) -> bool:
        return process == os.getpid() or (process in parents and is_below(parents[process]))

    return sum(ticks[each] for each in ticks if is_below(each)) / os.sysconf("SC_CLK_TCK")


def run_here(folder: Path, keys: int, kept: str, options: argparse.Namespace) -> Cost:
    """Run the query in this process."""
    catalog = folder / f"{kept}.toml"
    load = os.getloadavg()[0]
    catalog.write_text(_CATALOG.format(kept=kept, buckets=options.buckets))
    with Engine.from_catalog(catalog, runtime=options.runtime, until_end=True) as engine:
        before, started = memory_mb("VmRSS"), time.perf_counter()
        answers = list(engine.register(_QUERY))
        seconds, busy = time.perf_counter() - started, cpu_seconds()
    said = json.dumps([answer.canonical() for answer in answers]).encode()
    closes = list(_seconds(answers))
    return Cost(
        keys,
        _events(options, keys),
        kept,
        before,
        memory_mb("VmHWM"),
        seconds,
        statistics.median(closes),
        max(closes),
        busy,
        (load, os.getloadavg()[0]),
        hashlib.sha256(said).hexdigest(),
    )


def _events(options: argparse.Namespace, keys: int) -> int:
    """Return the number of events in a window."""
    return int(options.events or PANES_OF_WINDOW * keys)


def _seconds(answers: list[Answer]) -> Iterator[float]:
    """Yield the seconds of each close, without the first one and those at the end, which differ."""
    for answer in answers[1 : PANES - 1]:
        yield answer.latency_seconds


def run_apart(folder: Path, keys: int, kept: str, options: argparse.Namespace) -> Cost:
    """Run the query in a process of its own."""
    arguments = [
        f"--keys={keys}",
        f"--events={_events(options, keys)}",
        f"--runtime={options.runtime}",
        f"--buckets={options.buckets}",
    ]
    command = [
        sys.executable,
        "-m",
        "benchmarks.keys",
        f"--here={kept}",
        f"--folder={folder}",
        *arguments,
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return Cost(**json.loads(done.stdout.splitlines()[-1]))


def show(costs: list[Cost], console: Console) -> None:
    """Print a table."""
    table = Table(
        "keys",
        "events",
        "kept by",
        "driver before, MB",
        "driver at most, MB",
        "seconds",
        "of CPU",
        "per close",
        "longest",
        "load",
    )
    for cost in costs:
        sizes = (
            f"{cost.before_mb:.0f}",
            f"{cost.most_mb:.0f}",
            f"{cost.seconds:.1f}",
            f"{cost.cpu_seconds:.1f}",
            f"{cost.close_seconds:.2f}",
            f"{cost.longest_close:.2f}",
            "{:.1f} to {:.1f}".format(*cost.load),
        )
        table.add_row(f"{cost.keys:,}", f"{cost.events:,}", cost.kept, *sizes)
    console.print(table)


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--keys",
        type=int,
        nargs="+",
        default=[1_000_000, 3_000_000],
        help="how many keys there are",
    )
    parser.add_argument(
        "--buckets", type=int, default=16, help="into how many parts executors cut them"
    )
    parser.add_argument("--events", type=int, help="how many a window has, if not 3 per key")
    parser.add_argument(
        "--large",
        action="store_true",
        help=f"{LARGE_KEYS:,} keys, {LARGE_EVENTS:,} events per window, in executors only",
    )
    parser.add_argument("--runtime", default="spark", choices=("spark", "local"))
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--here", choices=("driver", "executors"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        print(json.dumps(asdict(run_here(options.folder, options.keys[0], options.here, options))))
        return 0
    places = ["driver", "executors"]
    if options.large:
        options.keys, options.events, places = [LARGE_KEYS], LARGE_EVENTS, places[1:]
    costs: list[Cost] = []
    for keys in options.keys:
        with tempfile.TemporaryDirectory() as folder:
            write_readings(Path(folder), keys, _events(options, keys) // PANES_OF_WINDOW)
            costs += [run_apart(Path(folder), keys, kept, options) for kept in places]
    if options.json:
        print(json.dumps([asdict(cost) for cost in costs], indent=2))
    else:
        show(costs, Console())
    return 0 if len({(cost.keys, cost.answers) for cost in costs}) == len(options.keys) else 1


if __name__ == "__main__":
    sys.exit(main())
