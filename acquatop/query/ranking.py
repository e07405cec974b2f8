"""What a continuous query asks of the operator that keeps its candidates, whichever that is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from acquatop.answer.expected_quality import Content
from acquatop.ingest.panes import Pane
from acquatop.ingest.scoring import ReplicaScoring
from acquatop.refresh.proposers.contract import Proposed
from acquatop.topk.contract import FloatArray, Rows, Top


@dataclass(frozen=True)
class Wanted:
    """Keys to ask the remote for.

    ``unknown`` are those that nothing is known of, the most promising first; ``held`` are those of
    the candidates; ``absent`` those without a score although they have been asked for.
    """

    unknown: list[str]
    held: Proposed
    absent: list[str]


class Intake(Protocol):
    """What takes in what a stream's windows hold."""

    def add_pane(self, pane: Pane) -> None:
        """Take in one pane's solutions. Panes come in the order of time."""

    def note_late(self, first: int, last: int) -> None:
        """Note that something came for a pane after a window of its own had closed: those still open lack it, too."""


class Ranked(Protocol):
    """A window's best out, whatever goes in."""

    @property
    def k(self) -> int:
        """How many are wanted, those before the offset among them."""

    def top(self, window: int) -> Top:
        """Return a window's best, by their keys, and whether anything that is not held could be among them."""

    def terms(self, rows: Rows, at: int) -> Mapping[str, str]:
        """Return the N-Triples terms that the stream gives one of the best, by variable."""

    def unscored(self, window: int) -> int:
        """Return how many of a window's solutions have no score."""


class TopKOperator(Ranked, Protocol):
    """Changes in, a window's best out. Windows are integers that grow."""

    @property
    def scoring(self) -> ReplicaScoring:
        """How solutions are scored."""

    def settle(self, window: int) -> None:
        """Note that all panes of a window have come."""

    def wanted(
        self, window: int, limit: int, absent_before: float = math.inf, *, beyond_candidates: bool = False
    ) -> Wanted:
        """Return what to ask the remote for in a window, of each kind all, or the first ``limit``.

        Of the absent those that were asked for at a time or before it. What is held are the K+N candidates; with
        ``beyond_candidates`` also others of the window's best that could become results, as far as they are known.
        """

    def needed(self) -> Iterable[str]:
        """Return the keys whose values the open windows need, or may need again."""

    def apply_changes(self, keys: Iterable[str]) -> None:
        """Rescore what joins with keys whose remote values have changed; let in who has a score now."""

    def content(self, window: int) -> Content:
        """Return what a window holds, or enough of it to know what an answer may be missing."""

    def without_value(self, window: int, bar: float) -> FloatArray:
        """Return the merits that solutions without a value could have, of those that could reach the bar."""

    def stale_can_reach(self, window: int, bar: float, fetched: frozenset[str]) -> bool:
        """Say whether anything whose key has not been fetched just now could reach the bar with another value."""

    def close_before(self, window: int) -> None:
        """Let go of all that lies only in windows before this one."""
