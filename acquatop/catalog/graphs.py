"""Static graphs: files named in the catalog, read when a query that needs them is registered."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pyoxigraph import BlankNode, NamedNode, Quad, RdfFormat, Store, parse

from acquatop.errors import UserError

_LABEL = "g"
"""Prefix of the labels of static blank nodes.

Labels that the SPARQL engine makes are hexadecimal.
"""


@dataclass(frozen=True)
class StaticGraph:
    """RDF file, and the name under which queries know it."""

    iri: str
    path: str


def format_of(path: str) -> RdfFormat | None:
    """Return the RDF format of a file's suffix; None if it is none that holds one graph.

    >>> format_of("people.ttl"), format_of("people.trig"), format_of("people.csv")
    (<RdfFormat Turtle>, None, None)
    """
    format_ = RdfFormat.from_extension(Path(path).suffix.removeprefix(".").lower())
    return None if format_ is None or format_.supports_datasets else format_


def load_graphs(store: Store, graphs: Iterable[StaticGraph]) -> None:
    """Load graphs into a store, each under its name; no blank node is shared between them.

    Raises :class:`~acquatop.errors.UserError` with the file, and the line if it is known.
    """
    for number, graph in enumerate(graphs):
        _load(store, graph, number)


def digest_of(graphs: Iterable[StaticGraph]) -> bytes:
    """Return bytes that are others if the files or names of graphs are; none for no graphs."""
    digests = [
        hashlib.sha256(Path(each.path).read_bytes()).hexdigest() + " " + each.iri for each in graphs
    ]
    return "\n".join(digests).encode()


def is_static(blank: BlankNode) -> bool:
    """Return True if a blank node is from a static graph: its label is the same in every run."""
    return blank.value.startswith(_LABEL)


def _load(store: Store, graph: StaticGraph, number: int) -> None:
    labels: dict[BlankNode, BlankNode] = {}
    name = NamedNode(graph.iri)

    def relabelled(term: object) -> object:
        # The parser makes up labels; their order is that of the file.
        if isinstance(term, BlankNode):
            return labels.setdefault(term, BlankNode(f"{_LABEL}{number}b{len(labels)}"))
        return term

    path = Path(graph.path)
    try:
        for quad in parse(
            path=path, format=format_of(graph.path), base_iri=path.absolute().as_uri()
        ):
            subject, object_ = relabelled(quad.subject), relabelled(quad.object)
            store.add(Quad(subject, quad.predicate, object_, name))  # type: ignore[arg-type]
    except OSError as error:
        raise UserError(
            f"{path}: the graph <{graph.iri}> cannot be read: {error.strerror or error}"
        ) from None
    except SyntaxError as error:
        place = f"{path}:{error.lineno}" if error.lineno else str(path)
        raise UserError(f"{place}: the graph <{graph.iri}> cannot be read: {error.msg}") from None
