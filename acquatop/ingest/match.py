"""Matching of a stream's pattern against decoded records: columns in, solution columns out.

A record is an item with one subject; a pattern over it is a star around that subject. Matching
therefore selects columns and rows; no triples are built.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.ingest.composite_keys import joined_keys
from acquatop.ingest.identity_hash import Hashes, IdentityHash
from acquatop.ingest.scoring import BoolArray
from acquatop.ingest.stream_filter import StreamFilter, numbers_of
from acquatop.ingest.term_filter import TermFilter
from acquatop.ingest.terms import from_ast
from acquatop.ingest.text_filter import TextFilter, text_filter
from acquatop.ingest.unscored import objects
from acquatop.topk.contract import AnyArray, FloatArray, IntArray
from connectors.coded import coded, distinct, plain
from connectors.contract import RecordDecoder
from connectors.lexical import INTEGERS
from connectors.mapping import (
    BAD,
    DATATYPES,
    IRI,
    SUBJECT,
    TERM,
    TIME,
    XSD_DOUBLE,
    Property,
    TermProperty,
)
from connectors.objects import named, quoted
from connectors.subjects import subjects_of
from rspql import ast
from rspql.diagnostics import Diagnostic, nearest
from rspql.plan import AggregateColumn, Aggregation, Score, TopKPlan
from rspql.scoring import check_condition, variables_in
from rspql.term_conditions import term_condition

T = TypeVar("T")

IDENTITY, KEY, GONE = "identity", "key", "gone"
"""Names of the solution columns besides the time, the terms ``?x`` and the numbers ``#x``."""


def term_column(variable: str) -> str:
    """Return the name of the column with a variable's N-Triples terms."""
    return f"?{variable}"


def number_column(variable: str) -> str:
    """Return the name of the column with a scoring variable's numbers."""
    return f"#{variable}"


