"""Runtimes: what carries a stream's events to the operators. Two carry to the same ones.

``spark`` runs one Structured Streaming query per stream and does the streams' jobs in the executors;
``local`` does the same work in a thread of this process, for tests, replays and small jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from acquatop.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from acquatop.catalog.catalog import Stream
    from acquatop.ingest.reduce.contract import Part
    from acquatop.ingest.reduce.job import Job
    from acquatop.runtime.settings import SparkSettings

Item = TypeVar("Item")
Result = TypeVar("Result")

RUNTIMES = ("spark", "local")

Position = Mapping[str, Any]
"""How far a stream has been read, in a carrier's own words, as JSON; ``batch`` is the number of the last batch."""


@dataclass(frozen=True)
class Batch:
    """What one batch of a stream comes to: each partition's parts, and how far the stream has been read with it.

    ``done`` of ``total`` of what the source holds has been read then, where that is known. It ``is_pressing`` if the
    source cannot hold much more of what has been read: a consumer that keeps its state should do so as a whole.
    """

    position: Position
    partitions: Sequence[Sequence[Part]]
    seconds: float = 0.0
    done: int | None = None
    total: int | None = None
    is_pressing: bool = False


class Consumer(Protocol):
    """Who takes a stream's batches. Called by one thread at a time, but for :meth:`release`."""

    def wait(self) -> None:
        """Return once the next batch may be taken: a stream must not be too far ahead of others."""
        ...

    def release(self) -> None:
        """Let who waits return, now and from now on: the stream is to be stopped, and takes no further batch."""
        ...

    def job(self) -> Job:
        """Return what is to be done with the next batch where its records are."""
        ...

    def take(self, batch: Batch) -> None:
        """Take in what that came to."""
        ...

    def end(self, error: BaseException | None) -> None:
        """Take note that the stream has ended, and of the error if one ended it. Called once."""
        ...


class Carrier(Protocol):
    """A stream that is being carried."""

    def forget(self, position: Position) -> None:
        """Let the source forget what came up to a position: nobody will go on from a place before it.

        For consumers that keep their state; what others have taken in is forgotten at once.
        """
        ...

    def stop(self) -> None:
        """End it, after the batch at hand. Returns when no further batch will come."""
        ...


@dataclass(frozen=True)
class Resume:
    """Where to go on: after a position, with what a carrier keeps in a folder of its own."""

    folder: Path
    position: Position | None = None


class Runtime(Protocol):
    """Carries streams until it is closed."""

    def carry(self, stream: Stream, consumer: Consumer, *, until_end: bool, resume: Resume | None) -> Carrier:
        """Start to carry a stream; with ``until_end`` only what it holds now, else whatever comes.

        Without ``resume`` from the stream's beginning.
        """
        ...

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Sequence[Result]:
        """Return what a function makes of each item, in their order: done at once, where the records are decoded.

        Both must be fit to travel there.
        """
        ...

    def close(self) -> None:
        """Release what the runtime holds. All its carriers must have been stopped."""
        ...


def check_runtime(name: str, spark: SparkSession | SparkSettings | None = None) -> None:
    """Raise :class:`UserError` unless there is a runtime of that name, and it has a use for settings of Spark."""
    from acquatop.runtime.settings import SparkSettings

    if name not in RUNTIMES:
        raise UserError(f'there is no runtime "{name}": use {" or ".join(RUNTIMES)}')
    if name == "local" and isinstance(spark, SparkSettings) and spark:
        hint = 'use --runtime spark (runtime="spark"), or leave out --master and --conf'
        raise UserError(f"a master and settings are for Spark, which does not run here\n  hint: {hint}")


def open_runtime(name: str, spark: SparkSession | SparkSettings | None = None) -> Runtime:
    """Return the runtime of a name; ``spark`` is a session to use instead of one of its own, or settings for that."""
    check_runtime(name, spark)
    if name == "spark":
        from acquatop.runtime.spark import SparkRuntime

        return SparkRuntime(spark)
    if name == "local":
        from acquatop.runtime.local import LocalRuntime

        return LocalRuntime()
    raise AssertionError("check_runtime lets only known names pass")
