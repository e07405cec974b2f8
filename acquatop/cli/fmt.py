"""``acquatop fmt``: write queries the way everyone does."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from acquatop.cli.texts import read_text


def add_parser(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser = verbs.add_parser("fmt", help="format queries in place; comments, prefixes and meaning stay")
    parser.add_argument("files", nargs="+", metavar="FILE", help="a file with an RSP-QL query, - for a filter")
    parser.add_argument("--check", action="store_true", help="change nothing; fail when a file is not formatted")
    parser.add_argument("--debug", action="store_true", help="print the traceback of an error")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Format every file; with ``--check`` 2 when one is not formatted."""
    from rspql.formatter import format_query

    changed = 0
    for file in options.files:
        text = read_text(file)
        formatted = format_query(text, file=file)
        if options.check:
            if formatted != text:
                changed += 1
                print(f"{file} is not formatted", file=sys.stderr)  # noqa: T201
        elif file == "-":
            sys.stdout.write(formatted)
        elif formatted != text:
            _replace(Path(file), formatted)
            print(f"{file} formatted", file=sys.stderr)  # noqa: T201
    return 2 if changed else 0


def _replace(file: Path, text: str) -> None:
    """Write a file anew at once, so that an interruption leaves the old text or the new; links stay links."""
    target = file.resolve()
    beside = target.with_name(f".{target.name}.acquatop-fmt")
    beside.write_text(text, "utf-8", newline="\n")
    beside.chmod(target.stat().st_mode & 0o7777)
    beside.replace(target)
