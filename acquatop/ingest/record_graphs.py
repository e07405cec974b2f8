"""Small graphs of records, over all of which a SPARQL engine evaluates one pattern at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyoxigraph import QuerySolutions, RdfFormat, Store

from acquatop.ingest.solution_count import MOST_TOGETHER, check_count
from acquatop.ingest.solutions_table import columns_of
from acquatop.topk.contract import IntArray
from connectors.coded import plain

_GRAPH = "urn:graph:"
_MOST = 1 << 13
"""Number of rows from which on those of further graphs are evaluated by themselves."""


class RecordRows(NamedTuple):
    """Rows of statements: a subject each, and for each predicate an object or null, as terms."""

    subjects: pa.Array
    predicates: Sequence[str]
    objects: Sequence[pa.Array]

    def take(self, at: IntArray) -> RecordRows:
        """Return the rows at some positions."""
        those = pa.array(at)
        objects = [each.take(those) for each in self.objects]
        return RecordRows(self.subjects.take(those), self.predicates, objects)

    def slice(self, part: slice) -> RecordRows:
        """Return some of the rows."""
        count = part.stop - part.start
        return RecordRows(
            self.subjects.slice(part.start, count),
            self.predicates,
            [each.slice(part.start, count) for each in self.objects],
        )


class Bindings(NamedTuple):
    """Solutions: the graph of each, and for each variable the term, ``""`` if it is unbound."""

    graphs: IntArray
    terms: Sequence[pa.StringArray]


class PatternOverGraphs:
    """Pattern, given as the inside of a group, that binds some variables."""

    def __init__(self, pattern: str, prologue: str, variables: Sequence[str]) -> None:
        graph = "graph"
        while graph in variables or f"?{graph}" in pattern:
            graph += "_"
        names = " ".join(f"?{name}" for name in (graph, *variables))
        self._width = len(variables)
        self._text = f"{prologue} SELECT {names} WHERE {{ GRAPH ?{graph} {{ {pattern} }} }}"
        self._text += f" LIMIT {MOST_TOGETHER + 1}"

    def solutions(self, graphs: IntArray, rows: RecordRows) -> Bindings:
        """Return the solutions over graphs of rows, by graph and then by terms.

        ``graphs`` tells the graph of each row, ascending. O(rows + solutions).
        """
        found = [self._solved(graphs[part], rows.slice(part)) for part in _parts(graphs)]
        if not found:
            nothing = pa.array([], pa.string())
            return Bindings(np.empty(0, dtype=np.int64), [nothing] * self._width)
        if len(found) == 1:
            return found[0]
        terms = zip(*(each.terms for each in found), strict=True)
        return Bindings(
            np.concatenate([each.graphs for each in found]),
            [pa.chunked_array(column).combine_chunks() for column in terms],
        )

    def _solved(self, graphs: IntArray, rows: RecordRows) -> Bindings:
        store = Store()
        # Leniently: an IRI or a language may be invalid, which was accepted when it came.
        store.load(_quads(graphs, rows), format=RdfFormat.N_QUADS, lenient=True)
        results = store.query(self._text)
        assert isinstance(results, QuerySolutions)
        names, *terms = columns_of(results)
        check_count(len(names))
        numbers = pc.replace_substring_regex(names.dictionary, f"^<{_GRAPH}|>$", "")
        of_graphs = np.asarray(numbers.cast(pa.int64()).to_numpy())[names.indices.to_numpy()]
        order = np.lexsort([_ranks(column) for column in reversed(terms)] + [of_graphs])
        return Bindings(of_graphs[order], [plain(column.take(pa.array(order))) for column in terms])


def _ranks(column: pa.DictionaryArray) -> IntArray:
    """Return the place of each value among the distinct ones."""
    places = np.empty(len(column.dictionary), dtype=np.int64)
    places[pc.sort_indices(column.dictionary).to_numpy()] = np.arange(len(places))
    found: IntArray = places[column.indices.to_numpy()]
    return found


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
    return b"".join(
        _joined(pc.binary_join_element_wise(rows.subjects, f"<{predicate}>", values, names, " "))
        for predicate, values in zip(rows.predicates, rows.objects, strict=True)
    )


def _joined(lines: pa.StringArray) -> bytes:
    """Return the texts of a column one after the other, without those that are null."""
    some = lines.drop_null()
    everything = pa.ListArray.from_arrays(pa.array([0, len(some)], pa.int32()), some)
    text: bytes = pc.binary_join(everything, "")[0].as_buffer().to_pybytes()
    return text
