"""Options about the evaluation of whole windows, in place of the catalog's limits."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from acquatop.app.cli.record import duration

if TYPE_CHECKING:
    from acquatop.catalog.catalog import Catalog

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def add_evaluation_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--evaluation-memory`` and ``--evaluation-timeout``."""
    parser.add_argument(
        "--evaluation-memory",
        type=size,
        metavar="BYTES",
        help="memory of a query that is evaluated window by window, such as 512M",
    )
    parser.add_argument(
        "--evaluation-timeout",
        type=duration,
        metavar="TIME",
        help="longest evaluation of a whole window, such as 10s",
    )


def load_catalog(options: argparse.Namespace) -> Catalog:
    """Return the catalog that the options name, with their limits of evaluations."""
    from acquatop.catalog.catalog import Catalog

    catalog = Catalog.load(options.catalog)
    limits = catalog.evaluation
    if options.evaluation_memory is not None:
        limits = replace(limits, memory_bytes=options.evaluation_memory)
    if options.evaluation_timeout is not None:
        limits = replace(limits, seconds=options.evaluation_timeout / 1000)
    return replace(catalog, evaluation=limits)


def size(text: str) -> int:
    """Return a number of bytes, with K, M or G for powers of 1024.

    >>> size("512M"), size("65536000")
    (536870912, 65536000)
    """
    from acquatop.catalog.evaluation_limits import LEAST_MEMORY_BYTES

    number, unit = (text[:-1], text[-1:].upper()) if text[-1:].isalpha() else (text, "")
    if not number.isdecimal() or unit not in _UNITS:
        raise argparse.ArgumentTypeError(f'"{text}" is no number of bytes, such as 512M or 2G')
    found = int(number) * _UNITS[unit]
    if found < LEAST_MEMORY_BYTES:
        raise argparse.ArgumentTypeError(f"at least {LEAST_MEMORY_BYTES >> 20}M are needed")
    return found
