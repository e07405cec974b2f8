"""Contract of the lists that keep one query's candidates, and the list of a strategy."""

from __future__ import annotations

from typing import Protocol

from acquatop.topk.contract import FloatArray, IntArray, Rows, Scoring, TopK
from acquatop.topk.dropped_bounds import Rank
from acquatop.topk.steady_list import SteadyList
from acquatop.topk.strategies import TopKStrategy


class CandidateList(TopK, Protocol):
    """Top-k structure that can be told of rows that never came to it, and accounts for them."""

    n: int
    """Number of rows held beyond k in case scores fall."""

    def add(
        self, first: int, last: int, arrivals: Rows, merits: FloatArray | None = None
    ) -> IntArray:
        """Add arrivals; give ``merits`` if they are computed already with the present values."""

    def note_pruned(
        self, first: int, last: int, lows: tuple[float, ...], highs: tuple[float, ...]
    ) -> None:
        """Note, before they are added, that arrivals are only the best k + n of more of a pane.

        ``lows`` and ``highs`` are the ranges of the parts of all of them.
        """

    def note_lost(
        self,
        first: int,
        last: int,
        merit: float = ...,
        lows: tuple[float, ...] = ...,
        highs: tuple[float, ...] = ...,
        rank: Rank | None = ...,
    ) -> None:
        """Note that windows lack an arrival that is worth ``merit`` at most for now."""

    def settle(self, window: int) -> None:
        """Note that all panes of a window have come."""

    def lost(self, window: int) -> tuple[Rank, tuple[float, ...], tuple[float, ...]] | None:
        """Return the best place of what a window lacks, and its parts' lows and highs."""

    def covering(self, window: int) -> Rows:
        """Return the rows held that lie in a window that has been asked for, best first."""


def open_list(
    strategy: TopKStrategy, k: int, n: int, scoring: Scoring, *, distinct: bool, fixed: bool
) -> CandidateList:
    """Return an empty list of a strategy.

    With ``distinct`` no identity comes again; with ``fixed`` no merit changes either.
    """
    structure = strategy.load()
    if strategy.scores_change:
        made: CandidateList = structure(k, n, scoring, distinct=distinct, fixed=fixed)
        return made
    if not fixed:
        raise ValueError(f"{strategy.name} is for scores that never change")
    return SteadyList(structure(k, scoring))
