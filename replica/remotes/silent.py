"""A remote that cannot be asked: everything known of it is pushed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replica.remotes import MayAsk, RemoteError, always
from replica.store import Solution


class SilentRemote:
    """Remote that refuses every request; its requests carry no keys.

    >>> SilentRemote().block_size, list(SilentRemote().load(1.0))
    (0, [])
    """

    block_size = 0

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        """Raise :class:`RemoteError`."""
        raise RemoteError("the remote only tells of its changes itself and cannot be asked")

    def load(self, timeout: float, may_ask: MayAsk = always) -> Iterator[list[Solution]]:
        """Yield nothing."""
        yield from ()
