"""``acquatop plugins``: list the extensions that installed distributions bring."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from acquatop.app.cli.query_files import write_line


def add_parser(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser = verbs.add_parser(
        "plugins", help="list what installed distributions add, and which of them"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per extension")
    parser.add_argument("--debug", action="store_true", help="print the traceback of an error")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> None:
    """Print a line per extension; none of them is imported."""
    from acquatop.plugins import GROUPS, kind_of, plugins

    found = plugins()
    for plugin in found:
        if options.json:
            write_line(json.dumps(asdict(plugin), ensure_ascii=False))
        else:
            hidden = f", hidden by {plugin.hidden_by}" if plugin.hidden_by else ""
            brought = f"{plugin.distribution}, {plugin.code}{hidden}"
            write_line(f"{kind_of(plugin.group)} {plugin.name}: {brought}")
    if not found and not options.json:
        write_line(f"no installed distribution has an entry point of {', '.join(GROUPS)}")
