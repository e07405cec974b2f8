"""Live terminal view: one table per query that is updated in place."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.text import Text

from acquatop.answer.answer import Answer
from acquatop.app.cli.print_answers import printable, render
from acquatop.app.watch.intake import Intake
from acquatop.app.watch.rate import Rate
from acquatop.app.watch.read_progress import StreamReading
from acquatop.engine.observer import AnswerSeen, BatchSeen, Silent
from acquatop.instants import day_time_text
from replica.clocks import Clock

PER_SECOND = 4
"""Redraws of the terminal per second."""

LINES = 7
"""Lines of an answer besides its rows: the title, the frame of the table, the summary."""


class LiveView(Silent):
    """Observer and answer handler that shows each query's latest answer below a status line.

    If not all answers fit, those that came last are shown. ``intake`` is an observer of the same
    engine, and counts bad items. ``waiting`` returns the words about the things that queries wait
    for. Use the view as a context manager.

    A batch or an answer costs O(1). Drawing costs O(lines shown), four times per second.
    """

    def __init__(
        self,
        console: Console,
        intake: Intake,
        *,
        named: bool,
        waiting: Callable[[], str] = lambda: "",
        clock: Clock = time.monotonic,
        wall: Clock = time.time,
    ) -> None:
        self._waiting = waiting
        self._wall = wall
        self._console = console
        self._intake = intake
        self._named = named
        self._lock = threading.Lock()
        self._rate = Rate(clock=clock)
        self._reading = StreamReading(clock=clock)
        self._watermarks: dict[str, int] = {}
        self._late = 0
        self._failing: dict[str, str] = {}
        self._last: Answer | None = None
        self._order: dict[str, int] = {}
        self._answers: dict[str, Answer] = {}
        # Redirect the standard error into the view only if it is a terminal, too.
        together = sys.stderr is not None and sys.stderr.isatty()
        self._live = Live(
            self, console=console, refresh_per_second=PER_SECOND, redirect_stderr=together
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._live.stop()

    def batch(self, seen: BatchSeen) -> None:
        """Count a batch."""
        with self._lock:
            self._rate.add(seen.events)
            self._reading.add(seen)
            self._late += seen.late
            if seen.watermark_ms is not None:
                self._watermarks[seen.stream] = seen.watermark_ms

    def answer(self, seen: AnswerSeen) -> None:
        """Record the state of the remote."""
        answer = seen.answer
        with self._lock:
            self._last = answer
            if answer.failure is not None:
                self._failing[answer.query] = answer.failure
            else:
                self._failing.pop(answer.query, None)

    def __call__(self, answer: Answer) -> None:
        """Show an answer in place of the query's previous one."""
        with self._lock:
            self._order.setdefault(answer.query, len(self._order))
            # Keep the queries in the order of their last answers.
            self._answers.pop(answer.query, None)
            self._answers[answer.query] = answer

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._picture(options.height or console.height)

    def _picture(self, height: int) -> RenderableType:
        waiting = Text(self._waiting(), "yellow")
        lines = len(waiting.wrap(self._console, self._console.width)) if waiting else 0
        with self._lock:
            names = sorted(self._fitting(height - 3 - lines), key=self._order.__getitem__)
            parts: list[RenderableType] = [self._status(), Text()]
            parts[1:1] = [waiting] if waiting else []
            parts += [
                render(self._answers[name], named=self._named, wall=self._wall) for name in names
            ]
            hidden = len(self._answers) - len(names)
            if hidden:
                parts.insert(
                    1,
                    Text(f"{hidden} more {'query' if hidden == 1 else 'queries'} not shown", "dim"),
                )
        return Group(*parts)

    def _fitting(self, height: int) -> Iterator[str]:
        """Yield the queries with the latest answers, as many as fit, but at least one."""
        for at, (name, answer) in enumerate(reversed(self._answers.items())):
            height -= LINES + max(len(answer.rows), len(answer.triples))
            if at and height < 0:
                return
            yield name

    def _status(self) -> Text:
        line = Text(no_wrap=True, overflow="ellipsis")
        how_far = self._reading.how_far()
        line.append(f"{self._rate():,.0f} events/s" if how_far is None else str(how_far), "bold")
        line.append(f" · {self._late:,} late") if self._late else None
        bad = self._intake.bad_items
        line.append(f" · {bad:,} bad", "yellow") if bad else None
        if self._watermarks:
            reached = day_time_text(min(self._watermarks.values()), round(1000 * self._wall()))
            line.append(f" · watermark {reached}")
        if self._last is None:
            line.append(" · no answer yet", "dim")
            line.append(", all items are bad" if self._intake.is_all_bad else "", "yellow")
            return line
        line.append(f" · latency {1000 * self._last.latency_seconds:.0f} ms")
        if self._last.budget.items:
            line.append(
                f" · asked for {self._last.spending.items} of {self._last.budget.items} items · "
            )
            line.append(*self._remote())
        return line

    def _remote(self) -> tuple[str, str]:
        if not self._failing:
            return "remote ok", "green"
        return f"remote: {printable(next(reversed(self._failing.values())))}", "red"
