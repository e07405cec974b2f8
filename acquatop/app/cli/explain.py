"""``acquatop explain``: show how a query will be answered."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from acquatop.app.cli.query_files import add_language_options, catalog_of, read_text, write_line

if TYPE_CHECKING:
    from acquatop.catalog.catalog import Catalog
    from rspql.compiler import Analysis


def add_parser(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser = verbs.add_parser("explain", help="show how queries will be answered")
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="a file with an RSP-QL query, - for standard input"
    )
    add_language_options(parser)
    parser.add_argument("--json", action="store_true", help="print the plan as JSON, one per file")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> None:
    """Print the explanations; refuse a query that has errors, with all of them."""
    from acquatop.plan.check import check_together
    from rspql.diagnostics import QueryError
    from rspql.explain import render

    texts = [(file, read_text(file)) for file in options.files]
    analyses, catalog = check_together(texts, catalog=catalog_of(options), bare_unit=options.unit)
    for analysis in analyses:
        if analysis.plan is None:
            raise QueryError(analysis.diagnostics, analysis.text, analysis.file)
    for analysis in analyses:
        document = _explained(analysis, catalog)
        write_line(
            json.dumps(document, ensure_ascii=False)
            if options.json
            else render(document).rstrip("\n")
        )


def _explained(analysis: Analysis, catalog: Catalog | None) -> dict[str, Any]:
    from acquatop.plan.check import answers_in, replicas_of, sent_of, structure_of
    from rspql.explain import explain

    remotes, structure = replicas_of(catalog), structure_of(analysis, catalog)
    return explain(
        analysis, remotes, structure, sent_of(analysis, catalog), answers_in(analysis, catalog)
    )
