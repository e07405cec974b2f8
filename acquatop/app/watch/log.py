"""Log of the engine's work: one JSON object per line.

Every line has ``time``, ``level`` and ``event``. docs/watch.md lists the events and their other
fields. No line contains an event's value, an answer's rows or a secret.
"""

from __future__ import annotations

import enum
import logging
import threading
import time
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from acquatop.answer.unanswered import Unanswered
from acquatop.app.watch.bounded_labels import BoundedLabels
from acquatop.app.watch.json_lines import JsonLines
from acquatop.app.watch.throttled_counter import ThrottledCounter
from acquatop.engine.observer import AnswerSeen, BatchSeen, Kept, QueryState, StateSeen
from acquatop.engine.waiting.kinds import Waiting
from acquatop.instants import instant_text
from replica.clocks import Clock

if TYPE_CHECKING:
    from acquatop.ingest.place import Place


class Level(enum.IntEnum):
    """The severity of a line."""

    DEBUG = logging.DEBUG
    INFO = logging.INFO
    WARNING = logging.WARNING
    ERROR = logging.ERROR


LEVELS = tuple(level.name.lower() for level in Level)

INTERVAL = 10.0
"""Least number of seconds between two lines about the same event of the same stream or query."""

SLOW = 1.0
"""Seconds from which on a slow batch gets a line."""

REASONS = 20
"""The number of distinct reasons per stream or query."""


class Log:
    """Observer that writes a log from a level on.

    ``wall`` dates the lines, ``clock`` measures intervals. :meth:`close` writes the pending totals.
    """

    def __init__(
        self,
        lines: JsonLines,
        *,
        level: Level = Level.INFO,
        interval: float = INTERVAL,
        slow: float = SLOW,
        wall: Clock = time.time,
        clock: Clock = time.monotonic,
    ) -> None:
        self._lines = lines
        self._level = level
        self._slow = slow
        self._wall = wall
        self._lock = threading.Lock()
        self._reasons = BoundedLabels(REASONS)
        self._seldom: ThrottledCounter[tuple[str, str, str]] = ThrottledCounter(
            interval, clock=clock
        )
        self._failing: set[str] = set()
        # The place of the first item that has not been logged yet, by stream and reason.
        self._places: dict[tuple[str, str], Place] = {}

    def say(self, level: Level, event: str, **facts: Any) -> None:
        """Write a line, unless its level is below the log's."""
        if level >= self._level:
            now = instant_text(round(1000 * self._wall()))
            self._lines.write({"time": now, "level": level.name.lower(), "event": event, **facts})

    def batch(self, seen: BatchSeen) -> None:
        """Log late and bad items, a standstill and a slow batch; at level debug, every batch."""
        facts = {
            "events": seen.events,
            "partitions": seen.partitions,
            "sent_rows": seen.sent_rows,
            "sent_bytes": seen.sent_bytes,
            "watermark_ms": seen.watermark_ms,
        }
        self.say(Level.DEBUG, "batch", **facts, **_times(seen))
        self._sum("late", seen.stream, "", seen.late)
        self._sum("repeated", seen.stream, "", seen.repeated)
        for reason, count in seen.bad.items():
            self._sum("bad", seen.stream, reason, count, seen.bad_at.get(reason))
        self._standstill(seen)
        if seen.seconds >= self._slow and (times := self._due("slow_batch", seen.stream)):
            self.say(Level.WARNING, "slow_batch", events=seen.events, times=times, **_times(seen))

    def _standstill(self, seen: BatchSeen) -> None:
        still = seen.standstill
        if still is not None and self._due("standstill", seen.stream):
            self.say(
                Level.WARNING,
                "standstill",
                stream=seen.stream,
                watermark_ms=still.watermark_ms,
                seconds=round(still.seconds, 3),
                records={str(kind): count for kind, count in still.records.items()},
                main=str(still.main),
            )

    def answer(self, seen: AnswerSeen) -> None:
        """Log that the remote fails or is back; at level debug, every answer."""
        answer = seen.answer
        self.say(Level.DEBUG, "answer", **_about(seen))
        for reason, count in answer.counts.rejected.items():
            self._sum("rejected", answer.query, reason, count)
        if answer.failure is not None:
            with self._lock:
                self._failing.add(answer.query)
            if times := self._due("remote_failed", answer.query):
                self.say(
                    Level.WARNING,
                    "remote_failed",
                    query=answer.query,
                    failure=answer.failure,
                    times=times,
                )
        elif answer.query in self._failing and answer.spending.requests:
            with self._lock:
                self._failing.discard(answer.query)
            self.say(Level.INFO, "remote_back", query=answer.query)

    def unanswered(self, window: Unanswered) -> None:
        """Log a window without an answer."""
        if times := self._due("unanswered", window.query):
            self.say(
                Level.WARNING,
                "unanswered",
                query=window.query,
                closes=instant_text(window.closes_ms),
                reason=window.reason,
                message=window.message,
                times=times,
            )

    def waiting(self, queries: Sequence[str], waiting: Waiting) -> None:
        """Log the thing that some queries wait for."""
        level = Level.WARNING if waiting.is_trouble else Level.INFO
        self.say(level, "waiting", queries=list(queries[:REASONS]), **waiting.to_json())

    def kept(self, seen: StateSeen) -> None:
        """Log recovery and damage of the state, and now and then the number of snapshots.

        At level debug, log every write.
        """
        facts = {"stream": seen.stream, "seconds": round(seen.seconds, 6), "bytes": seen.bytes}
        if seen.kind in (Kept.RECOVERED, Kept.DAMAGED):
            level = Level.INFO if seen.kind is Kept.RECOVERED else Level.WARNING
            self.say(level, str(seen.kind), **facts, detail=seen.detail)
            return
        self.say(Level.DEBUG, f"{seen.kind}_written", **facts)
        if seen.kind is Kept.SNAPSHOT and (times := self._due("snapshots", seen.stream)):
            self.say(Level.INFO, "snapshots", **facts, times=times)

    def query(self, name: str, state: QueryState) -> None:
        """Log a change of a query's state; forget a removed query, to keep memory bounded."""
        if state is QueryState.REMOVED:
            self._forget(name)
        self.say(
            Level.ERROR if state is QueryState.FAILED else Level.INFO, f"query_{state}", query=name
        )

    def _forget(self, query: str) -> None:
        """Write the pending totals of a query, and forget what is known of it."""
        with self._lock:
            rest = self._seldom.forget(lambda kind: kind[0] in _OF_QUERIES and kind[1] == query)
            for event in _OF_QUERIES:
                self._reasons.forget(f"{event} {query}")
            self._failing.discard(query)
        for (event, about, reason), total in rest.items():
            self._tell(event, about, reason, total)

    def failed(self, where: str, error: BaseException) -> None:
        """Log an error."""
        self.say(Level.ERROR, "failed", where=where, **told(error))

    def close(self) -> None:
        """Write the pending totals, and close the file."""
        with self._lock:
            rest = list(self._seldom.rest())
        for (event, about, reason), total in rest:
            self._tell(event, about, reason, total)
        self._lines.close()

    def _sum(
        self, event: str, about: str, reason: str, count: int, place: Place | None = None
    ) -> None:
        if count:
            with self._lock:
                reason = self._reasons(f"{event} {about}", reason)
                total = self._seldom.add((event, about, reason), count)
                if place is not None:
                    self._places.setdefault((about, reason), place)
            if total is not None:
                self._tell(event, about, reason, total)

    def _due(self, event: str, about: str) -> int | None:
        with self._lock:
            return self._seldom.add((event, about, ""))

    def _tell(self, event: str, about: str, reason: str, total: int) -> None:
        level, subject, amount = _SUMS.get(event, (Level.INFO, "about", "times"))
        with self._lock:
            place = self._places.pop((about, reason), None)
        facts = {"reason": reason} if reason else {}
        self.say(
            level,
            event,
            **{subject: about, amount: total},
            **facts,
            **(place._asdict() if place else {}),
        )


