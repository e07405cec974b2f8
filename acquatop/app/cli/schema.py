"""``acquatop schema``: print the JSON Schema of catalogs, for editors."""

from __future__ import annotations

import argparse
import json
from typing import Any

from acquatop.app.cli.query_files import write_line


def add_parser(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser = verbs.add_parser(
        "schema", help="print the JSON Schema of catalogs, with which editors complete and mark"
    )
    parser.add_argument("--debug", action="store_true", help="print the traceback of an error")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> None:
    """Print the schema; installed extensions are in it."""
    from acquatop.catalog.schema import catalog_schema

    write_line(json.dumps(catalog_schema(), indent=1, ensure_ascii=False))
