"""``acquatop generate``: generate a trace to compare refresh policies on."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from acquatop.app.cli.query_files import write_line
from acquatop.errors import EnvironmentProblem, UserError

KINDS = (
    "redrawn", "walks", "bursts", "rhythm", "rare", "tails", "mixed", "few", "returning", "list"
)  # fmt: skip


def add_parser(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser = verbs.add_parser(
        "generate", help="make a trace: a stream and a remote whose values change in some way"
    )
    parser.add_argument(
        "folder", metavar="DIR", help="where to write it; files of the same names are replaced"
    )
    parser.add_argument(
        "--kind", choices=KINDS, default="redrawn", help="of which data (%(default)s)"
    )
    parser.add_argument(
        "--changes", type=float, help="of redrawn: how many of a hundred a minute (20)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="the same seed makes the same trace (%(default)s)"
    )
    parser.add_argument("--users", type=int, default=400, help="of how many users (%(default)s)")
    parser.add_argument(
        "--windows", type=int, default=150, help="for how many windows (%(default)s)"
    )
    parser.add_argument("--debug", action="store_true", help="print the traceback of an error")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> None:
    """Write the trace."""
    from acquatop.lab.generate import KINDS, KindOfData, Redrawn, generate

    if options.changes is not None and options.kind != "redrawn":
        raise UserError(f"--changes is for --kind redrawn, not {options.kind}")
    try:
        kind = (
            KINDS[options.kind] if options.changes is None else KindOfData(Redrawn(options.changes))
        )
        trace = generate(kind, seed=options.seed, users=options.users, windows=options.windows)
    except ValueError as error:
        raise UserError(str(error)) from None
    folder = Path(options.folder)
    try:
        trace.write(folder)
    except OSError as error:
        raise EnvironmentProblem(
            f"{folder}: the trace cannot be written: {error.strerror}"
        ) from None
    write_line(f"{folder}: {len(trace.mentions):,} mentions, {len(trace.changes):,} values")
