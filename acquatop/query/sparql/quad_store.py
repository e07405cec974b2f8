"""Store for triples that come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from pyoxigraph import Store

from acquatop.catalog.graphs import StaticGraph, load_graphs
from acquatop.ingest.unscored import objects
from acquatop.query.sparql.content import StoreContent, as_quads
from acquatop.query.sparql.engine import EngineFunction, LocalEngine, SparqlEngine
from acquatop.topk.snapshot import State, pack, reading, unpack

RENEWAL = 10_000
"""Minimum number of removed triples before the engine is renewed."""

OpenEngine = Callable[[Callable[[], StoreContent], Mapping[str, EngineFunction]], SparqlEngine]
"""Function that opens an engine over a content, with the functions that queries may call."""

_KIND, _VERSION = "quad store", 1


class QuadStore:
    """Triples of windows beside static graphs, with an engine that queries them.

    An engine never frees the space of removed quads. It is therefore renewed whenever as many have
    been removed as it holds: memory stays within a constant factor of the content, and a removal
    costs O(1) on average.

    The order of arrival is kept, so that a snapshot, or an engine that starts again, gives the same
    results.
    """

    def __init__(
        self,
        graphs: Iterable[StaticGraph] = (),
        functions: Mapping[str, EngineFunction] | None = None,
        open_engine: OpenEngine = LocalEngine,
    ) -> None:
        static = Store()
        load_graphs(static, graphs)
        self._static = as_quads(static)
        self._static_size = self._size = len(static)
        self._removed = 0
        self._came: dict[tuple[str, str], bool] = {}
        """All triples since the last renewal, in order, as graph and line.

        True if still present.
        """
        self.engine = open_engine(self._content, functions or {})

    def change(self, graph: str, gone: Iterable[str], new: Iterable[str]) -> None:
        """Remove triples from a graph and add others, all given as lines of N-Triples.

        Those that are removed are in the graph, and those that are added are not.
        """
        leaving, coming = list(gone), list(new)
        self._came.update(((graph, line), False) for line in leaving)
        self._came.update(((graph, line), True) for line in coming)
        self._size += len(coming) - len(leaving)
        self._removed += len(leaving)
        if self._removed >= RENEWAL and self._removed >= self._size:
            self._came = {each: True for each, is_here in self._came.items() if is_here}
            self._removed = 0
            self.engine.renew()
        elif leaving or coming:
            self.engine.change(graph, "\n".join(leaving), "\n".join(coming))

    def present(self, most: int) -> StoreContent | None:
        """Return what is there now, if that are ``most`` triples of windows at most. O(most)."""
        if self._size - self._static_size > most or len(self._came) > 2 * most:
            return None
        here = [(*each, True) for each, is_here in self._came.items() if is_here]
        return StoreContent(self._static, here)

    def snapshot(self) -> bytes:
        """Return the whole state, except static graphs."""
        columns = {
            "graphs": objects([graph for graph, _ in self._came]),
            "lines": objects([line for _, line in self._came]),
            "here": np.fromiter(self._came.values(), np.bool_, len(self._came)),
        }
        return pack(_KIND, _VERSION, State({"removed": self._removed}, {"triples": columns}))

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot; raises ``SnapshotError`` for any other bytes."""
        state = unpack(_KIND, _VERSION, snapshot)
        with reading():
            graphs, lines, here = (
                state.tables["triples"][name].tolist() for name in ("graphs", "lines", "here")
            )
            self._came = dict(zip(zip(graphs, lines, strict=True), here, strict=True))
            self._removed = state.settings["removed"]
            self._size = self._static_size + sum(here)
        self.engine.renew()

    def close(self) -> None:
        """Release the engine. Safe to call again, and from any thread."""
        self.engine.close()

    def _content(self) -> StoreContent:
        return StoreContent(
            self._static, [(graph, line, is_here) for (graph, line), is_here in self._came.items()]
        )
