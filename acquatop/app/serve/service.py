"""Registry of the queries that a service answers, independent of HTTP."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from acquatop.answer.unanswered import Unanswered
from acquatop.answer.window_lists import WindowLists
from acquatop.app.serve.answers import Answers, KeptAnswer, answer_sink
from acquatop.app.serve.channel import Channel, Event, frame
from acquatop.app.serve.limits import Limits
from acquatop.app.serve.notifier import Notifier
from acquatop.app.serve.redaction import public_error
from acquatop.app.serve.registrations import (
    InMemory,
    QueryRegistration,
    Registrations,
    in_reading_order,
)
from acquatop.app.watch.intake import Intake, ItemCounts
from acquatop.catalog.catalog import Catalog
from acquatop.engine.engine import Engine, RegisteredQuery
from acquatop.engine.observer import BatchSeen, Observer, QueryState, Silent
from acquatop.engine.queries import read_by
from acquatop.engine.waiting.kinds import Waiting
from acquatop.errors import EnvironmentProblem, UserError
from acquatop.instants import instant_text
from acquatop.plan.check import answers_in, check_query, replicas_of, sent_of, structure_of
from replica.clocks import Clock
from rspql.compiler import Analysis
from rspql.diagnostics import QueryError
from rspql.explain import explain

ENGINE_BUSY = "another query is being registered or resumed; try again in a moment"

FILE = "query"
"""The name of a query's text in messages."""

_NAME = re.compile(r"[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]{0,198}[^\s\x00-\x1f\x7f])?")
_NOT_IN_ID = re.compile(r"[^A-Za-z0-9_]+")


class Refused(UserError):  # noqa: N818 (a reply to the client, no error of the service)
    """Refusal of a request; ``kind`` is the problem's (:mod:`acquatop.app.serve.problems`)."""

    def __init__(self, kind: str, message: str, **more: Any) -> None:
        super().__init__(message)
        self.kind = kind
        self.more = more


class Served:
    """One query of the service: its registration, its state, and its last answers."""

    def __init__(self, registration: QueryRegistration, answers: Answers, intake: Intake) -> None:
        self.registration = registration
        self.answers = answers
        self._intake = intake
        self._before: Mapping[str, ItemCounts] = {}
        self.warnings: Sequence[dict[str, object]] = ()
        self.query: RegisteredQuery | None = None
        self.run: object = None
        """Token of one run, from start to halt: answers of another run are ignored."""
        self.problem: str | None = None
        """The reason if it could not even start."""
        self._unanswered: Counter[str] = Counter()
        self._last_unanswered: Unanswered | None = None
        self.waiting: Waiting | None = None
        """The thing that it waits for, if it runs, as it was seen last."""
        self.starting = False
        """True while it is being resumed; another change makes it False, and ends that."""

    @property
    def state(self) -> str:
        """``running``, ``paused``, ``failed``, or ``ended`` with its streams."""
        query = self.query  # read once, as another thread may take it away
        if self.registration.paused:
            return "paused"
        if self.problem is not None or (query is not None and query.error is not None):
            return "failed"
        return "ended" if query is None or query.stopped else "running"

    @property
    def error(self) -> str | None:
        """The reason of its failure, without private details."""
        query = self.query
        if self.state != "failed":
            return None
        error = None if query is None else query.error
        return self.problem if error is None else public_error(error)

    def begins(self) -> None:
        """Count the items of its streams, and its windows without an answer, from now on."""
        self._before = self._intake.streams()
        self._unanswered, self._last_unanswered = Counter(), None

    def note_unanswered(self, window: Unanswered) -> None:
        """Count a window without an answer."""
        self._unanswered[window.reason] += 1
        self._last_unanswered = window

    def unanswered(self) -> dict[str, Any]:
        """Return its windows without an answer since it started, by reason, and the last one."""
        last = self._last_unanswered
        told = last and {"closes": instant_text(last.closes_ms), "message": last.message}
        return {"windows": dict(self._unanswered), "last": told}

    def streams(self) -> list[dict[str, Any]]:
        """Return the items of its streams since it started, and the bad ones by reason."""
        query = self.query
        names = () if query is None else query.streams
        came = {
            name: self._intake.of(name).since(self._before.get(name, ItemCounts()))
            for name in names
        }
        return [
            {"iri": name, "items": each.items, "bad": dict(each.bad)} for name, each in came.items()
        ]

    def waits_for(self) -> dict[str, Any] | None:
        """Return the thing that it waits for, if it runs; with answers only if that is trouble."""
        waiting = self.waiting  # read once, as another thread may replace it
        if waiting is None or self.state != "running":
            return None
        return waiting.to_json() if self.waits or waiting.is_trouble else None

    @property
    def waits(self) -> bool:
        """True if it runs, and has no answer yet."""
        return self.state == "running" and self.answers.newest() is None

    def to_json(self) -> dict[str, Any]:
        """Return its description, without its answers."""
        registration, newest = self.registration, self.answers.newest()
        return {
            "id": registration.id,
            "name": registration.name,
            "state": self.state,
            "error": self.error,
            "registered": instant_text(registration.since_ms),
            "newest": None if newest is None else newest.id,
            "streams": self.streams(),
            "unanswered": self.unanswered(),
            "waiting": self.waits_for(),
            "text": registration.text,
            "warnings": list(self.warnings),
        }


