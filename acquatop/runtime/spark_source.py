"""Streams that Spark's own sources read: the job runs on the rows of each micro-batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from acquatop.errors import EnvironmentProblem, UserError
from acquatop.ingest.reduce.contract import Part
from acquatop.ingest.reduce.job import Job
from connectors.columns import ColumnsMapping
from connectors.contract import RecordDecoder

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from acquatop.catalog.catalog import Stream

PARTS_SCHEMA = "partition int, part binary"
"""The schema of a partition's parts on their way to the driver."""


def rows_of(spark: SparkSession, stream: Stream) -> DataFrame:
    """Return a stream's rows, with only the columns that its mapping reads."""
    options = dict(stream.options)
    name = options.pop("format")
    try:
        rows = spark.readStream.format(name).options(**options).load()
    except Exception as error:
        reason = str(error).partition("\n")[0]
        hint = (
            "give the engine a session that has the source, such as one with its package in "
            "spark.jars.packages"
        )
        raise EnvironmentProblem(
            f'Spark cannot read <{stream.iri}> as "{name}": {reason}\n  hint: {hint}'
        ) from error
    return _selected(rows, stream, name)


def _selected(rows: DataFrame, stream: Stream, name: str) -> DataFrame:
    from pyspark.errors import PySparkException

    wanted = dict(_columns(stream.mapping))
    try:
        return rows.select(*wanted.values())
    except PySparkException:
        has, needs = (", ".join(f'"{each}"' for each in names) for names in (rows.columns, wanted))
        message = (
            f'the source "{name}" of <{stream.iri}> has no such columns as its mapping reads: '
            f"{needs}"
        )
        raise UserError(f"{message}\n  hint: it has {has}") from None


def _columns(mapping: RecordDecoder) -> Iterator[tuple[str, Column]]:
    """Yield the columns that a mapping reads: by name, or ``value`` as bytes."""
    from pyspark.sql.functions import col

    if isinstance(mapping, ColumnsMapping):
        yield from ((name, col(name).alias(name)) for name in mapping.types)
    else:
        yield "value", col("value").cast("binary").alias("value")


class OnRows:
    """A stream's job for Spark's rows: Arrow batches of a partition in, its parts as rows out."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the job on a partition."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None, "this is called by tasks"
        parts = [part.to_bytes() for part in self._job(batches)]
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
