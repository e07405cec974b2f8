"""Feeds: changes pushed by the remote, which cost no budget."""

from replica.feeds.contract import Feed, Sink
from replica.feeds.push_queue import Pushed, PushQueue

__all__ = ["Feed", "PushQueue", "Pushed", "Sink"]
