"""A store for triples that come and go."""

from __future__ import annotations

from collections.abc import Iterable

from pyoxigraph import NamedNode, Quad, RdfFormat, Store, parse

RENEWAL = 10_000
"""How many triples may be removed, at least, before the store is made anew."""


class QuadStore:
    """A pyoxigraph store in memory that does not grow with what has passed through it.

    Such a store never gives back what removed quads took. So it is copied into a new one whenever
    as many have been removed as it holds: memory stays within a constant factor of the content,
    and a removal costs O(1) on average. ``current`` is the store to query, until the next change.
    """

    def __init__(self) -> None:
        self.current = Store()
        self._removed = 0

    def change(self, graph: NamedNode, gone: Iterable[str], new: Iterable[str]) -> None:
        """Remove triples from a graph and add others, all given as lines of N-Triples."""
        # Leniently, as a line may hold what is no IRI by the letter: it was not refused when it came.
        for triple in parse("\n".join(gone), RdfFormat.N_TRIPLES, lenient=True):
            self.current.remove(Quad(triple.subject, triple.predicate, triple.object, graph))
            self._removed += 1
        self.current.load("\n".join(new), RdfFormat.N_TRIPLES, to_graph=graph, lenient=True)
        if self._removed >= RENEWAL and self._removed >= len(self.current):
            self._renew()

    def _renew(self) -> None:
        old, self.current = self.current, Store()
        self.current.extend(old)
        self._removed = 0
