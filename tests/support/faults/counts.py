"""Resources of a budget, counted at the proxy: connections, requests, keys."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.support.faults.message import Message


@dataclass(frozen=True)
class Seen:
    """A request that came at a time of :func:`time.monotonic`, and its keys."""

    at: float
    keys: tuple[str, ...]
    message: Message


@dataclass
class Counts:
    """Traffic at the proxy: connections, requests, sent bytes, and followed redirects."""

    connections: int = 0
    sent: int = 0
    redirected: int = 0
    seen: list[Seen] = field(default_factory=list)

    @property
    def requests(self) -> int:
        """The number of requests read."""
        return len(self.seen)

    @property
    def keys(self) -> int:
        """The number of keys in them; a request without a block of keys counts as one key."""
        return sum(max(1, len(seen.keys)) for seen in self.seen)
