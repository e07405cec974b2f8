"""End of a command whose state can be kept no more, so that it may go on from there elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from acquatop.engine.observer import QueryState, Silent

if TYPE_CHECKING:
    from acquatop.engine.engine import Engine


class LostState(Silent):
    """Observer that ends a command when a query has failed and nothing is kept any more."""

    def __init__(self) -> None:
        self._engine: Engine | None = None
        self._error: BaseException | None = None
        self._end: Callable[[], object] | None = None
        self._turn = threading.Lock()

    def watch(self, engine: Engine) -> None:
        """Ask this engine if its state is kept."""
        self._engine = engine

    def then(self, end: Callable[[], object]) -> None:
        """Call this once when the state is lost, or now if it is lost already."""
        with self._turn:
            self._end = end
            if self._error is not None:
                end()

    def raise_error(self) -> None:
        """Raise the error with which the state was lost, if it was."""
        if self._error is not None:
            raise self._error

    def query(self, name: str, state: QueryState) -> None:
        """Note a failure."""
        if state is not QueryState.FAILED or self._engine is None:
            return
        try:
            self._engine.check_state()
        except Exception as error:
            with self._turn:
                if self._error is None:
                    self._error = error
                    if self._end is not None:
                        self._end()
