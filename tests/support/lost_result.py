"""A program whose driver loses a task's result: ``lost_result.py FOLDER``.

An executor in a process of its own sends what the driver has room for once, and not twice: it can
be fetched, and not be unpacked. The thread that does so dies, and Spark's job waits for ever. The
program prints what it ends with.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from acquatop.runtime import lost_results
from tests.support.scale_out import session

HEAP, YOUNG, RESULT, LEFT = 512 << 20, 64 << 20, 80 << 20, 200 << 20
MASTER = "local-cluster[1,1,1024]"
CONF = {
    "spark.driver.memory": f"{HEAP >> 20}m",
    # Results are too large for the young generation,
    # and what the old one has room for can be counted.
    "spark.driver.extraJavaOptions": f"-XX:+UseSerialGC -Xmn{YOUNG >> 20}m",
    "spark.driver.maxResultSize": "0",
}


def fill(spark: SparkSession) -> Any:
    """Return what fills the driver's memory, but for some of it."""
    java: Any = spark.sparkContext._jvm
    java.java.lang.System.gc()
    pools = java.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    (old,) = (pool.getUsage() for pool in pools if "Tenured" in pool.getName())
    return java.java.nio.ByteBuffer.allocate(old.getMax() - old.getUsed() - LEFT)


def much(items: Any) -> Iterator[bytes]:
    """Yield a result that is large."""
    yield bytes(RESULT)


def main(folder: str) -> None:
    """Run a job that cannot end."""
    with session(MASTER, Path(folder), CONF) as spark:
        context = spark.sparkContext
        context.parallelize([0], 1).count()
        filling = fill(spark)
        lost_results.AFTER_SECONDS = 1.0
        context.setJobGroup("lost", "")
        said = "nothing"
        try:
            with lost_results.ended_if_lost(spark):
                context.parallelize([0], 1).mapPartitions(much).collect()
        except Exception as error:
            said = str(error)
        del filling
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
