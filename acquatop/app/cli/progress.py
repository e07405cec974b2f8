"""Progress displays for a terminal."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from acquatop.app.cli.status_line import StatusLine
from acquatop.app.watch.read_progress import StreamReading
from acquatop.engine.observer import BatchSeen, Silent
from replica.clocks import Clock


class LoadingProgress:
    """Display of the number of items of a service that have been loaded, on the standard error.

    Shows nothing if that is no terminal. Use it as a context manager around the loading code, which
    calls it.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._status: Status | None = None

    def __call__(self, service: str, count: int) -> None:
        """Show the number of a service's items loaded so far."""
        if not self._console.is_terminal:
            return
        text = f"loading <{escape(service)}>: {count:,} items"
        if self._status is None:
            self._status = self._console.status(text)
            self._status.start()
        self._status.update(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None


class RecordingProgress(Silent):
    """Observer that shows the size of a recording on the standard error when a batch is done.

    Shows nothing if that is no terminal. Use it as a context manager.
    """

    def __init__(self, said: Callable[[], str], console: Console | None = None) -> None:
        self._said = said
        self._console = console or Console(stderr=True)
        self._status = self._console.status("recording") if self._console.is_terminal else None

    def begin(self) -> None:
        """Start to show it."""
        if self._status is not None:
            self._status.start()

    def batch(self, seen: BatchSeen) -> None:
        """Update the size."""
        if self._status is not None:
            self._status.update(escape(self._said()))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._status is not None:
            self._status.stop()


class ReplayProgress(Silent):
    """Observer that shows one line with a replay's progress on the standard error.

    Shows nothing if that is no terminal. It draws when a batch is done, a few times per second at
    most. Print other output inside :meth:`aside`, as both may share one terminal. Use it as a
    context manager.
    """

    def __init__(
        self,
        console: Console | None = None,
        *,
        line: StatusLine | None = None,
        clock: Clock = time.monotonic,
        seconds_between: float = 0.25,
    ) -> None:
        self.line = line or StatusLine(console)
        self._clock = clock
        self._between = seconds_between
        self._reading = StreamReading(clock=clock)
        self._counting = threading.Lock()
        self._drawn_at: float | None = None

    def batch(self, seen: BatchSeen) -> None:
        """Record a batch; draw the line if it is due and no other output is being printed."""
        if not self.line.is_shown:
            return
        with self._counting:
            self._reading.add(seen)
        now = self._clock()
        if self._drawn_at is not None and now - self._drawn_at < self._between:
            return
        with self._counting:
            how_far = self._reading.how_far()
        if how_far is not None and self.line.draw(str(how_far)):
            self._drawn_at = now

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Remove the line while other output is printed; the next batch draws it again."""
        with self.line.aside():
            self._drawn_at = None
            yield

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        with self.aside():
            self.line.is_shown = False
