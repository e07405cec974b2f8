"""OpenAPI 3.1 description of the service; tests compare it with the service's behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from acquatop import __version__
from acquatop.answer.answer import Status
from acquatop.app.serve.formats import FORMATS
from acquatop.app.serve.limits import Limits
from acquatop.app.serve.problems import KINDS, MEDIA_TYPE, PREFIX
from acquatop.engine.waiting.kinds import WaitingKind

_JSON = "application/json"
Document = dict[str, Any]


def document() -> Document:
    """Return the OpenAPI document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "AcquaTop",
            "version": __version__,
            "description": (
                "Continuous top-k queries over an RDF stream joined with remote data that keeps "
                "changing."
            ),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"token": []}, {}],
        "paths": {**_queries(), **_answers(), **_texts(), **_itself()},
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


# Paths --------------------------------------------------------------------------------------------


def _queries() -> Document:
    one, query = "/queries/{id}", {200: _json("Query", "The query")}
    return {
        "/queries": {
            "get": _operation(
                "listQueries", "List the queries", {200: _json("Queries", "The queries")}
            ),
            "post": {
                **_operation(
                    "registerQuery",
                    "Run a query from now on",
                    {
                        201: {
                            **_json("Query", "It runs"),
                            "headers": {"Location": {"schema": {"type": "string"}}},
                        }
                    },
                    "invalid-query invalid-request timeout name-taken too-large "
                    "unsupported-media-type surroundings "
                    "cannot-be-kept unavailable",
                ),
                "parameters": [
                    _parameter(
                        "name",
                        "query",
                        _NAME,
                        "What its answers are called, in place of REGISTER's name",
                    ),
                    _parameter(
                        "weight",
                        "query",
                        {"type": "number", "exclusiveMinimum": 0, "default": 1},
                        "What it counts among the queries that share a service's budget",
                    ),
                ],
                "requestBody": _TEXT,
            },
        },
        one: {
            "parameters": [_ID],
            "get": _operation("getQuery", "Show a query", query, "not-found"),
            "delete": _operation(
                "removeQuery",
                "End a query and forget it",
                {204: {"description": "It is gone"}},
                "not-found cannot-be-kept conflict is-read unavailable",
            ),
        },
        **{
            f"{one}/{verb}": {
                "parameters": [_ID],
                "post": _operation(
                    f"{verb}Query",
                    what,
                    query,
                    "not-found conflict is-read surroundings cannot-be-kept unavailable",
                ),
            }
            for verb, what in (
                ("pause", "Let a query be as if it were not there; its answers stay"),
                ("resume", "Let a query that is paused, or has failed, begin anew"),
            )
        },
        f"{one}/plan": {
            "parameters": [_ID],
            "get": _operation(
                "explainQuery",
                "Say how a query is answered",
                {200: _plan()},
                "invalid-query not-found not-acceptable unavailable",
            ),
        },
        f"{one}/state": {
            "parameters": [_ID],
            "get": _operation(
                "showState",
                "Show the candidates held of each open window",
                {200: _json("Lists", "The K-list and the N-list of each")},
                "not-found unavailable",
            ),
        },
    }


