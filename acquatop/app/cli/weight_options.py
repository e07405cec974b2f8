"""Option of the command line for the weights of queries."""

from __future__ import annotations

import argparse


def add_weight_option(parser: argparse.ArgumentParser) -> None:
    """Add the option for what queries weigh."""
    parser.add_argument(
        "--weight",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="what a query counts among those that share a service's budget (1)",
    )
