"""Stream of messages from a WebSocket server.

In plain PySpark::

    from connectors.websocket import WebSocketDataSource

    spark.dataSource.register(WebSocketDataSource)
    messages = (
        spark.readStream.format("websocket")
        .option("url", "ws://127.0.0.1:9999/events")
        .option("log", "received/")
        .load()
    )

A row is a message, or a line of a message that holds several: its bytes, the time at which it was
``received``, and its ``position`` among all received rows. Rows are written to a durable log before
they are read (see :mod:`connectors.live`): a logged row is read once, whatever is killed.
WebSockets have no acknowledgements, so data on its way is lost if this process is killed or the
connection breaks. A lost connection is made anew; an open one is probed at intervals. A server that
sends more than 128 MiB in one message loses the connection.

Options:

- ``url``: ``ws://HOST[:PORT]/PATH``, or ``wss://`` for TLS.
- ``log``, ``maxLogBytes``, ``maxBytesPerBatch``, ``maxPartitions``, ``commits``: see
  :func:`connectors.live.log_options`.
- ``messageId``, ``duplicateWindow``: to drop messages that come again, see there.
- ``subscribe``: a text to send after each connect, because many servers require one.
- ``split``: ``lines`` if a message holds a record per line, ``none`` (the default) if it is one
  record.
- ``tokenVariable``: the environment variable with a token, sent as ``Authorization: Bearer``.
- ``maxMessageBytes``: maximum length of a message, 8 MiB by default. Of a longer one only the
  beginning is kept, which is a bad record.
- ``keepAlive``: seconds between probes of the connection, and seconds to wait for the reply to a
  probe before the connection is given up; 30 by default.
- ``patience``: seconds within which the first connection must succeed, 30 by default; later ones
  are retried for ever.
"""

from __future__ import annotations

import functools
import os
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from connectors import ConnectorError
from connectors.line_buffer import COLUMNS, LONGEST_LINE, shortened
from connectors.live import LiveReader, log_options
from connectors.reconnecting import HINT, ReconnectingSource
from connectors.source_status import Link
from connectors.spark_classes import DataSource

SPLITS = ("none", "lines")
_MOST_BYTES = 4 << 20
"""Approximate maximum number of bytes received at once, to be made durable together."""
_LARGEST = 128 << 20
_CONNECT_SECONDS = 5.0
_CLOSE_SECONDS = 1.0
_NOT_ALLOWED = "see that the variable of tokenVariable has a token that the server accepts"
_HINTS = {
    401: _NOT_ALLOWED,
    403: _NOT_ALLOWED,
    404: "see that the path in the url is right",
}
"""Remedies by the status of an HTTP reply that refuses the connection."""


@dataclass(frozen=True)
class WebSocketOptions:
    """Address of the server, and settings of the connection."""

    url: str
    subscribe: str | None = None
    has_lines: bool = False
    token_variable: str | None = None
    longest: int = LONGEST_LINE
    keep_alive: float = 30.0
    patience: float = 30.0


class WebSocketDataSource(DataSource):
    """The data source ``websocket``."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "websocket"

    def schema(self) -> str:
        """Return the columns of a row."""
        return COLUMNS

    def streamReader(self, schema: Any) -> LiveReader:  # noqa: N802 (the name is PySpark's)
        """Return a reader for the options given; it connects when first asked for new data."""
        url, split = self.options.get("url"), self.options.get("split", "none")
        if not url:
            raise ConnectorError(
                'the connector "websocket" needs the option url: ws://HOST[:PORT]/PATH, or wss://'
            )
        log = log_options("websocket", self.options)
        if not url.startswith(("ws://", "wss://")):
            raise ConnectorError(
                'the option url of the connector "websocket" must begin with ws:// or wss://'
            )
        if split not in SPLITS:
            raise ConnectorError(
                f'the option split of the connector "websocket" is "none" or "lines", not "{split}"'
            )
        usual = WebSocketOptions(url)
        options = WebSocketOptions(
            url,
            self.options.get("subscribe"),
            split == "lines",
            self.options.get("tokenVariable"),
            int(self.options.get("maxMessageBytes", usual.longest)),
            float(self.options.get("keepAlive", usual.keep_alive)),
            float(self.options.get("patience", usual.patience)),
        )
        return LiveReader(functools.partial(WebSocketSource, options), log)


class WebSocketSource(ReconnectingSource):
    """Client's end of a WebSocket."""

    # The library raises its own errors, and those of sockets, TLS and HTTP.
    failures = (Exception,)

    def __init__(self, options: WebSocketOptions) -> None:
        where = _without_secrets(options.url)
        super().__init__(where, options.patience)
        self.link = Link(
            where, what="message", silence_hint="see if the server wants a text first (subscribe)"
        )
        self._options = options
        self._socket: Any = None
        self._closing = ExitStack()

    @property
    def is_connected(self) -> bool:
        """True if there is a connection to read from."""
        return self._socket is not None

    def _connect(self) -> None:
        from websockets.sync.client import connect

        connection = connect(
            self._options.url,
            additional_headers=self._headers(),
            open_timeout=_CONNECT_SECONDS,
            close_timeout=_CLOSE_SECONDS,
            ping_interval=self._options.keep_alive,
            ping_timeout=self._options.keep_alive,
            max_size=_LARGEST,
        )
        self._socket = self._closing.enter_context(connection)
        if self._options.subscribe is not None:
            self._socket.send(self._options.subscribe)

    def _headers(self) -> dict[str, str]:
        variable = self._options.token_variable
        if variable is None:
            return {}
        token = os.environ.get(variable)
        if not token:
            raise ConnectorError(
                f"the environment variable {variable}, which should hold a token, is not set"
            )
        return {"Authorization": f"Bearer {token}"}

    def _words(self, error: Exception) -> str:
        return super()._words(error).replace(self._options.url, self._where)

    def _hint(self, error: Exception) -> str:
        status = getattr(getattr(error, "response", None), "status_code", 0)
        return _HINTS.get(status, HINT)

    def _read(self, seconds: float) -> list[bytes]:
        """Return the received rows, some megabytes at most."""
        lines: list[bytes] = []
        size = 0
        try:
            while size < _MOST_BYTES:
                message = self._socket.recv(timeout=0 if lines else seconds)
                data = message.encode() if isinstance(message, str) else message
                size += len(data)
                lines += self._rows(data)
        except TimeoutError:
            pass  # no more data for now
        except Exception as error:
            self._lost(error)
        return lines

    def _rows(self, data: bytes) -> list[bytes]:
        rows = data.splitlines() if self._options.has_lines else [data]
        return [shortened(row, self._options.longest) for row in rows]

    def close(self) -> None:
        """Close the connection."""
        self._closing.close()
        self._socket = None


def _without_secrets(url: str) -> str:
    """Return a URL without its query and its user, which may contain a token.

    >>> _without_secrets("wss://ann:xyzzy@host:1/events?token=xyzzy")
    'wss://host:1/events'
    """
    scheme, _, rest = url.partition("?")[0].partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
