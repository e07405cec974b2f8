"""Result of a top-k query in its form: rows, what a template makes of them, or if there are any."""

from __future__ import annotations

from collections.abc import Sequence

from acquatop.answer.answer import Row
from acquatop.answer.assembly import Result
from acquatop.ingest.terms import from_rdflib
from acquatop.query.sparql.template import construct
from rspql import ast
from rspql.plan import TopKPlan


def formed(plan: TopKPlan, rows: Sequence[Row]) -> Result:
    """Return the result that the best rows make."""
    match plan.form:
        case ast.Construct(template):
            texts = (
                {name: from_rdflib(term) for name, term in row.bindings.items()} for row in rows
            )
            return Result(form="construct", triples=construct(template, texts))
        case ast.Ask():
            return Result(form="ask", boolean=bool(rows))
        case _:
            return Result(tuple(rows), plan.projection)
