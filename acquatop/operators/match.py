"""Match a stream's pattern against decoded records: columns in, solution columns out.

A record is an item with one subject; a pattern over it is a star around that subject. Matching
therefore selects columns and rows; no triples are built.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.terms import from_ast
from connectors.mapping import BAD, DATATYPES, SUBJECT, TIME, XSD_DOUBLE, JsonMapping
from rspql import ast
from rspql.diagnostics import Diagnostic, nearest
from rspql.plan import Aggregate, TopKPlan
from rspql.scoring import variables_in, vectorise_condition

IDENTITY, KEY, GONE = "identity", "key", "gone"
"""Names of the solution columns besides the time, the terms ``?x`` and the numbers ``#x``."""


def term_column(variable: str) -> str:
    """Return the name of the column with a variable's N-Triples terms."""
    return f"?{variable}"


def number_column(variable: str) -> str:
    """Return the name of the column with a scoring variable's numbers."""
    return f"#{variable}"


class Matcher:
    """Turns decoded records of one stream into solutions of one query's window pattern.

    ``identity`` is what a newer arrival replaces: the subject where only the latest arrival
    counts, the whole solution where all do (the same solution twice is one, as in a set).
    """

    def __init__(self, plan: TopKPlan, mapping: JsonMapping, *, latest_only: bool) -> None:
        self._mapping = mapping
        self._latest_only = latest_only
        self._aggregate = plan.aggregate
        self._key = plan.aggregate.key if plan.aggregate else plan.join_variables[0] if plan.join_variables else None
        self._variables = plan.stream_variables
        self._numbers = _aggregated(plan.aggregate) if plan.aggregate else plan.score.stream_variables
        self._pattern = plan.stream_pattern
        # What is only compared may be text; what is computed with must be a number.
        self._orders_by_term = isinstance(plan.score.expression, ast.Variable)
        self._filters = [(vectorise_condition(each, plan.score.functions), each) for each in plan.stream_filters]

    def check(self, found: list[Diagnostic]) -> None:
        """Append to ``found`` why this pattern cannot be matched against this stream's records."""
        subjects = {triple.subject for triple in self._pattern}
        if len(subjects) > 1:
            message = "the patterns in a WINDOW must share their subject: a record has only one"
            found.append(Diagnostic("unsupported", message, self._pattern[-1].span))
        if len(self._pattern) > 1 and not self._latest_only:
            message = "more than one pattern in a WINDOW needs a stream whose latest arrivals count"
            hint = 'set arrivals = "latest" for the stream in the catalog'
            found.append(Diagnostic("unsupported", message, self._pattern[-1].span, hint))
        objects = [triple.object.name for triple in self._pattern if isinstance(triple.object, ast.Variable)]
        names = [*objects, *(subject.name for subject in subjects if isinstance(subject, ast.Variable))]
        for name in {name for name in names if names.count(name) > 1}:
            message = f"?{name} stands twice in the WINDOW pattern, which is not supported yet"
            found.append(Diagnostic("unsupported", message, self._pattern[0].span))
        for triple in self._pattern:
            self._check_triple(triple, found)
        if self._key in objects and self.datatype(self._key) == XSD_DOUBLE:
            message = (
                f"a join on ?{self._key}, which is a double on the stream, is not supported: equal numbers may differ"
                if self._aggregate is None
                else f"?{self._key}, which it groups by, is a double on the stream: equal numbers may differ"
            )
            found.append(Diagnostic("unsupported", message, self._pattern[0].span, "join on an IRI, string or integer"))
        if self._aggregate is None:
            self._check_score(found)
        else:
            self._check_aggregated(self._aggregate, found)
        self._check_filters(found)

    def _check_aggregated(self, aggregate: Aggregate, found: list[Diagnostic]) -> None:
        for column in aggregate.columns:
            function = column.function.upper()
            if column.of is not None and not self._is_number(column.of):
                message = f"{function} needs a number in ?{column.of}, but the stream has none there"
                found.append(Diagnostic("unsupported", message, self._pattern[0].span))

    def _check_score(self, found: list[Diagnostic]) -> None:
        for name in self._numbers:
            if not found and not self._is_number(name):
                message = f"the score needs a number in ?{name}, but the stream has none there"
                code = "unsupported" if self._orders_by_term else "score"
                found.append(Diagnostic(code, message, self._pattern[0].span))

    def _check_filters(self, found: list[Diagnostic]) -> None:
        for _, condition in self._filters:
            for name, span in variables_in(condition).items():
                if not self._is_number(name):
                    message = f"a FILTER on ?{name}, which is not a number on the stream, is not decided on arrival"
                    found.append(Diagnostic("unsupported", message, span))

    def datatype(self, variable: str) -> str | None:
        """Return the datatype of a variable that is the object of a pattern, None for others."""
        predicates = (
            triple.predicate.value
            for triple in self._pattern
            if triple.object == ast.Variable(variable) and isinstance(triple.predicate, ast.Iri)
        )
        mapped = (self._mapping.properties.get(predicate) for predicate in predicates)
        return next((each.datatype for each in mapped if each is not None), None)

    def _is_number(self, variable: str) -> bool:
        datatype = self.datatype(variable)
        return datatype is not None and DATATYPES[datatype] != pa.string()

    def _check_triple(self, triple: ast.TriplePattern, found: list[Diagnostic]) -> None:
        predicate = triple.predicate
        if not isinstance(predicate, ast.Iri):
            message = "a predicate in a WINDOW must be an IRI"
            found.append(Diagnostic("unsupported", message, predicate.span))
        else:
            found.extend(unknown_predicate(predicate, self._mapping))

    def match(self, records: pa.RecordBatch) -> pa.Table:
        """Return the solutions in a batch of decoded records, one row each, in the records' order.

        Where only the latest arrival counts, an arrival that does not match is a row too, marked
        ``gone``: what it replaces is no solution any more.
        """
        columns, matches, readable = self._columns(records)
        matches = pc.and_(matches, self._passes(columns, len(records)))
        terms = [columns[name][0] for name in self._variables]
        subject = records.column(SUBJECT)
        identity = subject if self._latest_only else pc.binary_join_element_wise(*terms, " ")
        table = pa.table(
            {
                TIME: records.column(TIME),
                IDENTITY: identity,
                KEY: columns[self._key][0] if self._key is not None else identity,
                GONE: pc.invert(matches),
                **{term_column(name): term for name, term in zip(self._variables, terms, strict=True)},
                **{number_column(name): columns[name][1] for name in self._numbers},
            }
        )
        return table.filter(readable if self._latest_only else matches)

    def _passes(self, columns: Mapping[str, tuple[pa.Array, pa.Array]], length: int) -> pa.Array:
        """Return which rows pass all filters."""
        passes = np.ones(length, dtype=bool)
        for holds, condition in self._filters:
            numbers = {name: columns[name][1].to_numpy(zero_copy_only=False) for name in variables_in(condition)}
            passes &= holds(numbers)
        return pa.array(passes)

    def _columns(self, records: pa.RecordBatch) -> tuple[Mapping[str, tuple[pa.Array, pa.Array]], pa.Array, pa.Array]:
        """Return each variable's terms and numbers, which rows are solutions, and which are about the right subject."""
        keep = pc.is_null(records.column(BAD))
        columns: dict[str, tuple[pa.Array, pa.Array]] = {}
        subject = self._pattern[0].subject
        terms = records.column(SUBJECT)
        if isinstance(subject, ast.Variable):
            columns[subject.name] = terms, pa.nulls(len(records), pa.float64())
        else:
            keep = pc.fill_null(pc.and_(keep, pc.equal(terms, _constant(subject))), False)
        readable = keep
        for triple in self._pattern:
            assert isinstance(triple.predicate, ast.Iri), "check lets only IRIs pass"
            values = records.column(self._mapping.column(triple.predicate.value))
            datatype = self._mapping.properties[triple.predicate.value].datatype
            keep = pc.and_(keep, pc.is_valid(values))
            if isinstance(triple.object, ast.Variable):
                columns[triple.object.name] = terms_of(values, datatype), _numbers(values)
            else:
                keep = pc.and_(keep, pc.equal(terms_of(values, datatype), _constant(triple.object)))
        return columns, pc.fill_null(keep, False), readable


