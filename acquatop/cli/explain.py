"""``acquatop explain``: show how a query will be answered."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from acquatop.cli.texts import add_language_options, catalog_of, read_text, write_line

if TYPE_CHECKING:
    from acquatop.catalog import Catalog
    from rspql.compiler import Analysis


def add_parser(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser = verbs.add_parser("explain", help="show how a query will be answered")
    parser.add_argument("file", metavar="FILE", help="a file with an RSP-QL query, - for standard input")
    add_language_options(parser)
    parser.add_argument("--json", action="store_true", help="print the plan as JSON")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> None:
    """Print the explanation; a query with errors is refused with all of them."""
    from acquatop.checking import check_query
    from rspql.diagnostics import QueryError
    from rspql.explain import explain, render

    catalog = catalog_of(options)
    text = read_text(options.file)
    analysis = check_query(text, catalog=catalog, bare_unit=options.unit, file=options.file)
    if analysis.plan is None:
        raise QueryError(analysis.diagnostics, text, options.file)
    document = explain(analysis, replicas_of(catalog), structure_of(analysis, catalog))
    write_line(json.dumps(document, ensure_ascii=False) if options.json else render(document).rstrip("\n"))


def replicas_of(catalog: Catalog | None) -> dict[str, dict[str, Any]]:
    """Return how each service's replica is kept, by the service's IRI."""
    if catalog is None:
        return {}
    return {
        iri: {
            "policy": service.refresh.policy,
            "proposer": service.refresh.policy.partition("-")[0],
            "ranker": service.refresh.policy.partition("-")[2],
            "n": service.refresh.n,
            "items": service.refresh.budget.items,
            "requests": service.refresh.budget.requests,
            "deadline_ms": round(1000 * service.refresh.budget.seconds),
        }
        for iri, service in catalog.services.items()
    }


def structure_of(analysis: Analysis, catalog: Catalog | None) -> dict[str, Any] | None:
    """Return what will keep a top-k query's candidates, and why; None where there is nothing to choose."""
    if catalog is None or analysis.plan is None:
        return None
    from acquatop.binding import BoundQuery, bind_plan

    bound = bind_plan(analysis.plan, catalog, text=analysis.text, file=analysis.file)
    if not isinstance(bound, BoundQuery) or bound.plan.aggregate is not None:
        return None
    return {"name": bound.choice.strategy.value, "because": bound.choice.why}
