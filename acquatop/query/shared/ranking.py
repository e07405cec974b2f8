"""One of the queries that are answered from one structure: what it shows of its best."""

from __future__ import annotations

from collections.abc import Mapping

from acquatop.topk.contract import Rows, Top
from rspql.plan import TopKPlan


class Shared:
    """The window of a query that closes now, as the structure that all share has it."""

    def __init__(self, plan: TopKPlan) -> None:
        self.k = plan.k + plan.offset
        self._terms = plan.stream_variables
        self._top: Top | None = None
        self._unscored = 0

    def show(self, top: Top, unscored: int) -> None:
        """Let a window be the one that closes now."""
        self._top, self._unscored = top, unscored

    def top(self, window: int) -> Top:
        """Return the window's best."""
        assert self._top is not None
        assert self._top.window == window, "only the window that closes now is known"
        return self._top

    def terms(self, rows: Rows, at: int) -> Mapping[str, str]:
        """Return the terms of one of the best: what the window's pattern binds."""
        return dict(zip(self._terms, (column[at] for column in rows.carried), strict=True))

    def snapshot(self) -> bytes:
        """Return nothing: the whole state is the content's."""
        return b""

    def resume(self, snapshot: bytes) -> None:
        """Do nothing."""

    def unscored(self, window: int) -> int:
        """Return how many of the window's solutions have no score."""
        return self._unscored
