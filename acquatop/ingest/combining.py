"""Matching of a star whose triples several records of one subject may say.

A window is an RDF graph: if all arrivals count, a star of several patterns also takes values of one
subject from different records. So records are kept by what they say of each pattern.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.ingest.found import Found
from acquatop.ingest.match import Matcher
from acquatop.ingest.object_terms import terms_of
from acquatop.ingest.solution_columns import GONE, IDENTITY
from acquatop.ingest.star_join import StarSolutions
from connectors.coded import plain
from connectors.contract import RecordDecoder
from connectors.mapping import BAD, SUBJECT, TIME
from connectors.subjects import subjects_of
from rspql import ast
from rspql.plan import TopKPlan


class CombiningMatcher(Matcher):
    """Matcher of several patterns about one subject, if all arrivals count.

    What it finds are records that match any of the patterns. :meth:`table` has a column for each
    pattern with the value that a record says, or null. :meth:`solutions` makes solutions of such
    values.
    """

    combines = True

    def __init__(self, plan: TopKPlan, mapping: RecordDecoder, *, arrivals: str) -> None:
        super().__init__(plan, mapping, arrivals=arrivals)
        self._patterns = tuple(dict.fromkeys(self._pattern))
        self.said = tuple(f"said{at}" for at in range(len(self._patterns)))
        """Names of the columns for the patterns."""

    def find(self, records: pa.RecordBatch) -> Found:
        """Return the records of a batch that match any pattern."""
        some = reduce(pc.or_, (self._says(triple, records) for triple in self._patterns))
        rows = pc.fill_null(pc.and_(self._readable(records), some), False)
        found = records if pc.all(rows, min_count=0).as_py() else records.filter(rows)
        return Found(self, found, np.zeros(len(found), dtype=np.bool_))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the records' columns from which solutions are made."""
        return tuple(dict.fromkeys((TIME, SUBJECT, *map(self._column, self._patterns))))

    def table(self, found: Found) -> pa.Table:
        """Return what found records say, a column for each pattern.

        The identity tells apart all that is said.
        """
        records = found.columns
        said = [self._said(triple, records) for triple in self._patterns]
        texts = [
            pc.coalesce(terms_of(values, self._datatype(triple)), "")
            for values, triple in zip(said, self._patterns, strict=True)
        ]
        subjects = plain(subjects_of(records))
        return pa.table(
            {
                TIME: records.column(TIME),
                IDENTITY: pc.binary_join_element_wise(subjects, *texts, " "),
                SUBJECT: subjects,
                GONE: found.gone,
                **dict(zip(self.said, said, strict=True)),
            }
        )

    def solutions(self, said: pa.Table, found: StarSolutions) -> pa.Table:
        """Return solutions as columns, sorted by identity; filters leave some of them out."""
        taken = {name: pa.array(rows) for name, rows in zip(self.said, found.rows, strict=True)}
        columns = {
            TIME: pa.array(found.times),
            SUBJECT: said.column(SUBJECT).take(taken[self.said[0]]),
            BAD: pa.nulls(len(found.times), pa.string()),
            **{name: said.column(name).take(rows) for name, rows in taken.items()},
        }
        table = pa.table(columns).combine_chunks()
        (records,) = table.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
        solutions = _ValuesMatcher(self).match(records)
        return solutions.take(pc.sort_indices(solutions.column(IDENTITY))).combine_chunks()

    def _said(self, triple: ast.TriplePattern, records: pa.RecordBatch) -> pa.Array:
        """Return the values with which records match a pattern; null for others."""
        values = plain(records.column(self._column(triple)))
        if isinstance(triple.object, ast.Variable):
            return values
        return pc.if_else(self._holds(triple, records), values, pa.scalar(None, values.type))

    def _says(self, triple: ast.TriplePattern, records: pa.RecordBatch) -> pa.BooleanArray:
        if isinstance(triple.object, ast.Variable):
            return pc.is_valid(records.column(self._column(triple)))
        return pc.fill_null(self._holds(triple, records), False)


class _ValuesMatcher(Matcher):
    """Matcher of combined values: each pattern has a column of its own."""

    def __init__(self, matcher: CombiningMatcher) -> None:
        matcher._filters()  # compiled once for all
        self.__dict__.update(matcher.__dict__)
        self._columns = dict(zip(matcher._patterns, matcher.said, strict=True))

    def _column(self, triple: ast.TriplePattern) -> str:
        return self._columns[triple]
