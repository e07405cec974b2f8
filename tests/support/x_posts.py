"""Posts of X and a local server that serves them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from connectors.x_api.filtered_stream import FilteredStream
from connectors.x_api.rules import Rule
from examples.x.server import Record, XServer

TOKEN = "AAAA%2Fxyzzy%3D"


HAS_MENTIONS = Rule("has:mentions", "mentions")


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


Serve = Callable[..., XServer]


Follow = Callable[..., FilteredStream]


def post(id_: int, *mentioned: str, author: str = "1", text: str = "…") -> Record:
    mentions = [
        {"start": 0, "end": 3, "username": f"u{each}", "id": each} for each in mentioned or ("7",)
    ]
    made = "2023-11-14T22:13:20.000Z"
    entities = {"mentions": mentions}
    return {
        "id": str(id_),
        "text": text,
        "author_id": author,
        "created_at": made,
        "entities": entities,
        "lang": "en",
    }


def received(
    stream: FilteredStream, until: Callable[[Sequence[bytes]], bool], most: int = 5000
) -> list[bytes]:
    """Return the lines that a stream brings until they are those that are waited for."""
    lines: list[bytes] = []
    for _ in range(most):
        batch = stream.receive(0.5)
        if batch is not None:
            lines += batch.column("value").to_pylist()
        if until(lines):
            return lines
    raise AssertionError(f"it has not come; there are only {lines}")
