"""Rendering of operators' terms and merits as the rows of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from rdflib import Literal, URIRef
from rdflib.term import Identifier

from acquatop.ingest.terms import datatype_of, score_literal, to_ast, to_rdflib
from rspql import ast
from rspql.plan import TopKPlan
from rspql.scoring import result_type, type_of_value, variables_in
from rspql.scoring.exact import Number, evaluate, number_of, text_of

Bindings = Mapping[str, Identifier]
"""Selected variables of a solution, as rdflib terms."""

_REMEMBERED = 1 << 14
"""Number of scores whose digits are remembered."""
_NONE: Mapping[str, Fraction] = {}
_DECIMAL = URIRef(ast.XSD + "decimal")


class Rendering:
    """Renderer of a top-k query's solutions: variables as rdflib terms, typed scores."""

    def __init__(self, plan: TopKPlan) -> None:
        self._plan = plan
        self._in_score = tuple(variables_in(plan.score.expression))
        self._decimals: dict[frozenset[tuple[str, str | Fraction]], str | None] = {}
        self._score_types: dict[frozenset[tuple[str, str]], str | None] = {}

    def score_of(self, merit: float) -> float:
        """Return the score of a merit."""
        # Adding zero turns -0.0, which negation can leave, into 0.0.
        return (merit if self._plan.score.descending else -merit) + 0.0

    def bindings(
        self, terms: Mapping[str, str], score: float, ratios: Mapping[str, Fraction] = _NONE
    ) -> dict[str, Identifier]:
        """Return the selected variables of a solution, from the N-Triples terms that it binds.

        ``ratios`` are those of its decimals whose terms may be cut off.
        """
        terms = {name: term for name, term in terms.items() if term}  # others are unbound
        shown = {name: self._term(name, terms, score, ratios) for name in self._plan.projection}
        return {name: term for name, term in shown.items() if term is not None}

    def _term(
        self, name: str, terms: Mapping[str, str], score: float, ratios: Mapping[str, Fraction]
    ) -> Identifier | None:
        if name == self._plan.score.variable:
            return self.score_term(terms, score, ratios)
        return to_rdflib(terms[name]) if name in terms else None

    def score_term(
        self, terms: Mapping[str, str], score: float, ratios: Mapping[str, Fraction]
    ) -> Literal:
        """Return a score as a term, with its digits and datatype."""
        datatype = self._score_type(terms)
        if datatype != ast.XSD + "decimal":
            return score_literal(score, datatype)
        known: dict[str, str | Fraction] = {**terms, **ratios}
        used = frozenset((name, known[name]) for name in self._in_score if name in known)
        if used not in self._decimals:
            if len(self._decimals) >= _REMEMBERED:
                self._decimals.clear()
            self._decimals[used] = self._decimal(dict(used))
        found = self._decimals[used]
        if found is None:
            return score_literal(score, datatype)
        return Literal(found, datatype=_DECIMAL, normalize=False)

    def _decimal(self, values: Mapping[str, str | Fraction]) -> str | None:
        """Return a score with all its digits, from terms and ratios; None if it is no decimal."""
        score = self._plan.score
        numbers = {name: _number(value) for name, value in values.items()}
        value = evaluate(score.expression, numbers, score.functions)
        if not isinstance(value, Number) or not isinstance(value.value, Fraction):
            return None
        return text_of(value.value)

    def _score_type(self, terms: Mapping[str, str]) -> str | None:
        """Return the datatype that SPARQL gives a score, from the datatypes of its terms."""
        types = frozenset(
            (name, datatype)
            for name, term in terms.items()
            if (datatype := datatype_of(term)) is not None
        )
        score = self._plan.score
        if types not in self._score_types:
            self._score_types[types] = result_type(score.expression, dict(types), score.functions)
        known = self._score_types[types]
        if known is not None:
            return known
        # It depends on the values, as the type of an IF does.
        named = ((name, to_ast(terms[name])) for name, _ in types)
        literals = {name: each for name, each in named if isinstance(each, ast.Literal)}
        return type_of_value(score.expression, literals, score.functions)


def _number(value: str | Fraction) -> Number | None:
    if isinstance(value, Fraction):
        return Number(value, ast.XSD + "decimal")
    term = to_ast(value)
    return number_of(term) if isinstance(term, ast.Literal) else None
