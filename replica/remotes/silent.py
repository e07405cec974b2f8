"""A remote that cannot be asked: all that is known of it is what it tells itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replica.remotes import MayAsk, RemoteError, always
from replica.store import Solution


class SilentRemote:
    """Answers nothing, and says so: no request carries any key.

    >>> SilentRemote().block_size, list(SilentRemote().load(1.0))
    (0, [])
    """

    block_size = 0

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        """Raise :class:`RemoteError`."""
        raise RemoteError("the remote only tells of its changes itself and cannot be asked")

    def load(self, timeout: float, may_ask: MayAsk = always) -> Iterator[list[Solution]]:
        """Return nothing."""
        yield from ()
