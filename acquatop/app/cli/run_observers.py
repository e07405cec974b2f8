"""Output of a run: the observers that the options ask for, and the display of answers."""

from __future__ import annotations

import argparse
import contextlib
import functools
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from acquatop import __version__
from acquatop.app.cli.late import LateReport
from acquatop.app.cli.tell import tell
from acquatop.app.cli.unanswered import UnansweredWindows
from acquatop.app.cli.unusable import Unusable
from acquatop.engine.observer import Observer, Several

if TYPE_CHECKING:
    from acquatop.answer.answer import Answer
    from acquatop.app.cli.status_line import StatusLine
    from acquatop.app.cli.waiting_report import WaitingReport
    from acquatop.app.watch.address import ListenAddress
    from acquatop.app.watch.log import Log
    from acquatop.app.watch.prometheus import Metrics
    from acquatop.engine.engine import Engine

Show = Callable[["Answer"], None]
"""A function that is called with every answer."""

LEVELS = ("debug", "info", "warning", "error")


def add_watch_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the display, the metrics and the log."""
    parser.add_argument(
        "--plain", action="store_true", help="print one table after the other on a terminal, too"
    )
    parser.add_argument(
        "--metrics", type=address, metavar="[HOST:]PORT", help="serve metrics for Prometheus"
    )
    add_log_options(parser)


def add_log_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the log."""
    parser.add_argument(
        "--log", metavar="FILE", help="append a log in lines of JSON, - for the standard error"
    )
    parser.add_argument(
        "--log-level", choices=LEVELS, default="info", help="what is worth a line (%(default)s)"
    )


class Watching:
    """Observers of one run, and the display of its answers.

    A context manager that closes them last. Give ``observer`` to the engine, and make the engine
    inside. :meth:`answers` yields the function to call with every answer.
    """

    def __init__(self, options: argparse.Namespace, *, several: bool) -> None:
        self._options = options
        self._several = several
        self._resources = ExitStack()
        self._log: Log | None = None
        self._since = time.monotonic()
        self._metrics: Metrics | None = None
        self._waiting: WaitingReport | None = None
        self._unusable = Unusable(at_first=not options.until_end, silent=options.log == "-")
        self._stack: list[Observer] = [self._unusable.intake]

    def __enter__(self) -> Self:
        with ExitStack() as made:
            # Entered first, so that it prints last: below a table, and after the progress line is
            # gone.
            made.enter_context(self._unusable)
            if self._options.log != "-":
                self._stack.append(made.enter_context(UnansweredWindows()))
                late = LateReport(at_first=not self._options.until_end)
                self._stack.append(made.enter_context(late))
            self._open_log(made)
            self._open_metrics(made)
            self._show = self._open_show(made)
            self._stack.append(made.enter_context(self._report()))
            self._resources = made.pop_all()
        self.observer = Several(self._stack)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._log is not None:
            say_end(self._log, self._since, error)
        self._resources.__exit__(kind, error, at)

    def watch(self, engine: Engine) -> None:
        """Tell what the engine's queries wait for, from now on."""
        self._report().watch(engine)
        if self._metrics is not None:
            self._metrics.watch(engine.waiting)

    @functools.cached_property
    def _line(self) -> StatusLine:
        from acquatop.app.cli.status_line import StatusLine

        return StatusLine()

    def _report(self) -> WaitingReport:
        """Return the report on waits. The live view shows it, or else the line of a terminal."""
        from acquatop.app.cli.waiting_report import WaitingReport
        from acquatop.engine.waiting.kinds import UNREACHED, WaitingKind

        if self._waiting is None:
            silent = self._options.log == "-" or self._is_live()
            self._waiting = WaitingReport(
                only=UNREACHED if self._options.until_end else frozenset(WaitingKind),
                silent=silent,
                line=None if silent else self._line,
                log=self._log,
            )
        return self._waiting

    def check(self) -> None:
        """Raise :class:`~acquatop.app.cli.unusable.NothingUsable` if all items were bad."""
        self._unusable.check()

    def _open_log(self, made: ExitStack) -> None:
        self._log = open_log(self._options, made)
        if self._log is not None:
            self._stack.append(self._log)

    def _open_metrics(self, made: ExitStack) -> None:
        if self._options.metrics is None:
            return
        from acquatop.app.watch.endpoint import Endpoint
        from acquatop.app.watch.prometheus import Metrics

        metrics = self._metrics = Metrics()
        endpoint = Endpoint(metrics.registry, self._options.metrics)
        made.callback(endpoint.close)
        endpoint.start()
        self._stack.append(metrics)
        if self._log is not None:
            self._say("metrics", url=endpoint.url)
        if self._options.log != "-":
            tell(f"metrics at {endpoint.url}")

    def _open_show(self, made: ExitStack) -> Callable[[], contextlib.AbstractContextManager[Show]]:
        from acquatop.app.cli.print_answers import output_console, shower

        if self._is_live():
            from acquatop.app.cli.dashboard import LiveView

            view = LiveView(
                output_console(),
                self._unusable.intake,
                named=self._several,
                waiting=self._report().text,
            )
            self._stack.append(view)
            return lambda: view
        plain = (
            shower(as_json=self._options.json, named=self._several) if self._prints() else _nothing
        )
        line = self._line
        if self._options.until_end:
            from acquatop.app.cli.progress import ReplayProgress

            progress = made.enter_context(ReplayProgress(line=line))
            self._stack.append(progress)

        def show(answer: Answer) -> None:
            with line.aside():
                plain(answer)

        return lambda: contextlib.nullcontext(show if self._prints() else _nothing)

    def _is_live(self) -> bool:
        options = self._options
        return (
            not (options.json or options.plain or "stdout" in (options.to or ()))
            and sys.stdout is not None
            and sys.stdout.isatty()
            and os.environ.get("TERM", "dumb") != "dumb"
        )

    def _prints(self) -> bool:
        """Return True if answers are printed: with ``--to`` only if that is asked for, too."""
        return bool(not self._options.to or self._options.json or self._options.plain)

    def answers(self) -> contextlib.AbstractContextManager[Show]:
        """Return a context manager that yields the function to show answers with.

        A live table is shown while it is entered.
        """
        return self._show()

    def started(self, **facts: Any) -> None:
        """Log that the run has started."""
        self._say("started", version=__version__, **facts)

    def stopping(self) -> None:
        """Log, and print, that the run stops after the batch at hand."""
        self._say("stopping")
        if sys.stderr is not None and sys.stderr.isatty():
            tell("stopping after the batch at hand; once more ends it at once")

    def _say(self, event: str, **facts: Any) -> None:
        if self._log is not None:
            from acquatop.app.watch.log import Level

            self._log.say(Level.INFO, event, **facts)


