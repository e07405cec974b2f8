"""Contract of the structures for many queries: their input and output.

The queries rank one stream by one score; each has its own width, slide and k. Arrivals are added in
any order, but before time has passed them. As time goes on, the answers of all closed windows are
returned. Scores must never change, and identities must never come again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from acquatop.topk.contract import IntArray, Rows, Top
from acquatop.windows import Windows

if TYPE_CHECKING:
    from acquatop.topk.shared.meta_query import MetaQuery


@dataclass(frozen=True)
class TopKRequest:
    """One query's request: the best ``k`` of each of its windows."""

    windows: Windows
    k: int

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError("k must be at least 1")


class ManyTopK(Protocol):
    """Contract of a structure for many top-k queries.

    A query's answers do not depend on the other queries, nor on the structure.

    Every answer is exact. Not safe for use by several threads at once.
    """

    rejected: int
    """Number of arrivals without a merit: NaN is no score."""

    def join(self, name: str, asked: TopKRequest) -> int:
        """Add a query; return the first of its windows that is answered.

        Before any arrival this is the first window that closes after the stream's beginning. Later
        it is the first window that opens no earlier than the newest arrival and the time reached.
        Raise ``ValueError`` for a name that is taken.
        """

    def leave(self, name: str) -> None:
        """Remove a query. Raise ``KeyError`` if there is none of that name."""

    def add(self, arrivals: Rows) -> IntArray:
        """Add arrivals and return the positions of the rejected: those without a merit.

        Raise ``ValueError`` if time has gone on past any of them.
        """

    def advance(self, until: int) -> Iterator[tuple[str, Top]]:
        """Advance time, and yield the answers of all windows that close by then.

        Each comes with its query's name. Answers are ordered by close, then by the order in which
        queries joined. The caller must consume all of them. Empty windows are answered too. Queries
        may join and leave meanwhile.
        """

    def _check(self) -> None:
        """Assert every invariant."""

    def __len__(self) -> int:
        """Return the number of candidates held, each counted once for all queries that share it."""


class LastingManyTopK(ManyTopK, Protocol):
    """Structure for many queries that an engine can keep, and go on with."""

    meta: MetaQuery
    """Plan for all queries, by which they join again."""

    def snapshot(self) -> bytes:
        """Return the complete state as bytes, except for the queries: these join again."""

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot, before any query joins; raise ``SnapshotError`` for other bytes."""
