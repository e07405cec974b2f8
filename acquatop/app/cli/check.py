"""``acquatop check``: report errors in queries, without running them."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from acquatop.app.cli.query_files import add_language_options, catalog_of, read_text, write_line
from acquatop.errors import UserError
from rspql.compiler import Analysis

if TYPE_CHECKING:
    from acquatop.catalog.catalog import Catalog


def add_parser(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser = verbs.add_parser("check", help="say what is wrong with queries, without running them")
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="a file with an RSP-QL query, - for standard input"
    )
    parser.add_argument(
        "--syntax-only",
        action="store_true",
        help="only whether the text is RSP-QL, not whether it can be run",
    )
    add_language_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object per file")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Check every file; return 0 if all are valid, else 2."""
    from acquatop.plan.check import check_query, check_syntax

    catalog = catalog_of(options)
    fine = True
    for file in options.files:
        try:
            text = read_text(file)
        except UserError as error:
            fine = False
            _print_unreadable(file, str(error), as_json=options.json)
            continue
        if options.syntax_only:
            analysis = check_syntax(text, bare_unit=options.unit, file=file)
        else:
            analysis = check_query(text, catalog=catalog, bare_unit=options.unit, file=file)
            analysis = analysis if catalog is None else _with_samples(analysis, catalog)
        fine = fine and analysis.ok
        _print(analysis, as_json=options.json)
    return 0 if fine else 2


def _with_samples(analysis: Analysis, catalog: Catalog) -> Analysis:
    # Without a catalog, nothing of this is loaded.
    from acquatop.app.cli.stream_warnings import with_stream_warnings

    return with_stream_warnings(analysis, catalog)


def _print(analysis: Analysis, *, as_json: bool) -> None:
    if as_json:
        found = [each.to_json(analysis.file) for each in analysis.diagnostics]
        write_line(
            json.dumps(
                {"file": analysis.file, "ok": analysis.ok, "diagnostics": found}, ensure_ascii=False
            )
        )
        return
    for each in analysis.diagnostics:
        write_line(each.render(analysis.text, analysis.file))
    if analysis.ok:
        write_line(f"{analysis.file}: ok")


def _print_unreadable(file: str, message: str, *, as_json: bool) -> None:
    if as_json:
        found = {"code": "unreadable", "severity": "error", "file": file, "message": message}
        nothing = {"line": None, "column": None, "span": None, "hint": None}
        write_line(
            json.dumps(
                {"file": file, "ok": False, "diagnostics": [found | nothing]}, ensure_ascii=False
            )
        )
    else:
        write_line(message)
