"""Observers of the engine's work, such as metrics, a log, or a terminal.

The engine calls an observer once per batch, per answer and per change of state, never per event. It
calls from several threads (each stream has one), so an observer with state needs a lock. A call
must return soon: the stream waits for it.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from acquatop.answer.answer import Answer
    from acquatop.answer.unanswered import Unanswered
    from acquatop.engine.standstill import Standstill
    from acquatop.ingest.place import Place

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class BatchSeen:
    """One completed batch of a stream.

    ``events`` counts all items, including bad ones. ``bad`` counts bad items by reason, and
    ``bad_at`` has the place of the first of each reason. ``late`` counts the good items that came
    after the last window that could have contained them. ``sent_rows`` and ``sent_bytes`` are what
    executors passed on to the driver; bytes are those of the columns, unpacked. ``partitions`` is
    the number of those that were read. ``seconds`` is the duration of the batch,
    ``reduce_seconds`` the part in the executors, ``evaluate_seconds`` the part for making answers
    (including waits for remotes), ``commit_seconds`` the part for making state durable.
    ``backlog_bytes`` is the size that the source holds beyond this batch, if known. ``done`` of
    ``total`` of the source's present content has been read, in a unit of its own. ``standstill``
    is set if records keep coming, but the watermark has not moved for long. ``repeated`` counts
    messages that the source has dropped because they had come already; they are no events.
    """

    stream: str
    events: int
    bad: Mapping[str, int] = field(default_factory=dict)
    bad_at: Mapping[str, Place] = field(default_factory=dict)
    late: int = 0
    sent_rows: int = 0
    sent_bytes: int = 0
    partitions: int = 0
    watermark_ms: int | None = None
    seconds: float = 0.0
    reduce_seconds: float = 0.0
    evaluate_seconds: float = 0.0
    commit_seconds: float = 0.0
    backlog_bytes: int | None = None
    done: int | None = None
    total: int | None = None
    standstill: Standstill | None = None
    repeated: int = 0


@dataclass(frozen=True, kw_only=True)
class AnswerSeen:
    """One answer, and the size of its query's state.

    ``repeated`` is True for an answer of an earlier process that is given out again after a
    restart: its cost was counted then.
    """

    answer: Answer
    candidates: int = 0
    panes_waiting: int = 0
    replica_keys: int = 0
    repeated: bool = False

    @property
    def ages_seconds(self) -> tuple[float, ...]:
        """The ages of the remote's values in the answer, for each row that has one. O(rows)."""
        return tuple(row.age_seconds for row in self.answer.rows if row.age_seconds is not None)


class Kept(enum.StrEnum):
    """Kinds of operations on the state directory."""

    JOURNAL = "journal"
    """A batch was appended to the journal."""
    SNAPSHOT = "snapshot"
    """A snapshot was written."""
    RECOVERED = "recovered"
    """The state of an earlier process was read."""
    DAMAGED = "damaged"
    """A snapshot or a journal could not be used; an older one is used."""


@dataclass(frozen=True, kw_only=True)
class StateSeen:
    """One operation on the state directory; ``detail`` is text for users."""

    kind: Kept
    stream: str
    seconds: float = 0.0
    bytes: int = 0
    detail: str = ""


class QueryState(enum.StrEnum):
    """Changes of a query's state."""

    REGISTERED = "registered"
    ENDED = "ended"
    """Its streams have ended, or the engine was stopped."""
    REMOVED = "removed"
    FAILED = "failed"


class Observer(Protocol):
    """Observer of the engine; every method must be quick, and safe to call from any thread."""

    def batch(self, seen: BatchSeen) -> None:
        """Note a completed batch."""
        ...

    def answer(self, seen: AnswerSeen) -> None:
        """Note an answer, just before it is given out."""
        ...

    def unanswered(self, window: Unanswered) -> None:
        """Note a window that got no answer, as its evaluation was lost."""
        ...

    def kept(self, seen: StateSeen) -> None:
        """Note a write to the state directory, or a read from it."""
        ...

    def query(self, name: str, state: QueryState) -> None:
        """Note a change of a query's state."""
        ...

    def failed(self, where: str, error: BaseException) -> None:
        """Note an error; ``where`` names its place (``stream <urn:s>``, ``query q``, a sink)."""
        ...


class Silent:
    """Observer that does nothing; a base class for observers that need only some methods."""

    def batch(self, seen: BatchSeen) -> None:
        """Do nothing."""

    def answer(self, seen: AnswerSeen) -> None:
        """Do nothing."""

    def unanswered(self, window: Unanswered) -> None:
        """Do nothing."""

    def kept(self, seen: StateSeen) -> None:
        """Do nothing."""

    def query(self, name: str, state: QueryState) -> None:
        """Do nothing."""

    def failed(self, where: str, error: BaseException) -> None:
        """Do nothing."""


class Several:
    """Observer that forwards all calls to several observers, in their order.

    If one raises, neither the engine nor the others are affected. Its first error is logged with a
    traceback, and it is still called. Its further errors are dropped.

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
        """Forward."""
        self._each(lambda observer: observer.batch(seen))

    def answer(self, seen: AnswerSeen) -> None:
        """Forward."""
        self._each(lambda observer: observer.answer(seen))

    def unanswered(self, window: Unanswered) -> None:
        """Forward."""
        self._each(lambda observer: observer.unanswered(window))

    def kept(self, seen: StateSeen) -> None:
        """Forward."""
        self._each(lambda observer: observer.kept(seen))

    def query(self, name: str, state: QueryState) -> None:
        """Forward."""
        self._each(lambda observer: observer.query(name, state))

    def failed(self, where: str, error: BaseException) -> None:
        """Forward."""
        self._each(lambda observer: observer.failed(where, error))

    def _each(self, tell: Callable[[Observer], None]) -> None:
        for at, observer in enumerate(self._observers):
            try:
                tell(observer)
            except Exception:
                if at not in self._broken:
                    self._broken.add(at)
                    _log.exception(
                        "%s raised; the engine goes on without its notes", type(observer).__name__
                    )
