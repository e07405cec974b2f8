"""Connectors: bytes in, records out. They know nothing of queries.

Each connector is a module with one PySpark data source, which works in plain PySpark; the
in-process runtime drives the same reader without Spark.
"""


class ConnectorError(Exception):
    """A source cannot be read: the message says which, where and what to do."""