def open_log(options: argparse.Namespace, made: ExitStack) -> Log | None:
    """Open the log that the options name, if any.

    Messages of libraries go to it until ``made`` ends.
    """
    if options.log is None:
        return None
    from acquatop.app.watch.json_lines import JsonLines
    from acquatop.app.watch.log import Level, Log, MessagesAsLines

    log = Log(JsonLines(options.log), level=Level[options.log_level.upper()])
    made.callback(log.close)
    made.enter_context(_listening(MessagesAsLines(log), alone=options.log == "-"))
    return log


def say_end(log: Log, since: float, error: BaseException | None) -> None:
    """Log the end of something that began at ``since``, with the error that ended it, if any."""
    from acquatop.app.watch.log import Level, told

    failed = isinstance(error, Exception) and not isinstance(error, BrokenPipeError)
    facts = told(error) if failed and error is not None else {}
    seconds = round(time.monotonic() - since, 3)
    log.say(Level.ERROR if failed else Level.INFO, "stopped", seconds=seconds, **facts)


@contextlib.contextmanager
def _listening(handler: logging.Handler, *, alone: bool) -> Iterator[None]:
    """Add a handler for messages of libraries; ``alone`` replaces the present handlers."""
    root = logging.getLogger()
    before = root.handlers[:]
    root.handlers = [handler] if alone else [*before, handler]
    try:
        yield
    finally:
        root.handlers = before


def _nothing(_: Answer) -> None:
    """Ignore an answer."""


def address(text: str) -> ListenAddress:
    """Return the address that an option names."""
    from acquatop.app.watch.address import ListenAddress

    try:
        return ListenAddress.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
