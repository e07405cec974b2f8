"""Use of memory in the Java of this process's Spark session, as that Java tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.soak_bench.usage import megabytes


@dataclass(frozen=True)
class JavaUsage:
    """Memory that is in use after a collection: objects, and classes with compiled code.

    The process itself grows up to its limit before it collects, whatever is alive.
    """

    java_live_mb: float
    java_code_mb: float
    java_classes: int
    java_threads: int
    java_jobs: int


def java_usage() -> JavaUsage | None:
    """Return what is in use after a collection, None if this process has no Spark session."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is None:
        return None
    jvm: Any = context._jvm
    jvm.java.lang.System.gc()
    beans = jvm.java.lang.management.ManagementFactory
    memory = beans.getMemoryMXBean()
    return JavaUsage(
        java_live_mb=megabytes(memory.getHeapMemoryUsage().getUsed()),
        java_code_mb=megabytes(memory.getNonHeapMemoryUsage().getUsed()),
        java_classes=beans.getClassLoadingMXBean().getLoadedClassCount(),
        java_threads=beans.getThreadMXBean().getThreadCount(),
        java_jobs=context._jsc.sc().statusStore().jobsList(None).size(),
    )
