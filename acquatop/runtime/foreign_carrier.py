"""Carriers of streams that sources of Spark's own read, and of DataFrames."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from acquatop.errors import UserError
from acquatop.ingest.reduce.contract import Part
from acquatop.ingest.reduce.job import Job
from acquatop.runtime import Position
from acquatop.runtime.checkpoint import SOURCES
from acquatop.runtime.frame_parts import FrameParts
from acquatop.runtime.spark_source import rows_of
from acquatop.runtime.stream_carrier import SparkCarrier, allowance

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ALL_ROWS = 'v1\n{"batchWatermarkMs":0}\n"all rows"'
"""A note as Spark's, on a batch with all rows."""


class ForeignCarrier(SparkCarrier):
    """A stream that a source of Spark's own reads; only Spark knows its offsets.

    The position of the last batch contains Spark's note on that batch. The source's own notes stay
    in the checkpoint when the stream ends. They are copied to the next checkpoint, together with
    Spark's note on the batch that was under way. So exactly the batches that were not kept come
    again, with the same numbers and the same rows.

    Where these folders end with the process, as with a state in an object store, the position also
    contains the source's notes up to that batch. Then nothing of the batch under way has been kept
    or noted, and it may come again with other rows.

    Nothing is read ahead: as soon as Spark goes on, it tells the source that the last batch is
    done, and the source may remove it.
    """

    _repeats = True
    tells_status = False

    def status(self) -> None:
        """Return None: the source is Spark's own."""
        return

    def _open(self, position: Position | None) -> None:
        """Prepare to read; Spark's note contains the position."""
        self._frame_parts = FrameParts(allowance(self._spark).most)

    def _rows(self, until_end: bool) -> DataFrame:
        return rows_of(self._spark, self._stream)

    def _kept(self) -> dict[str, Any]:
        # Spark has not begun to plan the next batch: the source has noted nothing of it.
        return {SOURCES: self._checkpoint.sources()} if self._moves else {}

    def _reduced(self, rows: DataFrame, planned: str) -> tuple[str, list[list[Part]], float]:
        job = self._consumer.job()
        started = time.perf_counter()
        self._check_state()
        parts = self._parts(rows, job)
        return planned, parts, time.perf_counter() - started

    def _parts(self, rows: DataFrame, job: Job) -> list[list[Part]]:
        return self._frame_parts.of_batch(rows, job, lambda work: self._sent(work, job))

    def _check_state(self) -> None:
        """Raise an error if Spark keeps state of its own for the rows, and the engine its own."""
        if self._is_durable and self._checkpoint.has_state():
            hint = "leave out the state directory, or deduplicate, aggregate and join in a query"
            raise UserError(
                f"the DataFrame of <{self._stream.iri}> keeps state in Spark, which a state "
                f"directory does not hold\n  hint: {hint}"
            )

    def _how_far(self, note: str) -> tuple[int | None, int | None, bool, int]:
        return None, None, False, 0

    def _has_read(self, note: str) -> None:
        """Do nothing: Spark has noted it."""

    def _release(self, note: str) -> None:
        """Do nothing: Spark tells the source."""

    def _note_rows(self, rows: int) -> None:
        """Do nothing: Spark has counted them."""

    def _leave_checkpoint(self) -> None:
        # What the source has noted for itself is needed to go on.
        if not self._is_durable:
            self._checkpoint.remove()

    def forget(self, position: Position) -> None:
        """Do nothing: the source itself manages old data."""


class RecordingCarrier(ForeignCarrier):
    """A DataFrame that is not a stream: one batch has all its rows, and is the end."""

    def _start(self, until_end: bool) -> None:
        if not until_end:
            hint = "read it as a recording (until_end=True), or give one of readStream"
            raise UserError(
                f"the DataFrame of <{self._stream.iri}> is not a stream\n  hint: {hint}"
            )
        self._all = self._rows(until_end)

    def _parts(self, rows: DataFrame, job: Job) -> list[list[Part]]:
        return self._frame_parts.of_all(rows, job, lambda work: self._sent(work, job))

    def _planned(self, number: int) -> str:
        return _ALL_ROWS

    def _await_end(self) -> None:
        self._process(self._all, 0)
