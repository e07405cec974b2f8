"""``acquatop run``: run one query and print its answers."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from acquatop.cli.texts import read_text


def add_parser(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser = verbs.add_parser("run", help="run a query and print an answer at every window close")
    parser.add_argument("query", metavar="QUERY", help="a file with an RSP-QL query")
    parser.add_argument("--catalog", type=Path, required=True, metavar="FILE", help="what the query's IRIs stand for")
    add_run_options(parser, windows=None)
    parser.add_argument(
        "--until-end", action="store_true", help="read what the stream holds now, close all windows, and stop"
    )
    parser.set_defaults(execute=execute)


def add_run_options(parser: argparse.ArgumentParser, *, windows: int | None) -> None:
    """Add the options that everything has that runs a query."""
    from acquatop.runtime import RUNTIMES

    parser.add_argument("--runtime", choices=RUNTIMES, default="spark", help="what carries the events (%(default)s)")
    some = "until stopped" if windows is None else "%(default)s"
    parser.add_argument(
        "--windows", type=_positive, default=windows, metavar="N", help=f"stop after N answers ({some})"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per answer instead of tables")
    parser.add_argument("--debug", action="store_true", help="print the traceback of an error")


def execute(options: argparse.Namespace) -> None:
    """Run the query that the options name."""
    from acquatop.cli.progress import LoadingProgress
    from acquatop.cli.show import shower
    from acquatop.engine import Engine

    text, progress = read_text(options.query), LoadingProgress()
    with Engine.from_catalog(
        options.catalog, runtime=options.runtime, until_end=options.until_end, progress=progress
    ) as engine:
        with progress:
            query = engine.register(text, file=options.query)
        show = shower(as_json=options.json)
        for answer in query.answers(limit=options.windows):
            show(answer)


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return number
