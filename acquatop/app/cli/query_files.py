"""Input and output shared by the verbs that read queries: files, and options for their texts."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from acquatop.errors import EnvironmentProblem, UserError

if TYPE_CHECKING:
    from acquatop.catalog.catalog import Catalog

UNITS = ("ms", "s", "m", "h")


def read_text(file: str) -> str:
    """Return the text of a file, or of the standard input for ``-``.

    Raises :class:`UserError` with the reason if it cannot be read.
    """
    try:
        return _bytes_of(file).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UserError(f"{file}: the query cannot be read: {reason}") from None


def _bytes_of(file: str) -> bytes:
    if file != "-":
        return Path(file).read_bytes()
    if sys.stdin is None:
        raise UserError("-: the query cannot be read: the standard input is closed")
    return sys.stdin.buffer.read()


def write_line(line: str) -> None:
    """Print a line in the terminal's encoding; escape characters that it lacks."""
    if sys.stdout is None:
        raise EnvironmentProblem("the standard output is closed")
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def add_language_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for reading a query's text."""
    parser.add_argument(
        "--catalog", type=Path, metavar="FILE", help="what the query's IRIs stand for"
    )
    parser.add_argument(
        "--unit", choices=UNITS, help="the unit of durations that are written without one"
    )
    parser.add_argument("--debug", action="store_true", help="print the traceback of an error")


def catalog_of(options: argparse.Namespace) -> Catalog | None:
    """Return the catalog of the options, or None."""
    if options.catalog is None:
        return None
    from acquatop.catalog.catalog import Catalog

    # Nothing is read or contacted, so that missing variables of the environment do not matter.
    return Catalog.load(options.catalog, variables=_Lenient(os.environ))


class _Lenient(dict[str, str]):
    """The environment, with a placeholder for every variable that is not set."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return "http://unset.invalid/"

    def get(self, name: str, default: object = None) -> str:
        """Return a variable's value, or the placeholder."""
        return self[name]
