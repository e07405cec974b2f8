"""Places of terms in SPARQL's order, computed of each solution."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.ingest.computed_terms import ColumnOf, ComputedTerms
from acquatop.ingest.term_places import places_of
from rspql import ast
from rspql.scoring import FunctionRegistry, variables_in
from rspql.term_conditions import term_value


class DerivedPlace:
    """Place of a term, which is a variable's or computed of some; an error has none."""

    kind = None

    def __init__(self, variable: str, computed: ComputedTerms | None) -> None:
        self._variable = variable
        self._computed = computed

    @classmethod
    def of(cls, term: ast.Expression, functions: FunctionRegistry) -> DerivedPlace:
        """Return the place of a term."""
        if isinstance(term, ast.Variable):
            return cls(term.name, None)
        plain = term_value(term, functions)
        assert plain is not None, "the plan lets no others pass"
        return cls("", ComputedTerms(plain, tuple(variables_in(term))))

    def numbers(self, count: int, values: ColumnOf, terms: ColumnOf) -> pa.Array:
        """Return the places: NaN for NaN, and for errors."""
        found = self.terms(count, values, terms)
        places = places_of(found)
        if self._computed is not None:
            places[np.asarray(pc.equal(found, "").to_numpy(zero_copy_only=False))] = np.nan
        return pa.array(places)

    def terms(self, count: int, values: ColumnOf, terms: ColumnOf) -> pa.Array:
        """Return the terms."""
        if self._computed is None:
            return terms(self._variable)
        return self._computed.terms(count, values, terms)
