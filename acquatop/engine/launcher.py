"""Launch of queries: at once, or together with others from the state of a former engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from acquatop.engine.delivery import Delivery
from acquatop.engine.evaluation_slot import EvaluationSlot
from acquatop.engine.handle import RegisteredQuery
from acquatop.engine.persistence import EngineState
from acquatop.engine.queries import QueryRegistry, RegistryEntry
from acquatop.engine.slots import SlotTable
from acquatop.engine.stream_driver import StreamDriver
from acquatop.engine.streams import StreamTable
from acquatop.plan.bound import Bound, BoundQuery
from acquatop.plan.grouping import can_share

if TYPE_CHECKING:
    from acquatop.answer.sinks.contract import Sink


class QueryLauncher:
    """Launch and removal of queries. Those registered before the start wait for it."""

    def __init__(
        self,
        queries: QueryRegistry,
        slots: SlotTable,
        streams: StreamTable,
        delivery: Delivery,
        state: EngineState | None,
        *,
        started: bool,
        in_whole_windows: Callable[[BoundQuery], Iterable[Bound]],
    ) -> None:
        self._queries = queries
        self._slots = slots
        self._streams = streams
        self._delivery = delivery
        self._state = state
        self._started = started
        self._in_whole_windows = in_whole_windows
        self._waiting: list[RegistryEntry] = []

    def register(
        self, bound: Bound, text: str, sinks: Sequence[Sink], backlog: int | None
    ) -> RegisteredQuery:
        """Register a query, and launch it if the engine has started."""
        registration = self._queries.add(bound, text, sinks, backlog, leave=self._remove)
        try:
            if self._started:
                self._declare()
                for driver in self._launch(registration):
                    self._streams.carry(driver)
            else:
                self._waiting.append(registration)
                self._prepare(registration)
        except BaseException:
            registration.query.stop()
            raise
        return registration.query

    def start(self) -> None:
        """Launch the waiting queries together. Safe to call again."""
        if self._started:
            return
        self._started = True
        waiting, self._waiting = self._waiting, []
        if self._state is not None:
            self._state.open(self._queries.manifest())
        for registration in waiting:
            self._launch(self._as_kept(registration))
        if self._state is not None:
            self._recover(self._state)
        self._streams.carry_all()

    def _as_kept(self, registration: RegistryEntry) -> RegistryEntry:
        """Return a query bound as its state was left: over whole windows, by an older version."""
        bound = registration.bound
        if self._state is None or not isinstance(bound, BoundQuery):
            return registration
        for whole in self._in_whole_windows(bound) if self._state.has_state(bound.name) else ():
            if self._slots.is_kept(whole):
                return self._queries.rebind(registration, whole)
        return registration

    def _prepare(self, registration: RegistryEntry) -> None:
        """Fill the replicas of a waiting query.

        A query that can be shared has none, and the other queries are not known yet. With a state
        directory they may be filled already.
        """
        if self._state is None and not can_share(registration.bound):
            self._assign(registration)

    def _launch(self, registration: RegistryEntry) -> list[StreamDriver]:
        """Assign a query to its slot and streams; return those to be carried."""
        query, bound = registration.query, registration.bound
        slot = self._assign(registration)
        query.slide_ms = (
            bound.windows.slide_ms if isinstance(bound, BoundQuery) else slot.evaluation.slide_ms
        )
        resumed = self._slots.resume_query(slot, bound)
        return self._streams.attach(slot, bound, resumed=resumed)

    def _assign(self, registration: RegistryEntry) -> EvaluationSlot:
        bound = registration.bound
        others = [each for name, each in self._queries.running().items() if name != bound.name]
        return self._slots.assign(registration.query, bound, others)

    def _recover(self, state: EngineState) -> None:
        """Deliver the last answers of a former engine again, and replay its journal."""
        self._delivery.deliver(state.answers(), repeated=True)
        for stream, entry in state.journal():
            self._streams.replay(stream, entry, self._slots.by_key())
        state.forget()

    def _remove(self, query: RegisteredQuery) -> None:
        """Remove a query that its owner has stopped."""
        self._waiting = [each for each in self._waiting if each.query is not query]
        slot = self._slots.of(query)
        if slot is not None:
            self._streams.leave(slot, query.name)
        self._queries.remove(query)
        self._delivery.tell_removed(query.name)
        if self._started:
            self._declare()

    def _declare(self) -> None:
        if self._state is not None:
            self._state.declare(self._queries.manifest())
