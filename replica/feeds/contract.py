"""Interface of all feeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from replica.store import Solution


class ChangeSink(Protocol):
    """Receiver of a feed's changes: called from the feed's thread, must not block."""

    def __call__(self, said: Mapping[str, Sequence[Solution]], now: float) -> None:
        """Take all solutions valid at ``now`` for some keys; a key without any has been deleted."""
        ...


class Feed(Protocol):
    """Source of changes, with a thread of its own.

    Changes during a disconnection are lost, unless the other side keeps them. A feed does not end
    by itself: it tries again after a wait, and reports the problem in ``failure`` meanwhile.
    """

    @property
    def failure(self) -> str | None:
        """Reason that the feed cannot reach its source now, None if it can."""
        ...

    def start(self, sink: ChangeSink) -> None:
        """Begin to call ``sink``; to be called once."""
        ...

    def stop(self) -> None:
        """Stop: no call of the sink follows. Does not wait for the source."""
        ...


@runtime_checkable
class CountsConnections(Protocol):
    """Feed that may lose its connection: ``connections`` counts them."""

    connections: int
