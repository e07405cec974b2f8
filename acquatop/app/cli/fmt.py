"""``acquatop fmt``: format queries in the standard way."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from acquatop.app.cli.query_files import read_text, write_line
from acquatop.errors import UserError
from rspql.diagnostics import QueryError
from rspql.formatter import format_query


def add_parser(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser = verbs.add_parser(
        "fmt", help="format queries in place; comments, prefixes and meaning stay"
    )
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="a file with an RSP-QL query, - for a filter"
    )
    parser.add_argument(
        "--check", action="store_true", help="change nothing; fail when a file is not formatted"
    )
    parser.add_argument("--debug", action="store_true", help="print the traceback of an error")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Format every file; return 2 if one is no query or, with ``--check``, is not formatted."""
    failed = False
    for file in options.files:
        try:
            failed |= not _format(file, only_look=options.check)
        except (QueryError, UserError) as error:
            failed = True
            print(error, file=sys.stderr)  # noqa: T201
    return 2 if failed else 0


def _format(file: str, *, only_look: bool) -> bool:
    """Format one file; return True unless only a check was asked for and it fails."""
    text = read_text(file)
    formatted = format_query(text, file=file)
    if file == "-" and not only_look:
        write_line(formatted.rstrip("\n"))
        return True
    if formatted == text:
        return True
    if not only_look:
        _replace(Path(file), formatted)
    print(f"{file} is not formatted" if only_look else f"{file} formatted", file=sys.stderr)  # noqa: T201
    return not only_look


def _replace(file: Path, text: str) -> None:
    """Replace a file atomically: an interruption leaves the old text or the new. Links stay links.

    A special file, or one with hard links, is written in place.
    """
    target = file.resolve()
    try:
        found = target.stat()
        if not target.is_file() or found.st_nlink > 1:
            target.write_text(text, "utf-8", newline="\n")  # keeps hard links and special files
            return
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".fmt-", delete=False) as stream:
            beside = Path(stream.name)
            try:
                stream.write(text.encode("utf-8"))
                stream.flush()
                beside.chmod(found.st_mode & 0o7777)
                beside.replace(target)
            except BaseException:
                beside.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise UserError(f"{file}: the query cannot be written: {error.strerror}") from None
