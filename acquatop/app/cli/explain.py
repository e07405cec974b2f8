"""``acquatop explain``: show how a query will be answered."""

from __future__ import annotations

import argparse
import json
from typing import Any

from acquatop.app.cli.query_files import add_language_options, catalog_of, read_text, write_line


def add_parser(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser = verbs.add_parser("explain", help="show how a query will be answered")
    parser.add_argument(
        "file", metavar="FILE", help="a file with an RSP-QL query, - for standard input"
    )
    add_language_options(parser)
    parser.add_argument("--json", action="store_true", help="print the plan as JSON")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> None:
    """Print the explanation; refuse a query that has errors, with all of them."""
    from acquatop.plan.check import check_query, replicas_of, sent_of, structure_of
    from rspql.diagnostics import QueryError
    from rspql.explain import explain, render

    catalog = catalog_of(options)
    text = read_text(options.file)
    analysis = check_query(text, catalog=catalog, bare_unit=options.unit, file=options.file)
    if analysis.plan is None:
        raise QueryError(analysis.diagnostics, text, options.file)
    remotes, structure = replicas_of(catalog), structure_of(analysis, catalog)
    document = explain(analysis, remotes, structure, sent_of(analysis, catalog))
    write_line(
        json.dumps(document, ensure_ascii=False) if options.json else render(document).rstrip("\n")
    )
