"""Limits of a service: they bound the work of its clients, and its memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Self

from acquatop.errors import UserError
from rspql.diagnostics import nearest


@dataclass(frozen=True)
class Limits:
    """Limits of one service: requests beyond them are refused, and missed events are counted."""

    queries: int = 200
    """Registered queries, including paused ones."""
    text_bytes: int = 64 << 10
    """Bytes of a query's text, which is the longest body of a request."""
    answers: int = 100
    """Kept answers per query."""
    answers_bytes: int = 4 << 20
    """Bytes of JSON of one query's kept answers; a single answer that is longer is not kept."""
    events: int = 2_000
    """Kept events of all queries together, for readers of all."""
    events_bytes: int = 16 << 20
    """Bytes of those events."""
    readers: int = 2_000
    """Concurrent readers of event streams."""
    readers_per_address: int = 1_500
    """Readers from one address."""
    connections: int = 4_000
    """Concurrent connections."""
    connections_per_address: int = 2_500
    """Connections from one address."""
    idle: int = 2_000
    """Connections without a request; beyond it the one that is idle for longest is closed."""
    idle_per_address: int = 1_500
    """Idle connections from one address."""
    idle_seconds: float = 5.0
    """Time until an idle connection is closed after a response."""
    unfinished: int = 512
    """Connections with a request of which a part has come."""
    unfinished_per_address: int = 128
    """Unfinished requests from one address."""
    header_bytes: int = 16 << 10
    """Bytes of a request's line and headers."""
    header_line_bytes: int = 8 << 10
    """Bytes of a single header, and of the request's target."""
    headers: int = 100
    """Headers of a request."""
    header_seconds: float = 10.0
    """Time for a request's headers to arrive, and for the first byte on a connection."""
    waiting: int = 64
    """Waiting requests for changes; the same number may wait for checks and encodings."""
    request_seconds: float = 10.0
    """Time for a request's body to arrive."""
    change_seconds: float = 0.5
    """Time for a change to wait for another that takes long."""
    stuck_seconds: float = 30.0
    """Time without progress of a reader until its connection is cut."""
    heartbeat_seconds: float = 15.0
    """Interval of heartbeats to readers."""
    items_seconds: float = 1.0
    """Least interval of notices to readers about items for queries without an answer."""
    work_rate: float = 20.0
    """Requests per second and address that compile a query or change something."""
    work_burst: int = 60
    """Burst of such requests."""
    read_rate: float = 500.0
    """Other requests per second and address."""
    read_burst: int = 1_500
    """Burst of those."""

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of all limits."""
        return [each.name for each in fields(cls)]

    def with_texts(self, texts: Iterable[str]) -> Self:
        """Return these limits with others in their place, each written as ``NAME=NUMBER``.

        Raises :class:`UserError` for an unknown name, and for a number that is not positive.

        >>> Limits().with_texts(["idle=9", "header_seconds=2.5"]).header_seconds
        2.5
        >>> Limits().with_texts(["headr_seconds=2"])
        Traceback (most recent call last):
        acquatop.errors.UserError: there is no limit "headr_seconds"
          hint: did you mean header_seconds?
        """
        changes: dict[str, float] = {}
        for text in texts:
            name, _, number = text.partition("=")
            if name not in self.names():
                near = nearest(name, self.names())
                hint = f"did you mean {near}?" if near else f"one of {', '.join(self.names())}"
                raise UserError(f'there is no limit "{name[:60]}"\n  hint: {hint}')
            changes[name] = _positive(name, number, type(getattr(self, name)))
        return replace(self, **changes)  # type: ignore[arg-type]


def _positive(name: str, text: str, kind: type[float]) -> float:
    """Return a number above zero, which is whole unless the limit is of time or of a rate."""
    try:
        number = kind(text)
    except ValueError:
        number = kind(0)
    if not 0 < number < 1e15:
        what = "a whole number from 1 on" if kind is int else "a number above 0"
        raise UserError(f"the limit {name} must be {what}\n  hint: write {name}=NUMBER")
    return number
