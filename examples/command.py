"""Shared parts of the demos: command line and display of answers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from acquatop.app.cli.exit_codes import guarded
from acquatop.app.cli.run import add_run_options


def run(demo: Callable[[argparse.Namespace], None], name: str, about: str, *, seeded: str) -> int:
    """Run a demo with the command line's options; return its exit code.

    ``seeded`` names what is simulated.
    """
    parser = argparse.ArgumentParser(prog=f"run demo {name}", description=about)
    add_run_options(parser, windows=10)
    parser.add_argument(
        "--seed", type=int, default=7, metavar="S", help=f"of the simulated {seeded} (%(default)s)"
    )
    options = parser.parse_args()
    return guarded(lambda: demo(options), debug=options.debug)


def show_answers(
    options: argparse.Namespace, scene: Path, variables: dict[str, str], start: Callable[[], str]
) -> None:
    """Show the answers to a scene's query.

    ``start`` starts the simulation, and returns a message about it.
    """
    # Imported only here, so that a Ctrl-C during the import ends the demo properly.
    from acquatop.app.cli.print_answers import shower
    from acquatop.app.cli.unusable import Unusable
    from acquatop.engine.engine import Engine

    query_file, catalog = scene / "query.rspql", scene / "catalog.toml"
    with Unusable(at_first=True) as unusable:
        with Engine.from_catalog(
            catalog, runtime=options.runtime, variables=variables, observer=unusable.intake
        ) as engine:
            query = engine.register(query_file.read_text("utf-8"), file=str(query_file))
            say(f"{start()}; an answer follows at every window close (Ctrl-C ends it)\n")
            show = shower(as_json=options.json)
            for answer in query.answers(limit=options.windows):
                show(answer)
        unusable.check()


def say(message: str) -> None:
    """Print a message for the user."""
    print(message, file=sys.stderr, flush=True)
