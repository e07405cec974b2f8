"""Driver of an evaluation: a test hands it decoded records and watermarks."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from acquatop.answer.answer import Answer
from acquatop.ingest.reduce.job import reduced
from acquatop.plan.bound import Bound
from acquatop.query.contract import Evaluation, Tick


class Fed:
    """Wrapper of an evaluation of one query; everything else is the evaluation's own."""

    def __init__(self, evaluation: Evaluation, bound: Bound) -> None:
        self.evaluation: Any = evaluation
        self._bound = bound

    def add(self, stream: str, records: pa.RecordBatch) -> None:
        """Hand in a batch of decoded records."""
        parts = list(reduced(records, self.evaluation.reducers(stream)))
        self.evaluation.add(stream, parts, self.evaluation.names)

    def start_after(self, stream: str, time_ms: int) -> None:
        """Answer only windows that open at a time or later."""
        self.evaluation.leave(self._bound.name)
        self.evaluation.join(self._bound, {stream: time_ms})

    def advance(
        self,
        stream: str,
        watermark_ms: int,
        due_at: float | None = None,
        longest_wait: float = math.inf,
    ) -> Iterator[Answer]:
        """Yield the answers that are due at a watermark."""
        tick = Tick(
            stream, watermark_ms, time.monotonic() if due_at is None else due_at, longest_wait
        )
        answers: Iterator[Answer] = self.evaluation.advance(tick)
        return answers

    def __getattr__(self, name: str) -> Any:
        return getattr(self.evaluation, name)
