"""What the engine tells of its work while it works, to whom it may concern: metrics, a log, a terminal.

The engine calls an observer once per batch, per answer and per change of state, never per event. It calls from the
thread that has something to tell (each stream has one), so an observer that keeps something needs a lock. It must
return soon: the stream waits for it.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from acquatop.answer.answer import Answer
    from acquatop.ingest.place import Place

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class BatchSeen:
    """One batch of a stream, when all is done with it.

    ``events`` are all items, the bad ones among them. ``bad`` counts these by the reason, ``bad_at`` has the place of
    the first of each reason. ``late`` are the good ones that came after the last window that could have held them.
    ``seconds`` is all of the batch, ``reduce_seconds`` what went on in the executors, ``evaluate_seconds`` what it
    took to make answers (with the waits for remotes), ``commit_seconds`` to make the state durable. ``backlog_bytes``
    is what the source holds beyond this batch, if it can say. ``done`` of ``total`` of what the source holds at present
    has been read, in a unit of its own.
    """

    stream: str
    events: int
    bad: Mapping[str, int] = field(default_factory=dict)
    bad_at: Mapping[str, Place] = field(default_factory=dict)
    late: int = 0
    watermark_ms: int | None = None
    seconds: float = 0.0
    reduce_seconds: float = 0.0
    evaluate_seconds: float = 0.0
    commit_seconds: float = 0.0
    backlog_bytes: int | None = None
    done: int | None = None
    total: int | None = None


@dataclass(frozen=True, kw_only=True)
class AnswerSeen:
    """One answer, and what its query holds while it is given out.

    ``repeated`` is an answer that an earlier process made, and which is given out again after a restart: what it cost
    was paid then.
    """

    answer: Answer
    candidates: int = 0
    panes_waiting: int = 0
    replica_keys: int = 0
    repeated: bool = False

    @property
    def ages_seconds(self) -> tuple[float, ...]:
        """How old the remote's values are that the answer shows, one for each row that has one. O(rows)."""
        return tuple(row.age_seconds for row in self.answer.rows if row.age_seconds is not None)


class Kept(enum.StrEnum):
    """What happened to the state directory."""

    JOURNAL = "journal"
    """A batch was appended to the journal."""
    SNAPSHOT = "snapshot"
    """All was written as a snapshot."""
    RECOVERED = "recovered"
    """An earlier process's state was taken up."""
    DAMAGED = "damaged"
    """A snapshot or a journal could not be used; an older one is."""


@dataclass(frozen=True, kw_only=True)
class StateSeen:
    """One thing that was done to the state directory; ``detail`` is for people."""

    kind: Kept
    stream: str
    seconds: float = 0.0
    bytes: int = 0
    detail: str = ""


class QueryState(enum.StrEnum):
    """What has become of a query."""

    REGISTERED = "registered"
    ENDED = "ended"
    """Its streams have ended, or the engine was stopped."""
    REMOVED = "removed"
    FAILED = "failed"


class Observer(Protocol):
    """Who is told what the engine does; every method must be quick, and safe to call from any thread."""

    def batch(self, seen: BatchSeen) -> None:
        """Take note of a batch that is done."""
        ...

    def answer(self, seen: AnswerSeen) -> None:
        """Take note of an answer, just before it is given out."""
        ...

    def kept(self, seen: StateSeen) -> None:
        """Take note of what was written to the state directory, or read from it."""
        ...

    def query(self, name: str, state: QueryState) -> None:
        """Take note of what has become of a query."""
        ...

    def failed(self, where: str, error: BaseException) -> None:
        """Take note of an error; ``where`` names a stream, a query or a sink (``stream <urn:s>``, ``query q``)."""
        ...


class Silent:
    """An observer that takes no note of anything; also what others are derived from that care for some things."""

    def batch(self, seen: BatchSeen) -> None:
        """Do nothing."""

    def answer(self, seen: AnswerSeen) -> None:
        """Do nothing."""

    def kept(self, seen: StateSeen) -> None:
        """Do nothing."""

    def query(self, name: str, state: QueryState) -> None:
        """Do nothing."""

    def failed(self, where: str, error: BaseException) -> None:
        """Do nothing."""


class Several:
    """Hands all on to several observers, in their order.

    One that raises harms neither the engine nor the others: its first error is logged, with a traceback, and it goes
    on to be told; further errors of its are dropped.

    >>> class Broken(Silent):
    ...     def query(self, name: str, state: QueryState) -> None:
    ...         raise ValueError(name)
    >>> class Loud(Silent):
    ...     def query(self, name: str, state: QueryState) -> None:
    ...         print(name, state)
    >>> Several([Broken(), Loud()]).query("q", QueryState.REGISTERED)
    q registered
    """

    def __init__(self, observers: Iterable[Observer]) -> None:
        self._observers = tuple(observers)
        self._broken: set[int] = set()

    def batch(self, seen: BatchSeen) -> None:
        """Hand on."""
        self._each(lambda observer: observer.batch(seen))

    def answer(self, seen: AnswerSeen) -> None:
        """Hand on."""
        self._each(lambda observer: observer.answer(seen))

    def kept(self, seen: StateSeen) -> None:
        """Hand on."""
        self._each(lambda observer: observer.kept(seen))

    def query(self, name: str, state: QueryState) -> None:
        """Hand on."""
        self._each(lambda observer: observer.query(name, state))

    def failed(self, where: str, error: BaseException) -> None:
        """Hand on."""
        self._each(lambda observer: observer.failed(where, error))

    def _each(self, tell: Callable[[Observer], None]) -> None:
        for at, observer in enumerate(self._observers):
            try:
                tell(observer)
            except Exception:
                if at not in self._broken:
                    self._broken.add(at)
                    _log.exception("%s raised; the engine goes on without its notes", type(observer).__name__)
