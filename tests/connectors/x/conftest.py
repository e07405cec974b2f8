"""A server that stands in for X, and time that goes on only when it is let."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from connectors.log.writer import Remembered
from connectors.x_api.filtered_stream import FilteredStream, Settings
from connectors.x_api.rules import Rule
from connectors.x_api.token import VARIABLE
from examples.x.server import Record, XServer

TOKEN = "AAAA%2Fxyzzy%3D"
HAS_MENTIONS = Rule("has:mentions", "mentions")
NOTHING = Remembered(b"", iter(()))


class Time:
    """A clock, and those who wait by it: they wait for nothing."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    monkeypatch.setenv(VARIABLE, TOKEN)
    return Time()


Serve = Callable[..., XServer]
Follow = Callable[..., FilteredStream]


@pytest.fixture
def serve(time: Time) -> Iterator[Serve]:
    with ExitStack() as stack:

        def serve(**options: Any) -> XServer:
            return stack.enter_context(XServer(token=TOKEN, **{"keep_alive": 0.05, "now": time, **options}))

        yield serve


@pytest.fixture
def x(serve: Serve) -> XServer:
    server = serve()
    server.rules["1"] = {"value": "has:mentions", "tag": "mentions"}
    return server


@pytest.fixture
def patient(serve: Serve) -> XServer:
    """A server that allows another connection before it has noticed that the first has gone."""
    server = serve(connections=2)
    server.rules["1"] = {"value": "has:mentions", "tag": "mentions"}
    return server


@pytest.fixture
def follow(time: Time) -> Iterator[Follow]:
    """Give streams that follow a server, opened."""
    with ExitStack() as stack:

        def follow(server: XServer, remembered: Remembered = NOTHING, **settings: Any) -> FilteredStream:
            made = Settings(server.url, **settings)
            stream = FilteredStream(made, clock=time, now=time, pause=time.pause)
            stack.callback(stream.close)
            stream.open(remembered)
            return stream

        yield follow


def post(id_: int, *mentioned: str, author: str = "1", text: str = "…") -> Record:
    mentions = [{"start": 0, "end": 3, "username": f"u{each}", "id": each} for each in mentioned or ("7",)]
    made = "2023-11-14T22:13:20.000Z"
    entities = {"mentions": mentions}
    return {"id": str(id_), "text": text, "author_id": author, "created_at": made, "entities": entities, "lang": "en"}


def received(stream: FilteredStream, until: Callable[[Sequence[bytes]], bool], most: int = 5000) -> list[bytes]:
    """Return the lines that a stream brings until they are those that are waited for."""
    lines: list[bytes] = []
    for _ in range(most):
        batch = stream.receive(0.5)
        if batch is not None:
            lines += batch.column("value").to_pylist()
        if until(lines):
            return lines
    raise AssertionError(f"it has not come; there are only {lines}")
