"""PySpark's limits of a batch, and stand-ins for versions before 4.2, whose sources know none.

Such a version asks for the latest offset without a start and without a limit. Streams that an
engine reads are cut by the engine all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = [
    "ALL",
    "PLANS_WITHIN_LIMITS",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxBytes",
    "ReadMaxRows",
    "TriggerAvailableNow",
]

PLANS_WITHIN_LIMITS = True
"""True if Spark asks sources for no more than their limits."""

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxBytes,
        ReadMaxRows,
    )
    from pyspark.sql.streaming.datasource import (
        SupportsTriggerAvailableNow as TriggerAvailableNow,
    )
else:
    try:
        from pyspark.sql.streaming.datasource import (
            ReadAllAvailable,
            ReadLimit,
            ReadMaxBytes,
            ReadMaxRows,
        )
        from pyspark.sql.streaming.datasource import (
            SupportsTriggerAvailableNow as TriggerAvailableNow,
        )
    except ModuleNotFoundError:
        from dataclasses import dataclass

        PLANS_WITHIN_LIMITS = False

        class ReadLimit:
            """Limit of a batch."""

        @dataclass
        class ReadAllAvailable(ReadLimit):
            """No limit."""

        @dataclass
        class ReadMaxRows(ReadLimit):
            """Limit in rows."""

            max_rows: int

        @dataclass
        class ReadMaxBytes(ReadLimit):
            """Limit in bytes."""

            max_bytes: int

        class TriggerAvailableNow:
            """Base class without a meaning: these versions read what is there in one batch."""


ALL = ReadAllAvailable()
"""The limit of versions that know none."""