def _answers() -> Document:
    forms: Document = {_JSON: _schema("Answer"), **{each.media_type: _TEXTUAL for each in FORMATS}}
    answer: dict[int, Document] = {
        200: {
            "description": "The answer",
            "content": forms,
            "headers": {"ETag": {"schema": {"type": "string"}}},
        },
        304: {"description": "It is the one of If-None-Match"},
    }
    known = _parameter(
        "If-None-Match", "header", {"type": "string"}, "The ETag of the answer that is known"
    )
    people = _parameter(
        "spreadsheet",
        "query",
        {"type": "boolean"},
        "CSV and TSV without formulas: an apostrophe before text that begins like one; "
        "true for browsers unless given",
    )
    last = _parameter("Last-Event-ID", "header", {"type": "string"}, "The event that was read last")
    events = {
        200: {
            "description": "Events until one side ends it",
            "content": {"text/event-stream": _TEXTUAL},
        }
    }
    closes = _parameter(
        "closes",
        "path",
        {"type": "string", "minLength": 1},
        "When its window closes, in ms; of several that close then the last, "
        "or with a dot and the window's index that one",
    )
    key = {
        **_parameter(
            "key",
            "query",
            {"type": "string", "minLength": 1, "maxLength": 2000, "pattern": r"\S"},
            "An IRI, a term as N-Triples, the text of a literal, or an IRI's last part",
        ),
        "required": True,
    }
    why = {200: _json("Why", "What is known of it")}
    unwhy = "invalid-request not-found unavailable"
    one = "/queries/{id}"
    return {
        f"{one}/answer": {
            "parameters": [_ID, known, people],
            "get": _operation(
                "getAnswer",
                "Give the newest answer",
                {**answer, 204: {"description": "There is none yet"}},
                "not-found not-acceptable unavailable",
            ),
        },
        f"{one}/answers": {
            "parameters": [
                _ID,
                _parameter(
                    "after",
                    "query",
                    _TIME,
                    "Only windows that close after this time, in milliseconds",
                ),
                _parameter(
                    "limit", "query", {**_COUNT, "minimum": 1}, "So many at most, the oldest"
                ),
            ],
            "get": _operation(
                "listAnswers",
                "Give the answers that are kept, oldest first",
                {200: _json("Answers", "The answers")},
                "invalid-request not-found",
            ),
        },
        f"{one}/answers/{{closes}}": {
            "parameters": [
                _ID,
                closes,
                known,
                people,
            ],
            "get": _operation(
                "getAnswerAt", "Give one answer", answer, "not-found not-acceptable unavailable"
            ),
        },
        f"{one}/answer/why": {
            "parameters": [_ID, key],
            "get": _operation(
                "whyNewest", "Say why a key is in the newest answer, or is not", why, unwhy
            ),
        },
        f"{one}/answers/{{closes}}/why": {
            "parameters": [_ID, closes, key],
            "get": _operation("whyAt", "Say why a key is in an answer, or is not", why, unwhy),
        },
        f"{one}/events": {
            "parameters": [_ID, last],
            "get": _operation(
                "readQuery", "Read a query's answers as they come", events, "not-found unavailable"
            ),
        },
        "/events": {
            "parameters": [last],
            "get": _operation(
                "readAll", "Read all that happens to all queries", events, "unavailable"
            ),
        },
    }


def _texts() -> Document:
    wrong = "invalid-request timeout too-large unsupported-media-type unavailable"
    return {
        "/check": {
            "post": {
                **_operation(
                    "check",
                    "Say what is wrong with a query",
                    {200: _json("Findings", "What was found")},
                    wrong,
                ),
                "requestBody": _TEXT,
            }
        },
        "/explain": {
            "post": {
                **_operation(
                    "explain",
                    "Say how a query would be answered",
                    {200: _plan()},
                    f"invalid-query not-acceptable {wrong}",
                ),
                "requestBody": _TEXT,
            }
        },
    }


def _itself() -> Document:
    def plainly(name: str, what: str, media_type: str, refused: str = "") -> Document:
        found: dict[int, Document] = {200: {"description": what, "content": {media_type: _TEXTUAL}}}
        return {"get": _operation(name, what, found, refused)}

    file = _parameter("file", "path", {"type": "string", "minLength": 1}, "A file of the page")
    types = dict.fromkeys(("text/html", "text/css", "text/javascript", "image/svg+xml"), _TEXTUAL)
    page: dict[int, Document] = {
        200: {"description": "The file", "content": types},
        304: {"description": "The browser has it"},
    }
    return {
        "/catalog": {
            "get": _operation(
                "catalog", "Say what queries may name", {200: _json("Catalog", "Names")}
            )
        },
        "/reload": {
            "post": _operation(
                "reload",
                "Read the catalog again, for queries from now on",
                {200: _json("Catalog", "Names")},
                "conflict unavailable",
            )
        },
        "/metrics": plainly("metrics", "Metrics for Prometheus", "text/plain", "unavailable"),
        "/healthz": {
            "get": _operation(
                "health", "Say that the process answers", {200: _json("State", "It does")}
            )
        },
        "/readyz": {
            "get": _operation(
                "ready",
                "Say whether queries are answered",
                {200: _json("State", "Yes")},
                "unavailable",
            )
        },
        "/openapi.json": {
            "get": _operation(
                "openapi", "This description", {200: _json("Anything", "OpenAPI 3.1")}
            )
        },
        "/": plainly("page", "The live page", "text/html"),
        "/page/{file}": {
            "parameters": [file],
            "get": _operation("pageFile", "A file of the page", page, "not-found"),
        },
    }


