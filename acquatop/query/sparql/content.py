"""Content of a store as plain data, from which an engine in any process is filled."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from pyoxigraph import NamedNode, Quad, RdfFormat, Store, parse

StreamTriple = tuple[str, str, bool]
"""Graph and line of N-Triples of a triple that came; True if it is still there."""


class StoreContent(NamedTuple):
    """Static quads as N-Quads in their order, and the triples of windows in order of arrival."""

    static: bytes = b""
    triples: Sequence[StreamTriple] = ()


def filled(content: StoreContent) -> Store:
    """Return a new store with a content.

    A store reads quads in the order in which they first came, even if they were removed and added
    again in between; sums of doubles, for example, depend on it. Triples that have gone are
    therefore added and removed.
    """
    store = Store()
    store.extend(parse(content.static, RdfFormat.N_QUADS))
    for graph, group in groupby(content.triples, key=lambda each: each[0]):
        add(store, graph, "\n".join(line for _, line, _ in group))
    gone = (each for each in content.triples if not each[2])
    for graph, group in groupby(gone, key=lambda each: each[0]):
        remove(store, graph, "\n".join(line for _, line, _ in group))
    return store


def add(store: Store, graph: str, lines: str) -> None:
    """Add triples to a graph, given as lines of N-Triples."""
    # Leniently: a line may hold an invalid IRI, which was accepted when it came.
    store.load(lines, RdfFormat.N_TRIPLES, to_graph=NamedNode(graph), lenient=True)


def remove(store: Store, graph: str, lines: str) -> None:
    """Remove triples from a graph, given as lines of N-Triples."""
    name = NamedNode(graph)
    for triple in parse(lines, RdfFormat.N_TRIPLES, lenient=True):
        store.remove(Quad(triple.subject, triple.predicate, triple.object, name))


def as_quads(store: Store) -> bytes:
    """Return a store's quads as N-Quads, in the order in which they came."""
    return b"".join(f"{quad} .\n".encode() for quad in reversed(list(store)))
