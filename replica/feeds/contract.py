"""What every feed is to those who use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from replica.store import Solution


class Sink(Protocol):
    """Takes what a feed says, at once: called from the feed's thread, must not wait."""

    def __call__(self, said: Mapping[str, Sequence[Solution]], now: float) -> None:
        """Take all that holds at ``now`` for some keys: who has no solution is there no more."""
        ...


class Feed(Protocol):
    """Says what has changed, from a thread of its own.

    What changes while a feed is not connected is not said later, unless the other side keeps it. A feed does not
    end by itself: it tries again, with a wait in between, and says in ``failure`` what is wrong meanwhile.
    """

    @property
    def failure(self) -> str | None:
        """What keeps the feed from its source now, None where nothing does."""
        ...

    def start(self, sink: Sink) -> None:
        """Begin to call ``sink``; once."""
        ...

    def stop(self) -> None:
        """End: nothing is said after this. Does not wait for the source."""
        ...
