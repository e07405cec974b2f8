"""Pattern of a WINDOW over a stream's records, and what its variables are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

import pyarrow as pa

from acquatop.ingest.derived import ColumnKind, Derived, derived_of
from acquatop.ingest.derived_place import DerivedPlace
from connectors.contract import RecordDecoder
from connectors.lexical import INTEGERS
from connectors.mapping import DATATYPES, XSD_DOUBLE, Property, TermProperty
from connectors.objects import named
from rspql import ast
from rspql.diagnostics import Diagnostic, nearest
from rspql.plan import PLACE, AggregateColumn, Aggregation, Score, TopKPlan, gap_of
from rspql.printer import expression_text
from rspql.scoring import check_condition, variables_in
from rspql.term_conditions import term_condition


class RecordPattern:
    """Pattern of a plan's WINDOW over a stream's records, and what its variables are there."""

    combines = False
    """True if several records may make a solution together."""
    retracts = False
    """True if what is said later may take a solution away."""

    def __init__(self, plan: TopKPlan, mapping: RecordDecoder, *, arrivals: str) -> None:
        self._mapping = mapping
        is_distinct = plan.aggregate is not None and plan.aggregate.is_distinct
        self._arrivals = "all" if is_distinct and arrivals == "distinct" else arrivals
        self._aggregate = plan.aggregate
        self.keys = plan.aggregate.keys if plan.aggregate else plan.join_variables
        self._matched = plan.join.matched_inputs if plan.join and not plan.aggregate else self.keys
        """Keys that are compared as terms; with the others is only computed."""
        self._variables = plan.stream_variables
        self.aggregates = plan.aggregate is not None
        uncertain = plan.aggregate.uncertain if plan.aggregate else ()
        self.gaps = {gap_of(name): name for name in uncertain}
        """Columns that mark solutions without a value, each with its variable."""
        self._numbers = plan.aggregate.numbers if plan.aggregate else plan.score.stream_variables
        self._pattern = plan.stream_pattern
        # Values that are only compared may be text; values in arithmetic must be numbers.
        is_variable = isinstance(plan.score.expression, ast.Variable)
        self._orders_by_term = is_variable or any(each.score.only_place for each in plan.otherwise)
        self.term = plan.score.term if plan.aggregate is None else None
        """Term by whose place solutions are ranked, if they are."""
        self._scored = frozenset(variables_in(plan.score.expression))
        self._conditions = plan.stream_filters
        self._functions = plan.score.functions

    def check(self, found: list[Diagnostic]) -> None:
        """Append diagnostics to ``found`` if this pattern cannot be matched against the records."""
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
        return aggregate.identity if aggregate and aggregate.is_distinct else self._matched

    def _refuse_differing(self, name: str, what: str, found: list[Diagnostic]) -> None:
        if self._aggregate is None:
            message = (
                f"a join on ?{name}, which is {what} on the stream, is not supported: "
                "equal values may differ as terms"
            )
        else:
            why = "it groups by" if name in self.keys else "has to be distinct"
            message = (
                f"?{name}, which {why}, is {what} on the stream: equal values may differ as terms"
            )
        hint = "join on an IRI, string or integer"
        found.append(Diagnostic("unsupported", message, self._pattern[0].span, hint))

    @property
    def has_numbers(self) -> bool:
        """True if the values in the score or the aggregates, and those in filters, are numbers."""
        filtered = (name for each in self._conditions for name in variables_in(each))
        computed = (name for name in self._numbers if name not in self.gaps)
        return all(
            self._is_number(name) if name not in self.derived else self.number_kind(name)
            for name in (*computed, *filtered)
        )

    @cached_property
    def derived(self) -> Mapping[str, Derived]:
        """Computations of values of each solution, by variable, as far as there are any."""
        each = self._aggregate.derived if self._aggregate else ()
        made = {
            one.variable.name: derived_of(
                one.expression, self._numeric_datatypes(one.expression), self._functions
            )
            for one in each
        }
        if self.term is not None:
            made[PLACE] = DerivedPlace.of(self.term, self._functions)
        return {name: one for name, one in made.items() if one is not None}

    def _numeric_datatypes(self, expression: ast.Expression) -> dict[str, str | None]:
        return {
            name: self._counted_datatype(name) if self._is_counted(name) else None
            for name in variables_in(expression)
        }

    def number_kind(self, variable: str) -> ColumnKind | None:
        """Return the kind of a variable's numbers; None if they are not computed with."""
        if variable in self.derived:
            return self.derived[variable].kind
        datatype = self._counted_datatype(variable) if self._is_counted(variable) else None
        return None if datatype is None else ColumnKind(datatype)

    def _check_aggregated(self, aggregate: Aggregation, found: list[Diagnostic]) -> None:
        if aggregate.is_distinct and self._arrivals == "latest":
            message = "distinct values are not kept up to date if a subject's latest arrival counts"
            found.append(Diagnostic("unsupported", message, self._pattern[0].span))
        refused = [*self._not_derived(aggregate), *self._not_aggregated(aggregate)]
        found += [Diagnostic("unsupported", each, self._pattern[0].span) for each in refused]

    def _not_derived(self, aggregate: Aggregation) -> Iterator[str]:
        """Yield what keeps expressions from being computed of each solution."""
        for each in aggregate.derived:
            name = each.variable.name
            if name not in self.derived:
                yield f"{expression_text(each.expression)} is not computed of each solution"
            elif name in self._compared() and self.number_kind(name) == ColumnKind(XSD_DOUBLE):
                yield f"{name}, which tells apart, is a double: equal values may differ as terms"

    def _not_aggregated(self, aggregate: Aggregation) -> Iterator[str]:
        for column in aggregate.columns:
            if column.of is None or column.function == "count" or self.number_kind(column.of):
                continue
            function = column.function.upper()
            if column.of in {each.variable.name for each in aggregate.derived}:
                yield (
                    f"{function}({column.of}) needs integers, doubles, or decimals of a known "
                    "number of digits, of one datatype in all records"
                )
            else:
                yield self._not_counted(function, column.of)

    def _check_score(self, found: list[Diagnostic]) -> None:
        for name in self._numbers:
            if not found and name != PLACE and not self._is_counted(name):
                is_scored = name in self._scored
                can_be_meant = self._orders_by_term or self._may_be_number(name)
                message = self._not_counted("the score" if is_scored else "a filter", name)
                # What is only compared in a filter may be no number: it is decided elsewhere.
                code = "score" if is_scored and not can_be_meant else "unsupported"
                found.append(Diagnostic(code, message, self._pattern[0].span))

    def _check_filters(self, found: list[Diagnostic]) -> None:
        for condition in self._conditions:
            if self._is_numeric(condition) or term_condition(condition, self._functions):
                continue
            before = len(found)
            for name, span in variables_in(condition).items():
                if not self._is_counted(name):
                    what = self._words(name) if self._may_be_number(name) else "not a number"
                    message = (
                        f"a FILTER calls a function of numbers, but ?{name} is {what} on the stream"
                    )
                    found.append(Diagnostic("unsupported", message, span))
            if len(found) == before:
                message = "a FILTER calls a function of numbers with what may be unbound"
                found.append(Diagnostic("unsupported", message, condition.span))

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

    def kinds_of_digits(self, variable: str) -> list[str]:
        """Return the kinds of numbers that a variable may have and doubles do not hold."""
        about = self._property(variable)
        several = self._mapping.properties.values() if about is None else (about,)
        words = " ".join(
            each.objects.words if isinstance(each, TermProperty) else named(each.datatype)
            for each in several
        )
        return [each for each in ("decimal", "float") if each in words]

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
            found = {
                name: XSD_DOUBLE if name == PLACE else self._counted_datatype(name)
                for name in score.stream_variables
            }
        else:
            columns = {each.variable: each for each in self._aggregate.columns}
            found = {
                name: self._aggregated_datatype(columns[name]) for name in score.stream_variables
            }
        return {name: datatype for name, datatype in found.items() if datatype is not None}

    def _aggregated_datatype(self, column: AggregateColumn) -> str | None:
        if column.of is None or column.function == "count":
            return ast.XSD + "integer"
        kind = self.number_kind(column.of)
        datatype = None if kind is None else kind.datatype
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

    def is_subject(self, variable: str) -> bool:
        """Return True if a variable is the pattern's subject."""
        return self._pattern[0].subject == ast.Variable(variable)

    def _is_numeric(self, condition: ast.Expression) -> bool:
        """Return True if a condition needs numbers alone, and the stream has such there."""
        problems: list[Diagnostic] = []
        check_condition(condition, problems, functions=self._functions)
        return not problems and all(map(self._is_counted, variables_in(condition)))

    @property
    def signature(self) -> str:
        """Text of the match: matchers with the same text find the same in the same records."""
        parts = (
            self._pattern,
            self._variables,
            self._numbers,
            self.keys[0] if self.keys else None,
            self._arrivals,
            self._conditions,
        )
        is_distinct = self._aggregate is not None and self._aggregate.is_distinct
        more = self.keys[1:], self.identity() if is_distinct else None
        derived = self._aggregate.derived if self._aggregate else ()
        term = () if self.term is None else (self.term,)
        extra = (*(more if any(more) else ()), *((derived,) if derived else ()), *term)
        return repr((self._mapping, *parts, *extra))

    def identity(self) -> tuple[str, ...]:
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
