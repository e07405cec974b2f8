"""Jobs of Spark that do nothing: no engine on Spark that runs so many can be faster.

Run as a process of its own by ``benchmarks/spark.py``. Each job has as many tasks as a batch has
files, and returns a number from each.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator

from acquatop.runtime.spark import SparkRuntime
from benchmarks.spark_bench.child import hand_back, told
from benchmarks.spark_bench.cpu import spent

_WARM = 5


def nothing(items: Iterable[int]) -> Iterator[int]:
    """Do a task's work."""
    return iter(items)


def main() -> None:
    """Run the jobs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20, help="how many (%(default)s)")
    parser.add_argument("--tasks", type=int, default=2, help="of a job (%(default)s)")
    options = parser.parse_args()
    told("Spark starts")
    runtime = SparkRuntime()
    context = runtime.spark.sparkContext

    def run(jobs: int) -> None:
        for _ in range(jobs):
            items = context.parallelize(range(options.tasks), options.tasks)
            items.mapPartitions(nothing).collect()

    run(_WARM)
    cpu, started = spent(), time.perf_counter()
    run(options.jobs)
    hand_back({"seconds": time.perf_counter() - started, "cpu": spent() - cpu})
    runtime.close()


if __name__ == "__main__":
    main()