# Parts of paths -----------------------------------------------------------------------------------

_ALWAYS = (
    "invalid-request unauthorised foreign-origin timeout too-large target-too-long unknown-host "
    "too-many-requests headers-too-large internal unknown-method unavailable"
)
_NAME = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]([ -~]*[!-~])?$"}
_COUNT = {"type": "integer", "minimum": 0, "maximum": 2**53}
_TIME = {"type": "integer", "minimum": -(2**53), "maximum": 2**53}
_TEXTUAL: Document = {"schema": {"type": "string"}}


def _operation(name: str, what: str, good: Mapping[int, Document], refused: str = "") -> Document:
    """Return an operation with its responses, and the kinds of problems it may have."""
    kinds = dict.fromkeys([*refused.split(), *_ALWAYS.split()])
    by_status: dict[int, list[str]] = {}
    for kind in kinds:
        by_status.setdefault(KINDS[kind].status, []).append(kind)
    bad = {
        str(status): {
            "description": "; or ".join(KINDS[kind].title for kind in same),
            "content": {MEDIA_TYPE: _schema("Problem")},
        }
        for status, same in sorted(by_status.items())
    }
    return {
        "operationId": name,
        "summary": what,
        "responses": {**{str(status): each for status, each in good.items()}, **bad},
    }


def _parameter(name: str, place: str, schema: Document, what: str) -> Document:
    return {
        "name": name,
        "in": place,
        "required": place == "path",
        "schema": schema,
        "description": what,
    }


def _schema(name: str) -> Document:
    return {"schema": {"$ref": f"#/components/schemas/{name}"}}


def _json(name: str, what: str) -> Document:
    return {"description": what, "content": {_JSON: _schema(name)}}


def _plan() -> Document:
    content = {_JSON: _schema("Plan"), "text/plain": _TEXTUAL}
    return {"description": "The plan, as acquatop explain shows it", "content": content}


_ID = _parameter("id", "path", {"type": "string", "minLength": 1}, "The query's id, from the list")
_TEXT: Document = {
    "required": True,
    "description": (
        f"RSP-QL, {Limits().text_bytes} bytes of UTF-8 at most unless the service is set up "
        f"otherwise"
    ),
    "content": {"application/sparql-query": _TEXTUAL, "text/plain": _TEXTUAL},
}


# Schemas ------------------------------------------------------------------------------------------


def _object(required: str, optional: str = "", **properties: Document) -> Document:
    """Return an object's schema; a property without a schema may be anything."""
    named = {name: properties.get(name, {}) for name in (*required.split(), *optional.split())}
    return {"type": "object", "properties": named, "required": required.split()}


def _array(items: Document) -> Document:
    return {"type": "array", "items": items}


def _or_null(kind: str) -> Document:
    return {"type": [kind, "null"]}


