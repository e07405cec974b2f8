"""Messages on the standard error about windows without an answer."""

from __future__ import annotations

from collections import Counter
from types import TracebackType
from typing import Self

from acquatop.answer.unanswered import Unanswered
from acquatop.app.cli.tell import tell
from acquatop.engine.observer import Silent
from acquatop.instants import instant_text


class UnansweredWindows(Silent):
    """Observer that reports each query's first window without an answer, and their number.

    Use it as a context manager around the run.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def unanswered(self, window: Unanswered) -> None:
        """Count a window; report it if it is the query's first one."""
        self._counts[window.query] += 1
        if self._counts[window.query] == 1:
            closes = instant_text(window.closes_ms)
            tell(f"{window.query}: no answer for the window until {closes}: {window.message}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for query, count in self._counts.items():
            tell(f"{query}: {count:,} window{'' if count == 1 else 's'} without an answer")
