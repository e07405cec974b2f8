"""Queries of an engine by their names, from registration to their end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from acquatop.catalog.catalog import Catalog, Stream
from acquatop.engine.handle import AnswerSignal, RegisteredQuery
from acquatop.engine.observer import Observer, QueryState
from acquatop.engine.slots import SlotTable
from acquatop.engine.state.manifest import ANSWERS_OF
from acquatop.errors import AcquaTopError, UserError
from acquatop.plan.answers_stream import Made, made_by, with_answers
from acquatop.plan.bound import Bound
from acquatop.plan.columns import columns_of
from acquatop.plugins import CONNECTORS

if TYPE_CHECKING:
    from acquatop.answer.sinks.contract import Sink


@dataclass(frozen=True)
class RegistryEntry:
    """Query with its handle, and the texts that must not change while its state is kept.

    ``made`` is the stream of its answers.
    """

    query: RegisteredQuery
    bound: Bound
    texts: Mapping[str, str]
    made: Made | None


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
                guard=self._guard,
            )
            texts = {f"query {query.name}": text, **streams}
            entry = RegistryEntry(query, bound, texts, made_by(bound))
            self._entries[query.name] = entry
            self._observer.query(query.name, QueryState.REGISTERED)
        return entry

    def rebind(self, entry: RegistryEntry, bound: Bound) -> RegistryEntry:
        """Return the entry of a query that is evaluated in another way, in place of its old one."""
        with self._lock:
            made = self._entries[entry.query.name] = replace(entry, bound=bound)
        return made

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

    def running(self) -> Mapping[str, Bound]:
        """Return the queries that run or wait to run, by name."""
        return {each.query.name: each.bound for each in self._running()}

    def with_answers(self, catalog: Catalog) -> Catalog:
        """Return a catalog with the streams that the running and waiting queries make."""
        return with_answers(catalog, [each.made for each in self._running()])

    def readers(self, name: str) -> Sequence[RegisteredQuery]:
        """Return the running queries that read the stream of a query's answers."""
        return [each.query for each in self._reading(name)]

    def _reading(self, name: str) -> Sequence[RegistryEntry]:
        return [each for each in self._running() if _made_by(name, each)]

    def _running(self) -> Sequence[RegistryEntry]:
        return [each for each in self.entries() if not each.query.stopped]

    def _guard(self, query: RegisteredQuery) -> None:
        """Raise :class:`UserError` if others read the query's answers: they would get none."""
        if names := [each.name for each in self.readers(query.name)]:
            raise UserError(read_by(query.name, names))

    def manifest(self) -> dict[str, str]:
        """Return the texts that must not change while state is kept.

        They are those of the running and waiting queries, and of their streams.
        """
        with self._lock:
            running = [entry for entry in self._entries.values() if not entry.query.stopped]
            return {name: text for entry in running for name, text in entry.texts.items()}

    def end(self, query: RegisteredQuery, error: BaseException | None = None) -> None:
        """End a query, with an error if there is one, and release everything it needs.

        Those that read only its answers end with it, and with an error all that read them.
        """
        readers = self._reading(query.name)
        query.finish(error)
        self._observer.query(query.name, QueryState.ENDED if error is None else QueryState.FAILED)
        self._slots.forget(query)
        for reader in readers:
            if error is not None:
                reason = f"the query {query.name}, which it reads: {error}"
                self.fail(reader.query, AcquaTopError(reason))
            elif any(map(reader.query.stream_ended, _made_by(query.name, reader))):
                self.end(reader.query)

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


def _made_by(name: str, reader: RegistryEntry) -> set[str]:
    """Return the streams that a query reads and another makes."""
    return {stream.iri for stream in reader.bound.streams if stream.query == name}


def read_by(name: str, readers: Sequence[str]) -> str:
    """Return the reason why a query cannot be stopped, and the remedy."""
    return (
        f"{name} is read by {', '.join(readers)}, which would get nothing any more\n"
        "  hint: stop what reads it first"
    )


def _description(stream: Stream) -> str:
    """Return the settings of a stream that must not change while its state is kept."""
    if stream.query is not None:
        # What its records are made of follows from that query's text.
        return f"{ANSWERS_OF}{stream.query}"
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
