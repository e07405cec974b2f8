"""A client of the service, for programs: it needs ``requests``, and nothing of the engine.

::

    service = Client("http://127.0.0.1:8322")
    query = service.register(Path("query.rspql").read_text())
    for answer in service.stream(query["id"]):
        print(answer["status"], answer["results"])
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import requests

Document = dict[str, Any]

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0


class ServiceError(Exception):
    """Refusal by the service.

    ``problem`` is its problem document, with ``diagnostics`` if a query is invalid.
    """

    def __init__(self, problem: Document) -> None:
        super().__init__(
            problem.get("detail") or problem.get("title") or "the service has refused it"
        )
        self.problem = problem


class Client:
    """Client of the service at an address; ``token`` is needed only if the service requires one.

    docs/serve.md describes the documents. Raises :class:`ServiceError` if the service refuses a
    request, and the errors of ``requests`` if it cannot be reached. Requests beyond the service's
    rate are sent again when it allows them, unless that takes longer than ``timeout``. ``sleep`` is
    called between attempts, also to reconnect a stream. ``certificates`` is a PEM file of those
    that an HTTPS service may have, in place of the usual ones.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = 60.0,
        sleep: Callable[[float], None] = time.sleep,
        certificates: Path | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._timeout = timeout
        self._sleep = sleep
        self._session = requests.Session()
        # With each request: the environment's bundle would replace the session's.
        self._verify = None if certificates is None else str(certificates)
        if token is not None:
            self._session.headers["Authorization"] = f"Bearer {token}"

    def reload(self) -> Document:
        """Let the service read its catalog again; return the names that queries may use."""
        return self._json("POST", "/reload")

    def register(self, text: str, name: str | None = None, weight: float | None = None) -> Document:
        """Register a query; pass its ``id`` to the other methods."""
        given = {"name": name, "weight": None if weight is None else str(weight)}
        params = {key: value for key, value in given.items() if value is not None}
        return self._json("POST", "/queries", text, params=params)

    def queries(self) -> list[Document]:
        """Return all queries."""
        found: list[Document] = self._json("GET", "/queries")["queries"]
        return found

    def query(self, id: str) -> Document:
        """Return one query."""
        return self._json("GET", _path(id))

    def pause(self, id: str) -> Document:
        """Pause a query: it is not evaluated until it is resumed."""
        return self._json("POST", _path(id, "pause"))

    def resume(self, id: str) -> Document:
        """Resume a query, from new windows on."""
        return self._json("POST", _path(id, "resume"))

    def remove(self, id: str) -> None:
        """End a query, and forget it and its answers."""
        self._ask("DELETE", _path(id))

    def check(self, text: str) -> Document:
        """Return the diagnostics of a text."""
        return self._json("POST", "/check", text)

    def explain(self, text: str) -> Document:
        """Return the plan of a text."""
        return self._json("POST", "/explain", text)

    def answer(self, id: str, media_type: str = "application/json") -> bytes | None:
        """Return the newest answer in a media type; None before the first."""
        reply = self._ask("GET", _path(id, "answer"), headers={"Accept": media_type})
        return None if reply.status_code == 204 else reply.content

    def answers(self, id: str, after: int | None = None) -> list[Document]:
        """Return the kept answers, or those of windows that close after a time in milliseconds."""
        params = {} if after is None else {"after": str(after)}
        found: list[Document] = self._json("GET", _path(id, "answers"), params=params)["answers"]
        return found

    def why(self, id: str, key: str, closes: int | str | None = None) -> Document:
        """Return why a key is in an answer, or is not: the newest, or that of a window's close."""
        at = ("answer",) if closes is None else ("answers", str(closes))
        return self._json("GET", _path(id, *at, "why"), params={"key": key})

    def stream(self, id: str, last: str | None = None) -> Iterator[Document]:
        """Yield answers as they come, until the query is removed.

        If the connection is lost or the service is restarted, it reconnects after a pause and
        resumes. ``last`` is the id of the event that was read last: the time at which its window
        closes, in milliseconds, alone or with a dot and the window's index.
        """
        pause = _FIRST_PAUSE
        while True:
            try:
                for event, identifier, data in self._events(id, last):
                    pause = _FIRST_PAUSE
                    last = identifier or last
                    if event == "end":
                        return
                    if event == "answer":
                        yield data
            except requests.exceptions.SSLError:
                raise  # it would not go by itself
            except requests.RequestException:
                pass
            self._sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _events(self, id: str, last: str | None) -> Iterator[tuple[str, str | None, Document]]:
        headers = {} if last is None else {"Last-Event-ID": last}
        with self._ask("GET", _path(id, "events"), headers=headers, stream=True) as reply:
            fields: dict[str, str] = {}
            for line in reply.iter_lines(chunk_size=None):
                name, _, value = line.decode().partition(": ")
                if line:
                    fields[name] = value
                elif "event" in fields:
                    yield fields["event"], fields.get("id"), json.loads(fields["data"])
                if not line:
                    fields = {}

    def _json(self, method: str, path: str, text: str | None = None, **more: Any) -> Document:
        document: Document = self._ask(method, path, text, **more).json()
        return document

    def _ask(
        self, method: str, path: str, text: str | None = None, **more: Any
    ) -> requests.Response:
        body = None if text is None else text.encode()
        headers = {
            **({} if text is None else {"Content-Type": "application/sparql-query"}),
            **more.pop("headers", {}),
        }
        left = self._timeout
        while True:
            reply = self._session.request(
                method,
                self.url + path,
                data=body,
                headers=headers,
                timeout=self._timeout,
                verify=self._verify,
                **more,
            )
            if reply.ok:
                return reply
            with reply:
                pause = _pause(reply)
                if pause is None or pause > left:
                    raise ServiceError(_problem(reply))
            left -= pause
            self._sleep(pause)

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()


def _pause(reply: requests.Response) -> float | None:
    """Return the seconds after which a request may be sent again; None if it was not too early."""
    told = reply.headers.get("Retry-After", "")
    return float(told) if reply.status_code == 429 and told.isdecimal() else None


def _problem(reply: requests.Response) -> Document:
    if reply.headers.get("Content-Type", "").startswith("application/problem+json"):
        document: Document = reply.json()
        return document
    return {"title": f"HTTP {reply.status_code}"}


def _path(id: str, *more: str) -> str:
    return "/".join(("/queries", quote(id, safe=""), *more))