class Matcher:
    """Matcher that turns records of one stream into solutions of one query's window pattern.

    A newer arrival replaces an older one of the same ``identity``. The identity is the subject if
    only the latest arrival counts, and the whole solution if all arrivals count: the same solution
    twice is one, as in a set. If arrivals are distinct, it is the subject, too, but none comes
    twice.
    """

    combines = False
    """True if several records may make a solution together."""
    retracts = False
    """True if what is said later may take a solution away."""

    def __init__(self, plan: TopKPlan, mapping: RecordDecoder, *, arrivals: str) -> None:
        self._mapping = mapping
        is_distinct = plan.aggregate is not None and plan.aggregate.is_distinct
        self._arrivals = "all" if is_distinct and arrivals == "distinct" else arrivals
        self._aggregate = plan.aggregate
        self._keys = plan.aggregate.keys if plan.aggregate else plan.join_variables
        self._variables = plan.stream_variables
        self._numbers = (
            _aggregated(plan.aggregate) if plan.aggregate else plan.score.stream_variables
        )
        self._pattern = plan.stream_pattern
        # Values that are only compared may be text; values in arithmetic must be numbers.
        self._orders_by_term = isinstance(plan.score.expression, ast.Variable)
        self._conditions = plan.stream_filters
        self._functions = plan.score.functions
        self._made: list[StreamFilter | TextFilter | TermFilter] | None = None

    def check(self, found: list[Diagnostic]) -> None:
        """Append diagnostics to ``found`` if this pattern cannot be matched against the records."""
        subjects = {triple.subject for triple in self._pattern}
        if len(subjects) > 1:
            message = "the patterns in a WINDOW must share their subject: a record has only one"
            found.append(Diagnostic("unsupported", message, self._pattern[-1].span))
        objects = [
            triple.object.name
            for triple in self._pattern
            if isinstance(triple.object, ast.Variable)
        ]
        for triple in self._pattern:
            self._check_triple(triple, found)
        for name in self._compared():
            if name in objects and (what := self._differing(name)):
                self._refuse_differing(name, what, found)
        if self._aggregate is None:
            self._check_score(found)
        else:
            self._check_aggregated(self._aggregate, found)
        self._check_filters(found)

    def _compared(self) -> tuple[str, ...]:
        """Return the variables whose terms say what is the same: keys, and distinct values."""
        aggregate = self._aggregate
        return aggregate.identity if aggregate and aggregate.is_distinct else self._keys

    def _refuse_differing(self, name: str, what: str, found: list[Diagnostic]) -> None:
        if self._aggregate is None:
            message = (
                f"a join on ?{name}, which is {what} on the stream, is not supported: "
                "equal values may differ as terms"
            )
        else:
            why = "it groups by" if name in self._keys else "has to be distinct"
            message = (
                f"?{name}, which {why}, is {what} on the stream: equal values may differ as terms"
            )
        hint = "join on an IRI, string or integer"
        found.append(Diagnostic("unsupported", message, self._pattern[0].span, hint))

    @property
    def has_numbers(self) -> bool:
        """True if the values in the score or the aggregates, and those in filters, are numbers."""
        filtered = (name for each in self._conditions for name in variables_in(each))
        return all(map(self._is_number, (*self._numbers, *filtered)))

    def _check_aggregated(self, aggregate: Aggregation, found: list[Diagnostic]) -> None:
        if aggregate.is_distinct and self._arrivals == "latest":
            message = "distinct values are not kept up to date if a subject's latest arrival counts"
            found.append(Diagnostic("unsupported", message, self._pattern[0].span))
        for column in aggregate.columns:
            function = column.function.upper()
            if column.of is not None and not self._is_counted(column.of):
                message = self._not_counted(function, column.of)
                found.append(Diagnostic("unsupported", message, self._pattern[0].span))

    def _check_score(self, found: list[Diagnostic]) -> None:
        for name in self._numbers:
            if not found and not self._is_counted(name):
                is_mistake = not self._orders_by_term and not self._may_be_number(name)
                message, code = self._not_counted("the score", name), "score"
                code = code if is_mistake else "unsupported"
                found.append(Diagnostic(code, message, self._pattern[0].span))

    def _check_filters(self, found: list[Diagnostic]) -> None:
        for condition in self._conditions:
            if self._is_numeric(condition) or term_condition(condition, self._functions):
                continue
            for name, span in variables_in(condition).items():
                if not self._is_counted(name):
                    what = self._words(name) if self._may_be_number(name) else "not a number"
                    message = (
                        f"a FILTER calls a function of numbers, but ?{name} is {what} on the stream"
                    )
                    found.append(Diagnostic("unsupported", message, span))

    def datatype(self, variable: str) -> str | None:
        """Return the datatype of a variable that is the object of a pattern; None for others."""
        about = self._property(variable)
        return None if about is None else about.datatype

    def _property(self, variable: str) -> Property | None:
        predicates = (
            triple.predicate.value
            for triple in self._pattern
            if triple.object == ast.Variable(variable) and isinstance(triple.predicate, ast.Iri)
        )
        mapped = (self._mapping.properties.get(predicate) for predicate in predicates)
        return next((each for each in mapped if each is not None), None)

    def _differing(self, key: str) -> str | None:
        """Return what a key is if equal values of it may be different terms."""
        about = self._property(key)
        return self._words(key) if about is not None and may_differ(about) else None

    def _words(self, variable: str) -> str:
        """Return what the stream has in a variable, for a message."""
        about = self._property(variable)
        if about is None:
            return "a subject"
        if not isinstance(about, TermProperty):
            return named(about.datatype)
        return "a constant" if about.constant is not None else about.objects.words

    def _not_counted(self, what: str, variable: str) -> str:
        if not self._may_be_number(variable):
            return f"{what} needs a number in ?{variable}, but the stream has none there"
        return (
            f"{what} needs an integer or a double in ?{variable}, and the stream has "
            f"{self._words(variable)} there"
        )

    def _may_be_number(self, variable: str) -> bool:
        """Return True if SPARQL may compute with a variable, in some records."""
        about = self._property(variable)
        return isinstance(about, TermProperty) or self._is_number(variable)

    def _counted_datatype(self, variable: str) -> str | None:
        """Return the datatype with which a variable is computed: those of integers are one."""
        datatype = self.datatype(variable)
        return ast.XSD + "integer" if datatype in INTEGERS else datatype

    def _datatypes_in(self, expression: ast.Expression) -> dict[str, str]:
        found = {name: self._counted_datatype(name) for name in variables_in(expression)}
        return {name: datatype for name, datatype in found.items() if datatype is not None}

    def score_datatypes(self, score: Score) -> dict[str, str]:
        """Return the datatypes of a score's stream variables, as far as they are known."""
        if self._aggregate is None:
            found = {name: self._counted_datatype(name) for name in score.stream_variables}
        else:
            columns = {each.variable: each for each in self._aggregate.columns}
            found = {
                name: self._aggregated_datatype(columns[name]) for name in score.stream_variables
            }
        return {name: datatype for name, datatype in found.items() if datatype is not None}

    def _aggregated_datatype(self, column: AggregateColumn) -> str | None:
        if column.of is None:
            return ast.XSD + "integer"
        datatype = self._counted_datatype(column.of)
        is_quotient = column.function == "avg" and datatype != XSD_DOUBLE
        return ast.XSD + "decimal" if is_quotient else datatype

    def _is_number(self, variable: str) -> bool:
        about = self._property(variable)
        if isinstance(about, TermProperty):
            return about.constant is None and about.objects.are_numbers
        return about is not None and DATATYPES[about.datatype] != pa.string()

    def _is_counted(self, variable: str) -> bool:
        """Return True if all digits of a variable's numbers are computed with, in doubles."""
        datatype = self.datatype(variable)
        return datatype == XSD_DOUBLE or datatype in INTEGERS

    def _check_triple(self, triple: ast.TriplePattern, found: list[Diagnostic]) -> None:
        predicate = triple.predicate
        if not isinstance(predicate, ast.Iri):
            message = "a predicate in a WINDOW must be an IRI"
            found.append(Diagnostic("unsupported", message, predicate.span))
        else:
            found.extend(unknown_predicate(predicate, self._mapping))
            about = self._mapping.properties.get(predicate.value)
            is_any = isinstance(about, TermProperty) and about.objects.are_any
            if is_any and isinstance(triple.object, ast.Literal):
                message = "a literal as an object needs a property of known datatypes"
                found.append(Diagnostic("unsupported", message, triple.object.span))

    @property
    def signature(self) -> str:
        """Text of the match: matchers with the same text find the same in the same records."""
        parts = (
            self._pattern,
            self._variables,
            self._numbers,
            self._keys[0] if self._keys else None,
            self._arrivals,
            self._conditions,
        )
        is_distinct = self._aggregate is not None and self._aggregate.is_distinct
        more = self._keys[1:], self._identity() if is_distinct else None
        return repr((self._mapping, *parts, *(more if any(more) else ())))

    def _identity(self) -> tuple[str, ...]:
        """Return the variables whose terms identify a solution, if all arrivals count."""
        if self._aggregate is not None and self._aggregate.is_distinct:
            return self._aggregate.identity
        return self._variables

    @property
    def identified_by_subject(self) -> bool:
        """True if the subject column tells solutions apart, otherwise all terms do."""
        return self._arrivals != "all"

    @property
    def may_be_several(self) -> bool:
        """True if a record may have several solutions."""
        return False

    @property
    def arrivals(self) -> str:
        """Effect of a newer arrival of a subject on an older one, as named in catalogs."""
        return self._arrivals

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
                KEY: identity if not self._keys else found.key_terms,
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
                {name: self._values(name, records) for name in condition.variables}
            )
        if isinstance(condition, TextFilter):
            return condition.holds(
                {name: self._texts(name, records) for name in condition.variables}
            )
        passes = np.zeros(len(matches), dtype=np.bool_)
        some = records.filter(pa.array(matches))
        passes[matches] = condition.holds(
            {name: self._terms(name, some) for name in condition.variables}
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
            return plain(records.column(SUBJECT))
        return plain(self._values(variable, records))

    def _is_numeric(self, condition: ast.Expression) -> bool:
        """Return True if a condition needs numbers alone, and the stream has such there."""
        problems: list[Diagnostic] = []
        check_condition(condition, problems, functions=self._functions)
        return not problems and all(map(self._is_counted, variables_in(condition)))

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_made": None}

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
        same = pc.equal(terms_of(each.dictionary, self._datatype(triple)), _constant(triple.object))
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

    def _values(self, variable: str, records: pa.RecordBatch) -> pa.Array:
        """Return the record column that a variable is bound to."""
        return records.column(self._column(self._triple(variable)))

    def _terms(self, variable: str, records: pa.RecordBatch) -> pa.Array:
        """Return the values that a variable is bound to as terms."""
        if self.is_subject(variable):
            return plain(subjects_of(records))
        triple = self._triple(variable)
        return terms_of(records.column(self._column(triple)), self._datatype(triple))

    def _coded_terms(self, variable: str, records: pa.RecordBatch) -> pa.DictionaryArray:
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

    def is_subject(self, variable: str) -> bool:
        """Return True if a variable is the pattern's subject."""
        return self._pattern[0].subject == ast.Variable(variable)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the records' columns from which solutions are made."""
        names = [
            self._column(self._triple(name))
            for name in (*self._variables, *self._numbers, *self._keys)
            if not self.is_subject(name)
        ]
        return tuple(dict.fromkeys((TIME, SUBJECT, *names)))


class Found:
    """Records that match; if only the latest arrival counts, also the others, marked ``gone``.

    Columns are made on first use and kept, because several queries may need them.
    """

    def __init__(self, matcher: Matcher, records: pa.RecordBatch, gone: BoolArray) -> None:
        self.gone = gone
        self._matcher = matcher
        self._records = records
        self._made: dict[Hashable, Any] = {}

    def made(self, name: Hashable, make: Callable[[], T]) -> T:
        """Return the value cached under a name; make it the first time."""
        if name not in self._made:
            self._made[name] = make()
        made: T = self._made[name]
        return made

    def __len__(self) -> int:
        return len(self._records)

    @cached_property
    def times(self) -> IntArray:
        """Event time of each record."""
        return np.asarray(self._records.column(TIME).to_numpy(), dtype=np.int64)

    @cached_property
    def subjects(self) -> pa.StringArray:
        """Subject of each record."""
        return plain(subjects_of(self._records))

    @property
    def identities(self) -> pa.StringArray:
        """Text by which each solution is known: its subject, or all its terms."""
        if self._matcher.identified_by_subject:
            return self.subjects
        return pc.binary_join_element_wise(*map(self.terms, self._matcher._identity()), " ")

    def identities_at(self, at: IntArray) -> AnyArray:
        """Return the identities at some positions; only these are made."""
        return objects(self.take(at).identities.to_pylist())

    @property
    def columns(self) -> pa.RecordBatch:
        """Records' columns from which the solutions are made."""
        return self._records.select(list(self._matcher.columns))

    @cached_property
    def keys(self) -> pa.DictionaryArray:
        """Join or grouping key of each record, as terms: each distinct term is made once."""
        names = self._matcher._keys
        if not names:
            return distinct(subjects_of(self._records))
        columns = [self._matcher._coded_terms(name, self._records) for name in names]
        return columns[0] if len(columns) == 1 else joined_keys(columns)

    @property
    def key_terms(self) -> pa.Array:
        """Join or grouping key of each record."""
        names = self._matcher._keys
        return self.terms(names[0]) if len(names) == 1 else plain(self.keys)

    def key_hashes(self, hashes: IdentityHash) -> Hashes:
        """Return the hash of each text in the keys' dictionary."""
        return self.made(("hashes", hashes.seed), lambda: hashes.of(self.keys.dictionary))

    def take(self, at: IntArray) -> Found:
        """Return the records at some positions."""
        return Found(self._matcher, self._records.take(pa.array(at)), self.gone[at])

    def terms(self, variable: str) -> pa.Array:
        """Return the values of a variable as terms; null if it is unbound."""
        return self._matcher._terms(variable, self._records)

    def numbers(self, variable: str) -> FloatArray:
        """Return the values of a variable as numbers; NaN if a value is not a number."""
        return self.made(("numbers", variable), lambda: self._numbers(variable))

    def addends(self, variable: str) -> AnyArray:
        """Return the values of a variable that aggregates add up: integers with all their digits.

        Doubles are as :meth:`numbers` returns them. A missing integer is zero: a record without one
        does not match.
        """
        values = self._matcher._values(variable, self._records)
        if not pa.types.is_integer(values.type):
            return self.numbers(variable)
        known = pc.fill_null(values, 0) if values.null_count else values
        return np.asarray(known.to_numpy(), dtype=np.int64)

    def _numbers(self, variable: str) -> FloatArray:
        if self._matcher.is_subject(variable):
            return np.full(len(self), np.nan)
        numbers = numbers_of(self._matcher._values(variable, self._records))
        return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)


