"""Measure what grows: in windows without end, with keys that never come again, and with queries.

One engine has a query of each kind over one stream; late and bad records always come. Its replicas
are bounded, and then not. Queries come and go in one engine and over HTTP, with readers that leave.
All figures are of processes of their own, at each tenth of a run.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.soak_bench import registrations, windows
from benchmarks.soak_bench.world import KINDS

SECONDS, QUICK_SECONDS = 100_000, 2_000
CYCLES, QUICK_CYCLES = 1_000, 50
SPARK_SECONDS, QUICK_SPARK_SECONDS = 4_000, 400
SMALL_BATCH = 12_000
"""Bytes of a batch when Spark has as many jobs as there are batches."""
Samples = Iterator[dict[str, Any]]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="run bench soak", description=__doc__.splitlines()[0])
    sections = _sections(quick=False)
    parser.add_argument("--only", choices=sections, help="run one section instead of all")
    parser.add_argument("--quick", action="store_true", help="run a fiftieth of it")
    parser.add_argument("--json", action="store_true", help="print lines of JSON, not tables")
    options = parser.parse_args()
    for name, run in _sections(quick=options.quick).items():
        if options.only in (None, name):
            _report(name, run, as_json=options.json)


def _sections(*, quick: bool) -> dict[str, Callable[[], Samples]]:
    seconds = QUICK_SECONDS if quick else SECONDS
    on_spark = QUICK_SPARK_SECONDS if quick else SPARK_SECONDS
    cycles = QUICK_CYCLES if quick else CYCLES
    top = KINDS[:1]
    return {
        "bounded": lambda: windows.samples(KINDS, seconds, "local", bounded=True, durable=True),
        "unbounded": lambda: windows.samples(
            top, seconds // 5, "local", bounded=False, durable=False
        ),
        "spark": lambda: windows.samples(KINDS, on_spark, "spark", bounded=True, durable=True),
        "small-batches": lambda: windows.samples(
            top, on_spark // 2, "spark", bounded=True, durable=True, batch=SMALL_BATCH
        ),
        "registrations": lambda: registrations.in_process(cycles),
        "service": lambda: registrations.over_http(cycles),
    }


def _report(name: str, run: Callable[[], Samples], *, as_json: bool) -> None:
    found: list[Mapping[str, Any]] = []
    for sample in run():
        found.append(_with_cost(sample, found[-1] if found else None))
        if as_json:
            print(json.dumps({"section": name, **found[-1]}), flush=True)
    if not as_json:
        Console(width=200).print(_table(name, found))


def _with_cost(sample: Mapping[str, Any], before: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return a sample with the processor time of each window or cycle since the one before."""
    unit = "windows" if "windows" in sample else "cycles"
    earlier = {unit: 0, "cpu_seconds": 0.0} if before is None else before
    count = max(1, sample[unit] - earlier[unit])
    cost = 1_000 * (sample["cpu_seconds"] - earlier["cpu_seconds"]) / count
    return {**sample, "cpu_ms_each": round(cost, 2)}


def _table(name: str, found: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(title=name)
    for heading in found[0] if found else ():
        table.add_column(heading.replace("_", " "), justify="right")
    for sample in found:
        table.add_row(
            *(
                f"{each:,.1f}" if isinstance(each, float) else f"{each:,}"
                for each in sample.values()
            )
        )
    return table


if __name__ == "__main__":
    main()
