"""What a continuous query asks of the operator that keeps its candidates, whichever that is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from typing import Protocol

from acquatop.answer.expected_quality import Content
from acquatop.refresh.replica_refresh import Refreshable
from acquatop.topk.contract import FloatArray, Rows, Top


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

    def snapshot(self) -> bytes:
        """Return the ranking's own state; empty if the content has it all."""

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot."""


class TopKOperator(Ranked, Refreshable, Protocol):
    """Changes in, a window's best out. Windows are integers that grow."""

    @property
    def list(self) -> Sized:
        """Candidates that are held."""

    def settle(self, window: int) -> None:
        """Note that all panes of a window have come."""

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
