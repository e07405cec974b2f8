"""Connectors of AcquaTop: bytes in, records out. They know nothing of queries.

Each connector is a module with one PySpark data source, which works in plain PySpark. The
in-process runtime drives the same reader without Spark. A
:class:`~connectors.contract.RecordDecoder`, one per format, decodes the source's rows.
:mod:`connectors.registry` lists all connectors.
"""

from __future__ import annotations


class ConnectorError(Exception):
    """Error: a source cannot be read. The message names the source, the place and a remedy."""

    exit_code = 1