def predicate_of(triple: ast.TriplePattern) -> str:
    """Return the IRI of a pattern's predicate."""
    assert isinstance(triple.predicate, ast.Iri), "check lets only IRIs pass"
    return triple.predicate.value


def _aggregated(aggregate: Aggregation) -> tuple[str, ...]:
    """Return the variables whose numbers are aggregated, each once."""
    return tuple(dict.fromkeys(column.of for column in aggregate.columns if column.of is not None))


def may_differ(about: Property) -> bool:
    """Return True if equal objects of a property may be different terms."""
    if isinstance(about, TermProperty) and about.constant is None:
        return not about.objects.can_be_keys
    return bool(DATATYPES[about.datatype] == pa.float64())


def unknown_predicate(predicate: ast.Iri, mapping: RecordDecoder) -> list[Diagnostic]:
    """Return a diagnostic for a predicate that no record of a stream can have; else nothing."""
    if predicate.value in mapping.properties:
        return []
    near = nearest(predicate.value, mapping.properties)
    known = ", ".join(f"<{iri}>" for iri in mapping.properties)
    hint = f"did you mean <{near}>?" if near else f"the stream has {known}"
    message = f"the stream has no predicate <{predicate.value}>"
    return [Diagnostic("unknown-predicate", message, predicate.span, hint)]


def _constant(term: ast.Term) -> str:
    """Return the text of a constant; for a blank node, a text that no record has."""
    return from_ast(term) if isinstance(term, ast.Iri | ast.Literal) else ""


def terms_of(values: pa.Array, datatype: str) -> pa.Array:
    """Return a column of a property's objects as N-Triples terms."""
    if pa.types.is_dictionary(values.type):
        return terms_of(values.dictionary, datatype).take(values.indices)
    if datatype in (IRI, TERM):
        return values
    if DATATYPES[datatype] == pa.string():
        return quoted(values)
    values = values.cast(pa.float32()) if datatype == ast.XSD + "float" else values
    return pc.binary_join_element_wise('"', pc.cast(values, pa.string()), f'"^^<{datatype}>', "")
