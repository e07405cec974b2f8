"""Mock of the X API v2 on loopback, as documented: the filtered stream and user lookup.

It has the filtered stream in chunks with keep-alive signals, its rules, backfill of missed posts,
user lookup, rate limits with their headers, and errors in X's wording. Posts reach all connected
clients. X's rule language is only partly implemented: words, ``@user``, ``#tag``, ``from:user``,
``has:mentions``, ``-`` before any of these, and ``OR``.
"""

from __future__ import annotations

import itertools
import json
import queue
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

Record = dict[str, Any]

STREAM, RULES, USERS = "/2/tweets/search/stream", "/2/tweets/search/stream/rules", "/2/users"
WINDOW_SECONDS = 900
LIMITS: Mapping[str, int] = {STREAM: 50, RULES: 450, USERS: 300}
"""Requests allowed per 15 minutes, by address."""
_MOST_IDS, _LONGEST_RULE, _MOST_RULES = 100, 512, 25
_KEPT_SECONDS = 300
"""Seconds during which published posts are available for backfill."""
_PROBLEMS = "https://api.x.com/2/problems/"
_TERM = re.compile(r"-?(?:from:\w+|has:mentions|[@#]?\w+)")
_DEFAULT_FIELDS = {"id", "text", "edit_history_tweet_ids"}


@dataclass
class _Stream:
    """Connected client: its waiting bytes and the fields of its posts; None ends the connection."""

    fields: set[str]
    waiting: queue.SimpleQueue[bytes | None] = field(default_factory=queue.SimpleQueue)


@dataclass(frozen=True)
class Asked:
    """Request that was received."""

    method: str
    path: str
    parameters: Mapping[str, str]
    body: Record


@dataclass(frozen=True)
class _Answer:
    status: int
    body: Record


