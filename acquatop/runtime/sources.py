"""Connectors by the names that catalogs use."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource

from connectors.lines import LinesDataSource

SOURCES: dict[str, type[DataSource]] = {"lines": LinesDataSource}
