"""What every structure for many queries takes in and gives out, whichever way it works inside.

The queries rank one stream by one score; widths, slides and k are each one's own. Arrivals are handed
in by time, in any order as long as time has not gone on past them; as time goes on, the answers of all
windows that have closed come out. For scores that never change, and identities that never come again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from acquatop.topk.contract import IntArray, Rows, Top
from acquatop.windows import Windows


@dataclass(frozen=True)
class Asked:
    """What one query asks for: the best ``k`` of each of its windows."""

    windows: Windows
    k: int

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError("k must be at least 1")


class ManyTopK(Protocol):
    """The contract. A query's answers are the same whatever else is asked for, and whoever answers.

    Every answer is exact. Not safe for use by several threads at once.
    """

    rejected: int
    """How many arrivals had no merit: NaN is no score."""

    def join(self, name: str, asked: Asked) -> int:
        """Answer one more query; return the first of its windows that is answered.

        That is, of a stream that nothing has come of, the first that closes after its beginning; later the first
        that opens when all that has come is over, and no earlier than time has gone on to. Raises ``ValueError`` for
        a name that is taken.
        """

    def leave(self, name: str) -> None:
        """Answer a query no more. Raises ``KeyError`` if there is none of that name."""

    def add(self, arrivals: Rows) -> IntArray:
        """Take in arrivals, and return the positions of the rejected: those that have no merit.

        Raises ``ValueError`` if time has gone on past any of them.
        """

    def advance(self, until: int) -> Iterator[tuple[str, Top]]:
        """Let time go on, and yield the answers of all windows that close by then, each with its query's name.

        They come by their close, then in the order in which the queries joined; every one must be taken. Windows
        that nothing has come in are answered, too. Queries may join and leave meanwhile.
        """

    def _check(self) -> None:
        """Assert every invariant."""

    def __len__(self) -> int:
        """Return how many candidates are held, each counted once for all queries that share it."""
