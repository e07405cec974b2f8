"""The remotes a replica can be filled from: one small interface, one file each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from replica.store import Solution


class RemoteError(Exception):
    """A remote could not be reached, refused, or gave something that is not an answer.

    ``retry_after`` says for how many seconds it wants to be left alone, ``too_large`` that fewer keys in one
    request might have been answered, ``timed_out`` that it has not answered in time; ``status`` is that of its
    HTTP reply, if it gave one.
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
"""Says whether one more request may be sent, and if so that it is."""


def always() -> bool:
    """Say that a request may be sent."""
    return True


class Remote(Protocol):
    """What can be asked for the values of keys.

    Both methods block, are called from threads of the maintainer's, and raise
    :class:`RemoteError` with a message that names the remote and the cause.
    """

    block_size: int
    """How many keys one request may carry."""

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        """Return the solutions for some keys, with one request."""
        ...

    def load(self, timeout: float, may_ask: MayAsk = always) -> Iterator[list[Solution]]:
        """Return all solutions, page by page: whole pages only, until a request may not be sent."""
        ...


@runtime_checkable
class Rejecting(Protocol):
    """A remote that counts why it left records out."""

    rejected: Counter[str]