class XServer:
    """Mock of X: set ``users`` and publish posts. A context manager.

    ``token`` is the accepted one. ``connections`` is the most concurrent streams. ``keep_alive`` is
    the number of seconds between keep-alive signals. ``now`` is the time of day, for rate limits
    and backfill.
    """

    def __init__(
        self,
        *,
        token: str,
        port: int = 0,
        connections: int = 1,
        keep_alive: float = 20.0,
        limits: Mapping[str, int] = LIMITS,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.users: dict[str, Record] = {}
        self.rules: dict[str, Record] = {}
        self.asked: list[Asked] = []
        self._token, self._connections, self._keep_alive = token, connections, keep_alive
        self._limits, self.now = limits, now
        self._spent: Counter[tuple[str, int]] = Counter()
        self._refusals: deque[tuple[str, _Answer, Mapping[str, str]]] = deque()
        self._published: deque[tuple[float, Record]] = deque()
        self._streams: list[_Stream] = []
        self._ids = itertools.count(1_000_000_000_000_000_000)
        self._changed = threading.Condition()
        self._server = _Server(("127.0.0.1", port), self)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(
            target=self._server.serve_forever, args=(0.01,), name="X", daemon=True
        ).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.disconnect()
        self._server.shutdown()
        self._server.server_close()

    # For the user of the mock ---------------------------------------------------------------------

    def publish(self, posts: Iterable[Record]) -> None:
        """Send posts to all connected clients, if they match a rule."""
        with self._changed:
            oldest = self.now() - _KEPT_SECONDS
            while self._published and self._published[0][0] < oldest:
                self._published.popleft()
            for post in posts:
                self._published.append((self.now(), post))
                for stream in self._streams:
                    self._send(stream, post)

    def send(self, data: bytes) -> None:
        """Send arbitrary bytes to all connected clients."""
        with self._changed:
            for stream in self._streams:
                stream.waiting.put(data)

    def disconnect(self) -> None:
        """Close all streams after sending everything published."""
        with self._changed:
            for stream in self._streams:
                stream.waiting.put(None)

    def refuse(
        self, path: str, status: int, body: Record, headers: Mapping[str, str] | None = None
    ) -> None:
        """Answer the next request to an address with an error."""
        with self._changed:
            self._refusals.append((path, _Answer(status, body), headers or {}))

    def wait_for(self, streams: int, timeout: float = 30.0) -> bool:
        """Wait for a number of connected streams; return True if it is reached."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._streams) == streams, timeout)

    def requests(self, path: str, method: str = "GET") -> Sequence[Asked]:
        """Return the requests received for an address."""
        return [asked for asked in self.asked if (asked.path, asked.method) == (path, method)]

    # Requests -------------------------------------------------------------------------------------

    def answer(self, asked: Asked, token: str) -> tuple[_Answer | _Stream, Mapping[str, str]]:
        """Return the answer to a request, or the stream that it opens, and the headers."""
        with self._changed:
            self.asked.append(asked)
            if token != f"Bearer {self._token}":
                return _problem(401, "Unauthorized", "Unauthorized"), {}
            if asked.path not in self._limits:
                return _problem(404, "Not Found", "Not Found"), {}
            for place, (path, answer, headers) in enumerate(self._refusals):
                if path == asked.path:
                    del self._refusals[place]
                    return answer, headers
            is_over, headers = self._spend(asked.path)
            if is_over:
                return _problem(429, "Too Many Requests", "Too Many Requests"), headers
            if asked.path == STREAM:
                return self._open(asked.parameters), headers
            if asked.path == USERS:
                return self._look_up(asked.parameters), headers
            return self._list_rules() if asked.method == "GET" else self._change_rules(
                asked
            ), headers

    def _spend(self, path: str) -> tuple[bool, Mapping[str, str]]:
        window = int(self.now() // WINDOW_SECONDS)
        self._spent[path, window] += 1
        left = self._limits[path] - self._spent[path, window]
        reset = str((window + 1) * WINDOW_SECONDS)
        limit = {
            "x-rate-limit-limit": str(self._limits[path]),
            "x-rate-limit-remaining": str(max(left, 0)),
        }
        return left < 0, {**limit, "x-rate-limit-reset": reset}

    # The stream ---------------------------------------------------------------------------------

    def _open(self, parameters: Mapping[str, str]) -> _Answer | _Stream:
        minutes = parameters.get("backfill_minutes", "0")
        if minutes not in ("0", "1", "2", "3", "4", "5"):
            return _problem(400, "Invalid Request", "backfill_minutes must be between 0 and 5")
        if not self.rules:
            detail = (
                f"You must define rules using the POST {RULES} endpoint before connecting to "
                "filtered stream."
            )
            return _stream_problem(409, "RuleConfigurationIssue", detail)
        if len(self._streams) >= self._connections:
            detail = "This stream is currently at the maximum allowed connection limit."
            return _stream_problem(429, "TooManyConnections", detail)
        stream = _Stream({*_DEFAULT_FIELDS, *parameters.get("tweet.fields", "").split(",")})
        since = self.now() - 60 * int(minutes)
        for published, post in self._published:
            if minutes != "0" and published >= since:
                self._send(stream, post)
        self._streams.append(stream)
        self._changed.notify_all()
        return stream

    def _send(self, stream: _Stream, post: Record) -> None:
        matched = [
            {"id": id_, "tag": rule["tag"]}
            for id_, rule in self.rules.items()
            if _matches(rule["value"], post)
        ]
        if matched:
            shown = {name: value for name, value in post.items() if name in stream.fields}
            line = json.dumps({"data": shown, "matching_rules": matched}, ensure_ascii=False)
            stream.waiting.put(line.encode() + b"\r\n")

    def next_bytes(self, stream: _Stream) -> bytes | None:
        """Return the next bytes to send: waiting data or a keep-alive signal; None at the end."""
        try:
            return stream.waiting.get(timeout=self._keep_alive)
        except queue.Empty:
            return b"\r\n"

    def forget(self, stream: _Stream) -> None:
        """Note that a stream is not connected any more."""
        with self._changed:
            self._streams.remove(stream)
            self._changed.notify_all()

    # Rules --------------------------------------------------------------------------------------

    def _list_rules(self) -> _Answer:
        listed = [{"id": id_, **rule} for id_, rule in self.rules.items()]
        return _Answer(
            200, {"data": listed, "meta": {"result_count": len(listed)}} if listed else {"meta": {}}
        )

    def _change_rules(self, asked: Asked) -> _Answer:
        if "delete" in asked.body:
            ids = [id_ for id_ in asked.body["delete"].get("ids", []) if id_ in self.rules]
            for id_ in ids:
                del self.rules[id_]
            return _Answer(200, {"meta": {"summary": {"deleted": len(ids), "not_deleted": 0}}})
        rules = asked.body.get("add", [])
        errors = [error for rule in rules if (error := self._wrong(rule)) is not None]
        summary = {
            "created": 0,
            "not_created": len(errors),
            "valid": len(rules) - len(errors),
            "invalid": len(errors),
        }
        if errors:
            return _Answer(200, {"meta": {"summary": summary}, "errors": errors})
        created = {
            str(next(self._ids)): {"value": each["value"], "tag": each.get("tag", "")}
            for each in rules
        }
        if asked.parameters.get("dry_run") != "true":
            self.rules.update(created)
        data = [{"id": id_, **rule} for id_, rule in created.items()]
        return _Answer(
            201, {"data": data, "meta": {"summary": {**summary, "created": len(created)}}}
        )

    def _wrong(self, rule: Record) -> Record | None:
        value = rule["value"]
        known = {each["value"]: id_ for id_, each in self.rules.items()}
        if value in known:
            return {
                "value": value,
                "id": known[value],
                "title": "DuplicateRule",
                "type": _PROBLEMS + "duplicate-rules",
            }
        details = ""
        if len(value) > _LONGEST_RULE:
            details = f"Rule length exceeds {_LONGEST_RULE} characters"
        for term in value.split():
            if not _TERM.fullmatch(term):
                details = f"Reference to invalid operator '{term}'"
        if len(self.rules) >= _MOST_RULES:
            details = "Rules would exceed the number of rules allowed"
        problem = {"value": value, "details": [details], "title": "UnprocessableEntity"}
        return {**problem, "type": _PROBLEMS + "invalid-rules"} if details else None

    # Users --------------------------------------------------------------------------------------

    def _look_up(self, parameters: Mapping[str, str]) -> _Answer:
        ids = parameters.get("ids", "").split(",")
        if not 1 <= len(ids) <= _MOST_IDS:
            detail = (
                f"The number of values in the `ids` query parameter list [{len(ids)}] is not "
                "between 1 and 100"
            )
            return _problem(400, "Invalid Request", detail)
        fields = {"id", "name", "username", *parameters.get("user.fields", "").split(",")}
        found = [self.users[id_] for id_ in ids if id_ in self.users]
        body: Record = {
            "data": [
                {name: value for name, value in each.items() if name in fields} for each in found
            ]
        }
        missing = [_missing(id_) for id_ in ids if id_ not in self.users]
        return _Answer(200, {**(body if found else {}), **({"errors": missing} if missing else {})})


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], world: XServer) -> None:
        self.world = world
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent: clients may disconnect at any time."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        """Answer a request."""
        parts = urlsplit(self.path)
        parameters = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        length = int(self.headers.get("Content-Length", "0"))
        body = json.loads(self.rfile.read(length)) if length else {}
        asked = Asked(self.command, parts.path, parameters, body)
        answer, headers = self.server.world.answer(asked, self.headers.get("Authorization", ""))
        if isinstance(answer, _Stream):
            self._stream(answer, headers)
            return
        said = json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in {
            **headers,
            "Content-Length": str(len(said)),
            "Content-Type": "application/json",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(said)

    do_POST = do_GET  # noqa: N815 (the name is the library's)

    def _stream(self, stream: _Stream, headers: Mapping[str, str]) -> None:
        self.close_connection = True
        try:
            self.send_response(200)
            for name, value in {
                **headers,
                "Transfer-Encoding": "chunked",
                "Content-Type": "application/json",
            }.items():
                self.send_header(name, value)
            self.end_headers()
            while (data := self.server.world.next_bytes(stream)) is not None:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.write(b"0\r\n\r\n")
        finally:
            self.server.world.forget(stream)

    def date_time_string(self, timestamp: float | None = None) -> str:
        """Return the mock's time of day in header format."""
        return super().date_time_string(self.server.world.now() if timestamp is None else timestamp)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


def _problem(status: int, title: str, detail: str) -> _Answer:
    return _Answer(
        status, {"title": title, "detail": detail, "type": "about:blank", "status": status}
    )


def _stream_problem(status: int, issue: str, detail: str) -> _Answer:
    type_ = _PROBLEMS + "streaming-connection"
    said = {
        "title": "ConnectionException",
        "detail": detail,
        "connection_issue": issue,
        "type": type_,
    }
    return _Answer(status, said)


def _missing(id_: str) -> Record:
    said = {
        "value": id_,
        "detail": f"Could not find user with ids: [{id_}].",
        "title": "Not Found Error",
    }
    about = {"resource_type": "user", "parameter": "ids", "resource_id": id_}
    return {**said, **about, "type": _PROBLEMS + "resource-not-found"}


def _matches(rule: str, post: Record) -> bool:
    return any(
        all(_has(term, post) for term in either.split()) for either in re.split(r"\sOR\s", rule)
    )


def _has(term: str, post: Record) -> bool:
    if term.startswith("-"):
        return not _has(term[1:], post)
    entities = post.get("entities", {})
    if term == "has:mentions":
        return bool(entities.get("mentions"))
    if term.startswith("from:"):
        return bool(post.get("author_id") == term.removeprefix("from:"))
    if term.startswith("@"):
        return any(each["username"] == term[1:] for each in entities.get("mentions", []))
    if term.startswith("#"):
        return any(each["tag"] == term[1:] for each in entities.get("hashtags", []))
    return term.lower() in re.findall(r"\w+", post.get("text", "").lower())
