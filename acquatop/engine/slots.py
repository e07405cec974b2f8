"""Slots of an engine: queries that can be evaluated together share one."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from acquatop.engine.evaluation_slot import EvaluationSlot
from acquatop.engine.handle import RegisteredQuery
from acquatop.engine.persistence import EngineState
from acquatop.errors import UserError
from acquatop.plan.bound import Bound, BoundQuery
from acquatop.plan.grouping import (
    can_share,
    choice_among,
    evaluation_key,
    hint_for,
    shares_slot,
    without_grid,
)
from acquatop.query.contract import Evaluation
from acquatop.query.kinds import Resources, open_evaluation


class SlotTable:
    """Slots by the keys of their evaluations.

    ``reads_together`` says that queries share one reading of a stream. Otherwise none shares a
    slot. With ``shows_lists`` answers show the candidates that were held.
    """

    def __init__(
        self,
        resources: Resources,
        state: EngineState | None,
        *,
        reads_together: bool,
        shows_lists: bool = False,
    ) -> None:
        self._resources = resources
        self._state = state
        self._reads_together = reads_together
        self._shows_lists = shows_lists
        self._slots: dict[str, EvaluationSlot] = {}
        self._slot_of: dict[RegisteredQuery, EvaluationSlot] = {}
        self._lock = threading.RLock()
        self._is_closed = False

    def __iter__(self) -> Iterator[EvaluationSlot]:
        return iter(list(self._slots.values()))

    def __len__(self) -> int:
        return len(self._slots)

    def by_key(self) -> dict[str, EvaluationSlot]:
        """Return the slots by their keys."""
        return dict(self._slots)

    def assign(
        self, query: RegisteredQuery, bound: Bound, others: Sequence[Bound]
    ) -> EvaluationSlot:
        """Give a query its slot, shared with ``others`` that run if possible; return the slot.

        A query that has a slot keeps it. Nobody can release the slot before it has the query. One
        that is over and not released yet is replaced.
        """
        with self._lock:
            slot = self._slot_of.get(query)
            if slot is None:
                slot = self._slot_of[query] = self._slot_for(bound, others)
                slot.add(query)
            return slot

    def _slot_for(self, bound: Bound, others: Sequence[Bound]) -> EvaluationSlot:
        bound = self._as_kept(bound)
        is_shared = self._is_shared(bound, others)
        key = self._key(bound, shared=is_shared)
        if self._state is not None:
            self._state.check(bound.name, key)
        present = self._slots.get(key)
        if present is None or present.is_over:
            evaluation = self._open(bound, key, shared=is_shared)
            if self._is_closed:
                # Its replica was being filled meanwhile.
                evaluation.close()
                raise UserError("the engine has been stopped")
            self._slots[key] = EvaluationSlot(key, evaluation, shows_lists=self._shows_lists)
        return self._slots[key]

    def _as_kept(self, bound: Bound) -> Bound:
        """Return a query without a grid, if its state is that of an evaluation without one."""
        if self._state is None or not can_share(bound) or bound.nearest is None:
            return bound
        other = without_grid(bound)
        keys = [self._key(other, shared=False)]
        keys += [self._key(other, shared=True)] if isinstance(other, BoundQuery) else []
        return other if any(self._state.is_kept(bound.name, key) for key in keys) else bound

    def _open(self, bound: Bound, key: str, *, shared: bool) -> Evaluation:
        """Return a new evaluation, resumed if there is state of it."""
        kept = None if self._state is None else self._state.part(key)
        evaluation = open_evaluation(bound, key, self._resources, load=kept is None, shared=shared)
        try:
            if kept is not None:
                evaluation.resume(kept)
        except BaseException:
            evaluation.close()
            raise
        return evaluation

    def _key(self, bound: Bound, *, shared: bool) -> str:
        key = evaluation_key(bound, shared=shared)
        return key if self._reads_together else f"{key} {bound.name}"

    def is_kept(self, bound: Bound) -> bool:
        """Return True if the state of a query is that of its evaluation alone."""
        key = self._key(bound, shared=False)
        return self._state is not None and self._state.is_kept(bound.name, key) is True

    def _is_shared(self, bound: Bound, others: Sequence[Bound]) -> bool:
        """Return True if a query is evaluated in one structure with others.

        A resumed query is evaluated as before. If a shared structure exists already, a new query
        joins it. Otherwise the cheaper choice is taken.
        """
        if not can_share(bound):
            return False
        if hint_for(bound) is not None:
            return shares_slot(bound, choice_among(bound))
        key = self._key(bound, shared=True)
        is_kept = None if self._state is None else self._state.is_kept(bound.name, key)
        if is_kept is not None or key in self._slots:
            return is_kept is not False
        if bound.nearest is not None:
            return shares_slot(bound, choice_among(bound))
        alike = [each for each in others if can_share(each) and self._key(each, shared=True) == key]
        return choice_among(bound, alike).is_shared

    def resume_query(self, slot: EvaluationSlot, bound: Bound) -> bool:
        """Continue a query of a resumed slot; return False if it is new there."""
        if self._state is None or self._state.part(slot.key) is None:
            return False
        return slot.evaluation.resume_query(bound)

    def of(self, query: RegisteredQuery) -> EvaluationSlot | None:
        """Return a query's slot, if it still has one.

        The lock is not taken, as it is held while replicas are filled.
        """
        return self._slot_of.get(query)

    def forget(self, query: RegisteredQuery) -> None:
        """Release everything that only a certain query needs."""
        with self._lock:
            slot = self._slot_of.pop(query, None)
            if slot is None:
                return
            slot.remove(query)
            if not slot.queries:
                self._slots = {key: each for key, each in self._slots.items() if each is not slot}
                slot.evaluation.close()

    def close(self) -> None:
        """Release all evaluations; take no more queries.

        The lock is not taken: a remote may be awaited under it.
        """
        self._is_closed = True
        for slot in self:
            slot.evaluation.close()
            slot.queries = ()
        self._slots, self._slot_of = {}, {}
