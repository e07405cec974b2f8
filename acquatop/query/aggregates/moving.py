"""Aggregates per key: the driver holds few of them, executors many."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from acquatop.errors import EnvironmentProblem
from acquatop.ingest.buckets.partials import FILE
from acquatop.ingest.identity_hash import IdentityHash
from acquatop.ingest.reduce.contract import Part, Reducer
from acquatop.plan.bound import BoundQuery
from acquatop.plan.bound.query import MOST_KEYS
from acquatop.query.aggregates.content import AggregateStore
from acquatop.query.aggregates.executor_content import Close, ExecutorAggregates
from acquatop.query.aggregates.in_driver import PLACE, AggregatesInDriver
from acquatop.query.aggregates.in_executors import AggregatesInExecutors
from acquatop.query.ranking import ChangingRanking
from replica.store import JoinedStore

RETURN_SHARE, RETURN_CLOSES = 4, 4
"""Share of ``MOST_KEYS``, as a divisor, that windows must not exceed, so many in succession, for
their keys to move back to the driver.
"""

_MOST_PARTIALS = 4
"""Partials of panes to come, for each of ``MOST_KEYS``, beyond which their keys are not counted."""

_LEFT = "left"
"""Part of a snapshot about files that the driver has taken over, and older snapshots name."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Move:
    """Way of keys to the executors, if there are any.

    ``scatter`` returns an empty content for them, with the hashes that it is given.
    """

    scatter: Callable[[IdentityHash], ExecutorAggregates]
    has_executors: Callable[[], bool]


class MovingAggregates:
    """Aggregates per key in the driver, and while they are many, in files of the executors.

    They move between two batches. Answers do not depend on it.
    """

    def __init__(
        self,
        bound: BoundQuery,
        store: JoinedStore | None,
        hashes: IdentityHash | None,
        move: Move,
    ) -> None:
        self._bound = bound
        self._store = store
        self._move = move
        self._kept: AggregatesInDriver | AggregatesInExecutors = AggregatesInDriver(
            bound, store, hashes
        )
        self._may_move = True
        self._returning = _Returning()
        self._left: ExecutorAggregates | None = None
        """Content that the driver has taken over, as long as it has files."""

    # Moving ---------------------------------------------------------------------------------------

    def is_due(self, part: Part | None = None) -> bool:
        """Return True if the keys are to move: before the next batch, or before a part that a
        journal has after the move.
        """
        is_here = isinstance(self._kept, AggregatesInDriver)
        if part is not None:
            return (FILE in part.table.column_names) == is_here
        if isinstance(self._kept, AggregatesInExecutors):
            return self._returning.is_due
        is_full = len(self._kept.kept.codes) > MOST_KEYS
        return is_full and self._may_move and self._move.has_executors()

    def move(self, part: Part | None = None) -> bool:
        """Move the keys; every member then needs a new ranking. No records may be under way.

        Return False if they stay: executors cannot read what is written, or the driver has no room.
        """
        if isinstance(self._kept, AggregatesInDriver):
            return self._move_out(self._kept.kept)
        return self._move_back(self._kept.kept, must=part is not None)

    def _move_out(self, before: AggregateStore) -> bool:
        after = self._move.scatter(before.codes.hashes)
        try:
            after.take_over(before.tables(), before.open_from, before.uncertain_until)
        except EnvironmentProblem as problem:
            after.give_up()
            self._may_move = False
            _LOG.warning(
                "the driver goes on to hold %d keys, some 400 bytes each: %s",
                len(before.codes),
                problem,
            )
            return False
        if self._left is not None:
            after.succeed(self._left)
            self._left = None
        _LOG.info("%d keys move from the driver to the executors", len(before.codes))
        self._kept = AggregatesInExecutors(self._bound, self._store, after)
        self._returning = _Returning()
        return True

    def _move_back(self, before: ExecutorAggregates, *, must: bool) -> bool:
        close, self._returning = self._returning.last, _Returning()
        # Most keys of panes to come may be keys of the window, too.
        if (
            close is not None
            and not must
            and before.keys_beyond(close.window, _MOST_PARTIALS * MOST_KEYS) > _few()
        ):
            return False
        after = AggregatesInDriver(self._bound, self._store, before.hashes)
        after.kept.take_over(before.tables(), before.open_from, before.uncertain_until)
        before.retire()
        self._left = None if before.is_forgotten else before
        _LOG.info("%d keys move from the executors to the driver", len(after.kept.codes))
        self._kept = after
        return True

    # Where they are -------------------------------------------------------------------------------

    def enrol(self, bound: BoundQuery) -> ChangingRanking:
        """Return the ranking of one more member, or another one of a member after a move."""
        return self._kept.enrol(bound)

    def leave(self, name: str) -> None:
        """Drop the ranking of a member."""
        self._kept.leave(name)

    def reducers(self) -> Sequence[Reducer]:
        """Return the reducer for the place of the keys."""
        if self._left is not None:
            self._left.remove_strangers()
        return self._kept.reducers()

    def reducers_ahead(self, *, may_close: bool) -> Sequence[Reducer] | None:
        """Return the same; None if the keys are to move before the next batch."""
        return None if self.is_due() else self._kept.reducers_ahead(may_close=may_close)

    def add(self, part: Part, names: Sequence[str], closed: int | None) -> int:
        """Take in partial aggregates, or their places."""
        return self._kept.add(part, names, closed)

    def complete(self, window: int) -> None:
        """Forward the call."""
        self._kept.complete(window)

    def values_changed(self) -> None:
        """Forward the call."""
        self._kept.values_changed()

    def open_from(self, window: int) -> None:
        """Release earlier solutions; the last close is over."""
        self._kept.open_from(window)
        if isinstance(self._kept, AggregatesInExecutors):
            self._returning.note(self._kept.kept.last_close)

    def snapshot(self) -> dict[str, bytes]:
        """Return the parts of the state, and the place of the keys."""
        place = {PLACE: b"executors"} if isinstance(self._kept, AggregatesInExecutors) else {}
        left = {} if self._left is None else {_LEFT: self._left.snapshot()}
        return {**self._kept.snapshot(), **place, **left}

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Restore the parts of a snapshot, in the place where the keys were."""
        if PLACE in parts:
            empty = self._move.scatter(IdentityHash())
            self._kept = AggregatesInExecutors(self._bound, self._store, empty)
        if _LEFT in parts:
            self._left = self._move.scatter(IdentityHash())
            self._left.resume(parts[_LEFT])
        self._kept.resume(parts)

    def snapshot_committed(self) -> None:
        """Remove files that no snapshot names any more."""
        self._kept.snapshot_committed()
        if self._left is not None:
            self._left.snapshot_committed()
            self._left = None if self._left.is_forgotten else self._left

    def release(self) -> None:
        """Forward the call."""
        self._kept.release()


def _few() -> int:
    """Return the number of keys up to which they may move back."""
    return MOST_KEYS // RETURN_SHARE


class _Returning:
    """Count of the last windows in succession that had few keys."""

    def __init__(self) -> None:
        self.last: Close | None = None
        self._closes = 0

    def note(self, close: Close | None) -> None:
        """Note a close, once or again."""
        if close is not None and close != self.last:
            self.last = close
            self._closes = self._closes + 1 if close.keys <= _few() else 0

    @property
    def is_due(self) -> bool:
        """True if there have been enough of them."""
        return self._closes >= RETURN_CLOSES
