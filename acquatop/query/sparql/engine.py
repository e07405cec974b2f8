"""SPARQL engine over triples that come and go: the contract, and the engine in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from pyoxigraph import BlankNode, DefaultGraph, NamedNode, QueryResultsFormat, QueryTriples, Store

from acquatop.errors import EvaluationError
from acquatop.query.sparql.content import StoreContent, add, filled, remove
from acquatop.query.sparql.describe import describe

Graph = NamedNode | BlankNode | DefaultGraph
EngineFunction = Callable[..., Any]
"""Function that the engine calls with terms; it returns a term, or None for an error."""


class Graphs(NamedTuple):
    """IRIs of the graphs that make the default graph, and of the named graphs."""

    default: Sequence[str] = ()
    named: Sequence[str] = ()


class SparqlEngine(Protocol):
    """Engine over a store's content. Not thread-safe, except :meth:`close`."""

    def renew(self) -> None:
        """Replace the engine's triples by the store's present content."""

    def change(self, graph: str, gone: str, new: str) -> None:
        """Remove triples from a graph, then add others, both given as lines of N-Triples."""

    def select(self, text: str, graphs: Graphs, *, on_nothing: bool = False) -> bytes:
        """Return the results of a query as SPARQL JSON; ``on_nothing`` evaluates it over nothing.

        Raises :class:`~acquatop.errors.EvaluationError`.
        """

    def describe(self, resources: Sequence[str]) -> Sequence[str]:
        """Return all triples about IRIs and blank nodes, and about blank nodes in those triples.

        All are N-Triples text.
        """

    def close(self) -> None:
        """Release what the engine holds. Safe to call again, and from any thread."""


class LocalEngine:
    """SPARQL engine in this process, without limits.

    ``content`` returns the triples to start with, and those after a renewal; queries may call
    ``functions`` by their IRIs.
    """

    def __init__(
        self,
        content: Callable[[], StoreContent] = StoreContent,
        functions: Mapping[str, EngineFunction] | None = None,
    ) -> None:
        self._content = content
        self._functions = {NamedNode(iri): each for iri, each in (functions or {}).items()}
        self.store = filled(content())

    def renew(self) -> None:
        """Replace all triples."""
        self.store = filled(self._content())

    def change(self, graph: str, gone: str, new: str) -> None:
        """Remove triples from a graph, then add others."""
        remove(self.store, graph, gone)
        add(self.store, graph, new)

    def select(self, text: str, graphs: Graphs, *, on_nothing: bool = False) -> bytes:
        """Return the results of a query as SPARQL JSON."""
        default: list[Graph] = [NamedNode(each) for each in graphs.default]
        named: list[NamedNode | BlankNode] = [NamedNode(each) for each in graphs.named]
        try:
            results = (Store() if on_nothing else self.store).query(
                text,
                default_graph=default or None,
                named_graphs=named,
                custom_functions=self._functions,
            )
            assert not isinstance(results, QueryTriples), "only SELECT and ASK are asked"
            found = results.serialize(format=QueryResultsFormat.JSON)
        except (SyntaxError, RuntimeError, ValueError, OSError) as error:
            raise EvaluationError(
                f"the SPARQL engine cannot evaluate the query: {error}"
            ) from error
        assert found is not None
        return found

    def describe(self, resources: Sequence[str]) -> Sequence[str]:
        """Return the triples about IRIs and blank nodes."""
        return describe(self.store, map(_resource, resources))

    def close(self) -> None:
        """Do nothing."""


def _resource(text: str) -> NamedNode | BlankNode:
    return BlankNode(text[2:]) if text.startswith("_:") else NamedNode(text[1:-1])
