"""Board of an engine's queries: the thing that each of them waits for, now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from acquatop.engine.queries import QueryRegistry, RegistryEntry
from acquatop.engine.stream_driver import StreamDriver
from acquatop.engine.waiting.kinds import Waiting, WaitingKind
from acquatop.engine.waiting.stream_checks import why
from acquatop.engine.waiting.view import StreamView
from acquatop.engine.waiting.window_words import open_window
from acquatop.plan.bound import Bound, BoundCounted, BoundQuery
from replica.clocks import Clock


class WaitingBoard:
    """Explanation of the waits of all running queries. Any thread may ask. O(queries + streams)."""

    def __init__(
        self,
        queries: QueryRegistry,
        drivers: Callable[[], Sequence[StreamDriver]],
        wall_clock: Clock,
        runtime: str,
    ) -> None:
        self._runtime = runtime
        self._queries = queries
        self._drivers = drivers
        self._wall_clock = wall_clock
        self._since = wall_clock()

    def now(self) -> dict[str, Waiting]:
        """Return the thing that each running query waits for, by name."""
        now = self._wall_clock()
        known = {each.stream.iri: each for each in self._drivers()}
        drivers = {iri: each for iri, each in known.items() if not each.has_ended}
        views = {iri: driver.view(now) for iri, driver in drivers.items()}
        waits = {iri: why(view) for iri, view in views.items()}
        found: dict[str, Waiting] = {}
        # A query comes after those whose answers it reads.
        for entry in self._queries.entries():
            if not entry.query.stopped and not _is_ending(entry, known):
                behind = _of_source(entry, found)
                found[entry.query.name] = behind or self._of(entry, drivers, views, waits)
        return found

    def _of(
        self,
        entry: RegistryEntry,
        drivers: dict[str, StreamDriver],
        views: dict[str, StreamView],
        waits: dict[str, Waiting | None],
    ) -> Waiting:
        own = [iri for iri in entry.query.streams if iri in views]
        if not own or any(not views[iri].is_carried for iri in own):
            text = f"{self._runtime} is starting"
            return Waiting(kind=WaitingKind.STARTING, since=self._since, text=text)
        found = _first(waits[iri] for iri in own)
        if found is not None:
            return _with_remotes(found, entry.bound)
        after = {iri: drivers[iri].stream.joined_after(entry.query.name) for iri in own}
        known = {iri: time_ms for iri, time_ms in after.items() if time_ms is not None}
        return open_window(entry.bound, [views[iri] for iri in own], known)


def _of_source(entry: RegistryEntry, found: Mapping[str, Waiting]) -> Waiting | None:
    """Return the wait of a query whose answers an entry's query reads; None if it reads none."""
    read = [each.query for each in entry.bound.streams if each.query and each.query in found]
    source = next((each for each in read if found[each].is_trouble), read[0] if read else None)
    if source is None:
        return None
    return replace(found[source], text=f"it reads what {source} answers: {found[source].text}")


def _is_ending(entry: RegistryEntry, drivers: Mapping[str, StreamDriver]) -> bool:
    """Return True if all streams of a query have ended: it waits for nothing."""
    own = [drivers.get(iri) for iri in entry.query.streams]
    return all(each is not None and each.has_ended for each in own)


def _first(waits: Iterable[Waiting | None]) -> Waiting | None:
    """Return the wait of several streams that is worth most: one with a remedy."""
    known = [each for each in waits if each is not None]
    return next((each for each in known if each.is_trouble), known[0] if known else None)


def _with_remotes(waiting: Waiting, bound: Bound) -> Waiting:
    """Name the remotes that an evaluation may wait for."""
    asked = _remotes(bound)
    if waiting.kind is not WaitingKind.EVALUATING or not asked:
        return waiting
    text = f"{waiting.text}; {', '.join(asked)}"
    return Waiting(kind=waiting.kind, since=waiting.since, text=text, about=waiting.about)


def _remotes(bound: Bound) -> list[str]:
    query = bound.query if isinstance(bound, BoundCounted) else bound
    services = (
        list(query.services or (query.service,))
        if isinstance(query, BoundQuery)
        else [remote.service for remote in query.remotes]
    )
    return [
        f"<{each.iri}> has {each.refresh.budget.seconds:g} s to reply"
        for each in services
        if each is not None
    ]
