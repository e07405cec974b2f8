"""Contracts of the operators that keep a query's candidates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from fractions import Fraction
from typing import Protocol, runtime_checkable

from acquatop.answer.expected_quality import ContentSample
from acquatop.ingest.scoring import ReplicaScoring
from acquatop.query.contenders import Contenders
from acquatop.query.exactness import Extents
from acquatop.refresh.replica_refresh import Inquiry, Wanted
from acquatop.topk.contract import FloatArray, Rows, Top
from replica.store.runs import Runs


class Ranked(Protocol):
    """Ranking that returns the best of a window, for any kind of input."""

    @property
    def k(self) -> int:
        """Number of results wanted, those before the offset included."""

    @property
    def scoring(self) -> ReplicaScoring:
        """Score of solutions."""

    def top(self, window: int) -> Top:
        """Return a window's best by their keys, and whether others not held could be among them."""

    def terms(self, rows: Rows, at: int) -> Mapping[str, str]:
        """Return the N-Triples terms that the stream gives one of the best, by variable."""

    @property
    def keeps_terms(self) -> bool:
        """True if the terms of rows can still be read when their window is closed."""

    def ratios(self, rows: Rows, at: int) -> Mapping[str, Fraction]:
        """Return the numbers of one of the best whose terms may lack digits, by variable."""

    def extents(self, window: int) -> Extents:
        """Return the sizes of the stream's numbers in a window, by variable."""

    def unscored(self, window: int) -> int:
        """Return the number of a window's solutions without a score."""

    def contenders(self, window: int, most: int) -> Contenders:
        """Return the best ``most`` solutions of a window, and as many without a score.

        As far as they are held.
        """

    def snapshot(self) -> bytes:
        """Return the ranking's own state; empty if the content has it all."""

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot."""


class ChangingRanking(Ranked, Protocol):
    """Ranking that takes in changes. Windows are integers that grow."""

    @property
    def list(self) -> Sized:
        """Candidates held."""

    def wanted(self, window: int, inquiry: Inquiry) -> Wanted:
        """Return the keys to ask the remote for in a window: of each kind all, or the first.

        Held are the K+N candidates and, if asked for, others of the window's best that could become
        results, as far as they are known.
        """

    def needed(self) -> Iterable[str]:
        """Return the keys whose values the open windows need, or may need again."""

    def settle(self, window: int) -> None:
        """Note that all panes of a window have come."""

    def apply_changes(self, keys: Iterable[str], first: frozenset[str]) -> None:
        """Rescore solutions of keys whose remote values have changed.

        Admit those that have a score now. ``first`` are the keys that were unknown until now.
        """

    def close_before(self, window: int) -> None:
        """Release data that lies only in earlier windows."""


@runtime_checkable
class TopKOperator(ChangingRanking, Protocol):
    """Ranking of solutions, or of keys, that are joined one by one."""

    def merits_in(self, rows: Rows, runs: Runs) -> FloatArray:
        """Return the merits of all that some of the best join, given their places."""

    def content(self, window: int) -> ContentSample:
        """Return a window's content, or enough of it to estimate what an answer may be missing."""

    def without_value(self, window: int, bar: float) -> FloatArray:
        """Return the possible merits of solutions without a value, if they reach the bar."""

    def stale_can_reach(self, window: int, bar: float, fetched: frozenset[str]) -> bool:
        """Return True if a solution whose key was not fetched just now could reach the bar."""
