"""Aggregates per key that the driver holds while they are few, and executors once they are many."""

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
from acquatop.query.aggregates.executor_content import ExecutorAggregates
from acquatop.query.aggregates.in_driver import PLACE, AggregatesInDriver
from acquatop.query.aggregates.in_executors import AggregatesInExecutors
from acquatop.query.ranking import ChangingRanking
from replica.store import JoinedStore

_LOG = logging.getLogger("acquatop")


@dataclass(frozen=True)
class Move:
    """Way of keys to the executors, if there are any.

    ``scatter`` returns an empty content for them, with the hashes that it is given.
    """

    scatter: Callable[[IdentityHash], ExecutorAggregates]
    has_executors: Callable[[], bool]


class MovingAggregates:
    """Aggregates per key in the driver, and once they are many, in files of the executors.

    They move between two batches, and stay. Answers do not depend on it.
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
        self._in_driver: AggregatesInDriver | None = AggregatesInDriver(bound, store, hashes)
        self._kept: AggregatesInDriver | AggregatesInExecutors = self._in_driver
        self._may_move = True

    # Moving ---------------------------------------------------------------------------------------

    def is_due(self, part: Part | None = None) -> bool:
        """Return True if the keys are to move: before the next batch, or before a part of executors
        that a journal has after the move.
        """
        if self._in_driver is None:
            return False
        if part is not None:
            return FILE in part.table.column_names
        is_full = len(self._in_driver.kept.codes) > MOST_KEYS
        return is_full and self._may_move and self._move.has_executors()

    def move(self) -> bool:
        """Move the keys; every member then needs a new ranking. No records may be under way.

        Return False if executors cannot read what is written: nothing has changed then.
        """
        assert self._in_driver is not None, "keys move once"
        before = self._in_driver.kept
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
        _LOG.info("%d keys move from the driver to the executors", len(before.codes))
        self._kept, self._in_driver = AggregatesInExecutors(self._bound, self._store, after), None
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
        """Forward the call."""
        self._kept.open_from(window)

    def snapshot(self) -> dict[str, bytes]:
        """Return the parts of the state, and the place of the keys."""
        place = {} if self._in_driver is not None else {PLACE: b"executors"}
        return {**self._kept.snapshot(), **place}

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Restore the parts of a snapshot, in the place where the keys were."""
        if PLACE in parts:
            empty = self._move.scatter(IdentityHash())
            self._kept = AggregatesInExecutors(self._bound, self._store, empty)
            self._in_driver = None
        self._kept.resume(parts)

    def snapshot_committed(self) -> None:
        """Forward the call."""
        self._kept.snapshot_committed()

    def release(self) -> None:
        """Forward the call."""
        self._kept.release()
