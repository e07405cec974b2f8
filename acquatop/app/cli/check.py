"""``acquatop check``: report errors in queries, without running them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
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
    catalog = catalog_of(options)
    texts: dict[str, str] = {}
    unreadable: dict[str, str] = {}
    for file in options.files:
        try:
            texts[file] = read_text(file)
        except UserError as error:
            unreadable[file] = str(error)
    found, catalog = _analyses(texts, catalog, options)
    for file in options.files:
        if file in unreadable:
            _print_unreadable(file, unreadable[file], as_json=options.json)
        else:
            _print(found[file], catalog, as_json=options.json)
    return 0 if not unreadable and all(each.ok for each in found.values()) else 2


def _analyses(
    texts: Mapping[str, str], catalog: Catalog | None, options: argparse.Namespace
) -> tuple[dict[str, Analysis], Catalog | None]:
    """Return the analyses of files, and the catalog with the streams that their queries make."""
    from acquatop.plan.check import check_syntax, check_together

    if options.syntax_only:
        alone = {
            file: check_syntax(text, bare_unit=options.unit, file=file)
            for file, text in texts.items()
        }
        return alone, catalog
    each, known = check_together([*texts.items()], catalog=catalog, bare_unit=options.unit)
    if known is not None:
        each = [_with_samples(analysis, known) for analysis in each]
    return dict(zip(texts, each, strict=True)), known


def _with_samples(analysis: Analysis, catalog: Catalog) -> Analysis:
    # Without a catalog, nothing of this is loaded.
    from acquatop.app.cli.stream_warnings import with_stream_warnings

    return with_stream_warnings(analysis, catalog)


def _print(analysis: Analysis, catalog: Catalog | None, *, as_json: bool) -> None:
    from acquatop.plan.check import answers_in

    read = list(answers_in(analysis, catalog)) if analysis.ok else []
    if as_json:
        found = [each.to_json(analysis.file) for each in analysis.diagnostics]
        document = {"file": analysis.file, "ok": analysis.ok, "diagnostics": found}
        write_line(
            json.dumps({**document, **({"reads": read} if read else {})}, ensure_ascii=False)
        )
        return
    for each in analysis.diagnostics:
        write_line(each.render(analysis.text, analysis.file))
    if analysis.ok:
        names = ", ".join(f"<{each}>" for each in read)
        write_line(f"{analysis.file}: ok{f'; reads the answers of {names}' if read else ''}")


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