_SUMS = {
    "late": (Level.INFO, "stream", "events"),
    "repeated": (Level.INFO, "stream", "messages"),
    "bad": (Level.WARNING, "stream", "records"),
    "rejected": (Level.WARNING, "query", "records"),
    "slow_batch": (Level.WARNING, "stream", "times"),
    "remote_failed": (Level.WARNING, "query", "times"),
    "snapshots": (Level.INFO, "stream", "times"),
    "standstill": (Level.WARNING, "stream", "times"),
    "unanswered": (Level.WARNING, "query", "times"),
}
"""For each event that is added up: its level, and the fields for its subject and its count."""
_OF_QUERIES = [event for event, (_, subject, _) in _SUMS.items() if subject == "query"]


def told(error: BaseException) -> dict[str, Any]:
    """Return an error's fields for the log: its message if it is for users, else only its place.

    Messages of other errors quote their input, which can contain anything.

    >>> told(ValueError("secret"))
    {'error': 'ValueError'}
    """
    facts: dict[str, Any] = {"error": type(error).__name__}
    if hasattr(error, "exit_code"):
        return {**facts, "message": str(error)}
    frames = traceback.extract_tb(error.__traceback__)
    return {**facts, "at": f"{frames[-1].filename}:{frames[-1].lineno}"} if frames else facts


class MessagesAsLines(logging.Handler):
    """Log handler that writes records of :mod:`logging` to a :class:`Log`."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line for a record."""
        try:
            level = max(each for each in Level if each <= max(record.levelno, Level.DEBUG))
            error = record.exc_info[1] if record.exc_info else None
            facts = {} if error is None else told(error)
            self._log.say(level, "message", logger=record.name, text=record.getMessage(), **facts)
        except Exception:
            self.handleError(record)


def _times(seen: BatchSeen) -> dict[str, Any]:
    return {
        "stream": seen.stream,
        "seconds": round(seen.seconds, 6),
        "reduce_seconds": round(seen.reduce_seconds, 6),
        "evaluate_seconds": round(seen.evaluate_seconds, 6),
        "commit_seconds": round(seen.commit_seconds, 6),
    }


def _about(seen: AnswerSeen) -> dict[str, Any]:
    answer = seen.answer
    return {
        "query": answer.query,
        "window": answer.window,
        "status": str(answer.status),
        "rows": len(answer.rows) or len(answer.triples),
        "latency_seconds": round(answer.latency_seconds, 6),
        "requests": answer.spending.requests,
        "items": answer.spending.items,
        "repeated": seen.repeated,
    }
