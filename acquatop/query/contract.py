"""Contract of every kind of query at work: records of streams in, answers out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from acquatop.answer.answer import Answer
from acquatop.answer.unanswered import Unanswered
from acquatop.answer.window_lists import WindowLists
from acquatop.ingest.reduce.contract import Part, Reducer
from acquatop.ingest.reduce.late_finder import AnsweredSoFar
from acquatop.plan.bound import Bound
from acquatop.refresh.lanes import Lanes

MAX_EMPTY_WINDOWS = 10_000
"""Longest run of empty windows that is answered one by one: a longer one is a jump in time."""


class Sizes(NamedTuple):
    """Number of objects held for a query."""

    candidates: int = 0
    replica_keys: int = 0


@dataclass(frozen=True, slots=True)
class Tick:
    """Watermark that a stream has reached.

    All records up to ``watermark_ms`` have been handed in. ``due_at`` is the time at which they
    came. Each evaluation may wait ``longest_wait`` seconds for the remotes.
    """

    stream: str
    watermark_ms: int
    due_at: float
    longest_wait: float = math.inf


class Evaluation(Protocol):
    """Queries that are evaluated together. Called by one thread at a time, except :meth:`close`.

    Each query gets the answers that it would get alone.
    """

    @property
    def slide_ms(self) -> float:
        """Shortest slide of its windows; infinite if time closes none."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the queries, in the order in which they joined."""

    def join(self, bound: Bound, after_ms: Mapping[str, int]) -> None:
        """Answer one more query.

        On streams in ``after_ms`` its first window is the first that opens at that time or later.
        """

    def resume_query(self, bound: Bound) -> bool:
        """Continue a query of the restored snapshot; return False if the snapshot lacks it."""

    def leave(self, name: str) -> None:
        """Stop answering a query."""

    def windows(self, stream: str) -> Sequence[AnsweredSoFar]:
        """Return the windows on a stream, and how far each are answered."""

    def due_after(self, stream: str, time_ms: int) -> int | None:
        """Return the next time after ``time_ms`` at which a stream may bring answers.

        None if none.
        """

    def reducers(self, stream: str) -> Sequence[Reducer]:
        """Return the reducers for the stream's next records."""

    def reducers_ahead(self, stream: str, watermark_ms: int) -> Sequence[Reducer] | None:
        """Return the reducers for records behind a batch that is still to be added.

        That batch takes the stream's watermark to ``watermark_ms``. Return None if what is to be
        sent of the records depends on it.
        """

    def add(self, stream: str, parts: Sequence[Part], names: Sequence[str]) -> None:
        """Take in one partition, a part per reducer.

        ``names`` are the queries when it was reduced.
        """

    def advance(self, tick: Tick) -> Iterator[Answer | Unanswered]:
        """Yield the answers that are due at a watermark, oldest first, and what has none.

        A query's windows begin with the first that holds a record of the stream, or with the first
        after the stream's start if the catalog gives one. Of more than ``MAX_EMPTY_WINDOWS`` empty
        windows in a row at most the first is answered. The next answer counts the others.
        """

    def finish(self, stream: str) -> Iterator[Answer | Unanswered]:
        """Yield the answers that are due when a stream ends.

        With the last stream, these are all that are left.
        """

    def close(self) -> None:
        """Release threads, connections and files; safe to call again, and from any thread."""

    def snapshot(self) -> bytes:
        """Return the whole state. O(all that is held)."""

    def snapshot_committed(self) -> None:
        """Note that the last snapshot is durable: data that only older snapshots need may go."""

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot. Call it before any query joins."""

    def sizes(self, name: str) -> Sizes:
        """Return the number of objects held for a query."""


@runtime_checkable
class ListKeeper(Protocol):
    """Evaluation that can show the candidates that it holds of its windows."""

    def lists(self, name: str) -> Sequence[WindowLists]:
        """Return the K-list and the N-list of each open window of a query; none if it has none."""


@runtime_checkable
class BudgetSharer(Protocol):
    """Evaluation that may share its budget with others whose windows close at the same time.

    Of those in one pool each is first told to :meth:`expect` and to :meth:`offer`, then to advance
    to that time.
    """

    lanes: Lanes

    @property
    def slide_ms(self) -> float:
        """Shortest slide of its windows."""

    def due_by(self, watermark_ms: float) -> int | None:
        """Return the close of the next window, if it is due at a watermark."""

    def last_due_ms(self, stream: str) -> float:
        """Return the time up to which windows are due when the stream ends."""

    def expect(self) -> None:
        """Tell the pool that the next window is due."""

    def offer(self, watermark_ms: int) -> None:
        """Tell the pool what the next window, due at a watermark, wants of the remote."""
