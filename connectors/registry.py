"""All connectors: their names, what is read with them, and what can be set. Light to import: none is loaded by it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from connectors.option import Kind, Option

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSource


@dataclass(frozen=True)
class Connector:
    """What a connector says of itself.

    ``source`` is where its PySpark data source is, as ``module:class``; ``formats`` are those that its rows may have,
    of which the first is meant where none is named; ``guarantee`` says what becomes of rows when whoever reads them is
    killed.
    """

    name: str
    summary: str
    source: str
    formats: tuple[str, ...]
    guarantee: str
    options: Mapping[str, Option]

    def data_source(self) -> type[DataSource]:
        """Return the data source, which is loaded now. Its name in Spark is its own: some names are taken there."""
        module, _, name = self.source.partition(":")
        source: type[DataSource] = getattr(importlib.import_module(module), name)
        return source

    def to_json(self) -> dict[str, Any]:
        """Return what it says of itself, in JSON's words."""
        options = [{"name": name, **asdict(option)} for name, option in self.options.items()]
        said = {"name": self.name, "summary": self.summary, "formats": list(self.formats), "guarantee": self.guarantee}
        return {**said, "options": options}

    @property
    def in_catalogs(self) -> Mapping[str, Option]:
        """The options that catalogs may set."""
        return {name: option for name, option in self.options.items() if not option.implied}


_PARTITIONS = Option(
    "into how many parts to cut what is read at a time, so that as many cores decode it", Kind.NUMBER, "one per core"
)
_REPLAYABLE = "every row once: offsets are places in files, which can be read again"

LINES = Connector(
    name="lines",
    summary="a file, or a folder of files, that grow line by line",
    source="connectors.lines:LinesDataSource",
    formats=("json", "ntriples"),
    guarantee=_REPLAYABLE,
    options={
        "path": Option("the file or the folder", Kind.PATH, required=True, names_source=True),
        "maxBytesPerBatch": Option("how much to read at a time", Kind.NUMBER, "64 MiB"),
        "maxPartitions": _PARTITIONS,
        "together": Option(
            "which neighbouring lines are never parted",
            default="none",
            choices=("subject", "subject and graph"),
            implied=True,
        ),
    },
)

PARQUET = Connector(
    name="parquet",
    summary="a file, or a folder of Parquet files that are whole when they appear",
    source="connectors.parquet:ParquetDataSource",
    formats=("columns",),
    guarantee=_REPLAYABLE,
    options={
        "path": Option("the file or the folder", Kind.PATH, required=True, names_source=True),
        "maxRowsPerBatch": Option("how many rows to read at a time", Kind.NUMBER, "2 million"),
        "maxPartitions": _PARTITIONS,
        "columns": Option(
            "a JSON object with the types of the columns wanted: `bigint`, `double` or `string`",
            required=True,
            implied=True,
        ),
    },
)

CONNECTORS: Mapping[str, Connector] = {connector.name: connector for connector in (LINES, PARQUET)}
"""Every connector, by the name that catalogs use."""
