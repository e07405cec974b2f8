"""The queries that a service answers: registered, paused, resumed and removed while it runs. It knows no HTTP."""

from __future__ import annotations

import functools
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Concatenate, ParamSpec, TypeVar

from acquatop.app.serve.answers import Answers, KeptAnswer, answer_sink
from acquatop.app.serve.bell import Bell
from acquatop.app.serve.channel import Channel, Event, frame
from acquatop.app.serve.limits import Limits
from acquatop.app.serve.public import public_error
from acquatop.app.serve.registrations import InMemory, Registration, Registrations
from acquatop.app.watch.intake import Came, Intake
from acquatop.catalog.catalog import Catalog
from acquatop.engine.engine import Engine, RegisteredQuery
from acquatop.engine.observer import BatchSeen, Observer, QueryState, Silent
from acquatop.errors import EnvironmentProblem, UserError
from acquatop.instants import instant_text
from acquatop.plan.check import check_query, replicas_of, structure_of
from replica.clocks import Clock
from rspql.compiler import Analysis
from rspql.diagnostics import QueryError
from rspql.explain import explain

Given = ParamSpec("Given")
Result = TypeVar("Result")

FILE = "query"
"""What messages call a query's text."""

_NAME = re.compile(r"[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]{0,198}[^\s\x00-\x1f\x7f])?")
_NOT_IN_ID = re.compile(r"[^A-Za-z0-9_]+")


class Refused(UserError):  # noqa: N818 (it is an answer to who asks, and none to who runs the service)
    """What is asked for is refused; ``kind`` is that of the problem (:mod:`acquatop.app.serve.problems`)."""

    def __init__(self, kind: str, message: str, **more: Any) -> None:
        super().__init__(message)
        self.kind = kind
        self.more = more


class Served:
    """One query of the service: what was asked for, what has become of it, and its last answers."""

    def __init__(self, registration: Registration, answers: Answers, intake: Intake) -> None:
        self.registration = registration
        self.answers = answers
        self._intake = intake
        self._before: Mapping[str, Came] = {}
        self.warnings: Sequence[dict[str, object]] = ()
        self.query: RegisteredQuery | None = None
        self.run: object = None
        """Stands for the time between its start and its halt: answers of another are not wanted."""
        self.problem: str | None = None
        """Why it could not even begin."""

    @property
    def state(self) -> str:
        """``running``, ``paused``, ``failed``, or ``ended`` with its streams."""
        query = self.query  # once, as another thread may take it away
        if self.registration.paused:
            return "paused"
        if self.problem is not None or (query is not None and query.error is not None):
            return "failed"
        return "ended" if query is None or query.stopped else "running"

    @property
    def error(self) -> str | None:
        """Why it has failed, as far as outsiders may know."""
        query = self.query
        if self.state != "failed":
            return None
        error = None if query is None else query.error
        return self.problem if error is None else public_error(error)

    def begins(self) -> None:
        """Count the items of its streams from now on."""
        self._before = self._intake.streams()

    def streams(self) -> list[dict[str, Any]]:
        """Return the items of its streams since it began, and the bad ones among them by reason."""
        query = self.query
        names = () if query is None else query.streams
        came = {name: self._intake.of(name).since(self._before.get(name, Came())) for name in names}
        return [{"iri": name, "items": each.items, "bad": dict(each.bad)} for name, each in came.items()]

    @property
    def waits(self) -> bool:
        """True if it runs, and has not been answered."""
        return self.state == "running" and self.answers.newest() is None

    def to_json(self) -> dict[str, Any]:
        """Return what there is to say of it, but for its answers."""
        registration, newest = self.registration, self.answers.newest()
        return {
            "id": registration.id,
            "name": registration.name,
            "state": self.state,
            "error": self.error,
            "registered": instant_text(registration.since_ms),
            "newest": None if newest is None else newest.id,
            "streams": self.streams(),
            "text": registration.text,
            "warnings": list(self.warnings),
        }


def _changing(
    method: Callable[Concatenate[Service, Given], Result],
) -> Callable[Concatenate[Service, Given], Result]:
    """Let a method be done by one thread at a time, and only as long as the engine runs."""

    @functools.wraps(method)
    def one_by_one(self: Service, /, *given: Given.args, **more: Given.kwargs) -> Result:
        self.need_ready()
        with self.turn:
            self.need_ready()
            return method(self, *given, **more)

    return one_by_one


