"""Answers as DataFrames, for a user's own Spark code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from acquatop.answer.answer import Answer
from acquatop.answer.sinks.table import answers_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def answers_frame(
    spark: SparkSession, answers: Sequence[Answer], variables: Iterable[str] = ()
) -> DataFrame:
    """Return answers as a DataFrame with the columns of an answers table.

    The columns are those of :func:`~acquatop.answer.sinks.table.answers_table`. Without answers it
    has no rows, and only the given ``variables`` have columns.
    """
    return spark.createDataFrame(answers_table(answers, variables))


class FrameSink:
    """Sink that calls a function with a DataFrame and its answer, as ``foreachBatch`` does.

    At least once: after a crash the function is called again with the last answers, which are
    identified by ``(answer.query, answer.closes_ms, answer.window)``. An exception of the function
    ends the query.
    """

    def __init__(
        self, spark: SparkSession, function: Callable[[DataFrame, Answer], object]
    ) -> None:
        self._spark = spark
        self._function = function

    def write(self, answers: Sequence[Answer]) -> None:
        """Call the function with each answer."""
        for answer in answers:
            self._function(answers_frame(self._spark, [answer]), answer)

    def close(self) -> None:
        """Do nothing: the caller owns the session."""
