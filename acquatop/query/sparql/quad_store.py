"""Store for triples that come and go."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import numpy as np
from pyoxigraph import NamedNode, Quad, RdfFormat, Store, parse

from acquatop.ingest.unscored import objects
from acquatop.topk.snapshot import State, pack, reading, unpack

RENEWAL = 10_000
"""Minimum number of removed triples before the store is rebuilt."""

_KIND, _VERSION = "quad store", 1


class QuadStore:
    """In-memory pyoxigraph store that does not grow with past content.

    Such a store never frees the space of removed quads. It is therefore copied into a new one
    whenever as many have been removed as it holds: memory stays within a constant factor of the
    content, and a removal costs O(1) on average. ``current`` is the store to query, until the next
    change.

    A store reads quads in the order in which they first came, even if they were removed and added
    again in between; sums of doubles, for example, depend on it. The order is recorded, so that a
    snapshot restores it.
    """

    def __init__(self) -> None:
        self.current = Store()
        self._removed = 0
        self._came: dict[tuple[str, str], bool] = {}
        """All triples since the store was made, in order, as graph and line.

        True if still present.
        """

    def change(self, graph: NamedNode, gone: Iterable[str], new: Iterable[str]) -> None:
        """Remove triples from a graph and add others, all given as lines of N-Triples."""
        leaving, coming = list(gone), list(new)
        self._remove(graph, leaving)
        self._add(graph, coming)
        self._came.update(((graph.value, line), False) for line in leaving)
        self._came.update(((graph.value, line), True) for line in coming)
        self._removed += len(leaving)
        if self._removed >= RENEWAL and self._removed >= len(self.current):
            self._build({each: True for each, is_here in self._came.items() if is_here})
            self._removed = 0

    def snapshot(self) -> bytes:
        """Return the whole state, except quads that others have put into ``current``."""
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
            self._build(dict(zip(zip(graphs, lines, strict=True), here, strict=True)))
            self._removed = state.settings["removed"]

    def _build(self, came: dict[tuple[str, str], bool]) -> None:
        """Rebuild the store: first the quads of others, then the triples in order of arrival."""
        ours = {NamedNode(graph) for graph, _ in (*self._came, *came)}
        others = [quad for quad in self.current if quad.graph_name not in ours]
        self.current, self._came = Store(), came
        self.current.extend(reversed(others))  # a store reads back the last quad first
        for graph, group in groupby(came, key=lambda each: each[0]):
            self._add(NamedNode(graph), (line for _, line in group))
        for graph, group in groupby(
            (each for each, is_here in came.items() if not is_here), key=lambda each: each[0]
        ):
            self._remove(NamedNode(graph), (line for _, line in group))

    def _add(self, graph: NamedNode, lines: Iterable[str]) -> None:
        # Leniently: a line may hold an invalid IRI, which was accepted when it came.
        self.current.load("\n".join(lines), RdfFormat.N_TRIPLES, to_graph=graph, lenient=True)

    def _remove(self, graph: NamedNode, lines: Iterable[str]) -> None:
        for triple in parse("\n".join(lines), RdfFormat.N_TRIPLES, lenient=True):
            self.current.remove(Quad(triple.subject, triple.predicate, triple.object, graph))