class Service:
    """An engine's queries, for many. Safe for several threads.

    ``make_engine`` is given the observer that the engine must have, and returns one that has not started. ``events``
    are those of all queries, ``intake`` counts the items of all streams.
    """

    def __init__(
        self,
        make_engine: Callable[[Observer], Engine],
        *,
        registrations: Registrations | None = None,
        limits: Limits | None = None,
        intake: Intake | None = None,
        wall: Clock = time.time,
    ) -> None:
        self.limits = limits or Limits()
        self.bell = Bell()
        self.events: Channel[Event] = Channel(self.bell, most=self.limits.events, most_bytes=self.limits.events_bytes)
        self.is_ready = False
        self.turn = threading.Lock()
        self._wall = wall
        self._registrations = registrations or InMemory()
        self._served: dict[str, Served] = {}
        # Held while something is put into ``events``: what is told of a query keeps its order.
        self._telling = threading.RLock()
        self._next_event = round(1_000_000 * wall())
        self.intake = intake or Intake()
        self._told_items: dict[str, list[dict[str, Any]]] = {}
        self._engine = make_engine(_Observing(self))

    def start(self) -> None:
        """Take up what is registered, and start the engine. Raises what :meth:`Engine.start` does."""
        with self.turn:
            for registration in self._registrations.read():
                self._take_up(registration)
            self._engine.start()
            self.is_ready = True

    def _take_up(self, registration: Registration) -> None:
        served = self._new(registration)
        if not registration.paused:
            try:
                self._run(served)
            except (QueryError, UserError) as error:
                # The catalog has changed, perhaps; the others go on.
                served.problem = public_error(error)
        self._announce(served)

    def stop(self) -> None:
        """End the streams of events, and stop the engine; what is registered stays so. Safe to call again."""
        self.is_ready = False
        self.events.close()
        for served in self.queries():
            served.answers.close()
        with self.turn:
            self._engine.stop()

    def need_ready(self) -> None:
        """Raise :class:`Refused` as long as nothing can be changed."""
        if not self.is_ready:
            raise Refused("unavailable", "the engine is starting or stopping; try again in a moment")

    @property
    def catalog(self) -> Catalog:
        """What queries may name."""
        return self._engine.catalog

    # What there is --------------------------------------------------------------------------------

    def queries(self) -> list[Served]:
        """Return all queries, in the order of their registration."""
        with self._telling:
            return list(self._served.values())

    def query(self, id: str) -> Served:
        """Return a query; raises :class:`Refused` if there is none of that id."""
        served = self._served.get(id)
        if served is None:
            raise Refused("not-found", f'there is no query "{id}"')
        return served

    def snapshot(self, number: int, missed: int) -> tuple[int, Iterator[bytes]]:
        """Return the opening of a reader of all events: the newest event's number, and frames of all at a glance."""
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
        """Return all that can be said about a query without running it."""
        return check_query(text, catalog=self.catalog, file=FILE)

    def explain(self, text: str) -> dict[str, Any]:
        """Return how a query would be answered; raises :class:`QueryError` for one that cannot be."""
        analysis = self._good(text)
        return explain(analysis, replicas_of(self.catalog), structure_of(analysis, self.catalog))

    def _good(self, text: str) -> Analysis:
        analysis = self.check(text)
        if analysis.plan is None or not analysis.ok:
            raise QueryError(analysis.diagnostics, text, FILE)
        return analysis

    # What changes ---------------------------------------------------------------------------------

    @_changing
    def register(self, text: str, name: str | None = None) -> Served:
        """Run a query from now on, and keep that it is wanted.

        ``name`` is that of its answers, in place of what it says by REGISTER. Raises :class:`QueryError` for what is
        wrong with the text, :class:`Refused` for what is not possible now, and :class:`EnvironmentProblem` when a
        remote cannot be reached.
        """
        if len(self._served) >= self.limits.queries:
            most = self.limits.queries
            raise Refused("too-many-queries", f"{most} queries are registered, as many as may be: remove one first")
        analysis = self._good(text)
        assert analysis.plan is not None
        named = self._name(name, analysis.plan.name)
        served = self._new(Registration(self._free_id(named), named, text, round(1000 * self._wall())))
        served.warnings = [each.to_json(FILE) for each in analysis.diagnostics]
        self._run(served)
        try:
            self._keep(served.registration)
        except Refused:
            self._halt(served)
            raise
        self._announce(served)
        return served

    @_changing
    def pause(self, id: str) -> Served:
        """Let a query be as if it were not there: nothing is read for it and no remote asked. Its answers stay."""
        served = self.query(id)
        if not served.registration.paused:
            paused = replace(served.registration, paused=True)
            self._keep(paused)
            served.registration = paused
            self._halt(served)
            self._tell_of(served)
        return served

    @_changing
    def resume(self, id: str) -> Served:
        """Let a query that is paused, or has failed, begin anew: with the first windows that open from now on."""
        served = self.query(id)
        if served.state == "running":
            return served
        self._run(served)
        resumed = replace(served.registration, paused=False)
        try:
            self._keep(resumed)
        except Refused:
            self._halt(served)
            raise
        served.problem, served.registration = None, resumed
        self._tell_of(served)
        return served

    @_changing
    def remove(self, id: str) -> None:
        """End a query, and forget it and its answers."""
        served = self.query(id)
        try:
            self._registrations.remove(id)
        except EnvironmentProblem as error:
            raise Refused("cannot-be-kept", public_error(error)) from error
        self._halt(served)
        with self._telling:
            del self._served[id]
            self._tell("removed", {"id": id})
        served.answers.close(over=True)

    def _new(self, registration: Registration) -> Served:
        return Served(registration, Answers(self.bell, self.limits), self.intake)

    def _run(self, served: Served) -> None:
        registration, run = served.registration, object()
        sink = answer_sink(lambda kept: self._answered(served, run, kept))
        served.run = run
        served.begins()
        served.query = self._engine.register(
            registration.text, name=registration.name, file=FILE, sinks=[sink], backlog=0
        )

    def _halt(self, served: Served) -> None:
        # Also one that has failed: the engine forgets it then.
        with self._telling:
            served.run = None
        query, served.query = served.query, None
        if query is not None:
            query.stop()

    def _keep(self, registration: Registration) -> None:
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
            other = next(each.registration.id for each in self._served.values() if each.registration.name == name)
            raise Refused("name-taken", f'a query named "{name}" is registered already: remove it first', query=other)
        return name

    def _free_id(self, name: str) -> str:
        last = re.split(r"[/#:]", name.rstrip("/#:"))[-1]
        return _unlike(_NOT_IN_ID.sub("-", last).strip("-")[:40] or "query", self._served)

    # What is told ---------------------------------------------------------------------------------

    def query_changed(self, name: str) -> None:
        """Tell what has become of a query."""
        served = next((each for each in self.queries() if each.registration.name == name), None)
        if served is not None:
            self._tell_of(served)

    def _tell_of(self, served: Served) -> None:
        """Tell a query's state, read under the lock: it is never older than one told before, nor told after its end."""
        with self._telling:
            if self._served.get(served.registration.id) is served:
                self._tell("query", served.to_json())

    def tell_items(self) -> None:
        """Tell readers what has come for queries without an answer, if anything new has. O(such queries)."""
        waiting = {each.registration.id: each.streams() for each in self.queries() if each.waits}
        told, self._told_items = self._told_items, waiting
        changed = {
            id: streams
            for id, streams in waiting.items()
            if streams != told.get(id) and any(each["items"] for each in streams)
        }
        if changed:
            self._tell("items", {"queries": changed})

    def _announce(self, served: Served) -> None:
        with self._telling:
            self._served[served.registration.id] = served
            self._tell_of(served)
            newest = served.answers.newest()
            if newest is not None:
                self._put("answer", newest.of(served.registration.id))

    def _answered(self, served: Served, run: object, kept: KeptAnswer) -> None:
        """Keep and tell an answer, unless its query was halted while the batch was under way."""
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
    """Tells the service of items, and of queries that have come to an end by themselves."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def batch(self, seen: BatchSeen) -> None:
        """Count items."""
        self._service.intake.batch(seen)

    def query(self, name: str, state: QueryState) -> None:
        """Hand on what readers should know."""
        if state in (QueryState.FAILED, QueryState.ENDED):
            self._service.query_changed(name)


def _unlike(name: str, taken: Any) -> str:
    return next(each for each in (name, *(f"{name}-{at}" for at in range(2, len(taken) + 3))) if each not in taken)
