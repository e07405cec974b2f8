"""``acquatop demo``: watch the engine at work on a simulated world."""

from __future__ import annotations

import argparse
import importlib
from typing import Any

from acquatop.app.cli.run import add_run_options

SCENES = {
    "social_media": "emerging users, from mentions and a changing SPARQL server",
    "manufacturing": "products at risk in a plant that speaks MQTT",
    "x": "emerging users, from the posts of a stand-in for X",
}
"""Scenes of the demo, one example each."""
WINDOWS = 10


def add_parser(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser = verbs.add_parser(
        "demo",
        help="watch the engine at work on a simulated world",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="\n".join(f"{name + ':':14} {about}" for name, about in SCENES.items()),
    )
    parser.add_argument(
        "scene", nargs="?", choices=tuple(SCENES), default="social_media", help="(%(default)s)"
    )
    add_run_options(parser, windows=None, unless=f"{WINDOWS}, with --ui until stopped")
    parser.add_argument(
        "--ui", action="store_true", help="show the answers on a live page in a browser"
    )
    parser.add_argument(
        "--seed", type=int, default=7, metavar="S", help="of the simulated world (%(default)s)"
    )
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> None:
    """Run the scene with servers of its own, until enough answers have come."""
    if options.windows is None and not options.ui:
        options.windows = WINDOWS
    # The examples are beside the package in the sources, and in it once it is installed.
    importlib.import_module(f"acquatop.examples.{options.scene}.demo").demo(options)
