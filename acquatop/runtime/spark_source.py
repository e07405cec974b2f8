"""Streams that Spark's own sources read: the job runs on the rows of each micro-batch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from acquatop.errors import EnvironmentProblem, UserError
from acquatop.ingest.reduce.contract import Part
from acquatop.ingest.reduce.job import Job
from acquatop.runtime.frame_columns import mapped_columns, needed_columns
from connectors.registry import SPARK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from acquatop.catalog.catalog import Stream

PARTS_SCHEMA = "partition int, part binary"
"""The schema of a partition's parts on their way to the driver."""


def rows_of(spark: SparkSession, stream: Stream) -> DataFrame:
    """Return a stream's rows, with only the columns that its mapping reads."""
    rows = _loaded(spark, stream) if stream.frame is None else stream.frame
    return mapped_columns(_transformed(rows, stream), stream)


def _loaded(spark: SparkSession, stream: Stream) -> DataFrame:
    own = SPARK.options.keys()
    options = {key: value for key, value in stream.options.items() if key not in own}
    name = stream.options.get("format")
    if name is None:
        hint = 'set the option "format", or give the engine a DataFrame (streams=…)'
        raise UserError(f"<{stream.iri}> has no source\n  hint: {hint}")
    try:
        return spark.readStream.format(name).options(**options).load()
    except Exception as error:
        hint = (
            "give the engine a session that has the source, such as one with its package in "
            "spark.jars.packages"
        )
        raise EnvironmentProblem(
            f'Spark cannot read <{stream.iri}> as "{name}": {_reason(error)}\n  hint: {hint}'
        ) from error


def _transformed(rows: DataFrame, stream: Stream) -> DataFrame:
    """Return the rows that meet the stream's condition, with the columns that it makes."""
    from pyspark.errors import PySparkException

    where, select = stream.options.get("where"), stream.options.get("select")
    step = "where"
    try:
        rows = rows if where is None else rows.where(where)
        step = "select"
        return rows if select is None else rows.selectExpr(*json.loads(select))
    except PySparkException as error:
        has = ", ".join(f'"{each}"' for each in rows.columns)
        raise UserError(
            f'the option "{step}" of <{stream.iri}> is not understood: {_reason(error)}\n'
            f"  hint: its source has {has}"
        ) from error


def _reason(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


class OnRows:
    """A stream's job for Spark's rows: Arrow batches of a partition in, its parts as rows out."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the job on a partition."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None, "this is called by tasks"
        names = needed_columns(self._job.mapping)
        named = (batch.rename_columns(list(names)) for batch in batches)
        parts = [part.to_bytes() for part in self._job(named)]
        numbers = pa.repeat(pa.scalar(context.partitionId(), pa.int32()), len(parts))
        yield pa.RecordBatch.from_arrays(
            [numbers, pa.array(parts, pa.binary())], ["partition", "part"]
        )


def parts_in(rows: Iterable[tuple[int, bytes]]) -> list[list[Part]]:
    """Return the parts of each partition, in the partitions' order."""
    found: dict[int, list[Part]] = {}
    for number, data in rows:
        found.setdefault(number, []).append(Part.from_bytes(bytes(data)))
    return [found[number] for number in sorted(found)]
