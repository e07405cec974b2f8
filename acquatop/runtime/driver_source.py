"""Data sources that Spark asks for offsets in the driver, with the driver's own Python.

Spark asks a source in a Python of its own, beside the driver's Java. By default it starts the
Python that executors are to use, without the files that these are sent. An environment that is
packed or sent for executors need not exist on the driver's machine.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql.datasource import DataSource, DataSourceRegistration

import acquatop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register_in_driver(spark: SparkSession, source: type[DataSource]) -> str:
    """Register a data source for the driver's Python, and return the name of its format.

    The format's name is an engine's own: a session's format of the source's name stays as it is.
    """
    named = _renamed(source)
    DataSourceRegistration(cast("SparkSession", _Session(spark))).register(named)
    return named.name()


def _renamed(source: type[DataSource]) -> type[DataSource]:
    name = f"acquatop {source.name()}"

    class Renamed(source):  # type: ignore[misc, valid-type]
        """The source, under another name."""

        @classmethod
        def name(cls) -> str:
            """Return the format's name."""
            return name

    return Renamed


class _Session:
    """A session with another context."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.sparkContext = _Context(spark.sparkContext)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)


class _Context:
    """A context with this process's Python and module path in place of the executors'."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self.pythonExec = sys.executable

    @property
    def environment(self) -> Mapping[str, str]:
        """Return the variables of Spark's Python processes.

        A source's class is imported before this package, which would find the others by itself. So
        they come first, before other people's modules of their names.
        """
        places = [Path(acquatop.__path__[0]).parent, *map(Path, sys.path)]
        path = os.pathsep.join(str(each.absolute()) for each in places)
        return {**self._context.environment, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)
