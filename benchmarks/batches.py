"""Cost of batches of several sizes: CPU time, events per second, and peak resident memory.

Each run is a process of its own. All must give the same answers: the exit code is 1 if they do not.
On Spark the JVM's memory is told as well.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from acquatop import Engine
from acquatop.runtime import RUNTIMES

MIB = 1 << 20
SIZES = {
    "lines": ("maxBytesPerBatch", (None, MIB, 2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB, 64 * MIB)),
    "parquet": ("maxRowsPerBatch", (None, 31_250, 62_500, 125_000, 250_000, 500_000, 2_000_000)),
}
"""The option of each connector, and its values; none is the default."""
_CATALOG = """\
[prefixes]
"" = "http://example.org/"
[streams.":s"]
connector = "{connector}"
arrivals = "all"
options = {{ path = "{connector}"{limit} }}
[streams.":s".mapping]
subject = "http://example.org/user/{{user}}"
time = "time_ms"
properties = {{ ":n" = {{ field = "n", datatype = "xsd:integer" }} }}
"""
_QUERY = """PREFIX : <http://example.org/>
SELECT ?u ?n FROM NAMED WINDOW :w ON :s [RANGE 60s]
WHERE { WINDOW :w { ?u :n ?n } } ORDER BY DESC(?n) LIMIT 3"""


def main() -> None:
    """Run the benchmark, or one run of it."""
    parser = argparse.ArgumentParser(prog="run bench batches", description=__doc__)
    parser.add_argument("--events", type=int, default=3_000_000, help="how many (%(default)s)")
    parser.add_argument(
        "--runtime", choices=RUNTIMES, default="local", help="what carries them (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per run")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(_once(Path(options.one), options.runtime)))
        return
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder), options.events)
        rows = [
            {
                "connector": connector,
                "batch": size,
                **_measured(Path(folder), connector, name, size, options.runtime),
            }
            for connector, (name, sizes) in SIZES.items()
            for size in sizes
        ]
    _report(rows, options.events, as_json=options.json)
    sys.exit(len({row["answers"] for row in rows}) > 1)


def _write(folder: Path, events: int) -> None:
    chance = random.Random(1)
    users = [chance.randrange(100_000) for _ in range(events)]
    numbers = [chance.randrange(1_000_000) for _ in range(events)]
    table = pa.table({"user": users, "n": numbers, "time_ms": np.arange(1, events + 1)})
    pq.write_table(table, folder / "parquet")
    with (folder / "lines").open("w") as file:
        for at, (user, number) in enumerate(zip(users, numbers, strict=True)):
            file.write(
                f'{{"time_ms": {at + 1}, "user": {user}, "n": {number}, '
                '"text": "some more words"}\n'
            )


def _measured(
    folder: Path, connector: str, name: str, size: int | None, runtime: str
) -> dict[str, Any]:
    catalog = folder / "catalog.toml"
    limit = "" if size is None else f", {name} = {size}"
    catalog.write_text(_CATALOG.format(connector=connector, limit=limit))
    command = [
        sys.executable,
        "-m",
        "benchmarks.batches",
        "--one",
        str(catalog),
        "--runtime",
        runtime,
    ]
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said: dict[str, Any] = (
        json.loads(done.stdout) if done.returncode == 0 else {"answers": done.stderr[-300:]}
    )
    return {**said, "wall_seconds": round(time.perf_counter() - started, 2)}


def _once(catalog: Path, runtime: str) -> dict[str, Any]:
    """Return what one run took, from when it has begun to its last answer."""
    with Engine.from_catalog(catalog, runtime=runtime, until_end=True) as engine:
        started, cpu = time.perf_counter(), time.process_time()
        found = [answer.canonical() for answer in engine.register(_QUERY)]
        took = {
            "seconds": round(time.perf_counter() - started, 2),
            "cpu_seconds": round(time.process_time() - cpu, 2),
        }
        java = _java_mib() if runtime == "spark" else None
    driver = _most_mib(os.getpid())
    digest = hashlib.sha256(json.dumps(found).encode()).hexdigest()[:12]
    return {**took, "driver_mib": driver, "java_mib": java, "answers": digest}


def _java_mib() -> int | None:
    """Return the most memory that this process's Java has had."""
    found = subprocess.run(
        ["pgrep", "-P", str(os.getpid()), "java"], capture_output=True, text=True, check=False
    )
    return _most_mib(int(found.stdout)) if found.stdout.strip().isdigit() else None


def _most_mib(process: int) -> int | None:
    """Return a process's peak memory since its program began, None if the system has none."""
    status = Path(f"/proc/{process}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM")), None)


def _report(rows: list[dict[str, Any]], events: int, *, as_json: bool) -> None:
    if as_json:
        for row in rows:
            print(json.dumps(row))
        return
    table = Table(
        title=f"{events:,} events, the best three of each minute", caption=f"{os.cpu_count()} cores"
    )
    for heading in (
        "connector",
        "batch",
        "CPU s",
        "s",
        "events/s",
        "driver MiB",
        "Java MiB",
        "answers",
    ):
        table.add_column(heading)
    for row in rows:
        size = "default" if row["batch"] is None else f"{row['batch']:,}"
        rate = f"{events / row['seconds']:,.0f}" if "seconds" in row else ""
        more = (row.get(name, "") for name in ("cpu_seconds", "seconds"))
        memory = (row.get(name) or "" for name in ("driver_mib", "java_mib", "answers"))
        table.add_row(row["connector"], size, *map(str, more), rate, *map(str, memory))
    Console().print(table)


if __name__ == "__main__":
    main()
