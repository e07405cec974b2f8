"""Remotes that can fill a replica: one small interface, one file each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from replica.store import Solution


class RemoteError(Exception):
    """Failure of a remote: unreachable, refusing, or sending an invalid answer.

    ``retry_after``: the seconds that the remote asks to wait. ``too_large``: fewer keys in one
    request might have succeeded. ``timed_out``: it did not answer in time. ``status``: the status
    of its HTTP reply, if there was one.
    """

    exit_code = 1

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        too_large: bool = False,
        timed_out: bool = False,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.too_large = too_large
        self.timed_out = timed_out
        self.status = status


MayAsk = Callable[[], bool]
"""Function that returns True if one more request may be sent, and counts it as sent."""


def always() -> bool:
    """Allow every request."""
    return True


class Remote(Protocol):
    """Source of values by key.

    Both methods block, are called from the maintainer's threads, and raise :class:`RemoteError`
    with a message that names the remote and the cause.
    """

    block_size: int
    """Most keys per request."""

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        """Return the solutions for some keys, with one request."""
        ...

    def load(self, timeout: float, may_ask: MayAsk = always) -> Iterator[list[Solution]]:
        """Yield all solutions by whole pages, until no further request may be sent."""
        ...


@runtime_checkable
class Rejecting(Protocol):
    """A remote that counts rejected records by reason."""

    rejected: Counter[str]
