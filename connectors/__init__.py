"""Connectors: bytes in, records out. They know nothing of queries.

Each connector is a module with one PySpark data source, which works in plain PySpark; the
in-process runtime drives the same reader without Spark. What a source's rows say is decoded by a
:class:`~connectors.contract.RecordDecoder`, one per format. :mod:`connectors.registry` lists them all.
"""

from __future__ import annotations


class ConnectorError(Exception):
    """A source cannot be read: the message says which, where and what to do."""

    exit_code = 1
