"""Runtime of an engine, opened with its first use: errors of a query come before Spark starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from acquatop.catalog.catalog import Stream
from acquatop.runtime import Carrier, Consumer, Item, Result, Resume, Runtime
from acquatop.runtime.local import LocalRuntime
from connectors.registry import CLOCK


class LazyRuntime:
    """Runtime that is opened when it is needed."""

    def __init__(self, open_runtime: Callable[[], Runtime]) -> None:
        self._open = open_runtime
        self._runtime: Runtime | None = None

    def carry(
        self, stream: Stream, consumer: Consumer, *, until_end: bool, resume: Resume | None
    ) -> Carrier:
        """Return a carrier of a stream, to be started. The clock's ticks need no other runtime."""
        if stream.connector == CLOCK.name:
            return LocalRuntime().carry(stream, consumer, until_end=until_end, resume=resume)
        return self._opened().carry(stream, consumer, until_end=until_end, resume=resume)

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Sequence[Result]:
        """Return a function's results for some items, in their order."""
        return self._opened().map(function, items)

    @property
    def has_executors(self) -> bool:
        """True if items are computed in other processes."""
        return self._opened().has_executors

    def close(self) -> None:
        """Release the runtime, if it was opened; the next use opens another."""
        if self._runtime is not None:
            self._runtime.close()
            self._runtime = None

    def _opened(self) -> Runtime:
        self._runtime = self._runtime or self._open()
        return self._runtime
