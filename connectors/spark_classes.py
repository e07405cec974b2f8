"""PySpark's base classes of data sources, and stand-ins for where PySpark is not installed.

An engine reads sources by the same methods whether Spark drives them or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["DataSource", "DataSourceStreamReader", "InputPartition"]

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
else:
    try:
        from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
    except ModuleNotFoundError as missing:
        if missing.name != "pyspark":
            raise

        class DataSource:
            """A source with its options."""

            def __init__(self, options: dict[str, str]) -> None:
                self.options = options

        class DataSourceStreamReader:
            """A reader of a source that keeps nothing."""

            def commit(self, end: Any) -> None:
                """Release a batch's records."""

            def stop(self) -> None:
                """End the reader."""

        class InputPartition:
            """A part of a batch."""

            def __init__(self, value: Any) -> None:
                self.value = value
