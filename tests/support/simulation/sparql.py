"""SPARQL engine in this process, whose evaluations are lost as those of a worker process are."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from random import Random

from acquatop.catalog.evaluation_limits import EvaluationLimits
from acquatop.errors import EvaluationLost
from acquatop.query.sparql.content import StoreContent
from acquatop.query.sparql.engine import EngineFunction, Graphs, LocalEngine

LOSSES = ("time", "memory", "result", "process")
"""Reasons of a lost evaluation."""
_KEEP_THE_WORKER = ("result",)
_LAST = 9
"""Requests among which at most two are lost, as three in a row end a query."""


class SimulatedSparql:
    """Engine that loses requests, and with most losses its content, as a dead worker does.

    ``is_lost`` draws at each request. An engine after a loss starts with the store's content.
    """

    def __init__(
        self,
        content: Callable[[], StoreContent],
        functions: Mapping[str, EngineFunction],
        limits: EvaluationLimits,
        *,
        random: Random,
        share: float,
        ends_queries: bool,
        on_loss: Callable[[str], None],
    ) -> None:
        self._content = content
        self._functions = functions
        self._random = random
        self._share = share
        self._ends_queries = ends_queries
        self._on_loss = on_loss
        self._last: deque[bool] = deque(maxlen=_LAST)
        self._worker: LocalEngine | None = None

    def renew(self) -> None:
        """Replace the triples by the present content."""
        if self._worker is not None:
            self._worker.renew()

    def change(self, graph: str, gone: str, new: str) -> None:
        """Remove triples from a graph, then add others."""
        if self._worker is not None:
            self._worker.change(graph, gone, new)

    def select(self, text: str, graphs: Graphs, *, on_nothing: bool = False) -> bytes:
        """Return the results of a query as SPARQL JSON, or lose it."""
        if not on_nothing:
            self._lose()
        return self._started().select(text, graphs, on_nothing=on_nothing)

    def describe(self, resources: Sequence[str]) -> Sequence[str]:
        """Return the triples about resources."""
        return self._started().describe(resources)

    def close(self) -> None:
        """Release the content."""
        self._worker = None

    def _started(self) -> LocalEngine:
        if self._worker is None:
            self._worker = LocalEngine(self._content, self._functions)
        return self._worker

    def _lose(self) -> None:
        is_lost = self._share > 0 and self._random.random() < self._share
        is_lost = is_lost and (self._ends_queries or sum(self._last) < 2)
        self._last.append(is_lost)
        if not is_lost:
            return
        reason = self._random.choice(LOSSES)
        if reason not in _KEEP_THE_WORKER:
            self._worker = None
        self._on_loss(reason)
        raise EvaluationLost(reason, f"the simulation has lost it ({reason})")
