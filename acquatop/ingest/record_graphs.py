"""Small graphs of records, over all of which a SPARQL engine evaluates one pattern at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyoxigraph import BlankNode, Literal, NamedNode, QuerySolutions, RdfFormat, Store

from acquatop.topk.contract import IntArray
from replica.terms import literal_text

_GRAPH = "urn:graph:"
_MOST = 1 << 13
"""Number of rows from which on those of further graphs are evaluated by themselves."""


class RecordRows(NamedTuple):
    """Rows of statements: a subject each, and for each predicate an object or null, as terms."""

    subjects: pa.Array
    predicates: Sequence[str]
    objects: Sequence[pa.Array]

    def slice(self, start: int, count: int) -> RecordRows:
        """Return some of the rows."""
        return RecordRows(
            self.subjects.slice(start, count),
            self.predicates,
            [each.slice(start, count) for each in self.objects],
        )


class Bindings(NamedTuple):
    """Solutions: the graph of each, and for each variable its term, ``""`` if it is unbound."""

    graphs: IntArray
    terms: Sequence[Sequence[str]]


class PatternOverGraphs:
    """Pattern, given as the inside of a group, that binds some variables."""

    def __init__(self, pattern: str, prologue: str, variables: Sequence[str]) -> None:
        graph = "graph"
        while graph in variables or f"?{graph}" in pattern:
            graph += "_"
        names = " ".join(f"?{name}" for name in (graph, *variables))
        self._width = len(variables)
        self._text = f"{prologue} SELECT {names} WHERE {{ GRAPH ?{graph} {{ {pattern} }} }}"

    def solutions(self, graphs: IntArray, rows: RecordRows) -> Bindings:
        """Return the solutions over graphs of rows, by graph and then by terms.

        ``graphs`` tells the graph of each row, ascending. O(rows + solutions).
        """
        found = sorted(
            solution for part in _parts(graphs) for solution in self._solved(graphs, rows, part)
        )
        numbers, *terms = zip(*found, strict=True) if found else ((),) * (1 + self._width)
        return Bindings(np.array(numbers, dtype=np.int64), terms)

    def _solved(
        self, graphs: IntArray, rows: RecordRows, part: slice
    ) -> Iterator[tuple[int, *tuple[str, ...]]]:
        store = Store()
        some = rows.slice(part.start, part.stop - part.start)
        # Leniently: an IRI or a language may be invalid, which was accepted when it came.
        store.load(_quads(graphs[part], some), format=RdfFormat.N_QUADS, lenient=True)
        results = store.query(self._text)
        assert isinstance(results, QuerySolutions)
        width = range(1, 1 + self._width)
        for solution in results:
            number = int(solution[0].value.removeprefix(_GRAPH))
            yield number, *(_text(solution[at]) for at in width)


def _parts(graphs: IntArray) -> Iterator[slice]:
    """Yield slices of rows that keep each graph whole."""
    start = 0
    while start < len(graphs):
        stop = len(graphs)
        if start + _MOST < stop:
            stop = int(np.searchsorted(graphs, graphs[start + _MOST - 1], side="right"))
        yield slice(start, stop)
        start = stop


def _quads(graphs: IntArray, rows: RecordRows) -> bytes:
    names = pc.binary_join_element_wise(
        f"<{_GRAPH}", pa.array(graphs).cast(pa.string()), "> .\n", ""
    )
    return "".join(
        line
        for predicate, values in zip(rows.predicates, rows.objects, strict=True)
        for line in pc.binary_join_element_wise(rows.subjects, f"<{predicate}>", values, names, " ")
        .drop_null()
        .to_pylist()
    ).encode()


def _text(term: NamedNode | BlankNode | Literal | None) -> str:
    match term:
        case None:
            return ""
        case Literal():
            return literal_text(term.value, term.datatype.value, term.language)
        case NamedNode():
            return f"<{term.value}>"
        case _:
            return f"_:{term.value}"