class QueryService:
    """Registry of an engine's queries, for many clients. Safe for several threads.

    ``make_engine`` is called with an observer that the engine must have, and returns an engine that
    has not started. ``events`` are the events of all queries. ``intake`` counts the items of all
    streams. ``load_catalog`` reads the catalog again.

    Only registering and resuming take long, as they may fill a replica from a remote: one of them
    has the engine at a time, and another is refused if it would wait for more than
    ``change_seconds``. Pausing and removing wait no longer than that either: the query's answers
    end at once, and the engine forgets it when it is free.
    """

    def __init__(
        self,
        make_engine: Callable[[Observer], Engine],
        *,
        registrations: Registrations | None = None,
        limits: Limits | None = None,
        intake: Intake | None = None,
        wall: Clock = time.time,
        load_catalog: Callable[[], Catalog] | None = None,
    ) -> None:
        self._load_catalog = load_catalog
        self.limits = limits or Limits()
        self.bell = Notifier()
        self.events: Channel[Event] = Channel(
            self.bell, most=self.limits.events, most_bytes=self.limits.events_bytes
        )
        self.is_ready = False
        self._turn = threading.Lock()
        # Held for a moment, while the registry changes.
        self._book = threading.Condition(threading.RLock())
        self._coming: dict[str, Served] = {}
        self._halted: deque[RegisteredQuery] = deque()
        self._wall = wall
        self._registrations = registrations or InMemory()
        self._served: dict[str, Served] = {}
        # Held while something is put into ``events``, so that notices about a query keep their
        # order.
        self._telling = threading.RLock()
        self._next_event = round(1_000_000 * wall())
        self.intake = intake or Intake()
        self._told_items: dict[str, list[dict[str, Any]]] = {}
        self._told_waits: dict[str, dict[str, Any] | None] = {}
        self._engine = make_engine(_Observing(self))

    def start(self) -> None:
        """Restore the registered queries, and start the engine.

        Raises the errors of :meth:`Engine.start`.
        """
        with self._turn:
            for registration in in_reading_order(self._registrations.read(), self.catalog):
                self._take_up(registration)
            self._engine.start()
            self._registrations.claim()
            self.is_ready = True

    def _take_up(self, registration: QueryRegistration) -> None:
        served = self._new(registration)
        if not registration.paused:
            try:
                self._run(served)
            except (QueryError, UserError) as error:
                # The catalog may have changed. The other queries go on.
                served.problem = public_error(error)
        self._announce(served)

    def stop(self) -> None:
        """End the event streams, and stop the engine; registrations stay. Safe to call again.

        A registration that waits for a remote is not waited for: it fails once the remote replies.
        """
        self.is_ready = False
        self.events.close()
        for served in self.queries():
            served.answers.close()
        is_alone = self._turn.acquire(timeout=self.limits.change_seconds)
        try:
            self._engine.stop()
        finally:
            if is_alone:
                self._turn.release()

    def need_ready(self) -> None:
        """Raise :class:`Refused` unless changes are possible now."""
        if not self.is_ready:
            raise Refused(
                "unavailable", "the engine is starting or stopping; try again in a moment"
            )

    @property
    def catalog(self) -> Catalog:
        """The catalog of the engine, with the streams that its queries make of their answers."""
        return self._engine.known

    def reload(self) -> None:
        """Read the catalog again, for queries that are registered from now on.

        Raises :class:`UserError` if it cannot be read, or changes what running queries use; then
        the former stays.
        """
        self.need_ready()
        if self._load_catalog is None:
            raise UserError("this service has no catalog file to read again")
        catalog = self._load_catalog()
        with self._turn:
            self._engine.reload(catalog)

    # Reading --------------------------------------------------------------------------------------

    def queries(self) -> list[Served]:
        """Return all queries, in the order of their registration."""
        with self._telling:
            return list(self._served.values())

    def query(self, id: str) -> Served:
        """Return a query; raises :class:`Refused` for an unknown id."""
        served = self._served.get(id)
        if served is None:
            raise Refused("not-found", f'there is no query "{id}"')
        return served

    def lists(self, id: str) -> Sequence[WindowLists]:
        """Return the candidates that a query holds; raises :class:`Refused` for an unknown id."""
        query = self.query(id).query
        return () if query is None else self._engine.lists(query.name)

    def snapshot(self, number: int, missed: int) -> tuple[int, Iterator[bytes]]:
        """Return the opening of a reader of all events: the newest number, and a snapshot."""
        with self._telling:
            number, queries = self.events.last, self.queries()
        listed = json.dumps({"queries": [each.to_json() for each in queries]}).encode()

        def frames() -> Iterator[bytes]:
            yield frame("snapshot", listed)
            for each in queries:
                newest = each.answers.newest()
                if newest is not None:
                    yield frame("answer", newest.of(each.registration.id))

        return number, frames()

    def check(self, text: str) -> Analysis:
        """Return the analysis of a text; the query is not run."""
        return check_query(text, catalog=self.catalog, file=FILE)

    def explain(self, text: str) -> dict[str, Any]:
        """Return the plan of a text; raises :class:`QueryError` for an invalid one."""
        analysis, catalog = self._good(text), self.catalog
        remotes, structure = replicas_of(catalog), structure_of(analysis, catalog)
        return explain(
            analysis, remotes, structure, sent_of(analysis, catalog), answers_in(analysis, catalog)
        )

    def _good(self, text: str) -> Analysis:
        analysis = self.check(text)
        if analysis.plan is None or not analysis.ok:
            raise QueryError(analysis.diagnostics, text, FILE)
        return analysis

    # Changes --------------------------------------------------------------------------------------

    def register(self, text: str, name: str | None = None, weight: float = 1.0) -> Served:
        """Run a query, and store its registration with its ``weight``.

        ``name`` replaces the name of its REGISTER clause. Raises :class:`QueryError` for an invalid
        text, :class:`Refused` for a request that is not possible now, and
        :class:`EnvironmentProblem` if a remote cannot be reached.
        """
        self.need_ready()
        analysis = self._good(text)
        with self._engine_alone():
            served = self._expect(text, name, analysis, weight)
            try:
                self._run(served)
                self._arrive(served)
            finally:
                with self._book:
                    self._coming.pop(served.registration.id, None)
                    self._book.notify_all()
        return served

    def _expect(self, text: str, name: str | None, analysis: Analysis, weight: float) -> Served:
        """Give a query its name and its id, before it runs."""
        with self._book:
            if len(self._served) >= self.limits.queries:
                most = self.limits.queries
                raise Refused(
                    "too-many-queries",
                    f"{most} queries are registered, as many as may be: remove one first",
                )
            assert analysis.plan is not None
            named = self._name(name, analysis.plan.name)
            id, since_ms = self._free_id(named), round(1000 * self._wall())
            registration = QueryRegistration(id, named, text, since_ms, weight=weight)
            served = self._new(registration)
            served.warnings = [each.to_json(FILE) for each in analysis.diagnostics]
            self._coming[id] = served
            return served

    def _arrive(self, served: Served) -> None:
        """Store the registration of a query that runs, unless it was removed meanwhile."""
        with self._book:
            if self._coming.get(served.registration.id) is not served:
                self._halt(served)
                return
            try:
                self._keep(served.registration)
            except Refused:
                self._halt(served)
                raise
            if served.registration.paused:
                self._halt(served)
            self._announce(served)

    def pause(self, id: str) -> Served:
        """Pause a query: no stream is read and no remote is asked for it. Its answers stay."""
        self.need_ready()
        with self._book:
            self._await(id)
            served = self._coming.get(id) or self.query(id)
            served.starting = False
            if not served.registration.paused:
                self._need_unread(served)
                paused = replace(served.registration, paused=True)
                if id not in self._coming:
                    self._keep(paused)
                    self._halt(served)
                served.registration = paused
                self._tell_of(served)
        self._let_engine_forget()
        return served

    def resume(self, id: str) -> Served:
        """Restart a paused or failed query, with the first windows that open from now on."""
        self.need_ready()
        with self._engine_alone():
            served = self.query(id)
            if served.state == "running":
                return served
            served.starting = True
            try:
                self._run(served)
                self._resumed(served)
            finally:
                with self._book:
                    served.starting = False
                    self._book.notify_all()
        return served

    def _resumed(self, served: Served) -> None:
        """Store that a query runs again, unless it was paused or removed meanwhile."""
        with self._book:
            if not served.starting:
                self._halt(served)
                return
            resumed = replace(served.registration, paused=False)
            try:
                self._keep(resumed)
            except Refused:
                self._halt(served)
                raise
            served.problem, served.registration = None, resumed
            self._tell_of(served)

    def remove(self, id: str) -> None:
        """End a query, and forget it and its answers."""
        self.need_ready()
        with self._book:
            self._await(id)
            if self._coming.pop(id, None) is None:
                self._remove(self.query(id))
        self._let_engine_forget()

    def _remove(self, served: Served) -> None:
        self._need_unread(served)
        id, served.starting = served.registration.id, False
        try:
            self._registrations.remove(id)
        except EnvironmentProblem as error:
            raise Refused("cannot-be-kept", public_error(error)) from error
        self._halt(served)
        with self._telling:
            del self._served[id]
            self._tell("removed", {"id": id})
        served.answers.close(over=True)

    def _need_unread(self, served: Served) -> None:
        """Raise :class:`Refused` if running queries read a query's answers: they would get none."""
        query = served.query
        readers = () if query is None else self._engine.readers(query.name)
        if readers:
            raise Refused("is-read", read_by(served.registration.name, readers), readers=readers)

    # The engine's turns ---------------------------------------------------------------------------

    @contextmanager
    def _engine_alone(self) -> Iterator[None]:
        """Have the engine for oneself; raises :class:`Refused` if another change takes long."""
        if not self._turn.acquire(timeout=self.limits.change_seconds):
            raise Refused("unavailable", ENGINE_BUSY)
        try:
            self.need_ready()
            self._end_halted()
            yield
        finally:
            self._end_halted()
            self._turn.release()

    def _let_engine_forget(self) -> None:
        """Let the engine forget halted queries; if it is busy for long, that is done later."""
        others_wait = len(self._halted) > 1
        if self._turn.acquire(timeout=0 if others_wait else self.limits.change_seconds):
            try:
                self._end_halted()
            finally:
                self._turn.release()

    def _end_halted(self) -> None:
        while self._halted:
            self._halted.popleft().stop()

    def _await(self, id: str) -> None:
        """Wait for a query that is being registered or resumed, but not for long."""

        def is_settled() -> bool:
            served = self._served.get(id)
            return id not in self._coming and (served is None or not served.starting)

        self._book.wait_for(is_settled, self.limits.change_seconds)

    def _new(self, registration: QueryRegistration) -> Served:
        return Served(registration, Answers(self.bell, self.limits), self.intake)

    def _run(self, served: Served) -> None:
        registration, run = served.registration, object()
        sink = answer_sink(lambda kept: self._answered(served, run, kept))
        served.run = run
        served.begins()
        served.query = self._engine.register(
            registration.text,
            name=registration.name,
            file=FILE,
            sinks=[sink],
            backlog=0,
            weight=registration.weight,
        )

    def _halt(self, served: Served) -> None:
        """End a query's answers; the engine forgets it at the end of the present turn."""
        with self._telling:
            served.run = None
        query, served.query = served.query, None
        if query is not None:
            # Also a failed one, so that the engine forgets it.
            query.finish(None, forget=True)
            self._halted.append(query)

    def _keep(self, registration: QueryRegistration) -> None:
        try:
            self._registrations.write(registration)
        except EnvironmentProblem as error:
            raise Refused("cannot-be-kept", public_error(error)) from error

    def _name(self, asked: str | None, registered: str | None) -> str:
        taken = {each.registration.name for each in self._served.values()}
        name = asked or registered
        if name is None:
            return _unlike("query", taken)
        if not _NAME.fullmatch(name):
            raise Refused("invalid-request", "a query's name has 1 to 200 printable characters")
        if name in taken:
            other = next(
                each.registration.id
                for each in self._served.values()
                if each.registration.name == name
            )
            raise Refused(
                "name-taken",
                f'a query named "{name}" is registered already: remove it first',
                query=other,
            )
        return name

    def _free_id(self, name: str) -> str:
        last = re.split(r"[/#:]", name.rstrip("/#:"))[-1]
        return _unlike(_NOT_IN_ID.sub("-", last).strip("-")[:40] or "query", self._served)

    # Notices to readers ---------------------------------------------------------------------------

    def query_changed(self, name: str) -> None:
        """Announce a change of a query's state."""
        for served in self._named(name):
            self._tell_of(served)

    def unanswered(self, window: Unanswered) -> None:
        """Count and announce a window without an answer."""
        for served in self._named(window.query):
            served.note_unanswered(window)
            self._tell_of(served)

    def _named(self, name: str) -> list[Served]:
        return [each for each in self.queries() if each.registration.name == name]

    def _tell_of(self, served: Served) -> None:
        """Announce a query's state, which is read under the lock.

        So it is never older than one announced before, nor announced after the query's end.
        """
        with self._telling:
            if self._served.get(served.registration.id) is served:
                self._tell("query", served.to_json())

    def tell_items(self) -> None:
        """Announce new items for queries without an answer, if there are any. O(such queries)."""
        waiting = {each.registration.id: each.streams() for each in self.queries() if each.waits}
        told, self._told_items = self._told_items, waiting
        changed = {
            id: streams
            for id, streams in waiting.items()
            if streams != told.get(id) and any(each["items"] for each in streams)
        }
        if changed:
            self._tell("items", {"queries": changed})

    def tell_waits(self) -> None:
        """Look at the things that queries wait for, and announce those that have changed.

        O(queries). Blocks on the sources' files.
        """
        waits = self._engine.waiting()
        queries = self.queries()
        for each in queries:
            each.waiting = waits.get(each.registration.name)
        now = {each.registration.id: each.waits_for() for each in queries}
        told, self._told_waits = self._told_waits, now
        changed = {id: waiting for id, waiting in now.items() if waiting != told.get(id)}
        if changed:
            self._tell("waiting", {"queries": changed})

    def _announce(self, served: Served) -> None:
        with self._telling:
            self._served[served.registration.id] = served
            self._tell_of(served)
            newest = served.answers.newest()
            if newest is not None:
                self._put("answer", newest.of(served.registration.id))

    def _answered(self, served: Served, run: object, kept: KeptAnswer) -> None:
        """Store and announce an answer, unless its query was halted during the batch."""
        with self._telling:
            if served.run is not run:
                return
            served.answers.put(kept)
            if served.registration.id in self._served:
                self._put("answer", kept.of(served.registration.id))

    def _tell(self, kind: str, document: dict[str, Any]) -> None:
        self._put(kind, json.dumps(document).encode())

    def _put(self, kind: str, data: bytes) -> None:
        with self._telling:
            self._next_event += 1
            self.events.put(Event(self._next_event, kind, data))


class _Observing(Silent):
    """Observer that tells the service of items, and of queries that end by themselves."""

    def __init__(self, service: QueryService) -> None:
        self._service = service

    def batch(self, seen: BatchSeen) -> None:
        """Count items."""
        self._service.intake.batch(seen)

    def unanswered(self, window: Unanswered) -> None:
        """Announce a window without an answer."""
        self._service.unanswered(window)

    def query(self, name: str, state: QueryState) -> None:
        """Announce failures and ends."""
        if state in (QueryState.FAILED, QueryState.ENDED):
            self._service.query_changed(name)


def _unlike(name: str, taken: Any) -> str:
    return next(
        each
        for each in (name, *(f"{name}-{at}" for at in range(2, len(taken) + 3)))
        if each not in taken
    )
