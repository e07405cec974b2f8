"""AcquaTop on Spark: time of executors and driver by cores. Run by ``benchmarks/scaling.py``.

``--master`` selects another master; executors elsewhere must find this Python and its packages.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from acquatop.engine.observer import BatchSeen, Silent
from acquatop.runtime.java import find_java, java_home
from benchmarks.spark_bench.child import hand_back
from benchmarks.spark_bench.ours import engine, query


class Batches(Silent):
    """Observer of the duration of batches, and of this process's CPU time meanwhile."""

    def __init__(self) -> None:
        self.seen: list[BatchSeen] = []
        self.cpu = [time.process_time()]

    def batch(self, seen: BatchSeen) -> None:
        """Note a batch."""
        self.seen.append(seen)
        self.cpu.append(time.process_time())


def main() -> None:
    """Do one job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--job", choices=("sums", "events"), default="sums")
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--master")
    parser.add_argument("--rows", type=int, default=500_000, help="in a batch (%(default)s)")
    options = parser.parse_args()
    java = find_java()
    assert java is not None
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with java_home(java) as home:
        os.environ["JAVA_HOME"] = home
        builder = SparkSession.builder.master(options.master or f"local[{options.cores}]")
        spark = builder.config("spark.ui.enabled", "false").getOrCreate()
        hand_back(measured(options.folder, options.job, options.rows))
        spark.stop()


def measured(folder: Path, job: str, rows: int) -> dict[str, float]:
    """Return a run's figures in (milli)seconds: medians without the first two batches."""
    batches = Batches()
    with engine(folder, job, "spark", rows, observer=batches) as running:
        started = time.perf_counter()
        answers = running.register(query(job))
        running.start()
        count = sum(1 for _ in answers)
        seconds = time.perf_counter() - started
    assert count > 0
    later = batches.seen[2:]
    cpu = [after - before for before, after in zip(batches.cpu[3:], batches.cpu[4:], strict=False)]
    driver = [each.seconds - each.reduce_seconds for each in later]
    return {
        "s": seconds,
        "executors ms/batch": 1e3 * statistics.median(each.reduce_seconds for each in later),
        "driver ms/batch": 1e3 * statistics.median(driver),
        "driver's Python ms CPU/batch": 1e3 * statistics.median(cpu),
    }


if __name__ == "__main__":
    main()
