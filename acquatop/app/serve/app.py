"""HTTP application of the service: routes, handlers, and the mapping of errors to problems."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakValueDictionary

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from acquatop.app.serve.access import Tokens
from acquatop.app.serve.answers import KeptAnswer
from acquatop.app.serve.bounded_executor import BoundedExecutor
from acquatop.app.serve.channel import EventId
from acquatop.app.serve.formats import FORMATS, JSON, TABLES, chosen
from acquatop.app.serve.guard import Guard
from acquatop.app.serve.http_metrics import Meters
from acquatop.app.serve.openapi import document
from acquatop.app.serve.page import Page
from acquatop.app.serve.problems import Problem
from acquatop.app.serve.readers import EventStream, Readers, missed_answers
from acquatop.app.serve.redaction import UNSAID, public_error
from acquatop.app.serve.refusals import Refusals, note_limit
from acquatop.app.serve.responses import json_response, problem_response
from acquatop.app.serve.service import ENGINE_BUSY, FILE, QueryService, Refused, Served
from acquatop.app.serve.spreadsheet import without_formulas
from acquatop.catalog.catalog import Catalog
from acquatop.errors import EnvironmentProblem, UserError
from acquatop.plan.weight import checked_weight
from replica.clocks import Clock
from rspql.diagnostics import MOST_SHOWN, QueryError
from rspql.explain import render

QUERY_TYPES = ("application/sparql-query", "text/plain")
NO_TOKENS = Tokens()
_LARGEST_ID = 2**53
_LONGEST_KEY = 2_000


def make_app(
    service: QueryService,
    meters: Meters,
    *,
    tokens: Tokens = NO_TOKENS,
    hosts: Collection[str] = (),
    refusals: Refusals | None = None,
    clock: Clock = time.monotonic,
) -> ASGIApp:
    """Return the application of a service; run it in one event loop, with its lifespan.

    With ``tokens``, every request needs one but those for the page, the health checks and the
    OpenAPI document. ``hosts`` are names that the service may be addressed by, besides addresses
    and ``localhost``.
    """
    refusals = refusals or Refusals(clock=clock)
    api = Api(service, meters, refusals, clock)
    handlers: Any = {**_HANDLERS, Problem: api.refuse}
    app = Starlette(routes=api.routes(), lifespan=api.lifespan, exception_handlers=handlers)
    return Guard(
        app,
        tokens=tokens,
        hosts=hosts,
        limits=service.limits,
        meters=meters,
        refusals=refusals,
        clock=clock,
    )


class Api:
    """Handlers of requests.

    Slow work runs at three desks. Registering and resuming may ask a remote: one at a time. Pausing
    and removing do not wait for that; nor do checks, plans and encodings, two at a time.
    """

    def __init__(
        self, service: QueryService, meters: Meters, refusals: Refusals, clock: Clock
    ) -> None:
        limits = service.limits
        self._refusals = refusals
        self._service = service
        self._meters = meters
        self._limits = limits
        self._readers = Readers(limits, meters=meters, clock=clock)
        self._starts = BoundedExecutor(
            threads=1,
            most=limits.waiting,
            within=limits.change_seconds,
            busy=ENGINE_BUSY,
        )
        self._ends = BoundedExecutor(threads=4, most=limits.waiting)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._studies = BoundedExecutor(threads=2, most=limits.waiting)
        self._page = Page.load()

    def routes(self) -> list[Route]:
        """Return the routes; the OpenAPI document lists the same."""
        one = "/queries/{id}"
        return [
            Route("/queries", self.queries, methods=["GET", "POST"]),
            Route(one, self.query, methods=["GET", "DELETE"]),
            Route(f"{one}/pause", self.pause, methods=["POST"]),
            Route(f"{one}/resume", self.resume, methods=["POST"]),
            Route(f"{one}/plan", self.plan, methods=["GET"]),
            Route(f"{one}/state", self.state, methods=["GET"]),
            Route(f"{one}/answer", self.answer, methods=["GET"]),
            Route(f"{one}/answer/why", self.why, methods=["GET"]),
            Route(f"{one}/answers", self.answers, methods=["GET"]),
            Route(f"{one}/answers/{{closes}}", self.answer_at, methods=["GET"]),
            Route(f"{one}/answers/{{closes}}/why", self.why_at, methods=["GET"]),
            Route(f"{one}/events", self.query_events, methods=["GET"]),
            Route("/events", self.events, methods=["GET"]),
            Route("/check", self.check, methods=["POST"]),
            Route("/explain", self.explain, methods=["POST"]),
            Route("/catalog", self.catalog, methods=["GET"]),
            Route("/reload", self.reload, methods=["POST"]),
            Route("/metrics", self.metrics, methods=["GET"]),
            Route("/healthz", self.healthz, methods=["GET"]),
            Route("/readyz", self.readyz, methods=["GET"]),
            Route("/openapi.json", self.openapi, methods=["GET"]),
            Route("/", self.page, methods=["GET"]),
            Route("/page/{file}", self.page, methods=["GET"]),
        ]

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Connect the engine's threads to the readers while the event loop runs."""
        self._service.bell.attach()
        tasks = [
            asyncio.create_task(self._readers.keep_alive(self._limits.heartbeat_seconds)),
            asyncio.create_task(self._tell_items(self._limits.items_seconds)),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._service.bell.detach()

    async def _tell_items(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            self._service.tell_items()
            await asyncio.to_thread(self._service.tell_waits)

    # Queries --------------------------------------------------------------------------------------

    async def queries(self, request: Request) -> Response:
        """List the queries, or register one."""
        if request.method != "POST":
            return json_response({"queries": [each.to_json() for each in self._service.queries()]})
        name, weight = _given(request)
        text = await self._text(request)
        document = await self._starts.do(_described, self._service.register, text, name, weight)
        return json_response(document, 201, location=f"/queries/{document['id']}")

    async def query(self, request: Request) -> Response:
        """Return a query, or remove it."""
        id = request.path_params["id"]
        if request.method != "DELETE":
            return json_response(_said(self._service.query, id).to_json())
        async with self._alone(id):
            await self._ends.do(_said, self._service.remove, id)
        return Response(status_code=204)

    async def pause(self, request: Request) -> Response:
        """Pause a query."""
        id = request.path_params["id"]
        async with self._alone(id):
            return json_response(await self._ends.do(_described, self._service.pause, id))

    async def resume(self, request: Request) -> Response:
        """Resume a query."""
        id = request.path_params["id"]
        async with self._alone(id):
            return json_response(await self._starts.do(_described, self._service.resume, id))

    @asynccontextmanager
    async def _alone(self, id: str) -> AsyncIterator[None]:
        """Let other changes of the same query be done, unless one takes long."""
        turn = self._turns.setdefault(id, asyncio.Lock())
        try:
            await asyncio.wait_for(turn.acquire(), self._limits.change_seconds)
        except TimeoutError:
            yield
            return
        try:
            yield
        finally:
            turn.release()

    async def plan(self, request: Request) -> Response:
        """Return the plan of a query."""
        served = _said(self._service.query, request.path_params["id"])
        return await self._explained(request, served.registration.text)

    async def state(self, request: Request) -> Response:
        """Return the candidates that a query holds of its open windows."""
        found = await self._studies.do(_said, self._service.lists, request.path_params["id"])
        return json_response({"windows": [each.to_json() for each in found]})

    async def check(self, request: Request) -> Response:
        """Return the diagnostics of a text, as ``acquatop check --json`` does."""
        text = await self._text(request)
        analysis = await self._studies.do(self._service.check, text)
        found = [each.to_json(FILE) for each in analysis.diagnostics[:MOST_SHOWN]]
        return json_response({"file": FILE, "ok": analysis.ok, "diagnostics": found})

    async def explain(self, request: Request) -> Response:
        """Return the plan of a text."""
        return await self._explained(request, await self._text(request))

    async def _explained(self, request: Request, text: str) -> Response:
        kind = _chosen(request, (JSON, "text/plain"))
        plan = await self._studies.do(_said, self._service.explain, text)
        if kind == JSON:
            return json_response(plan)
        return Response(render(plan), headers=_NO_STORE, media_type="text/plain")

    async def _text(self, request: Request) -> str:
        """Return the query's text in the body of a request."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in QUERY_TYPES:
            raise Problem(
                "unsupported-media-type", f"send the query's text as {' or '.join(QUERY_TYPES)}"
            )
        try:
            async with asyncio.timeout(self._limits.request_seconds):
                body = await _body(request, self._limits.text_bytes)
        except TimeoutError:
            raise Problem(
                "timeout", f"the body must be here within {self._limits.request_seconds:g} s"
            ) from None
        try:
            return body.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise Problem("invalid-request", "the query's text is not UTF-8") from None

    # Answers --------------------------------------------------------------------------------------

    async def answer(self, request: Request) -> Response:
        """Return the newest answer, or 204 before the first."""
        served = _said(self._service.query, request.path_params["id"])
        is_for_people = _is_for_people(request)
        kept = served.answers.newest()
        return (
            Response(status_code=204, headers=_NO_STORE)
            if kept is None
            else await self._written(request, kept, is_for_people)
        )

    async def answer_at(self, request: Request) -> Response:
        """Return the answer of the window that closes at a time."""
        is_for_people = _is_for_people(request)
        return await self._written(request, self._kept_at(request), is_for_people)

    def _kept_at(self, request: Request) -> KeptAnswer:
        served = _said(self._service.query, request.path_params["id"])
        id = EventId.parse(request.path_params["closes"])
        kept: KeptAnswer | None = None if id is None else served.answers.find(id)
        if kept is None:
            raise Problem("not-found", "no such answer is kept")
        return kept

    async def why(self, request: Request) -> Response:
        """Return why a key is in the newest answer, or is not."""
        served = _said(self._service.query, request.path_params["id"])
        kept = served.answers.newest()
        if kept is None:
            raise Problem("not-found", "there is no answer yet")
        return await self._explained_why(request, kept)

    async def why_at(self, request: Request) -> Response:
        """Return why a key is in the answer of a window, or is not."""
        return await self._explained_why(request, self._kept_at(request))

    async def _explained_why(self, request: Request, kept: KeptAnswer) -> Response:
        given = request.query_params.getlist("key")
        if len(given) != 1 or not given[0].strip() or len(given[0]) > _LONGEST_KEY:
            raise Problem("invalid-request", f"key is a text of 1 to {_LONGEST_KEY}, given once")
        assert kept.answer is not None
        found = await self._studies.do(_said, kept.answer.why, given[0])
        return json_response(found.to_json())

    async def _written(self, request: Request, kept: KeptAnswer, is_for_people: bool) -> Response:
        answer = kept.answer
        assert answer is not None
        formats = {each.media_type: each for each in FORMATS if answer.form in each.forms}
        kind = _chosen(request, (JSON, *formats))
        is_safe = is_for_people and kind in TABLES
        tag = f"{kept.id}-{kept.number}{'-spreadsheet' if is_safe else ''}"
        headers = {**_NO_STORE, "vary": "Accept, Sec-Fetch-Site", "etag": f'"{tag}"'}
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        if kind == JSON:
            return Response(kept.data, headers=headers, media_type=JSON)
        shown = without_formulas(answer) if is_safe else answer
        body = await self._studies.do(formats[kind].encode, shown)
        return Response(body, headers=headers, media_type=formats[kind].media_type)

    async def answers(self, request: Request) -> Response:
        """Return the answers of windows that close after a time, oldest first."""
        served = _said(self._service.query, request.path_params["id"])
        after = _parameter(request, "after", -_LARGEST_ID, least=-_LARGEST_ID, most=_LARGEST_ID)
        limit = _parameter(request, "limit", self._limits.answers, least=1, most=_LARGEST_ID)
        kept = [each for each in served.answers.after(0).events if each.id > after]
        body = b'{"answers": [' + b", ".join(each.data for each in kept[:limit]) + b"]}"
        return Response(body, headers=_NO_STORE, media_type=JSON)

    async def query_events(self, request: Request) -> EventStream:
        """Stream a query's answers, from its newest on, or after the last one that was read."""
        answers = _said(self._service.query, request.path_params["id"]).answers
        read = _last_event(request)
        newest = answers.newest()
        number = answers.last if newest is None else newest.number - 1
        return EventStream(
            self._readers,
            answers,
            number if read is None else answers.number_of(read),
            opening=missed_answers,
        )

    async def events(self, request: Request) -> EventStream:
        """Stream the events of all queries.

        A stream begins with a snapshot, or continues after the last event that was read.
        """
        read, events = _last_event(request), self._service.events
        number = 0 if read is None else events.number_of(read)
        return EventStream(
            self._readers, events, number, opening=self._service.snapshot, begins=number == 0
        )

    async def refuse(self, request: Request, error: Exception) -> Response:
        """Return the response for a problem."""
        assert isinstance(error, Problem)
        note_limit(self._refusals, error, request.scope)
        return problem_response(error)

    # The service itself ---------------------------------------------------------------------------

    async def catalog(self, request: Request) -> Response:
        """Return the names that queries may use."""
        return json_response(named_in(self._service.catalog))

    async def reload(self, request: Request) -> Response:
        """Read the catalog again, and return the names that queries may use from now on."""
        await self._starts.do(_said, self._service.reload)
        return json_response(named_in(self._service.catalog))

    async def metrics(self, request: Request) -> Response:
        """Return all metrics in the text format of Prometheus."""
        body = await self._studies.do(generate_latest, self._meters.registry)
        return Response(body, headers={**_NO_STORE, "content-type": CONTENT_TYPE_PLAIN_0_0_4})

    async def healthz(self, request: Request) -> Response:
        """Return that the process is alive."""
        return json_response({"status": "ok"})

    async def readyz(self, request: Request) -> Response:
        """Return 200 if queries can be registered and answered, else 503."""
        if not self._service.is_ready:
            raise Problem("unavailable", "the engine is starting or stopping", retry_after=1.0)
        return json_response({"status": "ready"})

    async def openapi(self, request: Request) -> Response:
        """Return the OpenAPI description."""
        return json_response(document())

    async def page(self, request: Request) -> Response:
        """Return the page, or one of its files."""
        return self._page.response(request.path_params.get("file", "index.html"), request.headers)


def named_in(catalog: Catalog) -> dict[str, Any]:
    """Return the public part of a catalog: names and budgets, no addresses of remotes."""
    return {
        "prefixes": dict(catalog.prefixes),
        "streams": [
            {"iri": stream.iri, "arrivals": stream.arrivals, "lateness_ms": stream.lateness_ms}
            for stream in catalog.streams.values()
        ],
        "services": [
            {
                "iri": service.iri,
                "policy": service.refresh.policy,
                "items": service.refresh.budget.items,
                "requests": service.refresh.budget.requests,
                "deadline_ms": round(1000 * service.refresh.budget.seconds),
            }
            for service in catalog.services.values()
        ],
        "graphs": list(catalog.graphs),
    }


# Parsing of requests ------------------------------------------------------------------------------

_NO_STORE = {"cache-control": "no-store"}


async def _body(request: Request, most: int) -> bytes:
    too_large = Problem("too-large", f"a query's text may have {most} bytes")
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > most:
                raise too_large
    except ClientDisconnect:
        raise Problem("invalid-request", "the body ended early") from None
    return bytes(body)


def _chosen(request: Request, offered: Sequence[str]) -> str:
    kind = chosen(request.headers.get("accept"), offered)
    if kind is None:
        raise Problem(
            "not-acceptable", f"it can be had as {', '.join(offered)}", {"offered": list(offered)}
        )
    return kind


def _given(request: Request) -> tuple[str | None, float]:
    """Return the name and the weight that a registration asks for."""
    given = request.query_params
    if set(given) - {"name", "weight"} or len(given.multi_items()) > len(set(given)):
        raise Problem("invalid-request", "the only parameters are name and weight, each once")
    try:
        return given.get("name"), checked_weight(float(given.get("weight", 1)))
    except ValueError:
        raise Problem("invalid-request", "weight is not a number") from None
    except UserError as error:
        raise Problem("invalid-request", str(error).partition("\n")[0]) from None


def _is_whole(text: str) -> bool:
    # Windows that close before 1970 have negative ids.
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and len(digits) <= 16


def _whole(text: str, what: str) -> int:
    if not _is_whole(text):
        raise Problem("invalid-request", f"{what} is not a whole number")
    return int(text)


def _parameter(request: Request, name: str, default: int, *, least: int, most: int) -> int:
    given = request.query_params.getlist(name)
    if not given:
        return default
    number = _whole(given[-1], name)
    if len(given) > 1 or not least <= number <= most:
        raise Problem("invalid-request", f"{name} is a number from {least} to {most}, given once")
    return number


def _is_for_people(request: Request) -> bool:
    """Return True if tables must be safe to open in a spreadsheet: a browser's, unless it says no.

    Browsers send Sec-Fetch-Site, and programs do not.
    """
    given = request.query_params.getlist("spreadsheet")
    if not given:
        return "sec-fetch-site" in request.headers
    if len(given) > 1 or given[0] not in ("true", "false"):
        raise Problem("invalid-request", "spreadsheet is true or false, given once")
    return given[0] == "true"


def _last_event(request: Request) -> EventId | None:
    return EventId.parse(request.headers.get("last-event-id", "").strip())


# Errors -------------------------------------------------------------------------------------------


def _said(work: Callable[..., Any], *args: Any) -> Any:
    """Do some work, and translate its errors into problems without private details."""
    try:
        return work(*args)
    except QueryError as error:
        raise invalid_query(error) from error
    except Refused as error:
        raise Problem(
            error.kind, str(error), error.more, 1.0 if error.kind == "unavailable" else None
        ) from error
    except UserError as error:
        raise Problem("conflict", public_error(error)) from error
    except EnvironmentProblem as error:
        raise Problem("surroundings", public_error(error)) from error


def _described(change: Callable[..., Served], *args: Any) -> dict[str, Any]:
    """Change a query, and return its new state."""
    served: Served = _said(change, *args)
    return served.to_json()


def invalid_query(error: QueryError) -> Problem:
    """Return the problem of a query that cannot be run.

    It contains the data of ``acquatop check --json``.
    """
    found = [each.to_json(FILE) for each in error.diagnostics[:MOST_SHOWN]]
    first = next((each for each in error.diagnostics if each.is_error), error.diagnostics[0])
    place = "" if first.span is None else f"{first.line}:{first.column}: "
    return Problem("invalid-query", f"{place}{first.message}", {"diagnostics": found})


async def _unknown(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allow = (error.headers or {}).get("Allow", "")
        return problem_response(
            Problem("method-not-allowed", f"possible here: {allow}", {"allow": allow})
        )
    return problem_response(Problem("not-found", "no such address"))


async def _defect(request: Request, error: Exception) -> Response:
    return problem_response(Problem("internal", UNSAID))


_HANDLERS: Any = {HTTPException: _unknown, Exception: _defect}
