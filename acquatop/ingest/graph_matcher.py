"""Matching of any pattern that the records of one subject answer, by a SPARQL engine.

The engine looks at a whole batch at once: a record, or all records of a subject, are a named graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.ingest.column_pattern import column_pattern
from acquatop.ingest.found import Found
from acquatop.ingest.match import Matcher
from acquatop.ingest.object_terms import terms_of
from acquatop.ingest.record_graphs import Bindings, PatternOverGraphs, RecordRows
from acquatop.ingest.record_pattern import may_differ, unknown_predicate
from acquatop.ingest.record_solutions import RecordSolutions
from acquatop.ingest.scoring import BoolArray
from acquatop.ingest.solution_count import MOST_OF_RECORD, SolutionCount
from acquatop.ingest.solution_identities import identities_of
from acquatop.ingest.stream_filter import StreamFilter
from acquatop.ingest.term_filter import TermFilter
from acquatop.ingest.text_filter import TextFilter
from connectors.coded import distinct, plain
from connectors.contract import RecordDecoder
from connectors.mapping import BAD, IRI, SUBJECT, TIME, XSD_DOUBLE, Property
from connectors.subjects import subjects_of
from rspql import ast
from rspql.diagnostics import Diagnostic
from rspql.paths import ANY, ends_of
from rspql.plan import TopKPlan
from rspql.printer import base_text, inside_text
from rspql.scope import certain
from rspql.scoring import variables_in
from rspql.term_conditions import term_condition

_SAME_TEXTS = (IRI, ast.XSD + "string", ast.XSD + "integer")
"""Datatypes whose terms have the same text as the engine gives them."""
_RETRACT = (ast.OptionalPattern, ast.MinusPattern, ast.Exists)
"""Patterns whose solutions may go when more is said."""


class GraphMatcher(Matcher):
    """Matcher of a plan's group of patterns against each record by itself.

    What it finds are solutions, several of a record or none. Each has an identity of its own. If
    only the latest arrival counts, a record has one at most, known by its subject.
    """

    def __init__(self, plan: TopKPlan, mapping: RecordDecoder, *, arrivals: str) -> None:
        super().__init__(plan, mapping, arrivals=arrivals)
        assert plan.stream_group is not None
        self._group = plan.stream_group
        self._certain = certain(self._group)
        choices = (node for node in ast.walk(plan.score.expression) if isinstance(node, ast.Call))
        self._chosen = {name for each in choices for name in variables_in(each)}
        """Variables in calls, which may tell what is unbound from NaN."""
        self._bound = self._variables
        """Variables that the engine binds, those of solutions first."""
        self._is_replaced = arrivals == "latest" and not self.combines
        """True if a newer solution of a subject replaces the one before."""
        self.retracts = self._arrivals != "distinct" and any(
            isinstance(node, _RETRACT) for node in ast.walk(self._group)
        )
        """True if what is said later may take a solution away."""

    @property
    def identified_by_subject(self) -> bool:
        """True: the subject column tells solutions apart."""
        return True

    @property
    def may_be_several(self) -> bool:
        """True if a record may have several solutions."""
        return may_multiply(self._group)

    def check(self, found: list[Diagnostic]) -> None:
        """Append diagnostics to ``found`` if this pattern cannot be matched against the records."""
        for triple in self._pattern:
            if isinstance(triple.predicate, ast.Iri):
                found.extend(unknown_predicate(triple.predicate, self._mapping))
        span = self._pattern[0].span
        found += [Diagnostic("unsupported", message, span) for message in self._refused()]
        if self._aggregate is None:
            self._check_score(found)
        else:
            self._check_aggregated(self._aggregate, found)
        self._check_filters(found)

    def _refused(self) -> Iterator[str]:
        """Yield what keeps the pattern from being matched, whatever the score."""
        if self._count.of_record() > MOST_OF_RECORD:
            yield "a record may have very many solutions"
        if self._aggregate is not None and self._aggregate.is_distinct:
            yield "distinct values of more than a star of patterns are not kept apart"
        for key in self._matched:
            if what := self._uncomparable(key):
                yield f"?{key} is {what}: equal values may differ as terms"
        for name in () if self.aggregates else self._numbers:
            is_double = self.datatype(name) == XSD_DOUBLE
            if is_double and name not in self._certain and name in self._chosen:
                yield f"?{name} is a double that may be unbound, which a score cannot tell"

    def _uncomparable(self, key: str) -> str | None:
        """Return what a key is if equal values of it may be different terms."""
        name = ast.Variable(key)
        computed = (node for node in ast.walk(self._group) if _computes(node, name))
        if not all(_gives_iris(node, name) for node in computed):
            return "a computed value"
        for triple in self._pattern:
            if name in (triple.subject, triple.object):
                for about in self._objects(triple, name):
                    if about is not None and may_differ(about):
                        return "no IRI, string or integer on the stream"
        return None

    @property
    def signature(self) -> str:
        """Text of the match: matchers with the same text find the same in the same records."""
        return f"{super().signature} {self._group!r}"

    def find(self, records: pa.RecordBatch) -> Found:
        """Return the solutions of the records of a batch.

        If only the latest arrival counts, a record without one is a row too, marked ``gone``.
        """
        good = records.filter(pc.is_null(records.column(BAD)))
        found = self._engine.solutions(np.arange(len(good)), self._statements(good))
        made = self._rows(good, found)
        keeps = self._keeps(made)
        if not self._is_replaced:
            return Found(self, made.filter(pa.array(keeps)), np.zeros(keeps.sum(), dtype=np.bool_))
        others = np.setdiff1d(np.arange(len(good)), found.graphs[keeps])
        nothing = [pa.repeat("", len(others))] * len(self._bound)
        without = self._rows(good, Bindings(others, nothing))
        together = pa.Table.from_batches([made.filter(pa.array(keeps)), without]).combine_chunks()
        (rows,) = together.to_batches() or [without]
        return Found(self, rows, np.arange(len(rows)) >= keeps.sum())

    def table(self, found: Found) -> pa.Table:
        """Return found solutions as columns, before them what decides between equal times."""
        table = super().table(found)
        if self._is_replaced:
            for at in range(len(self._predicates)):
                table = table.append_column(f"?{at}", found.columns.column(f"o{at}"))
        return table

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns from which solutions are made."""
        said = [f"o{at}" for at in range(len(self._predicates))] if self._is_replaced else []
        return (TIME, SUBJECT, *map(_column, self._variables), *said)

    def __getstate__(self) -> dict[str, object]:
        # Made again in each process.
        return {name: each for name, each in super().__getstate__().items() if name != "_engine"}

    def is_subject(self, variable: str) -> bool:
        """Return False: all variables have columns of their own."""
        return False

    def values(self, variable: str, records: pa.RecordBatch) -> pa.Array:
        """Return the values of a variable: numbers if it is computed with, else terms."""
        terms = records.column(_column(variable))
        if not self._is_counted(variable):
            return terms
        type_ = pa.float64() if self.datatype(variable) == XSD_DOUBLE else pa.int64()
        each = distinct(terms)
        texts = pc.replace_substring_regex(each.dictionary, '^"|".*$', "")
        texts = pc.if_else(pc.equal(texts, ""), None, texts)
        return texts.cast(type_).take(each.indices)

    def terms(self, variable: str, records: pa.RecordBatch) -> pa.Array:
        """Return the terms of a variable."""
        return records.column(_column(variable))

    def coded_terms(self, variable: str, records: pa.RecordBatch) -> pa.DictionaryArray:
        """Return the terms of a variable, each distinct one made once."""
        return distinct(records.column(_column(variable)))

    def _property(self, variable: str) -> Property | None:
        """Return the property of all patterns that bind a variable; None if there is none."""
        name = ast.Variable(variable)
        for node in ast.walk(self._group):
            if isinstance(node, ast.Assignment) and node.variable == name:
                return self._computed(node.expression)
            if _computes(node, name):
                return None
        found = [
            about
            for each in self._pattern
            if name in (each.subject, each.predicate, each.object)
            for about in self._objects(each, name)
        ]
        datatypes = {None if each is None else each.datatype for each in found}
        return found[0] if len(datatypes) == 1 else None

    def _objects(self, triple: ast.TriplePattern, name: ast.Variable) -> Sequence[Property | None]:
        """Return the properties whose objects a pattern binds a variable to; None for others."""
        known = self._mapping.properties
        found: list[Property | None] = []
        for predicate in ends_of(triple, name):
            found += known.values() if predicate is ANY else [known.get(predicate or "")]
        return found

    def _computed(self, expression: ast.Expression) -> Property | None:
        """Return the kind of a computed value, if each solution has one of it."""
        match expression:
            case ast.Call("strlen", (ast.Variable(name),)) if name in self._certain:
                is_text = self.datatype(name) == ast.XSD + "string"
                return Property("", ast.XSD + "integer") if is_text else None
            case _:
                return None

    def _words(self, variable: str) -> str:
        if self._property(variable) is not None:
            return super()._words(variable)
        return "a computed value, or a subject"

    def _may_be_number(self, variable: str) -> bool:
        return self._property(variable) is None or super()._may_be_number(variable)

    def _is_numeric(self, condition: ast.Expression) -> bool:
        names = variables_in(condition)
        return all(name in self._certain for name in names) and super()._is_numeric(condition)

    def _numeric_datatypes(self, expression: ast.Expression) -> dict[str, str | None]:
        # A double that is unbound could not be told from NaN.
        return {
            name: None if datatype == XSD_DOUBLE and name not in self._certain else datatype
            for name, datatype in super()._numeric_datatypes(expression).items()
        }

    # The engine -----------------------------------------------------------------------------------

    def _filters(self) -> list[StreamFilter | TextFilter | TermFilter]:
        if self._made is None:
            some = filter(self._is_numeric, self._conditions)
            self._made = [self._filter(each) for each in some]
        return self._made

    @cached_property
    def _engine(self) -> RecordSolutions:
        """Pattern with all filters that do not compute with numbers alone."""
        others = [
            ast.Filter(plain_condition)
            for each in self._conditions
            if not self._is_numeric(each)
            and (plain_condition := term_condition(each, self._functions)) is not None
        ]
        group = ast.Group((*self._group.elements, *others))
        base = ast.base_of(group)
        prologue = "" if base is None else base_text(base)
        plain_predicates = [
            iri for iri, about in self._mapping.properties.items() if about.datatype in _SAME_TEXTS
        ]
        return RecordSolutions(
            PatternOverGraphs(inside_text(group), prologue, self._bound),
            column_pattern(group, self._bound, plain_predicates),
        )

    @cached_property
    def _count(self) -> SolutionCount:
        return SolutionCount(self._group, self._predicates)

    @cached_property
    def _predicates(self) -> Sequence[str]:
        """Predicates that the pattern can need, in the mapping's order."""
        named = {each.predicate for each in self._pattern}
        if not all(isinstance(each, ast.Iri) for each in named):
            return list(self._mapping.properties)
        wanted = {each.value for each in named if isinstance(each, ast.Iri)}
        return [each for each in self._mapping.properties if each in wanted]

    def _statements(self, records: pa.RecordBatch) -> RecordRows:
        return RecordRows(
            plain(subjects_of(records)),
            self._predicates,
            [
                plain(terms_of(records.column(self._mapping.column(each)), about.datatype))
                for each in self._predicates
                for about in (self._mapping.properties[each],)
            ],
        )

    def _rows(self, records: pa.RecordBatch, found: Bindings) -> pa.RecordBatch:
        """Return solutions as rows, given the records that are their graphs."""
        some = records.take(pa.array(found.graphs))
        columns = self._solutions(plain(subjects_of(some)), some.column(TIME), found)
        if self._is_replaced:
            objects = self._statements(some).objects
            columns |= {f"o{at}": each for at, each in enumerate(objects)}
        return pa.RecordBatch.from_pydict(columns)

    def _solutions(
        self, subjects: pa.Array, times: pa.Array, found: Bindings
    ) -> dict[str, pa.Array]:
        """Return the columns of solutions, given the subject and time of each."""
        return {
            TIME: times,
            SUBJECT: self._names(subjects, found.terms),
            **{
                _column(name): each
                for name, each in zip(self._variables, found.terms, strict=False)
            },
        }

    def _names(self, subjects: pa.Array, terms: Sequence[pa.Array]) -> pa.Array:
        """Return a text for each solution that tells it apart from all others."""
        return subjects if self._is_replaced else identities_of([subjects, *terms])

    def _keeps(self, made: pa.RecordBatch) -> BoolArray:
        """Return a mask of the solutions for which all filters hold."""
        keeps = np.ones(len(made), dtype=np.bool_)
        for each in self._filters():
            keeps &= self._passes(each, made, keeps)
        return keeps


def _computes(node: ast.Node, variable: ast.Variable) -> bool:
    """Return True if a part of a pattern gives a variable values that no triple has."""
    if isinstance(node, ast.Assignment):
        return node.variable == variable
    return isinstance(node, ast.Values) and variable in node.variables


def _gives_iris(node: ast.Node, variable: ast.Variable) -> bool:
    """Return True if a part of a pattern gives a variable IRIs alone, or leaves it as it is."""
    if not isinstance(node, ast.Values):
        return False
    given = (row[node.variables.index(variable)] for row in node.rows)
    return all(each is None or isinstance(each, ast.Iri) for each in given)


def _column(variable: str) -> str:
    return f"?{variable}"


def may_multiply(group: ast.Group) -> bool:
    """Return True if a record may have several solutions of a group."""
    return any(map(_multiplies, ast.walk(group)))


def _multiplies(node: ast.Node) -> bool:
    """Return True for a part of a pattern that may give a record several solutions."""
    match node:
        case ast.UnionPattern():
            return True
        case ast.Values(_, rows):
            return len(rows) > 1
        case ast.TriplePattern(predicate=ast.Iri() | ast.InversePath()):
            return False
        case ast.TriplePattern():
            return True
        case _:
            return False
