"""Matching of any pattern over all that the records of one subject say together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.ingest.found import Found
from acquatop.ingest.graph_matcher import GraphMatcher
from acquatop.ingest.record_graphs import RecordRows
from acquatop.ingest.solution_columns import GONE, IDENTITY
from acquatop.topk.contract import IntArray
from connectors.coded import plain
from connectors.mapping import BAD, SUBJECT, TIME


class CombiningGraphMatcher(GraphMatcher):
    """Matcher of a plan's group against all that the records of a subject say, if all count.

    What it finds are records that say anything that the pattern can need; :meth:`table` has a
    column for each predicate.
    """

    combines = True

    def find(self, records: pa.RecordBatch) -> Found:
        """Return the records of a batch that the pattern can need."""
        columns = [records.column(self._mapping.column(each)) for each in self._predicates]
        some = reduce(pc.or_, map(pc.is_valid, columns))
        found = records.filter(pc.and_(pc.is_null(records.column(BAD)), some))
        return Found(self, found, np.zeros(len(found), dtype=np.bool_))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the records' columns from which solutions are made."""
        return (TIME, SUBJECT, *map(self._mapping.column, self._predicates))

    @property
    def said(self) -> Sequence[str]:
        """Names of the columns for the predicates."""
        return [f"said{at}" for at in range(len(self._predicates))]

    def table(self, found: Found) -> pa.Table:
        """Return what found records say. The identity tells apart all that is said."""
        records = found.columns
        subjects, _, objects = self._statements(records)
        texts = [pc.coalesce(each, "") for each in objects]
        return pa.table(
            {
                TIME: records.column(TIME),
                IDENTITY: pc.binary_join_element_wise(subjects, *texts, " "),
                SUBJECT: subjects,
                GONE: found.gone,
                **dict(zip(self.said, objects, strict=True)),
            }
        )

    def groups(self, said: pa.Table) -> IntArray:
        """Return a number for each record; those that make solutions together have the same."""
        subjects = plain_column(said.column(SUBJECT)).dictionary_encode().indices
        return np.asarray(subjects.to_numpy(), dtype=np.int64)

    def together(self, said: pa.Table) -> tuple[pa.Table, IntArray]:
        """Return all records of a window, and the graph of each, ascending."""
        groups = self.groups(said)
        order = np.argsort(groups, kind="stable")
        return said.take(pa.array(order)), groups[order]

    def keys_in(self, records: pa.RecordBatch) -> pa.Array:
        """Return the keys of the solutions that records have by themselves."""
        return GraphMatcher.find(self, records).keys.unique()

    def solutions(self, said: pa.Table, graphs: IntArray) -> pa.Table:
        """Return the solutions of graphs of records as columns, sorted by identity.

        ``graphs`` has the graph of each record, numbered from zero, ascending; the first of a graph
        is its oldest, whose time is that of the solutions. Raises
        :class:`~acquatop.errors.EvaluationError` if there may be very many.
        """
        rows = RecordRows(
            plain_column(said.column(SUBJECT)),
            self._predicates,
            [plain_column(said.column(name)) for name in self.said],
        )
        self._count.check(graphs, rows.objects)
        found = self._engine.solutions(graphs, rows)
        firsts = pa.array(np.searchsorted(graphs, found.graphs))
        times = plain_column(said.column(TIME)).take(firsts)
        made = pa.RecordBatch.from_pydict(self._solutions(rows.subjects.take(firsts), times, found))
        kept = made.filter(pa.array(self._keeps(made)))
        solutions = super().table(Found(self, kept, np.zeros(len(kept), dtype=np.bool_)))
        return solutions.take(pc.sort_indices(solutions.column(IDENTITY))).combine_chunks()


def plain_column(column: pa.ChunkedArray) -> pa.Array:
    """Return a column's values in one piece, without a dictionary."""
    whole = column.combine_chunks()
    return plain(whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole)
