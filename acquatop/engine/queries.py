"""Queries of an engine by their names, from registration to their end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from acquatop.catalog.catalog import Stream
from acquatop.engine.handle import AnswerSignal, RegisteredQuery
from acquatop.engine.observer import Observer, QueryState
from acquatop.engine.slots import SlotTable
from acquatop.plan.bind import Bound
from acquatop.plan.columns import columns_of
from connectors.registry import CONNECTORS

if TYPE_CHECKING:
    from acquatop.answer.sinks.contract import Sink


@dataclass(frozen=True)
class RegistryEntry:
    """Query with its handle, and the texts that must not change while its state is kept."""

    query: RegisteredQuery
    bound: Bound
    texts: Mapping[str, str]


class QueryRegistry:
    """Queries by name. A stopped one stays until its owner removes it, or its name is taken."""

    def __init__(
        self,
        slots: SlotTable,
        observer: Observer,
        *,
        live: bool,
    ) -> None:
        self._slots = slots
        self._observer = observer
        self._live = live
        self._entries: dict[str, RegistryEntry] = {}
        self._lock = threading.RLock()
        self.signal = AnswerSignal()

    def add(
        self,
        bound: Bound,
        text: str,
        sinks: Sequence[Sink],
        backlog: int | None,
        *,
        leave: Callable[[RegisteredQuery], None],
    ) -> RegistryEntry:
        """Register a query, under a name that no running query has: it identifies answers.

        ``leave`` is called when its owner stops it.
        """
        streams = {f"stream {stream.iri}": _description(stream) for stream in bound.streams}
        with self._lock:
            bound = replace(bound, name=self._free_name(bound.name))
            query = RegisteredQuery(
                bound.name,
                [stream.iri for stream in bound.streams],
                live=self._live,
                news=self.signal,
                sinks=sinks,
                columns=columns_of(bound),
                backlog=backlog,
                leave=leave,
            )
            entry = RegistryEntry(query, bound, {f"query {query.name}": text, **streams})
            self._entries[query.name] = entry
            self._observer.query(query.name, QueryState.REGISTERED)
        return entry

    def _free_name(self, name: str) -> str:
        taken = {each for each, entry in self._entries.items() if not entry.query.stopped}
        names = (name, *(f"{name}-{at}" for at in range(2, len(taken) + 3)))
        return next(each for each in names if each not in taken)

    def get(self, name: str) -> RegisteredQuery | None:
        """Return the query of a name, or None."""
        entry = self._entries.get(name)
        return None if entry is None else entry.query

    def __iter__(self) -> Iterator[RegisteredQuery]:
        return iter([entry.query for entry in list(self._entries.values())])

    def entries(self) -> Sequence[RegistryEntry]:
        """Return all entries."""
        with self._lock:
            return list(self._entries.values())

    def running_bounds(self, *, but: str) -> Sequence[Bound]:
        """Return the other queries that run or wait to run."""
        with self._lock:
            return [
                entry.bound
                for name, entry in self._entries.items()
                if not entry.query.stopped and name != but
            ]

    def manifest(self) -> dict[str, str]:
        """Return the texts that must not change while state is kept.

        They are those of the running and waiting queries, and of their streams.
        """
        with self._lock:
            running = [entry for entry in self._entries.values() if not entry.query.stopped]
            return {name: text for entry in running for name, text in entry.texts.items()}

    def end(self, query: RegisteredQuery, error: BaseException | None = None) -> None:
        """End a query, with an error if there is one, and release everything it needs."""
        query.finish(error)
        self._observer.query(query.name, QueryState.ENDED if error is None else QueryState.FAILED)
        self._slots.forget(query)

    def fail(self, query: RegisteredQuery, error: BaseException) -> None:
        """End a query by an error of its own."""
        self._observer.failed(f"query {query.name}", error)
        self.end(query, error)

    def remove(self, query: RegisteredQuery) -> None:
        """Remove a query that its owner has stopped; nothing of it is left behind."""
        self._slots.forget(query)
        with self._lock:
            if self.get(query.name) is query:
                del self._entries[query.name]

    def end_all(self) -> None:
        """End the queries that still run."""
        for query in self:
            if not query.stopped:
                query.finish(None)
                self._observer.query(query.name, QueryState.ENDED)


def _description(stream: Stream) -> str:
    """Return the settings of a stream that must not change while its state is kept."""
    options = CONNECTORS[stream.connector].options
    said = {
        "connector": stream.connector,
        **{
            name: stream.options.get(name)
            for name, option in options.items()
            if option.names_source
        },
        "mapping": stream.mapping,
        "arrivals": stream.arrivals,
        "lateness_ms": stream.lateness_ms,
        "start_ms": stream.start_ms,
    }
    return "\n".join(f"{name}: {value}" for name, value in said.items())
