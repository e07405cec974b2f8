"""Recorder of remotes: the part of a recording that the replicas of an engine need."""

from __future__ import annotations

from typing import Protocol

from acquatop.plan.asked_patterns import AskedPattern
from replica.clocks import Clock
from replica.feeds.contract import Feed
from replica.remotes import Remote
from replica.spending.quota import Quota


class RemoteRecorder(Protocol):
    """Recorder of the replies of remotes and the messages of feeds."""

    @property
    def now(self) -> Clock:
        """Clock that dates a remote's values."""

    def of_remote(self, remote: Remote, asked: AskedPattern, quota: Quota) -> Remote:
        """Return a remote that records what it says of a pattern."""

    def of_feed(self, feed: Feed, asked: AskedPattern) -> Feed:
        """Return a feed that records what it says of a pattern."""
