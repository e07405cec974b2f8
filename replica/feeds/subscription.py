"""A feed at work."""

from __future__ import annotations

from replica.feeds.contract import Feed
from replica.feeds.push_queue import Pushed, PushQueue


class Subscription:
    """Has a feed tell what changes, from now on, and keeps what it says until it is stored."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._queue = PushQueue()
        feed.start(self._queue)

    @property
    def failure(self) -> str | None:
        """What keeps the feed from its source now."""
        return self._feed.failure

    def drain(self) -> list[Pushed]:
        """Return what has been said since the last time."""
        return self._queue.drain()

    def stop(self) -> None:
        """End the feed."""
        self._feed.stop()
