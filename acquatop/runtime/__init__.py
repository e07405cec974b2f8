"""Runtimes: what carries a stream's events to the operators. Two carry to the same ones.

``spark`` runs one Structured Streaming query per stream and decodes records in the executors;
``local`` does the same work in a thread of this process, for tests, replays and small jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from acquatop.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from acquatop.catalog import Stream

RUNTIMES = ("spark", "local")

OnBatch = Callable[[Sequence["pa.RecordBatch"]], None]
"""Called with the decoded records of each batch, one batch at a time, in order."""

OnEnd = Callable[[BaseException | None], None]
"""Called once when the stream has ended, with the error if one ended it."""


class Carrier(Protocol):
    """A stream that is being carried."""

    def stop(self) -> None:
        """End it, after the batch at hand. Returns when no further batch will come."""
        ...


class Runtime(Protocol):
    """Carries streams until it is closed."""

    def carry(self, stream: Stream, on_batch: OnBatch, on_end: OnEnd, *, until_end: bool) -> Carrier:
        """Start to carry a stream; with ``until_end`` only what it holds now, else whatever comes."""
        ...

    def close(self) -> None:
        """Release what the runtime holds. All its carriers must have been stopped."""
        ...


def check_runtime(name: str) -> None:
    """Raise :class:`UserError` unless there is a runtime of that name."""
    if name not in RUNTIMES:
        raise UserError(f'there is no runtime "{name}": use {" or ".join(RUNTIMES)}')


def open_runtime(name: str, spark: SparkSession | None = None) -> Runtime:
    """Return the runtime of a name; ``spark`` is a session to use instead of one of its own."""
    check_runtime(name)
    if name == "spark":
        from acquatop.runtime.spark import SparkRuntime

        return SparkRuntime(spark)
    if name == "local":
        from acquatop.runtime.local import LocalRuntime

        return LocalRuntime()
    raise AssertionError("check_runtime lets only known names pass")
