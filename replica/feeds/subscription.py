"""Subscription to a running feed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Self

from replica.feeds.contract import CountsConnections, Feed
from replica.feeds.push_queue import Pushed, PushQueue


class Subscription:
    """Running feed, with the queue of its changes until they are stored.

    ``unread`` counts the feed's unusable messages by reason.
    """

    def __init__(self, feed: Feed, unread: Mapping[str, int] = MappingProxyType({})) -> None:
        self._feed = feed
        self._unread = unread
        self._queue = PushQueue()

    @classmethod
    def open(cls, feed: Feed, unread: Mapping[str, int] = MappingProxyType({})) -> Self:
        """Start a feed, and return its subscription."""
        subscription = cls(feed, unread)
        feed.start(subscription._queue)
        return subscription

    @property
    def failure(self) -> str | None:
        """Reason that the feed cannot reach its source now."""
        return self._feed.failure

    @property
    def rejected(self) -> Mapping[str, int]:
        """Number of unusable or lost messages so far, by reason."""
        dropped = self._queue.dropped
        return {
            **dict(self._unread),
            **({"told faster than it was taken in": dropped} if dropped else {}),
        }

    @property
    def gaps(self) -> int:
        """Number that grows whenever changes may have been missed: at connections, and losses."""
        connections = self._feed.connections if isinstance(self._feed, CountsConnections) else 0
        return connections + self._queue.dropped

    def drain(self, most: int) -> list[Pushed]:
        """Return the changes since the last call, of ``most`` keys at most."""
        return self._queue.drain(most)

    def stop(self) -> None:
        """Stop the feed."""
        self._feed.stop()
