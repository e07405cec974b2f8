"""Work in executors' processes."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator

import cloudpickle
import pytest
from pyspark.sql import SparkSession

from acquatop.runtime.executor_work import Unpacking
from acquatop.runtime.kept_values import SentWork


@pytest.mark.spark
def test_the_collector_passes_over_what_has_been_imported(spark: SparkSession) -> None:
    def counted(items: Iterable[int]) -> Iterator[tuple[int, int]]:
        gc.collect()
        yield gc.get_freeze_count(), len(gc.get_objects())

    work = Unpacking(SentWork("somebody", cloudpickle.dumps(counted), {}))
    ((frozen, others),) = spark.sparkContext.parallelize([0], 1).mapPartitions(work).collect()
    assert frozen > 10 * others
