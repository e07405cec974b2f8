"""Job for the batch behind one that is still to be taken, as it would be made after that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from acquatop.engine.reducer_slices import ReducerSlice
from acquatop.ingest.reduce.job import Job


@dataclass(frozen=True)
class PreparedJob:
    """Job, and the slices of its parts.

    ``begin_with`` notes that the batch begins, and returns the job as of then; None if the batch
    before it has been taken already.
    """

    job: Job
    slices: Sequence[ReducerSlice]
    begin_with: Callable[[PreparedJob], Job | None]

    def begin(self) -> Job | None:
        """Return the job, as the next batch begins; None if the one before has been taken."""
        return self.begin_with(self)
