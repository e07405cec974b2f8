"""Feeds: changes pushed by the remote, which cost no budget."""

from replica.feeds.contract import ChangeSink, Feed
from replica.feeds.push_queue import Pushed, PushQueue

__all__ = ["ChangeSink", "Feed", "PushQueue", "Pushed"]
