"""The options that say on which Spark an engine runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeVar

from acquatop.catalog.spark_settings import SparkSettings, checked_master, parsed_property
from acquatop.errors import UserError
from acquatop.runtime import check_runtime

Value = TypeVar("Value")


def add_spark_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--master`` and ``--conf``."""
    parser.add_argument(
        "--master",
        type=_told(checked_master),
        metavar="URL",
        help="where Spark runs (local[*]: here, on all cores)",
    )
    parser.add_argument(
        "--conf",
        type=_told(parsed_property),
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a property of Spark's, such as spark.driver.memory=4g; may be given several times",
    )


def spark_settings(options: argparse.Namespace) -> SparkSettings:
    """Return what the options say.

    Raises :class:`~acquatop.errors.UserError` where they contradict each other.
    """
    conf: dict[str, str] = {}
    for name, value in options.conf:
        if conf.setdefault(name, value) != value:
            raise UserError(f'--conf says two things of {name}: "{conf[name]}" and "{value}"')
    if options.master not in (None, conf.get("spark.master", options.master)):
        raise UserError(
            f'--master says "{options.master}", and --conf spark.master="{conf["spark.master"]}"'
        )
    settings = SparkSettings(options.master, conf)
    check_runtime(options.runtime, settings)
    return settings


def _told(parse: Callable[[str], Value]) -> Callable[[str], Value]:
    """Return a parser of an option whose messages reach whoever has written it."""

    def parsed(text: str) -> Value:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parsed
