"""Rendering of operators' terms and merits as the rows of an answer."""

from __future__ import annotations

from collections.abc import Mapping

from rdflib.term import Identifier

from acquatop.ingest.terms import datatype_of, score_literal, to_rdflib
from rspql.plan import TopKPlan
from rspql.scoring import result_type

Bindings = Mapping[str, Identifier]
"""Selected variables of a solution, as rdflib terms."""


class Rendering:
    """Renderer of a top-k query's solutions: variables as rdflib terms, typed scores."""

    def __init__(self, plan: TopKPlan) -> None:
        self._plan = plan
        self._score_types: dict[frozenset[tuple[str, str]], str | None] = {}

    def score_of(self, merit: float) -> float:
        """Return the score of a merit."""
        # Adding zero turns -0.0, which negation can leave, into 0.0.
        return (merit if self._plan.score.descending else -merit) + 0.0

    def bindings(self, terms: Mapping[str, str], score: float) -> dict[str, Identifier]:
        """Return the selected variables of a solution, from the N-Triples terms that it binds."""
        shown = {name: self._term(name, terms, score) for name in self._plan.projection}
        return {name: term for name, term in shown.items() if term is not None}

    def _term(self, name: str, terms: Mapping[str, str], score: float) -> Identifier | None:
        if name == self._plan.score.variable:
            return score_literal(score, self._score_type(terms))
        return to_rdflib(terms[name]) if name in terms else None

    def _score_type(self, terms: Mapping[str, str]) -> str | None:
        """Return the datatype that SPARQL gives a score, from the datatypes of its terms."""
        types = frozenset(
            (name, datatype)
            for name, term in terms.items()
            if (datatype := datatype_of(term)) is not None
        )
        if types not in self._score_types:
            score = self._plan.score
            self._score_types[types] = result_type(score.expression, dict(types), score.functions)
        return self._score_types[types]
