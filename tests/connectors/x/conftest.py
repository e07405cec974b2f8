"""A server that stands in for X, and time that goes on only when it is let."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from connectors.log.writer import Remembered
from connectors.x_api.filtered_stream import FilteredStream, Settings
from connectors.x_api.token import VARIABLE
from examples.x.server import XServer
from tests.support.x_posts import TOKEN, Follow, Serve, Time

NOTHING = Remembered(b"", iter(()))


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    monkeypatch.setenv(VARIABLE, TOKEN)
    return Time()


@pytest.fixture
def serve(time: Time) -> Iterator[Serve]:
    with ExitStack() as stack:

        def serve(**options: Any) -> XServer:
            return stack.enter_context(
                XServer(token=TOKEN, **{"keep_alive": 0.05, "now": time, **options})
            )

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

        def follow(
            server: XServer, remembered: Remembered = NOTHING, **settings: Any
        ) -> FilteredStream:
            made = Settings(server.url, **settings)
            stream = FilteredStream(made, clock=time, now=time, pause=time.pause)
            stack.callback(stream.close)
            stream.open(remembered)
            return stream

        yield follow
