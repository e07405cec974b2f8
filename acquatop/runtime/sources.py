"""Connectors by the names that catalogs use.

A source's name in Spark is its own (``SOURCES[connector].name()``): some names are taken there.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource

from connectors.lines import LinesDataSource
from connectors.parquet import ParquetDataSource

SOURCES: dict[str, type[DataSource]] = {"lines": LinesDataSource, "parquet": ParquetDataSource}
