"""HTTP client that notes the queries that it sends."""

from __future__ import annotations

from contextlib import AbstractContextManager
from urllib.parse import parse_qs

from replica.http.client import HttpClient, Request
from replica.http.reply import Reply


class NotingClient(HttpClient):
    """Client of a SPARQL endpoint; ``queries`` are those that it was given to send, by POST."""

    def __init__(self) -> None:
        super().__init__(name="the endpoint")
        self.queries: list[str] = []

    def send(self, request: Request, timeout: float) -> AbstractContextManager[Reply]:
        assert request.body is not None
        self.queries += parse_qs(request.body.decode())["query"]
        return super().send(request, timeout)
