"""The command ``acquatop``: one file per verb."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from acquatop import __version__
from acquatop.app.cli.advise import add_parser as add_advise
from acquatop.app.cli.check import add_parser as add_check
from acquatop.app.cli.compare import add_parser as add_compare
from acquatop.app.cli.completion import add_parser as add_completion
from acquatop.app.cli.completion import complete
from acquatop.app.cli.connectors import add_parser as add_connectors
from acquatop.app.cli.demo import add_parser as add_demo
from acquatop.app.cli.evaluate import add_parser as add_evaluate
from acquatop.app.cli.exit_codes import guarded
from acquatop.app.cli.explain import add_parser as add_explain
from acquatop.app.cli.fmt import add_parser as add_fmt
from acquatop.app.cli.generate import add_parser as add_generate
from acquatop.app.cli.plugins import add_parser as add_plugins
from acquatop.app.cli.record import add_parser as add_record
from acquatop.app.cli.run import add_parser as add_run
from acquatop.app.cli.schema import add_parser as add_schema
from acquatop.app.cli.serve import add_parser as add_serve
from acquatop.app.cli.why import add_parser as add_why


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="acquatop",
        description=(
            "Continuous top-k queries over an RDF stream joined with remote data, answered on time."
        ),
    )
    parser.add_argument("--version", action="version", version=f"acquatop {__version__}")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for add_verb in (
        *(add_demo, add_run, add_serve, add_check, add_explain, add_fmt, add_why),
        *(add_connectors, add_plugins, add_schema, add_record, add_generate),
        *(add_evaluate, add_compare, add_advise, add_completion),
    ):
        add_verb(verbs)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0 done, 1 the environment's fault, 2 the user's."""
    parser = build_parser()
    complete(parser)
    options = parser.parse_args(arguments)
    execute: Callable[[argparse.Namespace], int | None] = options.execute
    return guarded(lambda: execute(options), debug=options.debug)