def _aggregated(aggregate: Aggregate) -> tuple[str, ...]:
    """Return the variables whose numbers are aggregated, each once."""
    return tuple(dict.fromkeys(column.of for column in aggregate.columns if column.of is not None))


def unknown_predicate(predicate: ast.Iri, mapping: JsonMapping) -> list[Diagnostic]:
    """Return what is to be said of a predicate that no record of a stream can have, if it is one."""
    if predicate.value in mapping.properties:
        return []
    near = nearest(predicate.value, mapping.properties)
    known = ", ".join(f"<{iri}>" for iri in mapping.properties)
    hint = f"did you mean <{near}>?" if near else f"the stream has {known}"
    message = f"the stream has no predicate <{predicate.value}>"
    return [Diagnostic("unknown-predicate", message, predicate.span, hint)]


def _constant(term: ast.Term) -> str:
    """Return the text of a term that is no variable; of a blank node one that no record has."""
    return from_ast(term) if isinstance(term, ast.Iri | ast.Literal) else ""


def terms_of(values: pa.Array, datatype: str) -> pa.Array:
    """Return a column of a property's objects as N-Triples literals."""
    if DATATYPES[datatype] == pa.string():
        return pc.binary_join_element_wise('"', _escaped(values), '"', "")
    return pc.binary_join_element_wise('"', pc.cast(values, pa.string()), f'"^^<{datatype}>', "")


def _escaped(text: pa.Array) -> pa.Array:
    for character, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        text = pc.replace_substring(text, character, escape)
    return text


def _numbers(values: pa.Array) -> pa.Array:
    if pa.types.is_string(values.type):
        return pa.nulls(len(values), pa.float64())
    return pc.cast(values, pa.float64(), safe=False)
