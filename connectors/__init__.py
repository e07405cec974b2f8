"""Connectors: bytes in, records out. They know nothing of queries.

Each connector is a module with one PySpark data source, which works in plain PySpark; the
in-process runtime drives the same reader without Spark. What a source's rows say is decoded by a
:class:`~connectors.contract.RecordDecoder`, one per format.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Option:
    """An option of a connector: a text, or a whole number from 1 on."""

    required: bool = False
    is_number: bool = False


CONNECTORS: Mapping[str, Mapping[str, Option]] = {
    "lines": {
        "path": Option(required=True),
        "maxBytesPerBatch": Option(is_number=True),
        "maxPartitions": Option(is_number=True),
    },
    "parquet": {
        "path": Option(required=True),
        "maxRowsPerBatch": Option(is_number=True),
        "maxPartitions": Option(is_number=True),
    },
}
"""Every connector's options, by the names that catalogs use."""

FORMATS: Mapping[str, tuple[str, ...]] = {"lines": ("json", "ntriples"), "parquet": ("columns",)}
"""The formats that each connector's rows may have; the first is meant where none is named."""


class ConnectorError(Exception):
    """A source cannot be read: the message says which, where and what to do."""

    exit_code = 1
