"""What one has in hand of a query that runs."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from acquatop.answer.answer import Answer

if TYPE_CHECKING:
    from acquatop.answer.sinks.contract import Sink

BACKLOG = 1_000
"""How many answers of a live query may wait to be read; beyond it the oldest are dropped, and counted."""


@dataclass
class News:
    """What the queries of an engine share: who waits for answers is told of any, and knows their order."""

    condition: threading.Condition = field(default_factory=threading.Condition)
    numbers: Iterator[int] = field(default_factory=itertools.count)


class RegisteredQuery:
    """A query that runs; iterate over it for its answers, one per window close.

    A reader never holds up the streams: of a live query the newest ``BACKLOG`` answers (or ``backlog``) wait to be
    read, and ``missed`` counts those that were dropped before; of a recording all wait. The query
    ends when all its streams have, or with the first error.
    """

    def __init__(
        self,
        name: str,
        streams: Iterable[str],
        *,
        live: bool,
        news: News,
        slide_ms: float = 0,
        sinks: Sequence[Sink] = (),
        backlog: int | None = None,
        leave: Callable[[RegisteredQuery], None] = lambda query: None,
    ) -> None:
        self.name = name
        self.streams = tuple(streams)
        self.slide_ms = slide_ms
        self.missed = 0
        self.sinks = tuple(sinks)
        self._live = live
        self._backlog = backlog
        self._running = set(self.streams)
        self._answers: deque[tuple[int, Answer]] = deque()
        self._end: _End | None = None
        self._news = news
        self._leave = leave

    def __iter__(self) -> Iterator[Answer]:
        return self.answers()

    def answers(self, limit: int | None = None) -> Iterator[Answer]:
        """Yield answers as they come, at most ``limit``; ends with the stream, raises what ended it early."""
        return merged([self], self._news, limit)

    def stop(self) -> None:
        """Stop this query; iterators over its answers end. The others on its stream go on."""
        self.finish(None, forget=True)
        self._leave(self)

    @property
    def stopped(self) -> bool:
        """Whether no further answer will come."""
        return self._end is not None

    @property
    def error(self) -> BaseException | None:
        """What ended it early."""
        return None if self._end is None else self._end.error

    # For the engine -------------------------------------------------------------------------------

    def put(self, answer: Answer) -> None:
        """Let an answer wait to be read."""
        with self._news.condition:
            if self._end is None:
                self._answers.append((next(self._news.numbers), answer))
                if self._live and len(self._answers) > (BACKLOG if self._backlog is None else self._backlog):
                    self._answers.popleft()
                    self.missed += 1
                self._news.condition.notify_all()

    def stream_ended(self, stream: str) -> bool:
        """Note that a stream has ended; say whether it was the last."""
        self._running.discard(stream)
        return not self._running

    def finish(self, error: BaseException | None, *, forget: bool = False) -> None:
        """End the query, with the error if there is one; what waits is read still, unless forgotten."""
        with self._news.condition:
            if forget:
                self._answers.clear()
            self._end = self._end or _End(error)
            self._news.condition.notify_all()

    @property
    def first(self) -> int | None:
        """The number of the answer that waits to be read next."""
        return self._answers[0][0] if self._answers else None

    def take(self) -> Answer:
        """Return the answer that waits to be read next."""
        return self._answers.popleft()[1]


def merged(queries: Sequence[RegisteredQuery], news: News, limit: int | None = None) -> Iterator[Answer]:
    """Yield the answers of several queries in the order in which they came, at most ``limit``.

    Ends when all have ended; raises what ended one early, once its answers have been read.
    """
    given, left = 0, list(queries)
    while limit is None or given < limit:
        with news.condition:
            while not any(each.first is not None or each.stopped for each in left):
                news.condition.wait()
            left = [each for each in left if each.first is not None or not each.stopped or each.error is not None]
            ready = [each for each in left if each.first is not None]
            if ready:
                answer = min(ready, key=lambda each: each.first or 0).take()
            elif not left:
                return
            else:
                failed = next((each.error for each in left if each.error is not None), None)
                if failed is not None:
                    raise failed
                continue
        given += 1
        yield answer


@dataclass(frozen=True)
class _End:
    """Why no further answer will come: an error, or just the end."""

    error: BaseException | None
