"""Stream of posts of X (Twitter), from the filtered stream of its API v2; each post once.

In plain PySpark, with the bearer token of an app in the environment variable ``X_BEARER_TOKEN``::

    from connectors.x import XDataSource

    spark.dataSource.register(XDataSource)
    posts = (
        spark.readStream.format("x")
        .option("log", "/var/lib/posts")
        .option("rules", '{"brands": "@acme has:mentions lang:en"}')
        .load()
    )

A row is a line of the stream: its bytes (``value``), which are a JSON object with the post under
``data``, the time at which it was ``received``, and its ``position`` among all received rows. Rows
are written to the log first, see :mod:`connectors.live`. A connection that ends or falls silent is
made again, as soon and as often as X's documentation allows. Missed posts are requested if
``backfillMinutes`` is set, and a post that comes again is left out.

The token is not an option: the process that plans the batches reads it from the environment. On
Spark that is a child of the driver's process.

Options:

- ``log``: a folder for this log alone on a local disk, which executors see under the same path.
- ``rules``: a JSON object from tags to rules: the wanted posts, each kind with a name. X stores
  rules: all others that it has are deleted when the stream begins. Without the option they stay as
  they are.
- ``backfillMinutes``: minutes, 5 at most, that X may be asked for after a connection was lost or
  the stream was stopped, if the app's access includes that; 0 by default. X counts each post that
  comes again.
- ``fields``: the fields of posts to request besides ``id`` and ``text``, separated by commas;
  ``author_id,created_at,entities,public_metrics`` by default.
- ``tokenVariable``: the environment variable with the token, ``X_BEARER_TOKEN`` by default.
- ``url``: the address of X, ``https://api.x.com`` by default.
- ``maxLogBytes``: maximum size of the log, 1 GiB by default. A full log receives nothing, and in
  the end X closes the connection.
- ``maxBytesPerBatch``: maximum size of one batch, 64 MiB by default.
- ``maxPartitions``: maximum number of partitions, of 4 MiB at least, of a batch, one per core by
  default.
- ``commits``: ``batch`` if Spark's commit of a batch releases its records, ``owner`` if only a
  request does.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from connectors import ConnectorError
from connectors.live import LiveReader, log_options
from connectors.spark_classes import DataSource
from connectors.x_api.api import URL, check_url
from connectors.x_api.filtered_stream import FIELDS, MOST_BACKFILL_MINUTES, FilteredStream, Settings
from connectors.x_api.rules import rules_of
from connectors.x_api.token import VARIABLE


class XDataSource(DataSource):
    """The data source ``x``."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "x"

    def schema(self) -> str:
        """Return the columns of a row."""
        return "value binary, received timestamp, position bigint"

    def streamReader(self, schema: Any) -> LiveReader:  # noqa: N802 (the name is PySpark's)
        """Return a reader for the options given."""
        return LiveReader(
            functools.partial(FilteredStream, _settings(self.options)),
            log_options("x", self.options),
        )


def _settings(options: Mapping[str, str]) -> Settings:
    """Return the stream's settings; raise :class:`~connectors.ConnectorError` for wrong ones."""
    minutes = options.get("backfillMinutes", "0")
    if not minutes.isdecimal() or int(minutes) > MOST_BACKFILL_MINUTES:
        raise ConnectorError(
            f"the option backfillMinutes is a whole number from 0 to {MOST_BACKFILL_MINUTES}"
        )
    fields = options.get("fields", ",".join(FIELDS)).split(",")
    return Settings(
        url=check_url(options.get("url", URL)),
        token_variable=options.get("tokenVariable", VARIABLE),
        rules=rules_of(options["rules"]) if "rules" in options else (),
        fields=tuple(filter(None, map(str.strip, fields))),
        backfill_minutes=int(minutes),
    )
