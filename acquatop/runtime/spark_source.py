"""Streams that Spark's own sources read: the rows of each micro-batch, as a mapping needs them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from acquatop.errors import EnvironmentProblem, UserError
from acquatop.runtime.frame_columns import mapped_columns
from connectors.registry import SPARK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from acquatop.catalog.catalog import Stream


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
