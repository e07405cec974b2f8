"""Matching of a stream's pattern against decoded records: columns in, solution columns out.

A record is an item with one subject; a pattern over it is a star around that subject. Matching
therefore selects columns and rows; no triples are built.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.ingest.constants import same_as
from acquatop.ingest.found import Found
from acquatop.ingest.object_terms import terms_of
from acquatop.ingest.record_pattern import RecordPattern
from acquatop.ingest.scoring import BoolArray
from acquatop.ingest.solution_columns import GONE, IDENTITY, KEY, number_column, term_column
from acquatop.ingest.stream_filter import StreamFilter
from acquatop.ingest.term_filter import TermFilter
from acquatop.ingest.terms import from_ast
from acquatop.ingest.text_filter import TextFilter, text_filter
from connectors.coded import coded, distinct, plain
from connectors.contract import RecordDecoder
from connectors.mapping import BAD, IRI, SUBJECT, TIME
from connectors.subjects import subjects_of
from rspql import ast
from rspql.plan import TopKPlan
from rspql.scoring import variables_in
from rspql.term_conditions import term_condition


class Matcher(RecordPattern):
    """Matcher that turns records of one stream into solutions of one query's window pattern.

    A newer arrival replaces an older one of the same ``identity``. The identity is the subject if
    only the latest arrival counts, and the whole solution if all arrivals count: the same solution
    twice is one, as in a set. If arrivals are distinct, it is the subject, too, but none comes
    twice.
    """

    def __init__(self, plan: TopKPlan, mapping: RecordDecoder, *, arrivals: str) -> None:
        super().__init__(plan, mapping, arrivals=arrivals)
        self._made: list[StreamFilter | TextFilter | TermFilter] | None = None

    def match(self, records: pa.RecordBatch) -> pa.Table:
        """Return the solutions in a batch of decoded records, one row each, in the records' order.

        If only the latest arrival counts, an arrival that does not match is a row too, marked
        ``gone``: the solution that it replaces no longer holds.
        """
        return self.table(self.find(records))

    def table(self, found: Found) -> pa.Table:
        """Return found records as the columns of solutions."""
        terms = [found.terms(name) for name in self._variables]
        values_of = found.numbers if self._aggregate is None else found.addends
        identity = found.identities
        return pa.table(
            {
                TIME: pa.array(found.times),
                IDENTITY: identity,
                KEY: found.key_terms if self.keys or self.aggregates else identity,
                GONE: found.gone,
                **{
                    term_column(name): term
                    for name, term in zip(self._variables, terms, strict=True)
                },
                **{number_column(name): pa.array(values_of(name)) for name in self._numbers},
            }
        )

    def find(self, records: pa.RecordBatch) -> Found:
        """Return the records of a batch that match; their columns are made on demand."""
        readable = self._readable(records)
        matches = readable
        for triple in self._pattern:
            matches = pc.and_(matches, self._holds(triple, records))
        matches = np.asarray(
            pc.fill_null(matches, False).to_numpy(zero_copy_only=False), dtype=np.bool_
        )
        for each in self._filters():
            matches = matches & self._passes(each, records, matches)
        rows = (
            np.asarray(readable.to_numpy(zero_copy_only=False))
            if self._arrivals == "latest"
            else matches
        )
        return Found(
            self, records if rows.all() else records.filter(pa.array(rows)), ~matches[rows]
        )

    def _passes(
        self,
        condition: StreamFilter | TextFilter | TermFilter,
        records: pa.RecordBatch,
        matches: BoolArray,
    ) -> BoolArray:
        """Return a mask of the records for which a filter holds; others than matches may be in."""
        if isinstance(condition, StreamFilter):
            return condition.holds(
                {name: self.values(name, records) for name in condition.variables}
            )
        if isinstance(condition, TextFilter):
            return condition.holds(
                {name: self._texts(name, records) for name in condition.variables}
            )
        passes = np.zeros(len(matches), dtype=np.bool_)
        some = records.filter(pa.array(matches))
        passes[matches] = condition.holds(
            {name: self.terms(name, some) for name in condition.variables}
        )
        return passes

    def _filters(self) -> list[StreamFilter | TextFilter | TermFilter]:
        # Compiled in each process: compiled filters cannot be pickled.
        if self._made is None:
            self._made = [self._filter(each) for each in self._conditions]
        return self._made

    def _filter(self, condition: ast.Expression) -> StreamFilter | TextFilter | TermFilter:
        if self._is_numeric(condition):
            return StreamFilter(condition, self._functions, self._datatypes_in(condition))
        plain_condition = term_condition(condition, self._functions)
        assert plain_condition is not None, "check lets no others pass"
        texts = {name: self._text_datatype(name) for name in variables_in(condition)}
        known = {name: datatype for name, datatype in texts.items() if datatype is not None}
        return text_filter(plain_condition, known) or TermFilter(plain_condition)

    def _text_datatype(self, variable: str) -> str | None:
        """Return the datatype of a variable whose values are texts or IRIs alone."""
        if self.is_subject(variable):
            return IRI
        datatype = self.datatype(variable)
        return datatype if datatype in (IRI, ast.XSD + "string") else None

    def _texts(self, variable: str, records: pa.RecordBatch) -> pa.Array:
        """Return a variable's values: texts as they are, IRIs in brackets."""
        if self.is_subject(variable):
            return plain(subjects_of(records))
        return plain(self.values(variable, records))

    def __getstate__(self) -> dict[str, object]:
        # Nor can what is derived; it is made again when it is needed.
        kept = {name: each for name, each in self.__dict__.items() if name != "derived"}
        return {**kept, "_made": None}

    def _readable(self, records: pa.RecordBatch) -> pa.BooleanArray:
        """Return a mask of the good records with the pattern's subject."""
        good = pc.is_null(records.column(BAD))
        subject = self._pattern[0].subject
        if isinstance(subject, ast.Variable):
            return good
        subjects = subjects_of(records)
        same = pc.equal(subjects.dictionary, _constant(subject)).take(subjects.indices)
        return pc.fill_null(pc.and_(good, same), False)

    def _holds(self, triple: ast.TriplePattern, records: pa.RecordBatch) -> pa.BooleanArray:
        """Return a mask of the records with a triple that a pattern matches."""
        values = records.column(self._column(triple))
        if isinstance(triple.object, ast.Variable):
            return self._is_bound(triple, triple.object.name, records)
        each = coded(values)
        same = same_as(triple.object, each.dictionary, self._datatype(triple))
        return same.take(each.indices)

    def _is_bound(
        self, triple: ast.TriplePattern, variable: str, records: pa.RecordBatch
    ) -> pa.BooleanArray:
        """Return a mask of the records with a value for a variable, the same wherever it stands."""
        values = records.column(self._column(triple))
        if self.is_subject(variable):
            others = subjects_of(records)
        elif triple == self._triple(variable):
            return pc.is_valid(values)
        else:
            first = self._triple(variable)
            others = terms_of(records.column(self._column(first)), self._datatype(first))
        return pc.equal(plain(terms_of(values, self._datatype(triple))), plain(others))

    def values(self, variable: str, records: pa.RecordBatch) -> pa.Array:
        """Return the record column that a variable is bound to."""
        return records.column(self._column(self._triple(variable)))

    def terms(self, variable: str, records: pa.RecordBatch) -> pa.Array:
        """Return the values that a variable is bound to as terms."""
        if self.is_subject(variable):
            return plain(subjects_of(records))
        triple = self._triple(variable)
        return terms_of(records.column(self._column(triple)), self._datatype(triple))

    def coded_terms(self, variable: str, records: pa.RecordBatch) -> pa.DictionaryArray:
        """Return the values that a variable is bound to as terms, each distinct one made once."""
        if self.is_subject(variable):
            return distinct(subjects_of(records))
        triple = self._triple(variable)
        each = distinct(records.column(self._column(triple)))
        terms = terms_of(each.dictionary, self._datatype(triple))
        return pa.DictionaryArray.from_arrays(each.indices, terms)

    def keys_in(self, records: pa.RecordBatch) -> pa.Array:
        """Return the keys that the solutions of records can have."""
        return self.find(records).keys.unique()

    def _triple(self, variable: str) -> ast.TriplePattern:
        """Return the first pattern with a variable as its object."""
        return next(each for each in self._pattern if each.object == ast.Variable(variable))

    def _column(self, triple: ast.TriplePattern) -> str:
        """Return the name of the records' column with the objects of a pattern."""
        return self._mapping.column(predicate_of(triple))

    def _datatype(self, triple: ast.TriplePattern) -> str:
        return self._mapping.properties[predicate_of(triple)].datatype

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the records' columns from which solutions are made."""
        # What is derived is computed of the variables.
        numbers = () if self.aggregates else (*self._numbers, *self.keys)
        names = [
            self._column(self._triple(name))
            for name in (*self._variables, *numbers)
            if name not in self.derived and not self.is_subject(name)
        ]
        return tuple(dict.fromkeys((TIME, SUBJECT, *names)))


def predicate_of(triple: ast.TriplePattern) -> str:
    """Return the IRI of a pattern's predicate."""
    assert isinstance(triple.predicate, ast.Iri), "check lets only IRIs pass"
    return triple.predicate.value


def _constant(term: ast.Term) -> str:
    """Return the text of a constant; for a blank node, a text that no record has."""
    return from_ast(term) if isinstance(term, ast.Iri | ast.Literal) else ""
