"""Messages on the standard error about the things that queries without an answer wait for."""

from __future__ import annotations

import threading
import time
from collections.abc import Container, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from acquatop.app.cli.print_answers import printable
from acquatop.app.cli.status_line import StatusLine
from acquatop.app.cli.tell import tell
from acquatop.app.watch.waiting_pace import FIRST_SECONDS, WaitingPace, grouped
from acquatop.engine.observer import AnswerSeen, BatchSeen, Silent
from acquatop.engine.waiting.kinds import Waiting, WaitingKind
from acquatop.engine.waiting.time_units import suspicion
from replica.clocks import Clock

if TYPE_CHECKING:
    from acquatop.app.watch.log import Log
    from acquatop.catalog.catalog import Catalog

POLL_SECONDS = 0.5


class Explained(Protocol):
    """Engine that explains its waits."""

    @property
    def catalog(self) -> Catalog:
        """The catalog."""

    def waiting(self) -> Mapping[str, Waiting]:
        """Return the thing that each running query waits for."""


class WaitingReport(Silent):
    """Observer that tells the thing that each query waits for, until it has an answer.

    After the first answer only trouble is told; with ``only_trouble`` from the beginning. With
    ``only`` some kinds, only these are told. A message is a line on the standard error, unless a
    ``line`` is given that is updated in place, or ``silent`` is set. The ``log`` gets the same.
    :meth:`watch` starts it. Use it as a context manager around the run.
    """

    def __init__(
        self,
        *,
        only_trouble: bool = False,
        only: Container[WaitingKind] = frozenset(WaitingKind),
        silent: bool = False,
        line: StatusLine | None = None,
        log: Log | None = None,
        clock: Clock = time.monotonic,
        wall: Clock = time.time,
    ) -> None:
        self._only_trouble = only_trouble
        self._only = only
        self._silent = silent
        self._line = line if line is not None and line.is_shown else None
        self._log = log
        self._clock = clock
        self._wall = wall
        self._pace = WaitingPace(clock=clock)
        self._answered: set[str] = set()
        self._suspicious: set[str] = set()
        self._engine: Explained | None = None
        self._quiet_since = clock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="acquatop-waiting", daemon=True)

    def watch(self, engine: Explained) -> None:
        """Tell the waits of an engine from now on."""
        self.observe(engine)
        self._thread.start()

    def observe(self, engine: Explained) -> None:
        """Note the engine, whose waits :meth:`poll` tells."""
        self._engine = engine

    def answer(self, seen: AnswerSeen) -> None:
        """Note that a query has an answer."""
        self._answered.add(seen.answer.query)

    def batch(self, seen: BatchSeen) -> None:
        """Tell, once per stream, times that look like seconds read as milliseconds."""
        if self._engine is None or seen.watermark_ms is None or seen.stream in self._suspicious:
            return
        stream = self._engine.catalog.streams.get(seen.stream)
        found = None if stream is None else suspicion(stream, seen.watermark_ms)
        if found is not None:
            self._suspicious.add(seen.stream)
            if not self._silent:
                tell(printable("; ".join(found)))

    def text(self) -> str:
        """Return the words of the present waits that are worth showing, for a display.

        Empty until they have lasted for two seconds.
        """
        if self._clock() - self._quiet_since < FIRST_SECONDS:
            return ""
        now = self._wall()
        groups = grouped(self._shown())
        return " · ".join(printable(group.waiting.words(now)) for group in groups)

    def poll(self) -> None:
        """Tell what is due. For the report's own thread, and for tests."""
        waits = self._shown()
        due = list(self._pace.due(waits))
        for group in due:
            if self._log is not None:
                self._log.waiting(group.queries, group.waiting)
            if self._line is None and not self._silent:
                words = group.waiting.words(self._wall())
                tell(printable(f"{group.names}: waiting: {words}"))
        if not waits:
            self._quiet_since = self._clock()
        if self._line is not None:
            self._line.draw(self.text())

    def _shown(self) -> Mapping[str, Waiting]:
        if self._engine is None:
            return {}
        waits = self._engine.waiting()
        return {name: each for name, each in waits.items() if self._is_worth_it(name, each)}

    def _is_worth_it(self, name: str, waiting: Waiting) -> bool:
        is_new = not (self._only_trouble or name in self._answered)
        return waiting.kind in self._only and (waiting.is_trouble or is_new)

    def _run(self) -> None:
        while not self._stopping.wait(POLL_SECONDS):
            self.poll()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._line is not None:
            self._line.draw("")
