"""Posts of X (Twitter) as a stream: what the filtered stream of the API v2 brings, each post once.

In plain PySpark, with the bearer token of an app in the environment variable ``X_BEARER_TOKEN``::

    from connectors.x import XDataSource

    spark.dataSource.register(XDataSource)
    posts = (
        spark.readStream.format("x")
        .option("log", "/var/lib/posts")
        .option("rules", '{"brands": "@acme has:mentions lang:en"}')
        .load()
    )

A row is a line of the stream: its bytes (``value``), which are a JSON object with the post under ``data``, when it was
``received``, and its ``position`` among all that was received. What comes is written to the log first, see
:mod:`connectors.live`. A connection that ends or falls silent is made again, as soon and as often as X's documentation
asks; what was missed meanwhile is asked for if ``backfillMinutes`` says so, and a post that comes again is left out.

The token is an option of nothing: it is read from the environment by the process that plans the batches, which on Spark
is a child of the driver's.

Options:

- ``log``: a folder of its own on a local disk, which the executors see under the same path.
- ``rules``: a JSON object from tags to rules: which posts are wanted, under which name. X keeps rules: those that it
  has besides are deleted when the stream begins. Without the option they stay as they are.
- ``backfillMinutes``: how many minutes, 5 at most, X may be asked for after a connection was lost or the stream was
  stopped, if the app's access includes that; 0 unless given. Each post that comes again counts for X.
- ``fields``: which fields of posts to ask for besides ``id`` and ``text``, separated by commas;
  ``author_id,created_at,entities,public_metrics`` unless given.
- ``tokenVariable``: the environment variable with the token, ``X_BEARER_TOKEN`` unless given.
- ``url``: where X is, ``https://api.x.com`` unless given.
- ``maxLogBytes``: how much may wait in the log, 1 GiB unless given. A log that is full receives nothing, and in the end
  X closes the connection.
- ``maxBytesPerBatch``: how much to read in one batch, 64 MiB unless given.
- ``maxPartitions``: into how many parts, of 4 MiB at least, to cut a batch, one per core unless given.
- ``commits``: ``batch`` if what a batch has read is let go when Spark commits it, ``owner`` if only on request.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from pyspark.sql.datasource import DataSource

from connectors import ConnectorError
from connectors.live import LiveReader, log_options
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
        return LiveReader(functools.partial(FilteredStream, _settings(self.options)), log_options("x", self.options))


def _settings(options: Mapping[str, str]) -> Settings:
    """Return what options say of the stream; raises :class:`~connectors.ConnectorError`."""
    minutes = options.get("backfillMinutes", "0")
    if not minutes.isdecimal() or int(minutes) > MOST_BACKFILL_MINUTES:
        raise ConnectorError(f"the option backfillMinutes is a whole number from 0 to {MOST_BACKFILL_MINUTES}")
    fields = options.get("fields", ",".join(FIELDS)).split(",")
    return Settings(
        url=check_url(options.get("url", URL)),
        token_variable=options.get("tokenVariable", VARIABLE),
        rules=rules_of(options["rules"]) if "rules" in options else (),
        fields=tuple(filter(None, map(str.strip, fields))),
        backfill_minutes=int(minutes),
    )
