"""How much a service takes and keeps: what others may ask of it is bounded, and so is its memory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The bounds of one service. Beyond each, a request is refused with what to do; nothing is dropped in silence."""

    queries: int = 200
    """Queries registered at once, paused ones among them."""
    text_bytes: int = 64 << 10
    """The length of a query's text, which is the longest body that a request may have."""
    answers: int = 100
    """Answers kept of each query."""
    answers_bytes: int = 4 << 20
    """Bytes of JSON that the kept answers of one query have; one answer that is longer is not kept at all."""
    events: int = 2_000
    """Events kept of all queries together, for readers of all."""
    events_bytes: int = 16 << 20
    """Bytes that these have."""
    readers: int = 2_000
    """Readers of streams of events at once."""
    connections: int = 4_000
    """Connections at once."""
    waiting: int = 64
    """Requests that wait for their turn to change something; the same number may wait to be checked or encoded."""
    request_seconds: float = 10.0
    """How long a body may take to come."""
    stuck_seconds: float = 30.0
    """How long a reader may take nothing of what is sent, until its connection is cut."""
    heartbeat_seconds: float = 15.0
    """How often readers get a sign of life when there is nothing else."""
    items_seconds: float = 1.0
    """How often at most readers are told what has come for queries without an answer."""
    work_rate: float = 20.0
    """Requests per second, of one address, that compile a query or change something."""
    work_burst: int = 60
    """How many of these may come at once."""
    read_rate: float = 500.0
    """Other requests per second, of one address."""
    read_burst: int = 1_500
    """How many of these may come at once."""
