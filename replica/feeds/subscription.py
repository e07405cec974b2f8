"""A feed at work."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from replica.feeds.contract import Feed
from replica.feeds.push_queue import Pushed, PushQueue


class Subscription:
    """Has a feed tell what changes, from now on, and keeps what it says until it is stored.

    ``unread`` counts what the feed says and cannot be used, by the reason.
    """

    def __init__(self, feed: Feed, unread: Mapping[str, int] = MappingProxyType({})) -> None:
        self._feed = feed
        self._unread = unread
        self._queue = PushQueue()
        feed.start(self._queue)

    @property
    def failure(self) -> str | None:
        """What keeps the feed from its source now."""
        return self._feed.failure

    @property
    def rejected(self) -> Mapping[str, int]:
        """How much has come in vain so far, by the reason."""
        dropped = self._queue.dropped
        return {**dict(self._unread), **({"told faster than it was taken in": dropped} if dropped else {})}

    def drain(self, most: int) -> list[Pushed]:
        """Return what has been said since the last time, of ``most`` keys at most."""
        return self._queue.drain(most)

    def stop(self) -> None:
        """End the feed."""
        self._feed.stop()