def _schemas() -> Document:
    text, number, whole, flag = (
        {"type": each} for each in ("string", "number", "integer", "boolean")
    )
    reference = {
        name: {"$ref": f"#/components/schemas/{name}"}
        for name in ("Query", "Answer", "Finding", "Term", "Waiting")
    }
    counts = {"type": "object", "additionalProperties": whole}
    spent = _object(
        "items requests seconds",
        "shared_by",
        items=whole,
        requests=whole,
        seconds=number,
        shared_by=whole,
    )
    row = _object(
        "rank score bindings refreshed age_seconds",
        rank=whole,
        score=_or_null("number"),
        bindings={"type": "object", "additionalProperties": reference["Term"]},
        refreshed=_or_null("boolean"),
        age_seconds=_or_null("number"),
    )
    return {
        "Anything": {"type": "object"},
        "State": _object("status", status=text),
        "Problem": _object(
            "type title status detail",
            "diagnostics query offered allow",
            type={"type": "string", "enum": [PREFIX + kind for kind in KINDS]},
            title=text,
            status=whole,
            detail=text,
            diagnostics=_array(reference["Finding"]),
        ),
        "Finding": _object(
            "code severity file line column span message hint",
            code=text,
            severity={"type": "string", "enum": ["error", "warning"]},
            file=text,
            line=_or_null("integer"),
            column=_or_null("integer"),
            span={"anyOf": [_object("start end", start=whole, end=whole), {"type": "null"}]},
            message=text,
            hint=_or_null("string"),
        ),
        "Findings": _object(
            "file ok diagnostics", file=text, ok=flag, diagnostics=_array(reference["Finding"])
        ),
        "Query": _object(
            "id name state error registered newest streams unanswered waiting text warnings",
            id=text,
            name=text,
            state={"type": "string", "enum": ["running", "paused", "failed", "ended"]},
            error=_or_null("string"),
            registered={"type": "string", "format": "date-time"},
            newest={
                "type": ["integer", "null"],
                "description": "When the newest answer's window closes, in ms",
            },
            streams=_array(_object("iri items bad", iri=text, items=whole, bad=counts)),
            unanswered=_object(
                "windows last",
                windows=counts,
                last={
                    "anyOf": [
                        _object(
                            "closes message",
                            closes={"type": "string", "format": "date-time"},
                            message=text,
                        ),
                        {"type": "null"},
                    ]
                },
            ),
            waiting={"anyOf": [reference["Waiting"], {"type": "null"}]},
            text=text,
            warnings=_array(reference["Finding"]),
        ),
        "Waiting": _object(
            "kind since text remedy",
            kind={"type": "string", "enum": [str(kind) for kind in WaitingKind]},
            since={"type": "string", "format": "date-time"},
            text=text,
            remedy=_or_null("string"),
        ),
        "Queries": _object("queries", queries=_array(reference["Query"])),
        "Term": _object(
            "type value",
            "datatype xml:lang",
            type={"enum": ["uri", "bnode", "literal"]},
            value=text,
        ),
        "Answer": _object(
            "query form window results status reason refreshed spent allowed expected failure "
            "events late bad unscored "
            "ambiguous skipped rejected latency_ms emitted",
            "windows boolean triples bound target",
            query=text,
            form={"enum": ["select", "ask", "construct", "describe"]},
            window=_object("index opens closes", index=whole, opens=text, closes=text),
            results=_array(row),
            status={"enum": [str(status) for status in Status]},
            reason=_or_null("string"),
            refreshed=_array(reference["Term"]),
            spent=spent,
            allowed=spent,
            expected={
                "anyOf": [
                    _object("precision ndcg", precision=number, ndcg=number),
                    {"type": "null"},
                ]
            },
            target=_object("reached", "precision ndcg", precision=number, ndcg=number),
            failure=_or_null("string"),
            bad=counts,
            rejected=counts,
            latency_ms=number,
            boolean=flag,
            triples=_array(text),
            bound=_or_null("number"),
            **dict.fromkeys(("events", "late", "unscored", "ambiguous", "skipped"), whole),
        ),
        "Why": _object(
            "query closes status key verdict needed considered whole solutions one_more text",
            query=text,
            closes=text,
            status=text,
            key=text,
            verdict={"type": "string", "enum": ["in", "out", "not found"]},
            needed=_or_null("number"),
            considered=_or_null("integer"),
            whole=flag,
            solutions=_array({"type": "object"}),
            one_more=_or_null("object"),
            text=_array(text),
        ),
        "Lists": _object(
            "windows",
            windows=_array(
                _object(
                    "window k_list n_list",
                    window=_object("index opens closes", index=whole, opens=text, closes=text),
                    k_list=_array(_object("time score terms", time=text, score=number)),
                    n_list=_array(_object("time score terms", time=text, score=number)),
                )
            ),
        ),
        "Answers": _object("answers", answers=_array(reference["Answer"])),
        "Plan": _object("query class strategy reason output windows remotes warnings"),
        "Catalog": _object(
            "prefixes streams services graphs",
            prefixes={"type": "object", "additionalProperties": text},
            streams=_array(_object("iri arrivals lateness_ms", iri=text)),
            services=_array(_object("iri policy items requests deadline_ms", iri=text)),
            graphs=_array(text),
        ),
    }
